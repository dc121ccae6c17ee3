// SPDX-License-Identifier: Apache-2.0
//
// KeptResult: the row that dates a result that is kept. Its key (row_keys.h) begins with the age of
// the store at the end of the root, so these rows lie in the order in which results expire.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pv2 {

struct KeptResult {
  Duration age{};  ///< Of the store, when the root ended or, with `found`, when it was found.
  ProcedureId id;
  Nonce nonce;
  std::uint64_t bytes = 0;  ///< About how many the rows of the root take.
  /// An older program recorded the end of the root without an age; a later one found it.
  bool found = false;
};

/// Appends the row to `out`. `age` and `id` are in its key.
void encode_kept(const KeptResult& kept, std::string& out);
/// kCorruption when the key or the row is damaged.
[[nodiscard]] Result<KeptResult> decode_kept(std::string_view key, std::string_view row);

/// About how many bytes the rows of an ended root take, given the sizes of its fields.
[[nodiscard]] std::size_t kept_bytes(std::size_t arguments, std::size_t image, std::size_t result,
                                     std::size_t owner) noexcept;

}  // namespace pv2
