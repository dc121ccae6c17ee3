// SPDX-License-Identifier: Apache-2.0
//
// DurableMark: records, in a file next to the database, up to which commit the database was
// durable. A log that was cut short, by a file system check or by hand, looks like one that a crash
// left, and LevelDB opens it without a word; the mark tells the two apart. It is written after the
// sync that it records, so it is never ahead of the database.
//
//     PV2-DURABLE = marks of 12 bytes: 8 bytes commit sequence, 4 bytes CRC-32C of those; the
//                   highest good one counts
//
// What it finds: after a clean stop or the death of the process, every cut. After a power cut, the
// commits that were lost below the last mark that had reached the disk. That mark is at most
// kSyncEvery syncs of the database old, and at most as old as the system keeps written pages in
// memory (30 s by default).
//
// How it fails: a mark that cannot be written is a failed write of the store.

#pragma once

#include <leveldb/env.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "leveldb_files.h"
#include "pv2/base/ids.h"

namespace pv2 {

/// Owned by one thread at a time.
class DurableMark {
 public:
  /// A sync of the mark costs as much as one of the database: one in 128 is less than 1 %, so even
  /// the 99th percentile of the commits is as it was.
  static constexpr std::size_t kSyncEvery = 128;
  /// The file is replaced when it would exceed this, after 87 000 marks.
  static constexpr std::size_t kFileBytes = std::size_t{1} << 20;
  static constexpr std::size_t kMarkBytes = 12;

  DurableMark(const LevelDbFiles& files, std::string path)
      : files_(files), path_(std::move(path)) {}

  /// Zero: there is no mark file, as in a store of an older version. kCorruption: there is one, and
  /// even its first mark is bad, although that is durable before the file has its name.
  [[nodiscard]] Result<CommitSequence> read() const;

  /// Records that everything up to `durable` is durable. The first call replaces the file.
  Status raise(CommitSequence durable);
  /// Makes the last mark durable. Called at the end, when no later raise() would sync it.
  Status sync();

  /// Sets the file to `durable`, whatever it said: when an operator gave up the later commits.
  Status reset(CommitSequence durable);

 private:
  Status check(const leveldb::Status& status, std::string_view act) const;

  const LevelDbFiles& files_;
  const std::string path_;
  std::unique_ptr<leveldb::WritableFile> file_;
  std::size_t bytes_ = 0;     // in file_
  std::size_t unsynced_ = 0;  // marks
  CommitSequence last_;
};

}  // namespace pv2
