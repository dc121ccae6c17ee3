// SPDX-License-Identifier: Apache-2.0
//
// How an execution takes over what its new record says, and whether nothing else follows from it.

#pragma once

#include "core/engine_core.h"

namespace pv2 {

/// `execution` becomes what its durable record `commit` says. Called under the state mutex; or,
/// for a record from which nothing else follows, by the worker that has `execution` in flight and
/// holds its share.
void take_over_record(Execution& execution, StepCommit& commit);

/// Whether nothing follows from `commit`, which is durable, but that the next step of its procedure
/// may begin: the procedure is alone in its tree, keeps its locks, and nobody waits for it, stops
/// it, or is told. Called by the worker that has it in flight and holds `share`, its own.
[[nodiscard]] bool only_goes_on(const EngineCore& core, const EngineCore::Share& share,
                                const StepCommit& commit) PV2_REQUIRES(share.share_mutex);

}  // namespace pv2
