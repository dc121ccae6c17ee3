// SPDX-License-Identifier: Apache-2.0
//
// The state row of a procedure: its record, written by every step. The byte format is in
// docs/store-format.md. Decoding trusts nothing: a torn message, or a state that is never stored,
// is a Status that says what is wrong.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "model/execution.h"
#include "records/row_parts.h"

namespace pv2 {

/// Whether `next` is the end of a root. From then on its result is kept, and dated.
[[nodiscard]] bool ends_root(const Execution& execution, const Transition& next) noexcept;
/// Whether `next` ends a domain that is undone. From then on the record of its head does not say
/// who was interrupted.
[[nodiscard]] bool ends_undo(const Execution& execution, const Transition& next) noexcept;

/// The most bytes that encode_state() appends.
[[nodiscard]] std::size_t state_bytes_max(const Execution& execution, const Transition& next);
/// Appends to `out` the state row as it will be after `next`. `ran_step` is the step that ran, or
/// was undone; an undo entry that `next` adds has sequence 0, which means that of its own batch.
void encode_state(const Execution& execution, const Transition& next, std::uint32_t ran_step,
                  std::string& out);

/// Sets the record of `execution`, which is new, from its state row; batch `sequence` wrote the
/// row. `record.in_results` is not set: the key of the row says it. A failure means that the
/// engine's part cannot be read; damaged state fields are reported in `user` alone.
Status decode_state(std::string_view row, CommitSequence sequence, Execution& execution,
                    PartStatus& user);

}  // namespace pv2
