// SPDX-License-Identifier: Apache-2.0
//
// Row bindings: which lock key guards which rows of the host, and whether a running procedure holds
// that key. RowChanges words the error of a step that may not write a row.

#pragma once

#include <span>
#include <string_view>

#include "core/engine_core.h"

namespace pv2 {

struct RowBinding;

/// OK if every binding has a prefix and no prefix is bound twice; else kInvalidArgument.
[[nodiscard]] Status check_row_bindings(std::span<const RowBinding> bindings);

/// The binding with the longest prefix of `row`, or null.
[[nodiscard]] const RowBinding* binding_of(std::span<const RowBinding> bindings,
                                           std::string_view row) noexcept;

/// Whether `execution`, which this thread runs, holds `key` exclusively, itself or through an
/// ancestor.
[[nodiscard]] bool holds_exclusively(EngineCore& core, const Execution& execution,
                                     const ResourceKey& key) PV2_EXCLUDES(core.state_mutex);

}  // namespace pv2
