// SPDX-License-Identifier: Apache-2.0
//
// How the verbs of the public face that block wait for an answer that another thread gives.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/status.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <string_view>
#include <utility>

#include "core/engine_core.h"

namespace pv2 {

/// What a blocking call waits for. Shared by the caller and the thread that answers, which may
/// still be inside release() when the caller has gone on.
template <class T>
struct Latch {
  std::counting_semaphore<> arrived{0};
  std::optional<T> value;
  std::atomic<bool> has_value{false};  // release and acquire: `value` is visible to who sees it

  void set(T result) {
    value.emplace(std::move(result));
    has_value.store(true, std::memory_order_release);
    arrived.release();
  }
  void wait() {
    while (!has_value.load(std::memory_order_acquire)) arrived.acquire();
  }
};

/// Waits until the value is there or `timeout`, which is not negative, has passed by `clock`; false
/// then. A manual clock says when it was moved, and who waits for it looks.
template <class T>
bool arrives_in_time(const std::shared_ptr<Latch<T>>& latch, Clock& clock, Duration timeout) {
  const SteadyTime due = later(clock.steady_now(), timeout);
  if (!clock.is_manual()) {
    // A semaphore waits by nanoseconds, of which a time that is far away has too many.
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

/// What a verb that blocks answers on a thread of the executor.
inline Status on_engine_thread(std::string_view verb) {
  return Status(
      StatusCode::kFailedPrecondition,
      std::string(verb) +
          " would block a thread of the executor, which may be the one that it waits for; use the "
          "asynchronous form");
}

/// Blocks until the answer is there; with a store that has no thread of its own, by doing its work.
template <class T>
T await(EngineCore& core, Latch<T>& latch) {
  while (core.store.pump() && !latch.has_value.load(std::memory_order_acquire)) {
  }
  latch.wait();
  return *std::move(latch.value);
}

/// Blocks until the reply that `begin` is given was given, and returns what it says.
template <class T, class Begin>
T block(EngineCore& core, std::string_view verb, Begin begin) {
  if (EngineThread::belongs_to(&core)) return on_engine_thread(verb);
  const auto latch = std::make_shared<Latch<T>>();
  begin(Reply<T>{[latch](T answer) { latch->set(std::move(answer)); }, ReplyOn::kHere});
  return await(core, *latch);
}

}  // namespace pv2
