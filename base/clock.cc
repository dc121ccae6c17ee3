// SPDX-License-Identifier: Apache-2.0
//
// SystemClock reads the operating system; ManualClock keeps its own time under a mutex and calls
// its listeners after releasing it.

#include "pv2/base/clock.h"

#include <algorithm>

#include "pv2/base/assert.h"

namespace pv2 {

std::uint64_t Clock::subscribe(std::function<void()> /*listener*/) { return 0; }
void Clock::unsubscribe(std::uint64_t /*subscription*/) {}

WallTime SystemClock::wall_now() const {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

SteadyTime SystemClock::steady_now() const {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}

ManualClock::ManualClock(WallTime start) : wall_(start), steady_(std::chrono::hours(1)) {}

void ManualClock::advance(Duration step) {
  PV2_ASSERT(step >= Duration::zero(), "a monotonic clock does not go backwards");
  std::vector<Subscription> listeners;
  {
    MutexLock lock(time_mutex_);
    wall_ = later(wall_, step);
    steady_ = later(steady_, step);
    listeners = subscriptions_;
  }
  for (const Subscription& subscription : listeners) subscription.listener();
}

void ManualClock::jump_wall(Duration step) {
  MutexLock lock(time_mutex_);
  wall_ = later(wall_, step);
}

WallTime ManualClock::wall_now() const {
  MutexLock lock(time_mutex_);
  return wall_;
}

SteadyTime ManualClock::steady_now() const {
  MutexLock lock(time_mutex_);
  return steady_;
}

std::uint64_t ManualClock::subscribe(std::function<void()> listener) {
  MutexLock lock(time_mutex_);
  const std::uint64_t number = next_subscription_++;
  subscriptions_.push_back({number, std::move(listener)});
  return number;
}

void ManualClock::unsubscribe(std::uint64_t subscription) {
  MutexLock lock(time_mutex_);
  std::erase_if(subscriptions_,
                [&](const Subscription& entry) { return entry.number == subscription; });
}

}  // namespace pv2
