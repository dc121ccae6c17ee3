// SPDX-License-Identifier: Apache-2.0
//
// Latch: how a thread waits for a value that another thread gives it, also for a limited time by a
// Clock.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <semaphore>
#include <utility>

#include "pv2/base/clock.h"

namespace pv2 {

/// What a blocking call waits for. Shared by the caller and the thread that answers, which may
/// still be inside release() when the caller has gone on.
template <class T>
struct Latch {
  std::counting_semaphore<> arrived{0};
  std::optional<T> value;
  std::atomic<bool> has_value{false};  // release and acquire: a thread that sees it sees `value`

  void set(T result) {
    value.emplace(std::move(result));
    has_value.store(true, std::memory_order_release);
    arrived.release();
  }
  void wait() {
    while (!has_value.load(std::memory_order_acquire)) arrived.acquire();
  }
};

/// Waits until the value is there or `timeout`, which is not negative, has passed by `clock`; then
/// returns false. A manual clock wakes the waiting thread when it is moved.
template <class T>
bool arrives_in_time(const std::shared_ptr<Latch<T>>& latch, Clock& clock, Duration timeout) {
  const SteadyTime due = later(clock.steady_now(), timeout);
  if (!clock.is_manual()) {
    // A semaphore counts nanoseconds, which overflow for a time that is far away.
    constexpr Duration kAtOnce = std::chrono::hours(24);
    for (SteadyTime now = clock.steady_now();
         now < due && !latch->has_value.load(std::memory_order_acquire); now = clock.steady_now()) {
      (void)latch->arrived.try_acquire_for(std::min(due - now, kAtOnce));
    }
    return latch->has_value.load(std::memory_order_acquire);
  }
  const std::uint64_t subscription = clock.subscribe([latch] { latch->arrived.release(); });
  while (!latch->has_value.load(std::memory_order_acquire) && clock.steady_now() < due) {
    latch->arrived.acquire();
  }
  clock.unsubscribe(subscription);
  return latch->has_value.load(std::memory_order_acquire);
}

}  // namespace pv2
