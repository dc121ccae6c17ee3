// SPDX-License-Identifier: Apache-2.0
//
// The row of a limit: how many may hold a key at once. Its key names the limited key (row_keys.h).

#pragma once

#include <pv2/base/status.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace pv2 {

/// Appends the row to `out`.
void encode_limit(std::uint32_t limit, std::string& out);
/// kCorruption when the row is damaged. A limit that is too large is read as the largest.
[[nodiscard]] Result<std::uint32_t> decode_limit(std::string_view row);

}  // namespace pv2
