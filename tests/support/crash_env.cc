// SPDX-License-Identifier: Apache-2.0
//
// CrashEnv. Each directory has two maps of names, the present one and the durable one, and a list
// of the changes in between. A sync of the directory applies the list; a crash drops it, and the
// durable map becomes the present one. A rename between two directories is a change of the new one.

#include "crash_env.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace pv2::testing {
namespace {

leveldb::Status power_is_off(const std::string& file) {
  return leveldb::Status::IOError(file, "the power is off");
}

leveldb::Status no_such_file(const std::string& file) {
  return leveldb::Status::NotFound(file, "No such file or directory");
}

std::string directory_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? "." : file.substr(0, slash);
}

bool is_manifest(const std::string& file) { return file.find("/MANIFEST-") != std::string::npos; }

Status translated(const leveldb::Status& status) {
  if (status.ok()) return Status();
  const bool full = status.ToString().find("No space left") != std::string::npos;
  return Status(full ? StatusCode::kStorageFull : StatusCode::kIoError, status.ToString());
}

class Lock final : public leveldb::FileLock {
 public:
  explicit Lock(std::string file) : file_(std::move(file)) {}
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  std::string file_;
};

class SilentLogger final : public leveldb::Logger {
  void Logv(const char*, std::va_list) override {}
};

// Reads a snapshot of the bytes: LevelDB never reads a file while it is being written.
class Sequential final : public leveldb::SequentialFile {
 public:
  explicit Sequential(std::string bytes) : bytes_(std::move(bytes)) {}
  leveldb::Status Read(std::size_t n, leveldb::Slice* result, char* scratch) override {
    const std::size_t size = bytes_.copy(scratch, n, at_);
    at_ += size;
    *result = leveldb::Slice(scratch, size);
    return leveldb::Status::OK();
  }
  leveldb::Status Skip(std::uint64_t n) override {
    at_ = std::min<std::size_t>(bytes_.size(), at_ + n);
    return leveldb::Status::OK();
  }

 private:
  const std::string bytes_;
  std::size_t at_ = 0;
};

class RandomAccess final : public leveldb::RandomAccessFile {
 public:
  explicit RandomAccess(std::string bytes) : bytes_(std::move(bytes)) {}
  leveldb::Status Read(std::uint64_t offset, std::size_t n, leveldb::Slice* result,
                       char* scratch) const override {
    const std::size_t size = offset > bytes_.size() ? 0 : bytes_.copy(scratch, n, offset);
    *result = leveldb::Slice(scratch, size);
    return leveldb::Status::OK();
  }

 private:
  const std::string bytes_;
};

}  // namespace

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kSectorBytes = 512;

// A file or a directory.
struct CrashEnv::File {
  using Names = std::map<std::string, FilePointer>;
  // A name is added, or one is removed (of any directory), or both at once (a rename).
  struct Change {
    std::string added;
    FilePointer file;
    std::string gone;
    std::weak_ptr<File> gone_from;
  };

  std::string bytes;
  std::size_t synced = 0;                          // what follows was appended since the last sync
  std::map<std::size_t, std::string> overwritten;  // sectors before that, as they were synced

  void note_overwritten(std::size_t from, std::size_t to) {
    for (std::size_t sector = from / kSectorBytes * kSectorBytes; sector < std::min(to, synced);
         sector += kSectorBytes) {
      overwritten.try_emplace(sector, bytes, sector, std::min(kSectorBytes, synced - sector));
    }
  }
  void set_synced() {
    synced = bytes.size();
    overwritten.clear();
  }
  // What a power cut leaves: of the bytes that were appended the first `appended`, in which zeros
  // may be in place of a sector; and of what was overwritten each sector as it is or as it was.
  // `keep(sector)` decides.
  enum class Appended { kWhole, kTorn };
  template <class Keep>
  void forget_unsynced_bytes(std::size_t appended, Appended how, Keep&& keep) {
    bytes.resize(synced + appended);
    for (const auto& [sector, before] : overwritten) {
      if (!keep(sector)) bytes.replace(sector, before.size(), before);
    }
    if (how == Appended::kTorn) {
      for (std::size_t at = synced; at < bytes.size();) {
        const std::size_t sector = at / kSectorBytes * kSectorBytes;
        const std::size_t size = std::min(sector + kSectorBytes, bytes.size()) - at;
        if (!keep(sector)) bytes.replace(at, size, size, '\0');
        at += size;
      }
    }
    set_synced();
  }

