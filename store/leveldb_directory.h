// SPDX-License-Identifier: Apache-2.0
//
// LevelDbDirectory: decides whether a directory may be opened as a store, before LevelDB touches
// it. LevelDB rewrites a directory while it opens it; so everything that can lead to a refusal is
// checked here first, by reading only.
//
//     PV2-STORE   "pv2 store", the format version, and whether creation was completed
//     PV2-LOCK    the lock of the owner, and who that is
//     PV2-DURABLE up to which commit the database was durable (durable_mark.h)
//     the rest    LevelDB's files

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leveldb_files.h"
#include "leveldb_manifest.h"

namespace pv2 {

/// The format that this version writes. Persisted; a change that older versions cannot read takes
/// the next number.
inline constexpr std::uint32_t kLevelDbStoreFormat = 3;

/// One live write-ahead log as it lies on disk. A value.
struct LiveLog {
  std::string file;
  std::uint64_t number = 0;
};

/// Files that LevelDB is to see without the ends that a power cut has left. A value.
struct WithoutEnds {
  std::optional<ShownFile> manifest;
  std::optional<ShownFile> log;
};

/// What is in a store's directory. Owned by one thread.
class LevelDbDirectory {
 public:
  enum class Contents {
    kMissing,     ///< There is no such directory; its parent exists.
    kEmpty,       ///< Nothing in it, apart from a lock.
    kUnfinished,  ///< A store whose creation did not complete: it never acknowledged anything.
    kStore,       ///< A store in the format that this version writes.
    kOlderStore,  ///< A store in an older format, which this version reads.
  };

  LevelDbDirectory(std::string path, LevelDbFiles files);

  /// kFailedPrecondition: something else is there. kNotSupported: a newer format. kNotFound: no
  /// parent directory. kInvalidArgument: it is no path.
  Result<Contents> examine() const;

  /// OK also if another process has just made it.
  Status create() const;
  Status sync_name() const;        ///< Makes the directory itself durable in its parent.
  Status mark_unfinished() const;  ///< Called before LevelDB creates its files,
  Status mark_complete() const;    ///< and when they are durable: it is a store of this format.

  /// What is said where no store may be made: kNotFound, unless the contents were taken for empty
  /// and parts of a store can be seen.
  [[nodiscard]] Status no_store(Contents contents) const;
  /// Whether a store may be made in a directory whose list was empty: kIoError if parts of a store
  /// can be seen after all.
  Status verify_empty() const;
  /// Whether an unfinished store may be emptied: kCorruption when there is data in it after all.
  Status verify_unfinished() const;

  /// Whether every file that LevelDB needs is there and undamaged, as far as that can be told
  /// without reading whole tables: those are verified as they are read. A last write that a crash
  /// cut short, or left in zeros, is accepted. kCorruption names the file.
  ///
  /// With a step log, damage of the last log that has records is accepted as well: what it holds
  /// are checkpoints. As long as the step log has the rows of those that are damaged, nothing is
  /// lost; if it has not, it does not go on where the database ends, which recover_log() finds.
  /// Returns the files that LevelDB is to see without their ends.
  Result<WithoutEnds> verify(bool has_step_log) const;

  /// Reads all tables, block by block. kCorruption names the first damaged one; OK when none is.
  Status verify_tables() const;

  Result<Manifest> manifest() const;
  /// In the order in which they were written.
  Result<std::vector<LiveLog>> live_logs(const Manifest& manifest) const;

  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] std::string lock_file() const { return file("PV2-LOCK"); }
  [[nodiscard]] std::string mark_file() const { return file(std::string(kMark)); }
  [[nodiscard]] Result<bool> has_marker() const;
  /// The log that was written last; for messages.
  [[nodiscard]] std::string newest_log() const;
  /// The status "`file` of this store is damaged: `what`". For a store that has not been changed
  /// yet.
  [[nodiscard]] Status damaged(const std::string& file, const std::string& what) const;
  static constexpr std::string_view kMark = "PV2-DURABLE";
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const LevelDbFiles& files() const noexcept { return files_; }

 private:
  Status check_path() const;
  Status refuse_strangers(const std::vector<std::string>& names) const;
  Status explain_unreadable(const Status& cause) const;
  Status verify_table_files(const Manifest& manifest) const;
  Result<std::optional<ShownFile>> verify_logs(const Manifest& manifest, bool has_step_log) const;
  Result<std::string> table_file(const Manifest& manifest, std::uint64_t number) const;
  Status missing(const Manifest& manifest, const std::string& name) const;
  Status missing(const std::string& name) const;

  const std::string path_;
  const LevelDbFiles files_;
};

}  // namespace pv2
