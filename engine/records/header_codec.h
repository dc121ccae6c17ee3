// SPDX-License-Identifier: Apache-2.0
//
// The header row of a procedure: its identity, written once, with its first record. It says nothing
// about progress (state_codec.h does). The byte format is in docs/store-format.md. Decoding trusts
// nothing: a torn message or an unknown value is a Status that says what is wrong.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "model/execution.h"
#include "records/row_parts.h"

namespace pv2 {

/// The most bytes that encode_header() appends.
[[nodiscard]] std::size_t header_bytes_max(const Execution& execution);
/// Appends the header row of `execution` to `out`.
void encode_header(const Execution& execution, std::string& out);

/// What a header says that an Execution does not keep, or keeps as pointers.
struct HeaderFacts {
  ProcedureId parent;
  ProcedureId root;
  std::string_view type_name;             ///< Within the row.
  PartStatus user = PartStatus::kIntact;  ///< Of the arguments.
};
/// Sets the identity of `execution`. A failure means that the engine's part cannot be read; damaged
/// arguments are reported in `facts.user` alone. `facts` has views into `row`.
Status decode_header(std::string_view row, Execution& execution, HeaderFacts& facts);

}  // namespace pv2
