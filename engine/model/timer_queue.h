// SPDX-License-Identifier: Apache-2.0
//
// TimerQueue: the deadlines of all waiting executions, earliest first. A binary heap of
// deadlines and executions that know their place, so a timer is cancelled or moved without a
// search, and comparing touches no execution. It has no clock and no thread: its owner asks what is
// due.

#pragma once

#include <optional>
#include <vector>

#include "model/execution.h"

namespace pv2 {

/// Guarded by the engine's state mutex.
class TimerQueue {
 public:
  /// Arms, or moves, the timer of `execution`. Returns whether it is now the earliest of all.
  bool arm(Execution& execution, SteadyTime due);
  /// Disarms it, if it is armed.
  void cancel(Execution& execution) noexcept;
  /// Removes and returns an execution whose time has come, or nullptr.
  Execution* pop_due(SteadyTime now) noexcept;

  [[nodiscard]] std::optional<SteadyTime> earliest() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return heap_.size(); }
  /// Whether `execution` has a timer, in the place that it says and due when it says.
  [[nodiscard]] bool has(const Execution& execution) const noexcept;
  /// Whether none is due before the one above it. Looks at all of them.
  [[nodiscard]] bool is_in_order() const noexcept;

 private:
  struct Entry {
    SteadyTime due;
    Execution* execution;
  };
  void place(std::size_t index, Entry entry) noexcept;
  void sift_up(std::size_t index) noexcept;
  void sift_down(std::size_t index) noexcept;

  std::vector<Entry> heap_;
};

}  // namespace pv2
