// SPDX-License-Identifier: Apache-2.0
//
// TimerQueue: the deadlines of all waiting executions, earliest first. It is a binary heap of
// deadlines with their executions. Each execution knows its place, so a timer is cancelled or moved
// without a search; comparing reads only the heap. It has no clock and no thread: its owner asks
// for the executions that are due.

#pragma once

#include <pv2/base/clock.h>

#include <cstddef>
#include <deque>
#include <optional>

namespace pv2 {

struct Execution;

/// Guarded by the engine's state mutex.
class TimerQueue {
 public:
  /// Arms, or moves, the timer of `execution`. Returns whether it is now the earliest of all.
  bool arm(Execution& execution, SteadyTime due);
  /// Disarms the timer of `execution`, if it is armed.
  void cancel(Execution& execution) noexcept;
  /// Removes and returns an execution that is due, the earliest first; or nullptr.
  Execution* pop_due(SteadyTime now) noexcept;

  [[nodiscard]] std::optional<SteadyTime> earliest() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return heap_.size(); }
  /// Whether the heap has `execution` in the place, and with the time, that its `wait` says.
  [[nodiscard]] bool has(const Execution& execution) const noexcept;
  /// Whether no timer is due before its parent in the heap. Looks at all timers.
  [[nodiscard]] bool is_in_order() const noexcept;

 private:
  struct Entry {
    SteadyTime due;
    Execution* execution;
  };
  void place(std::size_t index, Entry entry) noexcept;
  void sift_up(std::size_t index) noexcept;
  void sift_down(std::size_t index) noexcept;

  std::deque<Entry> heap_;  // grows without moving the others
};

}  // namespace pv2
