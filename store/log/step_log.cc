// SPDX-License-Identifier: Apache-2.0
//
// A frame is made where it stays in memory, and written from there.

#include "log/step_log.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "pv2/base/assert.h"

namespace pv2 {

Status StepLog::append(const CommitList& unit) {
  if (Status failed = checkpointer_.failure(); !failed.ok()) return failed;
  const std::size_t bytes = frame_bytes(unit);
  if (segment_ == nullptr || segment_->capacity() - used_ < bytes) {
    if (Status begun = begin_segment(bytes); !begun.ok()) return begun;
  }
  char* const frame = segment_->data() + used_;
  write_frame(frame, unit, segment_->number());
  Status status = file_->write(used_, std::string_view(frame, bytes));
  if (status.ok()) status = file_->sync();
  if (!status.ok()) return status;

  used_ += bytes;
  const CommitSequence last{unit.front()->sequence.value + unit.size() - 1};
  segment_->set_durable(used_, last);
  if (used_ - indexed_ >= kIndexedAtOnce) {
    indexed_ = used_;
    checkpointer_.index_soon();
  }
  if (!asked_for_next_ && used_ > segment_->capacity() / 2) {
    asked_for_next_ = true;
    checkpointer_.prepare_soon();
  }
  return status;
}

// A frame that is larger than the file makes the file grow.
Status StepLog::begin_segment(std::size_t frame) {
  if (segment_ != nullptr) checkpointer_.seal(std::exchange(place_, {}));
  segment_.reset();
  auto place = checkpointer_.next_file();
  if (!place.ok()) return place.status();
  auto file = files_.open(directory_ + "/" + place->name);
  if (!file.ok()) return file.status();
  place_ = *std::move(place);
  place_.bytes = std::max(place_.bytes, frame);
  file_ = *std::move(file);
  segment_ = std::make_shared<Segment>(SegmentNumber{next_.value++}, place_.bytes,
                                       memory_.take(place_.bytes));
  used_ = 0;
  indexed_ = 0;
  asked_for_next_ = false;
  overlay_.add(segment_);
  return Status();
}

}  // namespace pv2
