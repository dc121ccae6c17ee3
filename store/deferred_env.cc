// SPDX-License-Identifier: Apache-2.0
//
// An operation first asks whether it goes through: after apply() it needs neither the lock nor the
// list.

#include "deferred_env.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>

#include "pv2/base/assert.h"

namespace pv2 {
namespace {

leveldb::Status no_such_file(const std::string& file) {
  return leveldb::Status::NotFound(file, "No such file or directory");
}

// LevelDB opens a table that its MANIFEST names. That it is missing must not look like what
// DB::Get() says of a key that is not there: the caller would take the row for one that never was.
leveldb::Status table_opened(const std::string& file, const leveldb::Status& status) {
  return status.IsNotFound() ? leveldb::Status::IOError(file, "it is missing") : status;
}

leveldb::Status read(std::string_view bytes, std::uint64_t offset, std::size_t n,
                     leveldb::Slice* result, char* scratch) {
  const std::size_t size = offset > bytes.size() ? 0 : bytes.copy(scratch, n, offset);
  *result = leveldb::Slice(scratch, size);
  return leveldb::Status::OK();
}

// LevelDB's own function for this is not in its library.
[[gnu::format(printf, 2, 3)]] void log_line(leveldb::Logger& logger, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  logger.Logv(format, arguments);
  va_end(arguments);
}

}  // namespace

// A file that exists in memory only, and, once applied, also in the file system. LevelDB writes a
// file to its end and closes it before it reads it.
struct DeferredEnv::File {
  std::string bytes;
  bool closed = false;
  std::unique_ptr<leveldb::WritableFile> real;  // set by apply(); while it is being written
};

namespace {

template <class Bytes>
class Sequential final : public leveldb::SequentialFile {
 public:
  explicit Sequential(Bytes file) : file_(std::move(file)) {}
  leveldb::Status Read(std::size_t n, leveldb::Slice* result, char* scratch) override {
    leveldb::Status status = read(file_->bytes, at_, n, result, scratch);
    at_ += result->size();
    return status;
  }
  leveldb::Status Skip(std::uint64_t n) override {
    at_ = std::min<std::uint64_t>(file_->bytes.size(), at_ + n);
    return leveldb::Status::OK();
  }

 private:
  const Bytes file_;
  std::uint64_t at_ = 0;
};

template <class Bytes>
class RandomAccess final : public leveldb::RandomAccessFile {
 public:
  explicit RandomAccess(Bytes file) : file_(std::move(file)) {}
  leveldb::Status Read(std::uint64_t offset, std::size_t n, leveldb::Slice* result,
                       char* scratch) const override {
    return read(file_->bytes, offset, n, result, scratch);
  }

 private:
  const Bytes file_;
};

}  // namespace

class DeferredEnv::Writable final : public leveldb::WritableFile {
 public:
  Writable(DeferredEnv& env, FilePointer file, std::string name)
      : env_(env), file_(std::move(file)), name_(std::move(name)) {}

  leveldb::Status Append(const leveldb::Slice& data) override {
    if (env_.goes_through()) return real().Append(data);
    MutexLock lock(env_.changes_mutex_);
    if (env_.goes_through()) return real().Append(data);
    const std::size_t from = file_->bytes.size();
    file_->bytes.append(data.data(), data.size());
    return env_.add(name_, [file = file_, from, size = data.size()] {
      return file->real->Append(leveldb::Slice(file->bytes.data() + from, size));
    });
  }
  leveldb::Status Flush() override {
    return change([](leveldb::WritableFile& real) { return real.Flush(); });
  }
  leveldb::Status Sync() override {
    return change([](leveldb::WritableFile& real) { return real.Sync(); });
  }
  leveldb::Status Close() override {
    {
      MutexLock lock(env_.changes_mutex_);
      file_->closed = true;
    }
    return change([](leveldb::WritableFile& real) { return real.Close(); });
  }

 private:
  template <class Act>
  leveldb::Status change(Act act) {
    if (env_.goes_through()) return act(real());
    MutexLock lock(env_.changes_mutex_);
    if (env_.goes_through()) return act(real());
    return env_.add(name_, [file = file_, act] { return act(*file->real); });
  }
  leveldb::WritableFile& real() {
    PV2_ASSERT(file_->real != nullptr, "a file is there once the changes were carried out");
    return *file_->real;
  }

