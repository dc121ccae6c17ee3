// SPDX-License-Identifier: Apache-2.0
//
// A segment comes back through its deleter: so after the last reader, on whatever thread that is.

#include "log/spare_segment.h"

#include <utility>

namespace pv2 {

std::shared_ptr<Segment> SpareSegment::make(SegmentNumber number, std::size_t capacity) const {
  std::unique_ptr<Segment> segment;
  {
    MutexLock lock(kept_->kept_mutex);
    segment = std::move(kept_->segment);
  }
  if (segment != nullptr && segment->capacity() == capacity) {
    segment->begin_again(number);
  } else {
    segment = std::make_unique<Segment>(number, capacity);
  }
  return {segment.release(), [kept = kept_](Segment* unused) {
            std::unique_ptr<Segment> mine(unused);
            MutexLock lock(kept->kept_mutex);
            std::swap(kept->segment, mine);
          }};
}

}  // namespace pv2
