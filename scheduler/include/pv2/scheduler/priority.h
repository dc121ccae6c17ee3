// SPDX-License-Identifier: Apache-2.0
//
// Priority: what a procedure says of its urgency.

#pragma once

#include <cstdint>

namespace pv2 {

/// Order among entities of one class; a higher one goes first. The numbers leave room between.
enum class Priority : std::uint8_t {
  kLow = 32,
  kNormal = 64,
  kHigh = 96,
  kSystem = 128,
  kMeta = 160
};

}  // namespace pv2
