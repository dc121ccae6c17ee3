// SPDX-License-Identifier: Apache-2.0
//
// FaultPipe: the line of one direction. Nothing in it waits for ever: a held item has a time, a due
// item too, and a stream without room says when it has some.

#include "fault_pipe.h"

#include <pv2/base/assert.h>

#include <algorithm>
#include <utility>

namespace pv2 {
namespace {

constexpr std::uint64_t kSlicesPerSecond = 20;

std::size_t slice_of(std::uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return static_cast<std::size_t>(-1);
  return static_cast<std::size_t>(std::max<std::uint64_t>(1, bytes_per_second / kSlicesPerSecond));
}

// At most a second: a slice is a twentieth of what passes in one, or one byte.
Duration time_of(std::size_t bytes, std::uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return Duration::zero();
  return Duration(std::uint64_t{bytes} * 1'000'000 / bytes_per_second);
}

}  // namespace

void FaultPipe::append(Item item) {
  PV2_ASSERT(item.copies > 0, "an item that is dropped is never in a pipe");
  kept_ += item.bytes.size() + kItemBytes;
  line_.push_back({++last_number_, std::move(item)});
}

void FaultPipe::hold_back(Item item, std::uint32_t behind, SteadyTime until) {
  PV2_ASSERT(item.copies > 0, "an item that is dropped is never in a pipe");
  kept_ += item.bytes.size() + kItemBytes;
  held_.push_back({{++last_number_, std::move(item)}, behind, until});
}

void FaultPipe::no_more_comes() {
  while (!held_.empty()) release(held_.size() - 1);
}

void FaultPipe::clear() {
  line_.clear();
  held_.clear();
  kept_ = 0;
  sent_of_front_ = 0;
  front_was_copied_ = false;
  waits_for_room_ = false;
  has_sent_last_ = false;
}

void FaultPipe::pump(Stream& out, SteadyTime now, std::uint64_t bytes_per_second) {
  release_due(now);
  waits_for_room_ = false;
  while (!line_.empty() && !has_sent_last_) {
    if (line_.front().item.due > now || free_at_ > now) return;
    waits_for_room_ = out.unsent() >= room_;
    if (waits_for_room_) return;
    if (send_slice(out, now, bytes_per_second)) copy_passed();
  }
}

std::optional<SteadyTime> FaultPipe::wakes_at() const {
  std::optional<SteadyTime> earliest;
  if (!line_.empty() && !waits_for_room_) earliest = std::max(line_.front().item.due, free_at_);
  for (const Held& held : held_) earliest = std::min(earliest.value_or(held.until), held.until);
  return earliest;
}

/// Returns whether that was the end of a copy.
bool FaultPipe::send_slice(Stream& out, SteadyTime now, std::uint64_t bytes_per_second) {
  const Item& front = line_.front().item;
  const std::size_t left = front.bytes.size() - sent_of_front_;
  const std::size_t size = std::min(left, slice_of(bytes_per_second));
  std::string slice = front.bytes.substr(sent_of_front_, size);
  out.send(slice);
  last_sent_at_ = now;
  free_at_ = std::max(free_at_, now) + time_of(size, bytes_per_second);
  sent_of_front_ += size;
  return size == left;
}

void FaultPipe::copy_passed() {
  ++counts_.passed;
  if (front_was_copied_) ++counts_.duplicated;
  front_was_copied_ = true;
  sent_of_front_ = 0;
  if (--line_.front().item.copies > 0) return;

  const std::uint64_t number = line_.front().number;
  has_sent_last_ = line_.front().item.is_last;
  kept_ -= line_.front().item.bytes.size() + kItemBytes;
  line_.pop_front();
  front_was_copied_ = false;
  if (number < highest_passed_) ++counts_.reordered;
  highest_passed_ = std::max(highest_passed_, number);

  for (std::size_t i = held_.size(); i-- > 0;) {
    Held& held = held_[i];
    if (held.numbered.number < number && --held.behind == 0) release(i);
  }
}

/// Moves it into the line, before all that arrived later.
void FaultPipe::release(std::size_t index) {
  // A front that is partly sent, or of which a copy is, stays the front.
  const bool has_begun = sent_of_front_ > 0 || front_was_copied_;
  const std::uint64_t number = held_[index].numbered.number;
  const auto place =
      std::find_if(line_.begin() + (has_begun ? 1 : 0), line_.end(),
                   [number](const Numbered& other) { return other.number > number; });
  line_.insert(place, std::move(held_[index].numbered));
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
}

void FaultPipe::release_due(SteadyTime now) {
  for (std::size_t i = held_.size(); i-- > 0;) {
    if (held_[i].until <= now) release(i);
  }
}

}  // namespace pv2
