// SPDX-License-Identifier: Apache-2.0
//
// The queue of works on all members of a domain (see tree_work.h): works begin here, take turns
// between trees, and go on a section at a time.

#pragma once

#include "core/engine_core.h"
#include "model/tree_work.h"

namespace pv2 {

/// Adds a work on the domain of `head`, behind the other works on its tree. No other work on this
/// domain is under way.
TreeWork& begin_work(EngineCore& core, Execution& head, TreeWork::Kind kind)
    PV2_REQUIRES(core.state_mutex);

/// Removes `work`, the first one on its tree, which is over: its head is free for another one.
/// Called under the state mutex.
[[nodiscard]] std::unique_ptr<TreeWork> take_off(TreeWork& work);

/// The next member for `work` to visit, parents before their children. nullptr: all were visited,
/// or the section has no room.
[[nodiscard]] Execution* next_to_visit(EngineCore& core, TreeWork& work)
    PV2_REQUIRES(core.state_mutex);

/// sort_collected() is done: `work` goes on when its tree has its turn.
void go_on_with_sorted(EngineCore& core, TreeWork& work) PV2_REQUIRES(core.state_mutex);

/// Goes on with the works on all trees, and then with the members that leave early, as far as this
/// section has room. Returns whether works are left that can go on in another section.
bool do_tree_works(EngineCore& core, Effects& effects) PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
