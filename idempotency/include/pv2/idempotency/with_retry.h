// SPDX-License-Identifier: Apache-2.0
//
// with_retry(): repeats work that was refused before it changed anything. It is meant for all of
// look, check and modify together, never for the modification alone: what was checked may not hold
// any more.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/latch.h>
#include <pv2/base/random.h>
#include <pv2/base/status.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>

namespace pv2 {

struct RetryOptions {
  std::shared_ptr<Clock> clock{};  ///< The system's clock unless given.
  /// The time for all attempts together; no attempt begins after it.
  Duration timeout = std::chrono::seconds(30);
  /// The mean pause before the second attempt, at least 1 ms; it doubles with each attempt, up to
  /// `backoff_max`.
  Duration backoff = std::chrono::milliseconds(10);
  Duration backoff_max = std::chrono::seconds(1);
  /// Of the pauses: each is 50 % to 150 % of its mean. Clients with different seeds do not come
  /// back together.
  std::uint64_t seed = std::random_device()();
};

/// Whether nothing was done, and the same work may succeed later.
[[nodiscard]] inline bool may_be_retried(const Status& status) noexcept {
  return status.code() == StatusCode::kFenced || status.code() == StatusCode::kUnavailable;
}

/// Calls `attempt`, which returns a Status, until it returns something else than kFenced and
/// kUnavailable, or the time is over. Returns what the last attempt returned. Blocks.
template <class Attempt>
Status with_retry(const RetryOptions& options, Attempt&& attempt) {
  const auto clock = options.clock ? options.clock : std::make_shared<SystemClock>();
  const SteadyTime end = later(clock->steady_now(), options.timeout);
  Random random(options.seed);
  constexpr Duration kLeast = std::chrono::milliseconds(1);
  const Duration most = std::max(options.backoff_max, kLeast);
  for (Duration pause = std::clamp(options.backoff, kLeast, most);;
       pause = pause > most / 2 ? most : 2 * pause) {
    Status status = attempt();
    const Duration jittered =
        pause / 2 + Duration(random.below(static_cast<std::uint64_t>(pause.count()) + 1));
    if (!may_be_retried(status) || later(clock->steady_now(), jittered) >= end) return status;
    (void)arrives_in_time(std::make_shared<Latch<bool>>(), *clock, jittered);
  }
}

}  // namespace pv2
