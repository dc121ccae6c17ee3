// SPDX-License-Identifier: Apache-2.0
//
// Fixed-width little-endian numbers as they lie on disk. No bounds are checked here: the caller has
// checked them.

#pragma once

#include <cstdint>
#include <string>

namespace pv2 {

[[nodiscard]] inline std::uint64_t read_fixed(const char* from, int bytes) noexcept {
  std::uint64_t number = 0;
  for (int i = bytes - 1; i >= 0; --i) number = (number << 8) | static_cast<unsigned char>(from[i]);
  return number;
}
[[nodiscard]] inline std::uint32_t read_fixed32(const char* from) noexcept {
  return static_cast<std::uint32_t>(read_fixed(from, 4));
}
[[nodiscard]] inline std::uint64_t read_fixed64(const char* from) noexcept {
  return read_fixed(from, 8);
}
inline void append_fixed64(std::string& out, std::uint64_t number) {
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(number >> (8 * i)));
}
inline void append_fixed32(std::string& out, std::uint32_t number) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(number >> (8 * i)));
}

}  // namespace pv2
