// SPDX-License-Identifier: Apache-2.0
//
// Join: members become part of their tree, parents wait for their children, and a procedure that
// has no step left to run gets its last record.

#pragma once

#include "core/engine_core.h"

namespace pv2 {

/// `member` is durable: links it to its parent, if it has one, and has its root count it. Called
/// under the state mutex.
void adopt(Execution& member);

/// What a last record is of.
enum class LastRecord : std::uint8_t {
  kOfMember,    ///< Of a member that has succeeded, or that is rolled back without a turn.
  kLastTurn,    ///< Of a member whose last turn gives its locks back.
  kEndsDomain,  ///< Of the head of a domain that was undone.
};

/// Makes the last record of `execution`, which has no step left to run and no work outstanding, and
/// hands it to `effects`. No user code is called. The execution is in flight until the record is
/// published.
void commit_last_record(EngineCore& core, Execution& execution, ProcedureState state,
                        LastRecord which, Effects& effects) PV2_REQUIRES(core.state_mutex);

/// `child` has succeeded, or has ended with a reported failure (published): its parent goes on if
/// `child` was its last unfinished child.
void child_finished(EngineCore& core, Execution& child, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Like child_finished(), but a domain around the parent was stopped before: the parent is counted
/// down, as a restart would do, and does not go on.
void child_ended_too_late(Execution& child);

/// `parent` has no unfinished child (any more): it is queued for its next step. If it has no step
/// left it ends, or waits until its offloaded work has ended.
void children_finished(EngineCore& core, Execution& parent, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
