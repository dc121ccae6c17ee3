// SPDX-License-Identifier: Apache-2.0
//
// Works on all members of a domain, see tree_work.h: they begin here, take turns, and go on a
// section at a time.

#pragma once

#include "core/engine_core.h"
#include "model/tree_work.h"

namespace pv2 {

TreeWork& begin_work(EngineCore& core, Execution& head, TreeWork::Kind kind)
    PV2_REQUIRES(core.state_mutex);

/// The first work on a tree is over, and its head is free for another one.
[[nodiscard]] std::unique_ptr<TreeWork> take_off(TreeWork& work);

/// The next member to visit, parents before their children; nullptr: all were visited, or the
/// section has no room.
[[nodiscard]] Execution* next_to_visit(EngineCore& core, TreeWork& work)
    PV2_REQUIRES(core.state_mutex);

/// That is done, and it goes on in its turn.
void go_on_with_sorted(EngineCore& core, TreeWork& work) PV2_REQUIRES(core.state_mutex);

/// Goes on with what is to be done to whole trees, as far as this section has room. Whether more is
/// left that can be gone on with in another one.
bool do_tree_works(EngineCore& core, Effects& effects) PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
