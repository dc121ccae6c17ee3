// SPDX-License-Identifier: Apache-2.0
//
// Planning a rollback: surveys the members of the domain; writes a record of the interrupted
// members if a restart would guess wrong; then collects the turns and sorts them. The work goes on
// a section at a time, see tree_work.h.

#pragma once

#include "core/engine_core.h"
#include "model/tree_work.h"

namespace pv2 {

/// Discards the turns of all members under `head`, and the plans of the domains within its own,
/// which go forward again in memory. The caller looks at their records, as after a restart. Walks
/// the whole subtree. Called under the state mutex.
void forget_inner_plans(Execution& head, Effects& effects);

/// Goes on with a kPlan work, as far as the section has room. When the plan is in order, its first
/// turns begin.
void plan_all(EngineCore& core, TreeWork& work, Effects& effects) PV2_REQUIRES(core.state_mutex);

/// Sorts what `work`, which was left in Effects::to_sort or has little to sort, has collected.
/// Needs no lock: no other thread uses `work` meanwhile.
void sort_collected(TreeWork& work);

}  // namespace pv2
