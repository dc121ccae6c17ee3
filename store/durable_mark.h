// SPDX-License-Identifier: Apache-2.0
//
// DurableMark: records, in a file next to the database, up to which commit the store was durable. A
// log that was cut short, by a file system check or by hand, looks like one that a crash left, and
// is opened without a word; the mark tells the two apart. It is written after the sync that it
// records, so it is never ahead of the log.
//
//     PV2-DURABLE = 341 marks of 12 bytes: 8 bytes commit sequence, 4 bytes CRC-32C of those; the
//                   highest good one counts
//
// The first mark is durable before the file has its name, and stays. The others are a ring, zeros
// at first: each new mark overwrites the oldest. So a mark does not change the size of the file: a
// file that grew with each mark could make the syncs of the log slower (docs/decisions/0034).
//
// What it finds: after a clean stop or the death of the process, every cut. After a power cut, the
// commits that were lost below the last mark that had reached the disk. That mark is at most
// kSyncEvery syncs of the log old, and at most as old as the system keeps written pages in memory
// (30 s by default).
//
// How it fails: a mark that cannot be written, or synced because the file was removed, is a failed
// write of the store.

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "leveldb_files.h"
#include "pv2/base/ids.h"
#include "pv2/store/segment_files.h"

namespace pv2 {

/// The highest good mark. Zero: there is no file of marks, as in a store of an older version.
/// kCorruption: there is one, and even its first mark is bad.
[[nodiscard]] Result<CommitSequence> read_marks(const LevelDbFiles& files, const std::string& path);

/// Makes a new file of marks that says `durable`, in place of the old one.
Status replace_marks(const LevelDbFiles& files, const std::string& path, CommitSequence durable);

/// Writes the marks of one life of the store. Owned by one thread at a time.
class DurableMark {
 public:
  /// A sync of the marks costs as much as one of the log: one in 128 is less than 1 %, so even
  /// the 99th percentile of the commits is as it was.
  static constexpr std::size_t kSyncEvery = 128;
  static constexpr std::size_t kMarkBytes = 12;
  /// As many as fit into one block of a file system: what is rewritten all the time is one page.
  static constexpr std::size_t kMarks = 4096 / kMarkBytes;
  // A crash may tear marks that were written since the last sync, and so lose those that they were
  // to replace. The last one that was synced is not among these.
  static_assert(kMarks - 1 > kSyncEvery);

  /// `in_place` has the same files as `files`.
  DurableMark(const LevelDbFiles& files, SegmentFiles& in_place, std::string path)
      : files_(files), in_place_(in_place), path_(std::move(path)) {}

  /// Records that everything up to `durable` is durable. The first call replaces the file.
  Status raise(CommitSequence durable);
  /// Makes the last mark durable. Called at the end, when no later raise() would sync it.
  Status sync();

 private:
  const LevelDbFiles& files_;
  SegmentFiles& in_place_;
  const std::string path_;
  std::unique_ptr<SegmentFile> file_;  // set by the first raise()
  std::size_t next_ = 1;               // the place of the next mark
  std::size_t unsynced_ = 0;           // marks
  CommitSequence last_;
};

}  // namespace pv2
