// SPDX-License-Identifier: Apache-2.0
//
// Repair preview: in words, what an order would do and what it would leave inconsistent; or the
// refusal that the order itself would get. Nothing is changed.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/engine_core.h"

namespace pv2 {

/// One line for each thing that the order would do. nullopt: `id` is not live. Members of a large
/// tree are described in sections, each member as it is then.
[[nodiscard]] std::optional<Result<std::vector<std::string>>> preview_order(EngineCore& core,
                                                                            ProcedureId id,
                                                                            RepairVerb verb)
    PV2_EXCLUDES(core.state_mutex);

}  // namespace pv2
