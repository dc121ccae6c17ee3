// SPDX-License-Identifier: Apache-2.0
//
// A binary heap with back pointers (Wait::timer_index).

#include "model/timer_queue.h"

#include "model/execution.h"

namespace pv2 {

bool TimerQueue::arm(Execution& execution, SteadyTime due) {
  PV2_ASSERT(due != kNotDue, "a timer has a due time");
  cancel(execution);
  heap_.push_back({due, &execution});
  execution.wait.timer_index = static_cast<std::uint32_t>(heap_.size() - 1);
  sift_up(execution.wait.timer_index);
  PV2_ASSERT(heap_[execution.wait.timer_index].execution == &execution,
             "a timer knows its place in the queue");
  return execution.wait.timer_index == 0;
}

void TimerQueue::cancel(Execution& execution) noexcept {
  const std::size_t index = execution.wait.timer_index;
  if (index == Wait::kNoTimer) return;
  PV2_ASSERT(index < heap_.size() && heap_[index].execution == &execution,
             "a timer knows its place in the queue");
  execution.wait.timer_index = Wait::kNoTimer;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (last.execution == &execution) return;
  place(index, last);
  sift_up(index);
  sift_down(last.execution->wait.timer_index);
}

Execution* TimerQueue::pop_due(SteadyTime now) noexcept {
  if (heap_.empty() || heap_.front().due > now) return nullptr;
  Execution* const execution = heap_.front().execution;
  PV2_ASSERT(execution->wait.timer_index == 0, "the earliest timer is the first in the queue");
  cancel(*execution);
  return execution;
}

std::optional<SteadyTime> TimerQueue::earliest() const noexcept {
  if (heap_.empty()) return std::nullopt;
  return heap_.front().due;
}

bool TimerQueue::has(const Execution& execution) const noexcept {
  const std::size_t index = execution.wait.timer_index;
  if (index >= heap_.size()) return false;
  return heap_[index].execution == &execution && heap_[index].due == execution.wait.due;
}

bool TimerQueue::is_in_order() const noexcept {
  for (std::size_t index = 1; index < heap_.size(); ++index) {
    if (heap_[index].due < heap_[(index - 1) / 2].due) return false;
  }
  return true;
}

void TimerQueue::place(std::size_t index, Entry entry) noexcept {
  PV2_ASSERT(index < heap_.size() && entry.execution != nullptr,
             "a timer is placed within the queue");
  heap_[index] = entry;
  entry.execution->wait.timer_index = static_cast<std::uint32_t>(index);
}

void TimerQueue::sift_up(std::size_t index) noexcept {
  const Entry moving = heap_[index];
  while (index > 0) {
    const std::size_t parent = (index - 1) / 2;
    if (heap_[parent].due <= moving.due) break;
    place(index, heap_[parent]);
    index = parent;
  }
  place(index, moving);
}

void TimerQueue::sift_down(std::size_t index) noexcept {
  const Entry moving = heap_[index];
  for (;;) {
    std::size_t child = 2 * index + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1].due < heap_[child].due) ++child;
    if (moving.due <= heap_[child].due) break;
    place(index, heap_[child]);
    index = child;
  }
  place(index, moving);
}

}  // namespace pv2
