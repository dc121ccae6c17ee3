// SPDX-License-Identifier: Apache-2.0
//
// Resuming: a tree that was loaded, or a domain that was stopped and then repaired, goes on as its
// records say: forward, or back where a domain has failed.

#pragma once

#include "core/engine_core.h"

namespace pv2 {

/// Has the members under `head` go on as their records say: forward, or back where a domain has
/// failed. They were loaded, or stopped and repaired; none is in flight. Walks the whole subtree.
void start_domain(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// An operator's order about a member of a domain that is parked beyond a point of no return was
/// published: the domain is sent back, or goes forward when nothing in it has failed any more.
void order_published(EngineCore& core, Execution& execution, const StepCommit& commit,
                     Effects& effects) PV2_REQUIRES(core.state_mutex);

/// After a restart, when find_failures() was called: clears `started` of each member of the tree
/// whose step cannot have begun, by the records of the heads and by the sequence of its own last
/// record. `recorded` has those sequences; a member that is not in it keeps `started`, unless a
/// head's record names it.
void forget_what_had_not_begun(Execution& root,
                               const FlatMap<ProcedureId, CommitSequence>& recorded);

}  // namespace pv2
