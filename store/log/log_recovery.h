// SPDX-License-Identifier: Apache-2.0
//
// Reads the step log that an earlier process has left, and decides where it ends.
//
// A crash may leave the last frame in part, in zeros, or with some of its pages missing: that frame
// was never acknowledged, and is the normal end of a log. Which frame was the last one follows from
// the bytes: a frame is written only when everything before it is durable, so if a whole frame
// begins behind the place where the log seems to end, that place is damaged. What this cannot tell
// is damage of the very last frame; PV2-DURABLE (durable_mark.h) tells it.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leveldb_files.h"
#include "log/segment.h"
#include "log/segment_pool.h"
#include "pv2/base/status.h"

namespace pv2 {

/// A log as it was read. A value.
struct RecoveredLog {
  struct Damage {
    std::string file;
    std::string what;
  };
  std::vector<std::shared_ptr<Segment>> segments;  ///< In their order, up to the end or the damage.
  CommitSequence last;                             ///< The last commit in them, or `after`.
  SegmentNumber next;                    ///< No file has a frame of this segment or a later one.
  std::vector<SegmentPool::File> files;  ///< All that are there.
  std::string newest;                    ///< The file that was written last; empty: none.
  std::optional<Damage> damage;
  bool with_checkpointed = false;  ///< The first segment is the one before `first`.
};

/// Whether the segment before the first one is read too, which is in the database, but perhaps
/// without the rows that the next one replaces.
enum class Checkpointed {
  kSkip,
  kReadIfWhole,  ///< For a salvage. If the file is damaged or used again, it is skipped.
};

/// Reads the log in `directory` whose first segment is `first`, and whose first commit is the one
/// behind `after`. A failure is one of the file system.
Result<RecoveredLog> recover_log(const LevelDbFiles& files, const std::string& directory,
                                 SegmentNumber first, CommitSequence after,
                                 Checkpointed checkpointed = Checkpointed::kSkip);

}  // namespace pv2