  bool is_directory = false;
  Names present;
  Names durable;
  std::vector<Change> pending;
};

struct CrashEnv::State {
  explicit State(std::uint64_t seed) : random(seed) { root->is_directory = true; }

  static std::vector<std::string> parts_of(const std::string& path) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < path.size();) {
      const std::size_t end = std::min(path.find('/', at), path.size());
      std::string part = path.substr(at, end - at);
      if (!part.empty() && part != ".") parts.push_back(std::move(part));
      at = end + 1;
    }
    return parts;
  }
  // nullptr: there is no such file or directory.
  [[nodiscard]] FilePointer find(const std::string& path) const {
    FilePointer file = root;
    for (const std::string& part : parts_of(path)) {
      const auto at = file->present.find(part);
      if (at == file->present.end()) return nullptr;
      file = at->second;
    }
    return file;
  }
  [[nodiscard]] FilePointer find_directory(const std::string& path) const {
    const FilePointer file = find(path);
    return file && file->is_directory ? file : nullptr;
  }
  [[nodiscard]] FilePointer find_file(const std::string& path) const {
    const FilePointer file = find(path);
    return file && !file->is_directory ? file : nullptr;
  }
  [[nodiscard]] FilePointer parent_of(const std::string& path) const {
    return find_directory(directory_of(path));
  }
  static std::string name_of(const std::string& path) { return parts_of(path).back(); }

  static void apply(File::Names File::*names, File& directory, const File::Change& change) {
    const FilePointer source = change.gone_from.lock();
    if (change.file) (directory.*names)[change.added] = change.file;
    if (!source || (source.get() == &directory && change.gone == change.added)) return;
    ((*source).*names).erase(change.gone);
    if (source.get() == &directory || names != &File::durable) return;
    // The file is not in the source any more: a later sync of the source must not bring it back.
    std::erase_if(source->pending, [&](const File::Change& earlier) {
      return earlier.file == change.file && earlier.added == change.gone;
    });
  }
  static void record(const FilePointer& directory, File::Change change) {
    apply(&File::present, *directory, change);
    directory->pending.push_back(std::move(change));
  }
  void sync_directory(const std::string& path) {
    const FilePointer directory = find_directory(path);
    if (!directory) return;
    for (const File::Change& change : directory->pending) apply(&File::durable, *directory, change);
    directory->pending.clear();
  }
  static void sync_everything(File& file, std::set<File*>& seen) {
    if (!seen.insert(&file).second) return;
    for (const File::Change& change : file.pending) apply(&File::durable, file, change);
    file.pending.clear();
    file.set_synced();
    for (const auto& [name, below] : file.present) sync_everything(*below, seen);
  }
  void crash(TornTail torn) {
    off = true;
    ++life;
    std::set<File*> seen;
    // Which changes survive is decided everywhere before anything is dropped, because a rename
    // changes two directories.
    if (torn == TornTail::kRandom) keep_some_names(*root, seen);
    seen.clear();
    forget_unsynced(*root, torn, seen);
    locks.clear();
  }
  void keep_some_names(File& directory, std::set<File*>& seen) {
    if (!seen.insert(&directory).second) return;
    File::Names below = directory.present;
    below.insert(directory.durable.begin(), directory.durable.end());
    for (const File::Change& change : directory.pending) {
      if (random.below(2) == 0) apply(&File::durable, directory, change);
    }
    for (const auto& [name, file] : below) keep_some_names(*file, seen);
  }
  void forget_unsynced(File& file, TornTail torn, std::set<File*>& seen) {
    if (!seen.insert(&file).second) return;
    file.pending.clear();
    file.present = file.durable;
    for (const auto& [name, child] : file.present) forget_unsynced(*child, torn, seen);
    forget_unsynced_bytes(file, torn);
  }
  void forget_unsynced_bytes(File& file, TornTail torn) {
    using Appended = File::Appended;
    const std::size_t appended = file.bytes.size() - file.synced;
    if (torn != TornTail::kRandom) {
      const bool all = torn == TornTail::kBytes;
      const auto keep = [all](std::size_t) { return all; };
      file.forget_unsynced_bytes(all ? appended : 0, Appended::kWhole, keep);
      return;
    }
    const bool tears = random.below(4) == 0;
    const std::size_t piece = random.below(2) == 0 ? kPageBytes : kSectorBytes;
    std::size_t last = SIZE_MAX;  // the piece that was decided upon
    bool keeps = false;
    const auto keep = [&](std::size_t sector) {
      if (std::exchange(last, sector / piece) != sector / piece) keeps = random.below(2) == 0;
      return keeps;
    };
    file.forget_unsynced_bytes(tears ? appended : random.below(appended + 1),
                               tears ? Appended::kTorn : Appended::kWhole, keep);
  }
  // Calls `visit` with the path of every file.
  template <class Visit>
  static void walk(const File& directory, const std::string& path, const Visit& visit) {
    for (const auto& [name, file] : directory.present) {
      const std::string inner = path.empty() ? name : path + "/" + name;
      if (file->is_directory) {
        walk(*file, inner, visit);
      } else {
        visit(inner, *file);
      }
    }
  }
  [[nodiscard]] std::size_t used() const {
    std::size_t bytes = 0;
    walk(*root, "", [&](const std::string&, const File& file) { bytes += file.bytes.size(); });
    return bytes;
  }

  mutable std::mutex mutex;
  const FilePointer root = std::make_shared<File>();
  std::set<std::string> locks;
  Random random;
  bool off = false;
  std::uint64_t life = 1;  // handles of an older life fail
  std::size_t operations = 0;
  std::optional<std::size_t> crash_at;
  TornTail torn_at = TornTail::kNone;
  std::size_t space = SIZE_MAX;
  Fault fault;
};

