// SPDX-License-Identifier: Apache-2.0
//
// How a row stores a moment of the wall clock: as microseconds since 1970, which may be negative.
// Cannot fail.

#pragma once

#include <cstdint>

#include "pv2/base/time.h"

namespace pv2 {

[[nodiscard]] inline std::int64_t micros(WallTime time) noexcept {
  return time.time_since_epoch().count();
}
[[nodiscard]] inline WallTime wall_time(std::int64_t micros) noexcept {
  return WallTime(Duration(micros));
}

}  // namespace pv2
