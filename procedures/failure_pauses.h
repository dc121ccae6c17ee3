// SPDX-License-Identifier: Apache-2.0
//
// How often a procedure pauses when servers fail to do what it asks of them.

#pragma once

#include <cstdint>

namespace pv2 {

/// A failure is shown as a failed attempt, with the engine's growing pause, this many times at most
/// before the next try. Six: with pauses that double from a second, about a minute in all.
inline constexpr std::uint32_t kPausesMax = 6;

}  // namespace pv2
