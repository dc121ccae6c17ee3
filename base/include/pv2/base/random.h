// SPDX-License-Identifier: Apache-2.0
//
// Random: the injected source of randomness (jitter, simulations). A seed decides everything, so
// that a failing run can be repeated. It is not for secrets.

#pragma once

#include <cstdint>

namespace pv2 {

/// SplitMix64 (Steele, Lea, Flood 2014): small, fast, and good enough for jitter and test choices.
/// Owned by one thread.
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  /// A uniformly distributed 64-bit number.
  std::uint64_t next() noexcept {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }

  /// A number below `bound` (not 0). The bias of the modulo is below 2^-32 for bounds below 2^32.
  std::uint64_t below(std::uint64_t bound) noexcept { return next() % bound; }

 private:
  std::uint64_t state_;
};

}  // namespace pv2
