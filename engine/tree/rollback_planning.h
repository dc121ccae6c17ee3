// SPDX-License-Identifier: Apache-2.0
//
// Planning a rollback: a survey of the domain's members, a record of who was in the middle of a
// step where a restart would guess wrong, then the turns in order. A section at a time, see
// tree_work.h.

#pragma once

#include "core/engine_core.h"
#include "model/tree_work.h"

namespace pv2 {

void forget_inner_plans(Execution& head, Effects& effects);

void plan_all(EngineCore& core, TreeWork& work, Effects& effects) PV2_REQUIRES(core.state_mutex);

/// Of one that was left to be sorted (Effects::to_sort). Needs no lock: nobody else looks at it.
void sort_collected(TreeWork& work);

}  // namespace pv2
