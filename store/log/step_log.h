// SPDX-License-Identifier: Apache-2.0
//
// StepLog: where a unit becomes durable. A unit is one frame, one write and one sync, behind the
// frames before it in the newest segment; if it does not fit, the segment is sealed and the next
// one begins.
//
//     unit --frame--> newest segment --sync--> durable, visible in the Overlay
//     full segment --Checkpointer--> rows that are still alive in the database, file free again
//
// Invariant: a frame is written only when all frames before it are durable. So what a crash may
// leave in part is only the last frame, and everything before a whole frame was acknowledged.

#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "log/checkpointer.h"
#include "log/overlay.h"
#include "log/segment_memory.h"
#include "log/segment_pool.h"
#include "pv2/base/status.h"
#include "pv2/store/commit_request.h"
#include "pv2/store/segment_files.h"

namespace pv2 {

/// Owned by the thread that writes.
class StepLog {
 public:
  /// `directory` is where the files are. The others outlive it.
  StepLog(SegmentFiles& files, std::string directory, Overlay& overlay, Checkpointer& checkpointer)
      : files_(files),
        directory_(std::move(directory)),
        overlay_(overlay),
        checkpointer_(checkpointer) {}

  /// The number of the first segment. Called once, before append().
  void begin_with(SegmentNumber first) noexcept { next_ = first; }

  /// Makes `unit`, which is not empty, durable and visible. After a failure nothing more is
  /// appended.
  Status append(const CommitList& unit);

 private:
  // So much a read may have to index by itself.
  static constexpr std::size_t kIndexedAtOnce = std::size_t{1} << 20;

  Status begin_segment(std::size_t frame);
  Status write_blocks(std::size_t bytes);

  SegmentFiles& files_;
  const std::string directory_;
  Overlay& overlay_;
  Checkpointer& checkpointer_;

  SegmentMemory memory_;
  SegmentNumber next_;
  std::shared_ptr<Segment> segment_;  // the newest one; null: none was begun
  SegmentPool::File place_;           // its file
  std::unique_ptr<SegmentFile> file_;
  std::size_t used_ = 0;     // bytes of it
  std::size_t indexed_ = 0;  // up to here the checkpointer was asked to index it
  bool asked_for_next_ = false;
};

}  // namespace pv2
