// SPDX-License-Identifier: Apache-2.0
//
// DurableNamesEnv: makes the names of LevelDB's files durable before anything refers to them. POSIX
// makes a name durable with a sync of its directory and in no other way; LevelDB syncs the
// directory with its MANIFEST only. So a power cut might keep a MANIFEST's last record, which is
// not synced yet, and lose the log or table that it names; or keep the removal of old files and
// lose the new CURRENT.

#pragma once

#include <leveldb/env.h>

#include <string>

#include "leveldb_files.h"

namespace pv2 {

/// As thread-safe as the Env it wraps, which outlives it.
class DurableNamesEnv final : public leveldb::EnvWrapper {
 public:
  DurableNamesEnv(leveldb::Env& env, DirectorySync sync)
      : EnvWrapper(&env), sync_(std::move(sync)) {}

  leveldb::Status NewWritableFile(const std::string& file, leveldb::WritableFile** result) override;
  leveldb::Status RenameFile(const std::string& from, const std::string& to) override;

 private:
  leveldb::Status sync_directory_of(const std::string& file) const;

  const DirectorySync sync_;
};

}  // namespace pv2
