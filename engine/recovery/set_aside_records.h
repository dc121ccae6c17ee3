// SPDX-License-Identifier: Apache-2.0
//
// Records that recovery set aside because they cannot be read (UnreadableRecords::kSetAside). Their
// rows stay as they are. A tree that one of them belongs or may belong to is frozen: it must not go
// on without that member.

#pragma once

#include <vector>

#include "core/engine_core.h"
#include "recovery/loaded_trees.h"

namespace pv2 {

/// Adds `records` to EngineState::unreadable.
void set_aside(EngineCore& core, std::vector<UnreadableRecord> records)
    PV2_REQUIRES(core.state_mutex);

/// Adds a problem to `trees` for each tree that has, or may have, a member that was set aside.
void freeze_relatives(EngineCore& core, LoadedTrees& trees) PV2_REQUIRES(core.state_mutex);

/// Logs each record, why it cannot be read, and which locks it may have held.
void tell_of_set_aside(EngineCore& core, Effects& effects) PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
