// SPDX-License-Identifier: Apache-2.0
//
// Backoff: how long a step waits before its next attempt, and which failures are reported to the
// host. These functions know numbers only: no procedure, no clock.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/random.h>

#include <cstdint>

namespace pv2 {

struct RetryPolicy;

/// The delay before attempt `attempt` + 1: base * 2^(attempt - 1), at most cap, plus jitter.
[[nodiscard]] Duration backoff_delay(const RetryPolicy& policy, std::uint32_t attempt,
                                     Random& random);

/// Whether the host is told when this attempt fails: the 10th, 20th, 40th, 80th and so on. A
/// passing fault has usually ended before the 10th; a lasting one is reported ever more rarely.
[[nodiscard]] bool is_told_of(std::uint32_t attempt) noexcept;

}  // namespace pv2
