// SPDX-License-Identifier: Apache-2.0
//
// Ending: the members of a domain that is over leave the tree, the scheduler and the table of live
// executions, from the bottom up, and their rows become garbage. Children that nobody can need any
// more leave earlier.

#pragma once

#include "core/engine_core.h"
#include "model/tree_work.h"

namespace pv2 {

/// The last record of `head`, a child whose failure is only reported, was published. Begins the
/// work by which its descendants leave; when they have left, its parent goes on if `head` was its
/// last unfinished child.
void domain_ended(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// The last record of `root` was published. Keeps its result, answers the waiters, and begins the
/// work by which the members leave. A root that is alone leaves at once.
void finish_root(EngineCore& core, Execution& root, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Goes on with a kEnd work, as far as the section has room: members leave from the bottom up. When
/// the last one has left, the rows that are garbage are handed to `effects`.
void end_all(EngineCore& core, TreeWork& work, Effects& effects) PV2_REQUIRES(core.state_mutex);

/// Whether `member`, no root, has ended, is never undone, and does not block the rollback of its
/// tree by a point of no return. Its type and its fields are not needed any more.
[[nodiscard]] bool is_spent(const Execution& member);

/// Has children of `parent` that are spent leave. Children of its last spawn stay, because `parent`
/// may still ask for them, unless `parent` is spent too. What is below a spent child and spent
/// leaves too. Looks at 128 members at most; drop_more_ended() goes on with the others.
void drop_ended_children(EngineCore& core, Execution& parent, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Goes on with the children that drop_ended_children() has left, as far as the section has room.
void drop_more_ended(EngineCore& core, Effects& effects) PV2_REQUIRES(core.state_mutex);

/// Like drop_ended_children(), for all members of a tree after a restart: the rows of children that
/// left before the crash may not have been deleted.
void drop_all_ended(EngineCore& core, Execution& root, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
