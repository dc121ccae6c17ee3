// SPDX-License-Identifier: Apache-2.0
//
// MurmurHash3 (x64, 128 bits, seed 0). Its result never changes: it is the same in every build and
// on every machine, and other programs have the function too. It tells apart the requests of honest
// clients; it does not protect against deliberate collisions. Cannot fail.

#pragma once

#include <cstdint>
#include <string_view>

namespace pv2 {

struct Hash128 {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

/// The hash of `bytes`. Thread-safe.
[[nodiscard]] Hash128 hash128(std::string_view bytes) noexcept;

}  // namespace pv2
