// SPDX-License-Identifier: Apache-2.0
//
// Join: members become part of their tree, parents wait for their children, and a procedure that
// has no step left to run gets its last record.

#pragma once

#include "core/engine_core.h"

namespace pv2 {

/// `member` is durable: its tree, of which it may be the root, counts it from now on.
void adopt(Execution& member);

/// Makes the last record of a procedure that has no step left to run: no user code is needed for
/// it. One that `ends_domain` is the head of what was undone.
enum class LastRecord : std::uint8_t { kOfMember, kEndsDomain };

void commit_last_record(EngineCore& core, Execution& execution, ProcedureState state,
                        LastRecord which, Effects& effects) PV2_REQUIRES(core.state_mutex);

/// A child has succeeded (published): its parent goes on if it was the last one.
void child_finished(EngineCore& core, Execution& child, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// The same in a tree that has failed meanwhile: nobody goes on, but its parent is seen to wait for
/// one child less, as after a restart.
void child_ended_too_late(Execution& child);

/// A parent that waits has no unfinished child (any more): it goes on, or ends if only its children
/// were missing.
void children_finished(EngineCore& core, Execution& parent, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
