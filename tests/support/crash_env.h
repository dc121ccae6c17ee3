// SPDX-License-Identifier: Apache-2.0
//
// CrashEnv: a file system in memory that loses, at crash(), everything that was not synced. SIGKILL
// cannot show a missing sync, because the kernel keeps what was written; CrashEnv can. It is a
// leveldb::Env, and implements only what LevelDB, the store and the cluster use of one: files in
// directories, which can be renamed. The directory "." is there from the start.
//
// What survives a crash:
// - Of a file's bytes: those before its last Sync. TornTail::kRandom adds a random part of what
//   follows, or all of it with zeros in place of some pieces: the size was journaled, the pieces
//   were not written. Pieces are pages of 4 KiB or sectors of 512 bytes. Of a file that is
//   overwritten, each piece is lost or kept by itself.
// - Of names (created, renamed, removed): the changes before the last sync of the directory. A
//   MANIFEST's Sync also syncs its directory, as in LevelDB's own Env. The Sync of another file
//   does not make its name durable: ext4, XFS and btrfs do that, but POSIX does not promise it.
//   TornTail::kRandom lets some of the unsynced changes of names survive, in any combination,
//   because a kernel may write back what no caller asked for. TornTail::kBytes keeps all bytes,
//   synced or not, and no unsynced name: the worst that POSIX allows.
//
// After crash() every operation of the old life fails, until reboot().

#pragma once

#include <leveldb/env.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/base/random.h"
#include "pv2/base/status.h"
#include "pv2/store/segment_files.h"

namespace pv2::testing {

/// Thread-safe.
class CrashEnv final : public leveldb::EnvWrapper, public SegmentFiles {
 public:
  enum class TornTail { kNone, kRandom, kBytes };
  enum class Operation { kAppend, kSync, kCreate, kRename, kRemove };

  explicit CrashEnv(std::uint64_t seed = 1);
  ~CrashEnv() override;

  /// Cuts the power. Open files stay open and fail.
  void crash(TornTail torn = TornTail::kNone);
  /// Begins a new life with what is durable.
  void reboot();
  /// Whether the power is off.
  [[nodiscard]] bool is_off() const;
  /// One machine of several loses its power: the files below `directory`, which it has written,
  /// lose what was not synced, all of it or a random part.
  void lose_unsynced(const std::string& directory, TornTail torn);

  /// Cuts the power by itself before the n-th operation from now that changes something (0: the
  /// next one).
  void crash_before_operation(std::size_t operations, TornTail torn = TornTail::kNone);
  /// How many operations have changed something.
  [[nodiscard]] std::size_t operations() const;

  /// Called before each operation that changes something; a failure that it returns is injected.
  /// Called without any lock held.
  using Fault = std::function<leveldb::Status(Operation, const std::string& file)>;
  void set_fault(Fault fault);
  /// Total bytes that all files may have; an append that exceeds it is cut short and fails like a
  /// full disk.
  void set_space(std::size_t bytes);

  /// For LevelDbOptions::env.
  [[nodiscard]] leveldb::Env* as_env() noexcept { return this; }
  /// For LevelDbOptions::segment_files.
  [[nodiscard]] SegmentFiles* as_segment_files() noexcept { return this; }
  /// For LevelDbOptions::sync_directory.
  [[nodiscard]] std::function<Status(const std::string&)> directory_sync();
  /// Makes a function that is as directory_sync(), for all files and directories at once, whichever
  /// is named.
  [[nodiscard]] std::function<Result<std::function<Status()>>(const std::string&)>
  everything_sync();

  /// Direct access, past all faults: for tests that damage a file. set_contents() makes the
  /// directories above the file.
  [[nodiscard]] std::string contents(const std::string& file) const;
  void set_contents(const std::string& file, std::string bytes);
  [[nodiscard]] std::vector<std::string> files() const;

  // SegmentFiles
  Result<std::unique_ptr<SegmentFile>> create(const std::string& file) override;
  Result<std::unique_ptr<SegmentFile>> open(const std::string& file) override;
  Result<std::uint64_t> free_bytes(const std::string& directory) override;

  // leveldb::Env
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
  leveldb::Status LockFile(const std::string& file, leveldb::FileLock** lock) override;
  leveldb::Status UnlockFile(leveldb::FileLock* lock) override;
  leveldb::Status NewLogger(const std::string& file, leveldb::Logger** result) override;

 private:
  class Writable;
  class Overwritable;
  struct File;
  struct State;
  using FilePointer = std::shared_ptr<File>;

  /// Begins one operation that changes something: counts it, crashes if it is the operation to
  /// crash before, and asks for a fault.
  leveldb::Status begin(Operation operation, const std::string& file, std::uint64_t life);
  leveldb::Status append(const FilePointer& to, const std::string& name, std::uint64_t life,
                         std::string_view bytes);
  leveldb::Status overwrite(const FilePointer& to, const std::string& name, std::uint64_t life,
                            std::size_t offset, std::string_view bytes);
  // Only what was appended since the last sync can be cut.
  leveldb::Status cut(const FilePointer& file, const std::string& name, std::uint64_t life,
                      std::size_t bytes);
  leveldb::Status sync(const FilePointer& file, const std::string& name, std::uint64_t life);
  Result<std::unique_ptr<SegmentFile>> overwrite_file(const std::string& file);
  leveldb::Status open_writable(const std::string& file, bool keep, leveldb::WritableFile** result);
  [[nodiscard]] std::uint64_t life() const;

  std::unique_ptr<State> state_;
};

}  // namespace pv2::testing
