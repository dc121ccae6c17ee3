// SPDX-License-Identifier: Apache-2.0
//
// Clock: the only source of time in pv2. Wall time is for people and for deadlines that survive a
// restart; monotonic time is for measuring and for timers inside one run. Nothing in pv2 calls
// now() or sleeps on its own, so a ManualClock controls the time of a whole engine.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "pv2/base/mutex.h"
#include "pv2/base/time.h"

namespace pv2 {

/// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual WallTime wall_now() const = 0;
  [[nodiscard]] virtual SteadyTime steady_now() const = 0;
  /// Whether time moves only when the owner of the clock advances it. If so, timers fire only after
  /// the owner has advanced the clock and the executor has looked at it (in
  /// ProcedureExecutor::run_until_idle, or on its timer thread, which a subscription wakes).
  [[nodiscard]] virtual bool is_manual() const { return false; }
  /// Calls `listener` after each jump of a manual clock, on the thread that advanced it. A clock
  /// that moves by itself never calls it. Returns a number for unsubscribe().
  virtual std::uint64_t subscribe(std::function<void()> listener);
  /// Jumps that begin later do not call the listener. One that is under way on another thread may
  /// still do so after this has returned: a listener owns what it touches.
  virtual void unsubscribe(std::uint64_t subscription);
};

/// The operating system's clocks.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] WallTime wall_now() const override;
  [[nodiscard]] SteadyTime steady_now() const override;
};

/// A clock that stands still until it is told to move: for tests and simulations. Thread-safe.
class ManualClock final : public Clock {
 public:
  /// Starts at `start`; wall and monotonic time advance together.
  explicit ManualClock(WallTime start = WallTime(std::chrono::hours(24 * 365 * 50)));

  /// Moves time forward by `step` (not negative), then calls the listeners.
  void advance(Duration step);
  /// Moves only the wall clock, as an operator or NTP would; monotonic time stays as it is.
  void jump_wall(Duration step);

  [[nodiscard]] WallTime wall_now() const override;
  [[nodiscard]] SteadyTime steady_now() const override;
  [[nodiscard]] bool is_manual() const override { return true; }
  std::uint64_t subscribe(std::function<void()> listener) override;
  void unsubscribe(std::uint64_t subscription) override;

 private:
  struct Subscription {
    std::uint64_t number;
    std::function<void()> listener;
  };
  mutable Mutex time_mutex_;
  WallTime wall_ PV2_GUARDED_BY(time_mutex_);
  SteadyTime steady_ PV2_GUARDED_BY(time_mutex_);
  std::uint64_t next_subscription_ PV2_GUARDED_BY(time_mutex_) = 1;
  std::vector<Subscription> subscriptions_ PV2_GUARDED_BY(time_mutex_);
};

}  // namespace pv2
