// SPDX-License-Identifier: Apache-2.0
//
// Repair preview: says in words what an order would do and what it would leave inconsistent, or
// returns the refusal that the order itself would get. Changes nothing.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/engine_core.h"

namespace pv2 {

/// One line for each effect of the order. nullopt: `id` is not live. A large tree is described in
/// several sections, each member as it is in its section.
[[nodiscard]] std::optional<Result<std::vector<std::string>>> preview_order(EngineCore& core,
                                                                            ProcedureId id,
                                                                            RepairVerb verb)
    PV2_EXCLUDES(core.state_mutex);

}  // namespace pv2
