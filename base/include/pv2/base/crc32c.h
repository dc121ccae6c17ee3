// SPDX-License-Identifier: Apache-2.0
//
// CRC-32C (Castagnoli), the checksum around everything that pv2 stores. It detects torn and flipped
// bytes; it does not protect against deliberate changes. Cannot fail.

#pragma once

#include <cstdint>
#include <string_view>

namespace pv2 {

/// The CRC-32C of `bytes`. If `seed` is the checksum of the bytes before them, the result is that
/// of both together. Uses the processor's instruction where there is one. Thread-safe.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed = 0) noexcept;

}  // namespace pv2
