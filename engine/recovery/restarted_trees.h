// SPDX-License-Identifier: Apache-2.0
//
// How the trees that were loaded go on. Trees with a problem are quarantined; the others are queued
// or rolled back, as their records say. Trees that hold locks come first.

#pragma once

#include "core/engine_core.h"
#include "recovery/loaded_trees.h"

namespace pv2 {

/// Quarantines each tree that has a problem; its locks stay held.
void quarantine_problems(EngineCore& core, const LoadedTrees& trees, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Has every other tree go on. After all trees were loaded and quarantine_problems() was called. In
/// sections, each a few trees long. kStopping: the engine has halted.
Status restart_trees(EngineCore& core, LoadedTrees& trees, Effects& effects)
    PV2_EXCLUDES(core.state_mutex);

}  // namespace pv2
