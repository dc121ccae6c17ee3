// SPDX-License-Identifier: Apache-2.0
//
// Watermark: the row that says which ids may have been issued, and how old the store is. The byte
// format is in docs/store-format.md.

#pragma once

#include <pv2/base/status.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "model/engine_age.h"

namespace pv2 {

struct Watermark {
  std::uint64_t next_id = 0;  ///< No id at or above it was ever issued.
  AgeMark age;
};

/// Appends the row to `out`.
void encode_watermark(const Watermark& watermark, std::string& out);
/// kCorruption when the row is damaged, or says what no program writes.
[[nodiscard]] Result<Watermark> decode_watermark(std::string_view row);

}  // namespace pv2
