// SPDX-License-Identifier: Apache-2.0
//
// Ending: the members of what is over leave the tree, the scheduler and the table, from the bottom
// up, and their rows are garbage. Children that nobody can need any more leave before that.

#pragma once

#include "core/engine_core.h"
#include "model/tree_work.h"

namespace pv2 {

/// The last record of a child whose failure is only reported was published: what it spawned leaves,
/// and then its parent goes on if it was the last one.
void domain_ended(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex);

/// The final record of a root is durable: keeps its result, answers who waits, lets go of the tree.
void finish_root(EngineCore& core, Execution& root, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

void end_all(EngineCore& core, TreeWork& work, Effects& effects) PV2_REQUIRES(core.state_mutex);

/// Children of `parent` leave that have ended, have nothing to undo, and are not of its last spawn:
/// that one it may still ask for, unless it has ended so itself. At most 128 are looked at; the
/// parent's next record goes on with the others.
void drop_ended_children(EngineCore& core, Execution& parent, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// After a restart, the same all over a tree: their rows may not have been deleted yet.
void drop_all_ended(EngineCore& core, Execution& root, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
