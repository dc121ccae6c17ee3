// SPDX-License-Identifier: Apache-2.0
//
// explain(): finds out why a procedure does not go on. It follows the waits from procedure to
// procedure in one critical section, so that all of the answer is of one moment; the number of
// procedures, of names per reason and of tree members it looks at is bounded, so that the section
// stays short.

#pragma once

#include "engine_core.h"
#include "pv2/engine/explanation.h"

namespace pv2 {

/// kNotFound when `id` is not live and its result is not in memory. Thread-safe.
[[nodiscard]] Result<Explanation> explain(EngineCore& core, ProcedureId id)
    PV2_EXCLUDES(core.state_mutex);

}  // namespace pv2