class CrashEnv::Writable final : public leveldb::WritableFile {
 public:
  Writable(CrashEnv& env, FilePointer file, std::string name, std::uint64_t life)
      : env_(env), file_(std::move(file)), name_(std::move(name)), life_(life) {}
  leveldb::Status Append(const leveldb::Slice& data) override {
    return env_.append(file_, name_, life_, {data.data(), data.size()});
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return env_.sync(file_, name_, life_); }

 private:
  CrashEnv& env_;
  const FilePointer file_;
  const std::string name_;
  const std::uint64_t life_;
};

class CrashEnv::Overwritable final : public SegmentFile {
 public:
  Overwritable(CrashEnv& env, FilePointer file, std::string name, std::uint64_t life)
      : env_(env), file_(std::move(file)), name_(std::move(name)), life_(life) {}
  Status write(std::uint64_t offset, std::string_view bytes) override {
    return translated(env_.overwrite(file_, name_, life_, offset, bytes));
  }
  Status sync() override { return translated(env_.sync(file_, name_, life_)); }
  Status cut(std::uint64_t bytes) override {
    return translated(env_.cut(file_, name_, life_, bytes));
  }

 private:
  CrashEnv& env_;
  const FilePointer file_;
  const std::string name_;
  const std::uint64_t life_;
};

CrashEnv::CrashEnv(std::uint64_t seed)
    : EnvWrapper(leveldb::Env::Default()), state_(std::make_unique<State>(seed)) {}
CrashEnv::~CrashEnv() = default;

void CrashEnv::crash(TornTail torn) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->off) state_->crash(torn);
}

void CrashEnv::reboot() {
  const std::lock_guard lock(state_->mutex);
  state_->off = false;
  state_->crash_at.reset();
}

bool CrashEnv::is_off() const {
  const std::lock_guard lock(state_->mutex);
  return state_->off;
}

void CrashEnv::lose_unsynced(const std::string& directory, TornTail torn) {
  const std::lock_guard lock(state_->mutex);
  const FilePointer from = state_->find_directory(directory);
  if (!from) return;
  State::walk(*from, "",
              [&](const std::string&, File& file) { state_->forget_unsynced_bytes(file, torn); });
}

void CrashEnv::crash_before_operation(std::size_t operations, TornTail torn) {
  const std::lock_guard lock(state_->mutex);
  state_->crash_at = state_->operations + operations;
  state_->torn_at = torn;
}

std::size_t CrashEnv::operations() const {
  const std::lock_guard lock(state_->mutex);
  return state_->operations;
}

void CrashEnv::set_fault(Fault fault) {
  const std::lock_guard lock(state_->mutex);
  state_->fault = std::move(fault);
}

void CrashEnv::set_space(std::size_t bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->space = bytes;
}

std::function<Status(const std::string&)> CrashEnv::directory_sync() {
  return [this](const std::string& directory) {
    const std::uint64_t now = life();
    leveldb::Status begun = begin(Operation::kSync, directory, now);
    const std::lock_guard lock(state_->mutex);
    if (begun.ok() && (state_->off || now != state_->life)) begun = power_is_off(directory);
    if (!begun.ok()) return Status(StatusCode::kIoError, begun.ToString());
    state_->sync_directory(directory);
    return Status();
  };
}

