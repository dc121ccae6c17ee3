// SPDX-License-Identifier: Apache-2.0
//
// Numbers in the keys of rows: eight bytes, the most significant first, so that rows are ordered by
// them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pv2 {

inline constexpr std::size_t kKeyNumberBytes = 8;

inline void append_key_number(std::string& key, std::uint64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(number >> shift));
}

/// `bytes` has eight bytes.
[[nodiscard]] inline std::uint64_t key_number(std::string_view bytes) noexcept {
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

}  // namespace pv2
