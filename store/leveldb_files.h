// SPDX-License-Identifier: Apache-2.0
//
// Small helpers around leveldb::Env, shared by the parts of the LevelDB store: statuses translated,
// files read and written whole, directories synced. They add no policy.

#pragma once

#include <leveldb/env.h>
#include <leveldb/status.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/base/status.h"

namespace pv2 {

/// Makes the entries of a directory durable.
using DirectorySync = std::function<Status(const std::string& directory)>;

/// LevelDB's failure as ours; a full disk becomes kStorageFull.
Status translate(const leveldb::Status& status);

/// A failure to read something of a store that is there: kNotFound becomes kIoError. A caller would
/// take kNotFound for "there is no such row", or "there is no store".
Status not_absent(const Status& status);

/// fsync on the directory itself: POSIX makes the name of a new file durable in no other way.
Status sync_directory(const std::string& directory);

/// The directory that holds `path`: "." for a bare name, "./.." for ".".
[[nodiscard]] std::string parent_of(const std::string& path);

/// The marker of a store, by which its directory is known. From the end of its creation on it is
/// always there.
inline constexpr std::string_view kStoreMarker = "PV2-STORE";

/// Whether `file` is a log or a table of LevelDB: these may be large, and MANIFEST names them.
[[nodiscard]] inline bool is_log_or_table(const std::string& file) {
  return file.ends_with(".log") || file.ends_with(".ldb");
}

/// Reads and writes of whole files. Thread-safe as its Env.
class LevelDbFiles {
 public:
  LevelDbFiles(leveldb::Env& env, DirectorySync sync) : env_(env), sync_(std::move(sync)) {}

  [[nodiscard]] leveldb::Env& env() const noexcept { return env_; }
  /// kNotFound: there is no such file.
  Result<std::string> read(const std::string& path) const;
  /// Whether there is anything at `path`; what cannot be looked at is a failure.
  Result<bool> exists(const std::string& path) const;
  /// Replaces `path` by `text` in one step: new file, synced, renamed, directory synced. A failure
  /// leaves no part of the new file.
  Status replace(const std::string& path, std::string_view text) const;
  /// The names in a directory, sorted, without "." and "..".
  Result<std::vector<std::string>> list(const std::string& directory) const;
  /// The same for the directory of a store that is there. kIoError: the list is without its marker.
  /// So it is that of another directory, as of one whose mount is gone, and says nothing of what
  /// the store has.
  Result<std::vector<std::string>> list_store(const std::string& directory) const;
  Status sync_directory(const std::string& directory) const { return sync_(directory); }
  [[nodiscard]] const DirectorySync& directory_sync() const noexcept { return sync_; }

 private:
  leveldb::Env& env_;
  const DirectorySync sync_;
};

}  // namespace pv2