std::function<Result<std::function<Status()>>(const std::string&)> CrashEnv::everything_sync() {
  const auto sync = [this](const std::string& directory) {
    const std::uint64_t now = life();
    leveldb::Status begun = begin(Operation::kSync, directory, now);
    const std::lock_guard lock(state_->mutex);
    if (begun.ok() && (state_->off || now != state_->life)) begun = power_is_off(directory);
    if (!begun.ok()) return Status(StatusCode::kIoError, begun.ToString());
    std::set<File*> seen;
    State::sync_everything(*state_->root, seen);
    return Status();
  };
  return [sync](const std::string& directory) {
    return Result<std::function<Status()>>([sync, directory] { return sync(directory); });
  };
}

std::string CrashEnv::contents(const std::string& file) const {
  const std::lock_guard lock(state_->mutex);
  const FilePointer at = state_->find_file(file);
  return at ? at->bytes : std::string();
}

void CrashEnv::set_contents(const std::string& file, std::string bytes) {
  const std::lock_guard lock(state_->mutex);
  FilePointer directory = state_->root;
  std::vector<std::string> parts = State::parts_of(file);
  parts.pop_back();
  for (const std::string& part : parts) {
    FilePointer& below = directory->present[part];
    if (!below) below = std::make_shared<File>();
    below->is_directory = true;
    directory->durable[part] = below;
    directory = below;
  }
  const auto made = std::make_shared<File>();
  made->bytes = std::move(bytes);
  made->set_synced();
  directory->present[State::name_of(file)] = made;
  directory->durable[State::name_of(file)] = made;
}

std::vector<std::string> CrashEnv::files() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<std::string> names;
  State::walk(*state_->root, "",
              [&](const std::string& name, const File&) { names.push_back(name); });
  return names;
}

std::uint64_t CrashEnv::life() const {
  const std::lock_guard lock(state_->mutex);
  return state_->life;
}

leveldb::Status CrashEnv::begin(Operation operation, const std::string& file, std::uint64_t life) {
  Fault fault;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->off || life != state_->life) return power_is_off(file);
    if (state_->crash_at && state_->operations >= *state_->crash_at) {
      state_->crash(state_->torn_at);
      return power_is_off(file);
    }
    ++state_->operations;
    fault = state_->fault;
  }
  return fault ? fault(operation, file) : leveldb::Status::OK();
}

leveldb::Status CrashEnv::append(const FilePointer& to, const std::string& name, std::uint64_t life,
                                 std::string_view bytes) {
  leveldb::Status status = begin(Operation::kAppend, name, life);
  if (!status.ok()) return status;
  const std::lock_guard lock(state_->mutex);
  if (state_->off || life != state_->life) return power_is_off(name);
  const std::size_t used = state_->space == SIZE_MAX ? 0 : state_->used();
  const std::size_t room = used < state_->space ? state_->space - used : 0;
  to->bytes.append(bytes.substr(0, room));
  return bytes.size() <= room ? leveldb::Status::OK()
                              : leveldb::Status::IOError(name, "No space left on device");
}

leveldb::Status CrashEnv::sync(const FilePointer& file, const std::string& name,
                               std::uint64_t life) {
  leveldb::Status status = begin(Operation::kSync, name, life);
  if (!status.ok()) return status;
  const std::lock_guard lock(state_->mutex);
  if (state_->off || life != state_->life) return power_is_off(name);
  if (is_manifest(name)) state_->sync_directory(directory_of(name));
  file->set_synced();
  return status;
}

leveldb::Status CrashEnv::overwrite(const FilePointer& to, const std::string& name,
                                    std::uint64_t life, std::size_t offset,
                                    std::string_view bytes) {
  leveldb::Status status = begin(Operation::kAppend, name, life);
  if (!status.ok()) return status;
  const std::lock_guard lock(state_->mutex);
  if (state_->off || life != state_->life) return power_is_off(name);
  std::size_t size = bytes.size();
  if (offset + size > to->bytes.size()) {
    const std::size_t used = state_->space == SIZE_MAX ? 0 : state_->used();
    const std::size_t room = used < state_->space ? state_->space - used : 0;
    const std::size_t more = offset + size - to->bytes.size();
    if (more > room) {
      size -= std::min(size, more - room);
      status = leveldb::Status::IOError(name, "No space left on device");
    }
  }
  to->note_overwritten(offset, offset + size);
  if (offset + size > to->bytes.size()) to->bytes.resize(offset + size);
  to->bytes.replace(offset, size, bytes.substr(0, size));
  return status;
}

