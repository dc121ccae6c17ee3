// SPDX-License-Identifier: Apache-2.0
//
// DeferredEnv: lets LevelDB open a store without changing it. LevelDB replays its logs into tables,
// replaces MANIFEST and CURRENT and removes old files while it opens, and has no way to only look.
// So what it writes stays in memory, as a list of changes, until the caller has read every row and
// says that the store is good: then the changes are carried out, one after the other, in the order
// and with the syncs that LevelDB asked for. A crash in the middle leaves what a crash in LevelDB's
// own opening leaves. Until the caller says so, nothing has changed.
//
//     LevelDB --changes--> list --apply()--> file system      LevelDB <--reads-- list over files
//
// It holds about as much memory as the live logs have bytes: LevelDB's background work, which could
// write more, waits for apply() too.

#pragma once

#include <leveldb/env.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pv2/base/mutex.h"

namespace pv2 {

/// As thread-safe as the Env it wraps, which outlives it. Lets everything through until defer().
class DeferredEnv final : public leveldb::EnvWrapper {
 public:
  explicit DeferredEnv(leveldb::Env& env) : EnvWrapper(&env) {}

  /// From now on changes stay in memory. Called before anything is opened through this Env.
  void defer() PV2_EXCLUDES(changes_mutex_);
  /// To LevelDB, `file` has these bytes. The file itself stays as it is, until LevelDB removes it.
  /// While changes are deferred.
  void show(const std::string& file, std::string bytes) PV2_EXCLUDES(changes_mutex_);
  /// Carries out all changes, and lets everything through from now on. After a failure it is as if
  /// discard() had been called, and the file system is as after a crash in the middle.
  leveldb::Status apply() PV2_EXCLUDES(changes_mutex_);
  /// Drops all changes; every later one fails. Does nothing if they were carried out. Called before
  /// the database is destroyed, which otherwise waits for its background work for ever.
  void discard() noexcept PV2_EXCLUDES(changes_mutex_);
  [[nodiscard]] bool defers() const noexcept { return !goes_through(); }

  leveldb::Status NewSequentialFile(const std::string& file,
                                    leveldb::SequentialFile** result) override;
  leveldb::Status NewRandomAccessFile(const std::string& file,
                                      leveldb::RandomAccessFile** result) override;
  leveldb::Status NewWritableFile(const std::string& file, leveldb::WritableFile** result) override;
  leveldb::Status NewAppendableFile(const std::string& file,
                                    leveldb::WritableFile** result) override;
  bool FileExists(const std::string& file) override;
  leveldb::Status GetChildren(const std::string& directory,
                              std::vector<std::string>* result) override;
  leveldb::Status RemoveFile(const std::string& file) override;
  leveldb::Status CreateDir(const std::string& directory) override;
  leveldb::Status RemoveDir(const std::string& directory) override;
  leveldb::Status GetFileSize(const std::string& file, std::uint64_t* size) override;
  leveldb::Status RenameFile(const std::string& from, const std::string& to) override;
  leveldb::Status NewLogger(const std::string& file, leveldb::Logger** result) override;
  void Schedule(void (*work)(void*), void* argument) override;

 private:
  enum class Mode { kThrough, kDeferring, kDiscarded };
  struct File;
  struct Diary;
  class Writable;
  class DiaryLogger;
  using FilePointer = std::shared_ptr<File>;
  using Change = std::function<leveldb::Status()>;
  // What a name stands for: a file in memory, a file of the file system, or, if neither is set, no
  // file.
  struct Named {
    FilePointer made;
    std::string real;
  };

  [[nodiscard]] bool goes_through() const noexcept {
    return mode_.load(std::memory_order_acquire) == Mode::kThrough;
  }
  leveldb::Status add(const std::string& file, Change change) PV2_REQUIRES(changes_mutex_);
  [[nodiscard]] Named find(const std::string& name) const PV2_REQUIRES(changes_mutex_);
  [[nodiscard]] bool exists(const Named& named) PV2_REQUIRES(changes_mutex_);
  void end(Mode mode) PV2_REQUIRES(changes_mutex_);

  mutable Mutex changes_mutex_;
  // Written under the mutex. Acquire and release: a thread that sees kThrough sees what apply()
  // opened.
  std::atomic<Mode> mode_ = Mode::kThrough;
  std::vector<Change> changes_ PV2_GUARDED_BY(changes_mutex_);
  std::map<std::string, Named> names_ PV2_GUARDED_BY(changes_mutex_);
  std::vector<std::pair<void (*)(void*), void*>> work_ PV2_GUARDED_BY(changes_mutex_);
};

}  // namespace pv2
