// SPDX-License-Identifier: Apache-2.0
//
// MurmurHash3 (x64, 128 bits, seed 0): a hash that is the same for ever, in every build and on
// every machine, and that other programs have too. It tells apart what honest clients send; it is
// no protection against somebody who looks for two texts with one hash. Cannot fail.

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