leveldb::Status CrashEnv::cut(const FilePointer& file, const std::string& name, std::uint64_t life,
                              std::size_t bytes) {
  leveldb::Status status = begin(Operation::kRemove, name, life);
  if (!status.ok()) return status;
  const std::lock_guard lock(state_->mutex);
  if (state_->off || life != state_->life) return power_is_off(name);
  if (bytes < file->synced) return leveldb::Status::NotSupported(name, "cutting synced bytes");
  file->bytes.resize(std::min(file->bytes.size(), bytes));
  return status;
}

Result<std::unique_ptr<SegmentFile>> CrashEnv::open(const std::string& file) {
  if (!is_off() && !FileExists(file)) return translated(no_such_file(file));
  return overwrite_file(file);
}

Result<std::unique_ptr<SegmentFile>> CrashEnv::create(const std::string& file) {
  if (!is_off() && FileExists(file)) {
    return translated(leveldb::Status::IOError(file, "File exists"));
  }
  return overwrite_file(file);
}

Result<std::uint64_t> CrashEnv::free_bytes(const std::string& directory) {
  const std::lock_guard lock(state_->mutex);
  if (state_->off) return translated(power_is_off(directory));
  if (state_->space == SIZE_MAX) return SIZE_MAX;
  const std::size_t used = state_->used();
  return used < state_->space ? state_->space - used : 0;
}

Result<std::unique_ptr<SegmentFile>> CrashEnv::overwrite_file(const std::string& file) {
  leveldb::WritableFile* opened = nullptr;
  const leveldb::Status status = NewAppendableFile(file, &opened);
  const std::unique_ptr<leveldb::WritableFile> closes(opened);
  if (!status.ok()) return translated(status);
  const std::lock_guard lock(state_->mutex);
  const FilePointer found = state_->find_file(file);
  if (!found) return translated(power_is_off(file));
  return std::unique_ptr<SegmentFile>(
      std::make_unique<Overwritable>(*this, found, file, state_->life));
}

leveldb::Status CrashEnv::NewSequentialFile(const std::string& file,
                                            leveldb::SequentialFile** result) {
  *result = nullptr;
  const std::lock_guard lock(state_->mutex);
  if (state_->off) return power_is_off(file);
  const FilePointer at = state_->find_file(file);
  if (!at) return no_such_file(file);
  *result = new Sequential(at->bytes);
  return leveldb::Status::OK();
}

leveldb::Status CrashEnv::NewRandomAccessFile(const std::string& file,
                                              leveldb::RandomAccessFile** result) {
  *result = nullptr;
  const std::lock_guard lock(state_->mutex);
  if (state_->off) return power_is_off(file);
  const FilePointer at = state_->find_file(file);
  if (!at) return no_such_file(file);
  *result = new RandomAccess(at->bytes);
  return leveldb::Status::OK();
}

leveldb::Status CrashEnv::NewWritableFile(const std::string& file, leveldb::WritableFile** result) {
  return open_writable(file, false, result);
}
leveldb::Status CrashEnv::NewAppendableFile(const std::string& file,
                                            leveldb::WritableFile** result) {
  return open_writable(file, true, result);
}

leveldb::Status CrashEnv::open_writable(const std::string& file, bool keep,
                                        leveldb::WritableFile** result) {
  *result = nullptr;
  const std::uint64_t now = life();
  leveldb::Status status = begin(Operation::kCreate, file, now);
  if (!status.ok()) return status;
  const std::lock_guard lock(state_->mutex);
  if (state_->off || now != state_->life) return power_is_off(file);
  const FilePointer directory = state_->parent_of(file);
  if (!directory) return no_such_file(file);
  FilePointer opened = keep ? state_->find_file(file) : nullptr;
  if (!opened) {
    opened = std::make_shared<File>();
    State::record(directory, {State::name_of(file), opened, {}, {}});
  }
  *result = new Writable(*this, opened, file, now);
  return status;
}

bool CrashEnv::FileExists(const std::string& file) {
  const std::lock_guard lock(state_->mutex);
  return state_->find(file) != nullptr;
}

