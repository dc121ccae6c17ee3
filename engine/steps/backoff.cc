// SPDX-License-Identifier: Apache-2.0
//
// Durations are 64 bits and a policy may name any of them, so no product here may overflow.

#include "steps/backoff.h"

#include <algorithm>
#include <bit>

#include "pv2/engine/executor_options.h"

namespace pv2 {

Duration backoff_delay(const RetryPolicy& policy, std::uint32_t attempt, Random& random) {
  Duration delay = std::min(policy.base, policy.cap);
  if (delay <= Duration::zero()) return Duration::zero();  // doubling would not change it
  for (std::uint32_t i = 1; i < attempt && delay < policy.cap; ++i) {
    delay = delay <= policy.cap / 2 ? delay * 2 : policy.cap;
  }
  // In two parts, because the product of delay and percentage may overflow.
  const Duration spread =
      delay / 100 * policy.jitter_percent + delay % 100 * policy.jitter_percent / 100;
  if (spread == Duration::zero()) return delay;
  const Duration extra(
      static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(spread.count()) + 1)));
  return delay + std::min(extra, Duration::max() - delay);
}

bool is_told_of(std::uint32_t attempt) noexcept {
  constexpr std::uint32_t kFirst = 10;
  return attempt % kFirst == 0 && std::has_single_bit(attempt / kFirst);
}

}  // namespace pv2
