// SPDX-License-Identifier: Apache-2.0
//
// Rollback: turns of a plan begin, are undone, and end. What may be undone now is asked of the
// RollbackPlan; what follows from the end of a turn is decided here.

#pragma once

#include "core/engine_core.h"

namespace pv2 {

/// Starts, or after a restart continues, the rollback of a domain of which nobody is in flight.
void begin_rollback(EngineCore& core, Execution& head, Effects& /*effects*/)
    PV2_REQUIRES(core.state_mutex);

/// Whatever may be undone now; or the head ends, if nothing is left.
void begin_turns(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Nobody in it is about to be undone any more; false: a worker has just taken one, and all go on.
[[nodiscard]] bool stop_turns(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// An undo was published: its turn is over, goes on, or is parked.
void undo_published(EngineCore& core, Execution& execution, StepCommit& commit, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
