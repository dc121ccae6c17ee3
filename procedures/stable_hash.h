// SPDX-License-Identifier: Apache-2.0
//
// A hash that is the same in every build and on every machine, because region ids and nonces made
// from it are persisted. It does not protect against deliberate collisions.

#pragma once

#include <cstdint>
#include <string_view>

namespace pv2::internal {

/// FNV-1a, then the finaliser of SplitMix64, which makes short texts differ in all bits.
[[nodiscard]] constexpr std::uint64_t stable_hash(std::string_view text) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001B3ULL;
  }
  hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9ULL;
  hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EBULL;
  return hash ^ (hash >> 31);
}

}  // namespace pv2::internal
