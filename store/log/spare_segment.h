// SPDX-License-Identifier: Apache-2.0
//
// SpareSegment: keeps the memory of a segment that nobody needs any more for the next one. New
// memory of that size would come from the system, a page at a time while the log is written, and
// each page is cleared before.

#pragma once

#include <cstddef>
#include <memory>

#include "log/segment.h"
#include "pv2/base/mutex.h"

namespace pv2 {

/// Thread-safe. Keeps one segment at most.
class SpareSegment {
 public:
  /// A new segment, with room for `capacity` bytes. When it is not used any more, its memory is
  /// kept. It may outlive this object.
  [[nodiscard]] std::shared_ptr<Segment> make(SegmentNumber number, std::size_t capacity) const;

 private:
  /// Shared with the segments that were made.
  struct Kept {
    Mutex kept_mutex;
    std::unique_ptr<Segment> segment PV2_GUARDED_BY(kept_mutex);
  };

  const std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

}  // namespace pv2
