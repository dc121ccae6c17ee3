// SPDX-License-Identifier: Apache-2.0
//
// CrashEnv. Names have two maps, the present one and the durable one, and a list of the changes in
// between. A sync of the directory applies the list; a crash drops it, and the durable map becomes
// the present one.

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

struct CrashEnv::File {
  std::string bytes;
  std::size_t synced = 0;
};

struct CrashEnv::State {
  explicit State(std::uint64_t seed) : random(seed) {}

  using Names = std::map<std::string, FilePointer>;
  // A change of the names in one directory: one is added, one is removed, or both at once (a
  // rename).
  struct Change {
    std::string name;
    FilePointer file;
    std::string gone;
  };

  static void apply(Names& names, const Change& change) {
    if (change.file) names[change.name] = change.file;
    names.erase(change.gone);
  }
  void record(Change change) {
    apply(present, change);
    pending.push_back(std::move(change));
  }
  void sync_directory(const std::string& directory) {
    std::erase_if(pending, [&](const Change& change) {
      if (directory_of(change.file ? change.name : change.gone) != directory) return false;
      apply(durable, change);
      return true;
    });
    for (const std::string& made : directories) {
      if (directory_of(made) == directory) durable_directories.insert(made);
    }
  }
  void crash(TornTail torn) {
    off = true;
    ++life;
    if (torn == TornTail::kRandom) {
      for (const Change& change : pending) {
        if (random.below(2) == 0) apply(durable, change);
      }
    }
    pending.clear();
    present = durable;
    directories = durable_directories;
    std::erase_if(present, [this](const auto& entry) {
      return !directories.contains(directory_of(entry.first));
    });
    durable = present;
    std::set<File*> seen;
    for (const auto& [name, file] : present) {
      if (!seen.insert(file.get()).second) continue;
      const std::size_t unsynced = file->bytes.size() - file->synced;
      const std::size_t kept = torn == TornTail::kRandom  ? random.below(unsynced + 1)
                               : torn == TornTail::kBytes ? unsynced
                                                          : 0;
      // The old life may still have the file open; it must not see the new life's writes.
      file->bytes.resize(file->synced + kept);
      file->synced = file->bytes.size();
    }
    locks.clear();
  }
  [[nodiscard]] std::size_t used() const {
    std::size_t bytes = 0;
    for (const auto& [name, file] : present) bytes += file->bytes.size();
    return bytes;
  }

  mutable std::mutex mutex;
  Names present;
  Names durable;
  std::vector<Change> pending;
  std::set<std::string> directories{"."};
  std::set<std::string> durable_directories{"."};
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

std::string CrashEnv::contents(const std::string& file) const {
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->present.find(file);
  return at == state_->present.end() ? std::string() : at->second->bytes;
}

void CrashEnv::set_contents(const std::string& file, std::string bytes) {
  const std::lock_guard lock(state_->mutex);
  auto made = std::make_shared<File>();
  made->synced = bytes.size();
  made->bytes = std::move(bytes);
  state_->present[file] = made;
  state_->durable[file] = made;
}

std::vector<std::string> CrashEnv::files() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<std::string> names;
  for (const auto& [name, file] : state_->present) names.push_back(name);
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
  file->synced = file->bytes.size();
  return status;
}

leveldb::Status CrashEnv::NewSequentialFile(const std::string& file,
                                            leveldb::SequentialFile** result) {
  *result = nullptr;
  const std::lock_guard lock(state_->mutex);
  if (state_->off) return power_is_off(file);
  const auto at = state_->present.find(file);
  if (at == state_->present.end()) return no_such_file(file);
  *result = new Sequential(at->second->bytes);
  return leveldb::Status::OK();
}

leveldb::Status CrashEnv::NewRandomAccessFile(const std::string& file,
                                              leveldb::RandomAccessFile** result) {
  *result = nullptr;
  const std::lock_guard lock(state_->mutex);
  if (state_->off) return power_is_off(file);
  const auto at = state_->present.find(file);
  if (at == state_->present.end()) return no_such_file(file);
  *result = new RandomAccess(at->second->bytes);
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
  if (!state_->directories.contains(directory_of(file))) return no_such_file(file);
  const auto at = state_->present.find(file);
  FilePointer opened = keep && at != state_->present.end() ? at->second : nullptr;
  if (!opened) {
    opened = std::make_shared<File>();
    state_->record({file, opened, {}});
  }
  *result = new Writable(*this, opened, file, now);
  return status;
}

bool CrashEnv::FileExists(const std::string& file) {
  const std::lock_guard lock(state_->mutex);
  return state_->present.contains(file) || state_->directories.contains(file);
}

leveldb::Status CrashEnv::GetChildren(const std::string& directory,
                                      std::vector<std::string>* result) {
  result->clear();
  const std::lock_guard lock(state_->mutex);
  if (state_->off) return power_is_off(directory);
  if (!state_->directories.contains(directory)) return no_such_file(directory);
  for (const auto& [name, file] : state_->present) {
    if (directory_of(name) == directory) result->push_back(name.substr(directory.size() + 1));
  }
  return leveldb::Status::OK();
}

leveldb::Status CrashEnv::RemoveFile(const std::string& file) {
  const std::uint64_t now = life();
  leveldb::Status status = begin(Operation::kRemove, file, now);
  if (!status.ok()) return status;
  const std::lock_guard lock(state_->mutex);
  if (state_->off || now != state_->life) return power_is_off(file);
  if (!state_->present.contains(file)) return no_such_file(file);
  state_->record({{}, nullptr, file});
  return status;
}

leveldb::Status CrashEnv::CreateDir(const std::string& directory) {
  const std::uint64_t now = life();
  leveldb::Status status = begin(Operation::kCreate, directory, now);
  if (!status.ok()) return status;
  const std::lock_guard lock(state_->mutex);
  if (state_->off || now != state_->life) return power_is_off(directory);
  if (!state_->directories.insert(directory).second) {
    return leveldb::Status::IOError(directory, "File exists");
  }
  return status;
}

leveldb::Status CrashEnv::RemoveDir(const std::string& directory) {
  return leveldb::Status::IOError(directory, "Directory not empty");
}

leveldb::Status CrashEnv::GetFileSize(const std::string& file, std::uint64_t* size) {
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->present.find(file);
  if (at == state_->present.end()) return no_such_file(file);
  *size = at->second->bytes.size();
  return leveldb::Status::OK();
}

leveldb::Status CrashEnv::RenameFile(const std::string& from, const std::string& to) {
  const std::uint64_t now = life();
  leveldb::Status status = begin(Operation::kRename, from, now);
  if (!status.ok()) return status;
  const std::lock_guard lock(state_->mutex);
  if (state_->off || now != state_->life) return power_is_off(from);
  const auto at = state_->present.find(from);
  if (at == state_->present.end()) return no_such_file(from);
  const FilePointer file = at->second;
  state_->record({to, file, from});
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
