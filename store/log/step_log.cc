// SPDX-License-Identifier: Apache-2.0
//
// A frame is made where it stays in memory, and written from there.

#include "log/step_log.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "pv2/base/assert.h"

namespace pv2 {
namespace {

std::size_t in_whole_blocks(std::size_t bytes) noexcept {
  constexpr std::size_t kBlock = SegmentFile::kBlockBytes;
  return (bytes + kBlock - 1) / kBlock * kBlock;
}

}  // namespace

Status StepLog::append(const CommitList& unit) {
  if (Status failed = checkpointer_.failure(); !failed.ok()) return failed;
  const std::size_t bytes = frame_bytes(unit);
  if (segment_ == nullptr || segment_->capacity() - used_ < bytes) {
    if (Status begun = begin_segment(bytes); !begun.ok()) return begun;
  }
  char* const frame = segment_->data() + used_;
  write_frame(frame, unit, segment_->number());
  if (Status failed = write_blocks(bytes); !failed.ok()) return failed;

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
  return Status();
}

// The block in which the frames so far end is written again, as a page cache would do it. If a
// power cut tears that write, each sector has its bytes from before or from after it. In both the
// bytes of those frames are the same.
Status StepLog::write_blocks(std::size_t bytes) {
  const std::size_t from = used_ / SegmentFile::kBlockBytes * SegmentFile::kBlockBytes;
  const std::size_t to = in_whole_blocks(used_ + bytes);
  std::memset(segment_->data() + used_ + bytes, 0, to - used_ - bytes);
  return file_->write_durably(from, {segment_->data() + from, to - from});
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
                                       memory_.take(in_whole_blocks(place_.bytes)));
  used_ = 0;
  indexed_ = 0;
  asked_for_next_ = false;
  overlay_.add(segment_);
  return Status();
}

}  // namespace pv2
