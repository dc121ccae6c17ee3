// SPDX-License-Identifier: Apache-2.0
//
// Rollback: turns of a plan begin, are undone, and end. What may be undone now is asked of the
// RollbackPlan; what follows from the end of a turn is decided here.

#pragma once

#include "core/engine_core.h"

namespace pv2 {

/// Starts, or after a restart continues, the rollback of the domain of `head`, of which no member
/// is in flight: begins the work that plans it. Does nothing if the domain was stopped for an
/// order.
void begin_rollback(EngineCore& core, Execution& head, Effects& /*effects*/)
    PV2_REQUIRES(core.state_mutex);

/// Begins all turns that may begin now, as far as the section has room. If no turn is left, commits
/// the last record of `head`.
void begin_turns(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Takes back all turns that are queued, so that none of the domain of `head` begins. False: a
/// worker has just taken one of them, and all of them go on.
[[nodiscard]] bool stop_turns(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// The record with which `execution` takes its locks was published: that turn is over.
void locks_taken(EngineCore& core, Execution& execution, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// A record of an undo was published: the turn of `execution` is over, goes on, or is parked.
void undo_published(EngineCore& core, Execution& execution, StepCommit& commit, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
