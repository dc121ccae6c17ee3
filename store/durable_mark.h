// SPDX-License-Identifier: Apache-2.0
//
// DurableMark: remembers beside the database up to which commit it was durable. A log that was cut
// short, by a file system check or by hand, looks like one that a crash left, and LevelDB opens it
// without a word; the mark knows better. It is written after the sync that it speaks of, so it is
// never ahead of the database.
//
//     PV2-DURABLE = marks of 12 bytes: 8 bytes commit sequence, 4 bytes CRC-32C of those; the
//                   highest good one counts
//
// What it finds: after a clean stop or the death of the process, every cut. After a power cut, what
// was lost below the last mark that had reached the disk: at most kSyncEvery syncs of the database
// earlier, and at most as long as the system keeps written pages in memory (30 s by default).
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
  /// A sync of the mark costs as much as one of the database: one in 128 is less than 1 %, so not
  /// even the slowest 1 % of the commits are others than before.
  static constexpr std::size_t kSyncEvery = 128;
  /// The file begins anew beyond this, after 87 000 marks.
  static constexpr std::size_t kFileBytes = std::size_t{1} << 20;
  static constexpr std::size_t kMarkBytes = 12;

  DurableMark(const LevelDbFiles& files, std::string path)
      : files_(files), path_(std::move(path)) {}

  /// Zero: there is no such file, as in a store of an older version. kCorruption: there is one, and
  /// not even its first mark, which is durable before it has its name, is good.
  [[nodiscard]] Result<CommitSequence> read() const;

  /// Notes that everything up to `durable` is. The first call makes the file anew.
  Status raise(CommitSequence durable);
  /// Makes the last mark durable. For the end, when the next sync would never come.
  Status sync();

  /// Lets the file say `durable`, whatever it said: when an operator gave up what came after it.
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
