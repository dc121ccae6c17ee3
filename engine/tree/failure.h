// SPDX-License-Identifier: Apache-2.0
//
// Failure takes effect when the failing record is published: from then on nothing of the domain
// goes forward. Its members are stopped a section at a time.

#pragma once

#include "core/engine_core.h"
#include "model/tree_work.h"

namespace pv2 {

/// A member has failed (published): from now on nothing of the domain of `head` goes forward.
void fail_tree(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex);

/// A member of what is stopped already has failed (published).
void failed_too_late(EngineCore& core, Execution& member) PV2_REQUIRES(core.state_mutex);

/// An order by which a member of what is stopped goes forward again was published.
void repaired_too_late(EngineCore& core, Execution& member) PV2_REQUIRES(core.state_mutex);

/// The whole tree is to be undone, for a reason that is durable (published). Rollback begins at
/// once if nobody of it is in flight.
void abort_tree(EngineCore& core, Execution& root, Effects& effects) PV2_REQUIRES(core.state_mutex);

/// Why an abort has to be refused, or OK: something in the tree is past its point of no return, or
/// may be about to pass it, or nothing in it goes forward any more.
[[nodiscard]] Status why_not_abortable(Execution& root);

/// Freezes a tree that this program does not understand; its locks stay held.
void quarantine_tree(EngineCore& core, Execution& root, const Status& reason, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// From now on nothing in the domain of `head` begins, until an order ends it. What goes forward
/// stops as if it had failed. No record says so: if it fails after all, or a wider domain does,
/// before the order is carried out, all of that is planned by the records, as after a restart.
void make_way_for_order(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex);

/// Each of these goes on with the first work on a tree, until it is over or pauses.

void stop_all(EngineCore& core, TreeWork& work, Effects& effects) PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
