// SPDX-License-Identifier: Apache-2.0
//
// The types of times and durations. What gives the time is in clock.h.

#pragma once

#include <chrono>

namespace pv2 {

/// The resolution of every duration and time that pv2 stores.
using Duration = std::chrono::microseconds;
/// Wall-clock time, microseconds since 1970-01-01 UTC.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;
/// Monotonic time; its origin means nothing and changes with each run of the process.
using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// `time` + `duration`; a sum that is out of range becomes the last (or first) representable time.
/// So Duration::max() means "for ever", whatever time it is added to.
template <class Time>
[[nodiscard]] constexpr Time later(Time time, Duration duration) noexcept {
  const Duration since = time.time_since_epoch();
  if (duration > Duration::zero() && since > Duration::max() - duration) return Time::max();
  if (duration < Duration::zero() && since < Duration::min() - duration) return Time::min();
  return time + duration;
}

}  // namespace pv2
