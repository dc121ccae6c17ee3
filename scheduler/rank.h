// SPDX-License-Identifier: Apache-2.0
//
// Ranks: an entry's place in the order of service as one number, which can be compared and lent to
// the entries it waits for. The class is in the upper byte, the priority in the lower one; a larger
// rank goes first. The scheduler decides which class comes first.

#pragma once

#include <cstddef>
#include <cstdint>

#include "pv2/scheduler/scheduler_entry.h"

namespace pv2 {

/// `slot` is the place of the class in the order of classes, 0 the first.
[[nodiscard]] constexpr std::uint16_t make_rank(std::size_t slot, Priority priority) noexcept {
  return static_cast<std::uint16_t>((255 - slot) << 8 | static_cast<std::size_t>(priority));
}
[[nodiscard]] constexpr std::size_t rank_slot(std::uint16_t rank) noexcept {
  return 255 - static_cast<std::size_t>(rank >> 8);
}
/// The class as ranks order it: a larger one goes first.
inline constexpr std::size_t kRankClasses = 256;
[[nodiscard]] constexpr std::size_t rank_class(std::uint16_t rank) noexcept { return rank >> 8; }
/// The lowest rank of the class `cls`.
[[nodiscard]] constexpr std::uint16_t first_rank_of(std::size_t cls) noexcept {
  return static_cast<std::uint16_t>(cls << 8);
}
[[nodiscard]] constexpr std::size_t rank_priority(std::uint16_t rank) noexcept {
  return rank & 0xFFU;
}

}  // namespace pv2
