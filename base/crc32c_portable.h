// SPDX-License-Identifier: Apache-2.0
//
// CRC-32C without the processor's help. crc32c() uses it where the instruction is missing, and the
// test compares the instruction's results with it. Private to base.

#pragma once

#include <cstdint>
#include <string_view>

namespace pv2::internal {

[[nodiscard]] std::uint32_t crc32c_portable(std::string_view bytes, std::uint32_t seed) noexcept;

}  // namespace pv2::internal