leveldb::Status CrashEnv::GetChildren(const std::string& directory,
                                      std::vector<std::string>* result) {
  result->clear();
  const std::lock_guard lock(state_->mutex);
  if (state_->off) return power_is_off(directory);
  const FilePointer at = state_->find(directory);
  if (!at) return no_such_file(directory);
  if (!at->is_directory) return leveldb::Status::IOError(directory, "Not a directory");
  for (const auto& [name, file] : at->present) result->push_back(name);
  return leveldb::Status::OK();
}

leveldb::Status CrashEnv::RemoveFile(const std::string& file) {
  const std::uint64_t now = life();
  leveldb::Status status = begin(Operation::kRemove, file, now);
  if (!status.ok()) return status;
  const std::lock_guard lock(state_->mutex);
  if (state_->off || now != state_->life) return power_is_off(file);
  if (!state_->find(file)) return no_such_file(file);
  if (!state_->find_file(file)) return leveldb::Status::IOError(file, "Is a directory");
  const FilePointer directory = state_->parent_of(file);
  State::record(directory, {{}, nullptr, State::name_of(file), directory});
  return status;
}

leveldb::Status CrashEnv::CreateDir(const std::string& directory) {
  const std::uint64_t now = life();
  leveldb::Status status = begin(Operation::kCreate, directory, now);
  if (!status.ok()) return status;
  const std::lock_guard lock(state_->mutex);
  if (state_->off || now != state_->life) return power_is_off(directory);
  if (state_->find(directory)) return leveldb::Status::IOError(directory, "File exists");
  const FilePointer parent = state_->parent_of(directory);
  if (!parent) return no_such_file(directory);
  const auto made = std::make_shared<File>();
  made->is_directory = true;
  State::record(parent, {State::name_of(directory), made, {}, {}});
  return status;
}

leveldb::Status CrashEnv::RemoveDir(const std::string& directory) {
  const std::uint64_t now = life();
  leveldb::Status status = begin(Operation::kRemove, directory, now);
  if (!status.ok()) return status;
  const std::lock_guard lock(state_->mutex);
  if (state_->off || now != state_->life) return power_is_off(directory);
  const FilePointer at = state_->find_directory(directory);
  if (!at) return no_such_file(directory);
  if (!at->present.empty()) return leveldb::Status::IOError(directory, "Directory not empty");
  const FilePointer parent = state_->parent_of(directory);
  State::record(parent, {{}, nullptr, State::name_of(directory), parent});
  return status;
}

leveldb::Status CrashEnv::GetFileSize(const std::string& file, std::uint64_t* size) {
  const std::lock_guard lock(state_->mutex);
  const FilePointer at = state_->find(file);  // a directory has a size, too
  if (!at) return no_such_file(file);
  *size = at->bytes.size();
  return leveldb::Status::OK();
}

leveldb::Status CrashEnv::RenameFile(const std::string& from, const std::string& to) {
  const std::uint64_t now = life();
  leveldb::Status status = begin(Operation::kRename, from, now);
  if (!status.ok()) return status;
  const std::lock_guard lock(state_->mutex);
  if (state_->off || now != state_->life) return power_is_off(from);
  const FilePointer file = state_->find(from);
  const FilePointer target = state_->parent_of(to);
  if (!file || !target) return no_such_file(from);
  if (const FilePointer replaced = state_->find(to)) {
    const bool fits = replaced->is_directory == file->is_directory;
    if (!fits || !replaced->present.empty())
      return leveldb::Status::IOError(to, "Directory not empty");
  }
  State::record(target, {State::name_of(to), file, State::name_of(from), state_->parent_of(from)});
  return status;
}

leveldb::Status CrashEnv::LockFile(const std::string& file, leveldb::FileLock** lock) {
  *lock = nullptr;
  const std::lock_guard guard(state_->mutex);
  if (state_->off) return power_is_off(file);
  if (!state_->locks.insert(file).second) {
    return leveldb::Status::IOError("lock " + file, "already held by process");
  }
  *lock = new Lock(file);
  return leveldb::Status::OK();
}

leveldb::Status CrashEnv::UnlockFile(leveldb::FileLock* lock) {
  const std::unique_ptr<Lock> owned(static_cast<Lock*>(lock));
  const std::lock_guard guard(state_->mutex);
  state_->locks.erase(owned->file());
  return leveldb::Status::OK();
}

leveldb::Status CrashEnv::NewLogger(const std::string&, leveldb::Logger** result) {
  *result = new SilentLogger;
  return leveldb::Status::OK();
}

}  // namespace pv2::testing
