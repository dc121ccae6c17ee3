// SPDX-License-Identifier: Apache-2.0
//
// explain(): finds out why a procedure does not go on. It follows the waits from procedure to
// procedure in one critical section, so the whole answer describes one moment. To keep the section
// short, the number of procedures, of names per reason and of tree members looked at is bounded.

#pragma once

#include "core/engine_core.h"
#include "pv2/engine/explanation.h"

namespace pv2 {

/// kNotFound when `id` is not live and its result is not in memory. Thread-safe.
[[nodiscard]] Result<Explanation> explain(EngineCore& core, ProcedureId id)
    PV2_EXCLUDES(core.state_mutex);

}  // namespace pv2