  DeferredEnv& env_;
  const FilePointer file_;
  const std::string name_;
};

// LevelDB's diary: its lines are kept until there is a file for them.
struct DeferredEnv::Diary {
  std::vector<std::string> lines;
  std::unique_ptr<leveldb::Logger> real;  // set by apply(); null if that failed, which does no harm
};

class DeferredEnv::DiaryLogger final : public leveldb::Logger {
 public:
  DiaryLogger(DeferredEnv& env, std::shared_ptr<Diary> diary)
      : env_(env), diary_(std::move(diary)) {}
  void Logv(const char* format, std::va_list arguments) override {
    if (!env_.goes_through()) {
      MutexLock lock(env_.changes_mutex_);
      if (!env_.goes_through()) {
        std::array<char, 512> line{};
        std::vsnprintf(line.data(), line.size(), format, arguments);
        if (diary_->lines.size() < kLinesMax) diary_->lines.emplace_back(line.data());
        return;
      }
    }
    if (diary_->real != nullptr) diary_->real->Logv(format, arguments);
  }

 private:
  static constexpr std::size_t kLinesMax = 1'000;  // an opening writes about five
  DeferredEnv& env_;
  const std::shared_ptr<Diary> diary_;
};

void DeferredEnv::defer() {
  MutexLock lock(changes_mutex_);
  PV2_ASSERT(goes_through() && changes_.empty(), "changes are deferred once, from the beginning");
  mode_.store(Mode::kDeferring, std::memory_order_release);
}

void DeferredEnv::show(const std::string& file, std::string bytes) {
  MutexLock lock(changes_mutex_);
  PV2_ASSERT(!goes_through(), "what LevelDB is shown differs from the disk only while it opens");
  auto shown = std::make_shared<File>();
  shown->bytes = std::move(bytes);
  shown->closed = true;
  names_[file] = {std::move(shown), {}};
}

leveldb::Status DeferredEnv::apply() {
  MutexLock lock(changes_mutex_);
  PV2_ASSERT(mode_.load(std::memory_order_relaxed) != Mode::kDiscarded,
             "what was discarded is not carried out");
  leveldb::Status status;
  for (const Change& change : changes_) {
    status = change();
    if (!status.ok()) break;
  }
  end(status.ok() ? Mode::kThrough : Mode::kDiscarded);
  return status;
}

void DeferredEnv::discard() noexcept {
  MutexLock lock(changes_mutex_);
  if (!goes_through()) end(Mode::kDiscarded);
}

void DeferredEnv::end(Mode mode) {
  mode_.store(mode, std::memory_order_release);
  changes_.clear();
  if (mode == Mode::kThrough) names_.clear();
  for (const auto& [work, argument] : work_) target()->Schedule(work, argument);
  work_.clear();
}

leveldb::Status DeferredEnv::add(const std::string& file, Change change) {
  PV2_ASSERT(!goes_through(), "a change is listed only while changes are deferred");
  if (mode_.load(std::memory_order_relaxed) == Mode::kDiscarded) {
    return leveldb::Status::IOError(file, "the store is not taken over; nothing is written");
  }
  changes_.push_back(std::move(change));
  return leveldb::Status::OK();
}

DeferredEnv::Named DeferredEnv::find(const std::string& name) const {
  const auto at = names_.find(name);
  return at == names_.end() ? Named{nullptr, name} : at->second;
}

bool DeferredEnv::exists(const Named& named) {
  return named.made != nullptr || (!named.real.empty() && target()->FileExists(named.real));
}

leveldb::Status DeferredEnv::NewSequentialFile(const std::string& file,
                                               leveldb::SequentialFile** result) {
  *result = nullptr;
  if (goes_through()) return target()->NewSequentialFile(file, result);
  MutexLock lock(changes_mutex_);
  const Named named = find(file);
  if (named.made == nullptr) {
    return named.real.empty() ? no_such_file(file)
                              : target()->NewSequentialFile(named.real, result);
  }
  PV2_ASSERT(named.made->closed, "LevelDB reads a file that it has written to its end");
  *result = new Sequential(named.made);
  return leveldb::Status::OK();
}

leveldb::Status DeferredEnv::NewRandomAccessFile(const std::string& file,
                                                 leveldb::RandomAccessFile** result) {
  *result = nullptr;
  if (goes_through()) return table_opened(file, target()->NewRandomAccessFile(file, result));
  MutexLock lock(changes_mutex_);
  const Named named = find(file);
  if (named.made == nullptr) {
    return table_opened(file, named.real.empty()
                                  ? no_such_file(file)
                                  : target()->NewRandomAccessFile(named.real, result));
  }
  PV2_ASSERT(named.made->closed, "LevelDB reads a file that it has written to its end");
  *result = new RandomAccess(named.made);
  return leveldb::Status::OK();
}

leveldb::Status DeferredEnv::NewWritableFile(const std::string& file,
                                             leveldb::WritableFile** result) {
  *result = nullptr;
  if (goes_through()) return target()->NewWritableFile(file, result);
  MutexLock lock(changes_mutex_);
  auto made = std::make_shared<File>();
  const leveldb::Status status = add(file, [this, made, file] {
    leveldb::WritableFile* opened = nullptr;
    leveldb::Status created = target()->NewWritableFile(file, &opened);
    made->real.reset(opened);
    return created;
  });
  if (!status.ok()) return status;
  names_[file] = {made, {}};
  *result = new Writable(*this, std::move(made), file);
  return status;
}

leveldb::Status DeferredEnv::NewAppendableFile(const std::string& file,
                                               leveldb::WritableFile** result) {
  *result = nullptr;
  if (goes_through()) return target()->NewAppendableFile(file, result);
  return leveldb::Status::NotSupported(file, "nothing is appended to while a store is opened");
}

bool DeferredEnv::FileExists(const std::string& file) {
  if (goes_through()) return target()->FileExists(file);
  MutexLock lock(changes_mutex_);
  return exists(find(file));
}

leveldb::Status DeferredEnv::GetChildren(const std::string& directory,
                                         std::vector<std::string>* result) {
  leveldb::Status status = target()->GetChildren(directory, result);
  if (!status.ok() || goes_through()) return status;
  // Every database has a CURRENT. Without it, this is the list of another directory, and LevelDB
  // would open a database without its logs.
  if (std::find(result->begin(), result->end(), "CURRENT") == result->end()) {
    return leveldb::Status::IOError(directory, "its list is without CURRENT; it is out of sight");
  }
  MutexLock lock(changes_mutex_);
  const std::string prefix = directory + "/";
  for (const auto& [name, named] : names_) {
    if (!name.starts_with(prefix)) continue;
    const std::string child = name.substr(prefix.size());
    std::erase(*result, child);
    if (exists(named)) result->push_back(child);
  }
  return status;
}

leveldb::Status DeferredEnv::RemoveFile(const std::string& file) {
  if (goes_through()) return target()->RemoveFile(file);
  MutexLock lock(changes_mutex_);
  if (!exists(find(file))) return no_such_file(file);
  leveldb::Status status = add(file, [this, file] { return target()->RemoveFile(file); });
  if (status.ok()) names_[file] = {};
  return status;
}

leveldb::Status DeferredEnv::CreateDir(const std::string& directory) {
  if (goes_through()) return target()->CreateDir(directory);
  return leveldb::Status::OK();  // LevelDB always makes its directory, which exists by now
}

leveldb::Status DeferredEnv::RemoveDir(const std::string& directory) {
  if (goes_through()) return target()->RemoveDir(directory);
  return leveldb::Status::NotSupported(directory, "nothing is removed while a store is opened");
}

leveldb::Status DeferredEnv::GetFileSize(const std::string& file, std::uint64_t* size) {
  if (goes_through()) return target()->GetFileSize(file, size);
  MutexLock lock(changes_mutex_);
  const Named named = find(file);
  if (named.made != nullptr) {
    *size = named.made->bytes.size();
    return leveldb::Status::OK();
  }
  return named.real.empty() ? no_such_file(file) : target()->GetFileSize(named.real, size);
}

leveldb::Status DeferredEnv::RenameFile(const std::string& from, const std::string& to) {
  if (goes_through()) return target()->RenameFile(from, to);
  MutexLock lock(changes_mutex_);
  const Named named = find(from);
  if (!exists(named)) return no_such_file(from);
  leveldb::Status status = add(from, [this, from, to] { return target()->RenameFile(from, to); });
  if (status.ok()) {
    names_[to] = named;
    names_[from] = {};
  }
  return status;
}

leveldb::Status DeferredEnv::NewLogger(const std::string& file, leveldb::Logger** result) {
  *result = nullptr;
  if (goes_through()) return target()->NewLogger(file, result);
  MutexLock lock(changes_mutex_);
  auto diary = std::make_shared<Diary>();
  leveldb::Status status = add(file, [this, file, diary] {
    leveldb::Logger* opened = nullptr;
    if (target()->NewLogger(file, &opened).ok()) diary->real.reset(opened);
    for (const std::string& line : diary->lines) {
      if (diary->real != nullptr) log_line(*diary->real, "%s", line.c_str());
    }
    diary->lines.clear();
    return leveldb::Status::OK();  // LevelDB also works without a diary
  });
  if (status.ok()) *result = new DiaryLogger(*this, std::move(diary));
  return status;
}

void DeferredEnv::Schedule(void (*work)(void*), void* argument) {
  MutexLock lock(changes_mutex_);
  if (mode_.load(std::memory_order_relaxed) == Mode::kDeferring) {
    work_.emplace_back(work, argument);
  } else {
    target()->Schedule(work, argument);
  }
}

}  // namespace pv2
