// SPDX-License-Identifier: Apache-2.0
//
// A frame says how long it is, so no other length is stored.

#include "records/row_parts.h"

#include <pv2/base/assert.h>
#include <pv2/base/frame.h>

namespace pv2 {

Result<std::string_view> split_row(std::string_view row, CompactBytes& user_bytes,
                                   PartStatus& user) {
  const auto engine = read_frame(row);
  if (!engine) {
    return Status(StatusCode::kCorruption, "the engine's part does not match its checksum");
  }
  const auto user_frame = read_frame(row);
  user = user_frame ? PartStatus::kIntact : PartStatus::kDamaged;
  if (user_frame) user_bytes = *user_frame;
  return *engine;
}

std::optional<ResultRow> split_result(std::string_view row) noexcept {
  std::string_view left = row;
  constexpr int kFramesOfHeader = 2;
  for (int i = 0; i < kFramesOfHeader; ++i) {
    const auto size = size_of_frame(left);
    if (!size) return std::nullopt;
    PV2_ASSERT(*size <= left.size(), "a frame lies within its row");
    left.remove_prefix(*size);
  }
  return ResultRow{row.substr(0, row.size() - left.size()), left};
}

}  // namespace pv2
