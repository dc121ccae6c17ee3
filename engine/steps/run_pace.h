// SPDX-License-Identifier: Apache-2.0
//
// RunPace: how long the steps of one worker take, so that it knows whether a run is worth sharing
// with an idle worker (to wake one costs 20 us), and when the records of a run have waited for long
// enough. An estimate: no result depends on it, and a clock that jumps does no harm.

#pragma once

#include <pv2/base/clock.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace pv2 {

/// Owned by its worker.
class RunPace {
 public:
  /// A new run begins.
  void begin_run() noexcept {
    if (steps_ > 1) {
      const auto all = std::clamp<std::chrono::nanoseconds>(last_ - first_, {}, kMost);
      mean_ = (3 * mean_ + all / (steps_ - 1)) / 4;
    }
    steps_ = 0;
    is_new_run_ = true;
  }
  /// A step begins.
  void begin_step(WallTime now) noexcept {
    if (steps_++ == 0) first_ = now;
    last_ = now;
  }

  /// Whether another worker should take some of `jobs`.
  [[nodiscard]] bool is_worth_sharing(std::size_t jobs) const noexcept {
    return mean_ * static_cast<std::int64_t>(jobs) >= kWorthSharing;
  }
  /// Whether the records of the run should be handed over, though it has not ended. When it is
  /// true, the caller does so. Always true for the first question of a run, which has no records.
  [[nodiscard]] bool records_are_due(WallTime now) noexcept {
    if (!is_new_run_ && now - handed_over_ < kRecordsWait) return false;
    is_new_run_ = false;
    handed_over_ = now;
    return true;
  }

 private:
  // Some wakes of a thread.
  static constexpr Duration kWorthSharing = std::chrono::microseconds(60);
  // About a sync.
  static constexpr Duration kRecordsWait = std::chrono::microseconds(100);
  static constexpr std::chrono::seconds kMost{10};

  std::chrono::nanoseconds mean_{};  // of the steps of the last runs
  std::int64_t steps_ = 0;
  WallTime first_{};  // when the first step of this run began
  WallTime last_{};   // when the last one did
  WallTime handed_over_{};
  bool is_new_run_ = true;
};

}  // namespace pv2
