// SPDX-License-Identifier: Apache-2.0
//
// Resuming: what was loaded, or was stopped and then repaired, goes on as its records say: forward,
// or back where a domain has failed.

#pragma once

#include "core/engine_core.h"

namespace pv2 {

/// What was loaded, or was stopped and repaired, goes on as its records say: forward, or back where
/// a domain has failed. Nobody of it runs.
void start_domain(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// The order of an operator about a tree that is parked beyond a point of no return was published.
void order_published(EngineCore& core, Execution& execution, const StepCommit& commit,
                     Effects& effects) PV2_REQUIRES(core.state_mutex);

/// After a restart, when failures are known: of the members of a tree, those whose step had not
/// begun, by what other records say. `recorded` is when the last record of each was written, of
/// those of whom that is known.
void forget_what_had_not_begun(Execution& root,
                               const FlatMap<ProcedureId, CommitSequence>& recorded);

}  // namespace pv2
