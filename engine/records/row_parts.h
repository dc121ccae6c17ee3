// SPDX-License-Identifier: Apache-2.0
//
// The parts of a row. A header and a state are two frames each: the engine's part, then the user's
// fields. So the identity and the locks of a procedure can be read even if its user part is
// damaged. The row of a root that has ended is a header followed by a state.

#pragma once

#include <pv2/base/status.h>

#include <optional>
#include <string_view>

#include "model/compact_bytes.h"

namespace pv2 {

/// Whether the checksum of a part is right.
enum class PartStatus { kIntact, kDamaged };

/// Returns the engine's part of a header or a state, and copies the user's part to `user_bytes`.
/// Fails if the engine's part is damaged; a damaged user part is reported only in `user`.
[[nodiscard]] Result<std::string_view> split_row(std::string_view row, CompactBytes& user_bytes,
                                                 PartStatus& user);

/// The two rows in the row of a root that has ended: views into it.
struct ResultRow {
  std::string_view header;
  std::string_view state;
};
/// nullopt: the row is too short for a header. Checksums are not checked.
[[nodiscard]] std::optional<ResultRow> split_result(std::string_view row) noexcept;

}  // namespace pv2
