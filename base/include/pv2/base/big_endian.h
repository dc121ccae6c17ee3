// SPDX-License-Identifier: Apache-2.0
//
// Numbers in the keys of rows: eight bytes, the most significant first, so that rows sort by
// number.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "pv2/base/assert.h"

namespace pv2 {

inline constexpr std::size_t kBigEndianBytes = 8;

/// Writes the eight bytes of `value` to `out`.
inline void write_big_endian(char* out, std::uint64_t value) noexcept {
  value = __builtin_bswap64(value);
  std::memcpy(out, &value, sizeof value);
}

/// Appends the eight bytes of `value` to `key`.
inline void append_big_endian(std::string& key, std::uint64_t value) {
  key.resize(key.size() + kBigEndianBytes);
  write_big_endian(key.data() + key.size() - kBigEndianBytes, value);
}

/// The number in the first eight bytes of `bytes`, which has as many at least.
[[nodiscard]] inline std::uint64_t read_big_endian(std::string_view bytes) noexcept {
  PV2_ASSERT(bytes.size() >= kBigEndianBytes, "a number in a key has eight bytes");
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return __builtin_bswap64(value);
}

}  // namespace pv2
