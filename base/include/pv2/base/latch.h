// SPDX-License-Identifier: Apache-2.0
//
// Latch: how a thread waits for a value that another thread gives it, also for a limited time by a
// Clock.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <semaphore>
#include <utility>

#include "pv2/base/clock.h"

namespace pv2 {

/// What a blocking call waits for. Shared by the thread that waits and the one that answers, which
/// may still be inside set() when the other has gone on. set() is called once.
template <class T>
class Latch {
 public:
  /// Wakes nobody if nobody waits.
  void set(T result) {
    value.emplace(std::move(result));
    const State before = state_.exchange(State::kSet, std::memory_order_acq_rel);
    if (before == State::kAwaited) wake_.release();
  }
  /// A thread that gets true sees `value`.
  [[nodiscard]] bool has_value() const {
    return state_.load(std::memory_order_acquire) == State::kSet;
  }
  void wait() {
    while (begin_wait()) wake_.acquire();
  }
  /// Ends early if the value arrives or look_again() is called.
  void wait_for(Duration time) {
    if (begin_wait()) (void)wake_.try_acquire_for(time);
  }
  /// Ends a wait_for() of another thread, or the next one.
  void look_again() { wake_.release(); }

  std::optional<T> value;

 private:
  enum class State : unsigned char { kEmpty, kAwaited, kSet };

  // Returns false if the value is there. If not, set() will wake.
  bool begin_wait() {
    State now = State::kEmpty;
    state_.compare_exchange_strong(now, State::kAwaited, std::memory_order_acq_rel);
    return now != State::kSet;
  }

  std::counting_semaphore<> wake_{0};
  std::atomic<State> state_{State::kEmpty};
};

/// Waits until the value is there or `timeout`, which is not negative, has passed by `clock`; then
/// returns false. A manual clock wakes the waiting thread when it is moved.
template <class T>
bool arrives_in_time(const std::shared_ptr<Latch<T>>& latch, Clock& clock, Duration timeout) {
  // A semaphore counts nanoseconds, which overflow for a time that is far away.
  constexpr Duration kAtOnce = std::chrono::hours(24);
  const SteadyTime due = later(clock.steady_now(), timeout);
  const bool is_manual = clock.is_manual();
  const std::uint64_t subscription =
      is_manual ? clock.subscribe([latch] { latch->look_again(); }) : 0;
  for (SteadyTime now = clock.steady_now(); now < due && !latch->has_value();
       now = clock.steady_now()) {
    latch->wait_for(is_manual ? kAtOnce : std::min(due - now, kAtOnce));
  }
  if (is_manual) clock.unsubscribe(subscription);
  return latch->has_value();
}

}  // namespace pv2
