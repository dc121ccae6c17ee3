// SPDX-License-Identifier: Apache-2.0
//
// Waiters: how the callers that wait for the end of a procedure get their answers. Answers are
// queued in Effects, so none is given under the state mutex; each says where it is given (ReplyOn).

#pragma once

#include "core/engine_core.h"
#include "model/requests.h"

namespace pv2 {

/// Queues the answers for all waiters of `root`, in the order in which they came. They share one
/// copy of the result, which lives until the last of them was answered.
void answer_waiters(EngineCore& core, Execution& root, const Result<ProcedureResult>& result,
                    Effects& effects) PV2_REQUIRES(core.state_mutex);
/// Queues the answer to a submitter whose procedure is not accepted.
void refuse(InsertCommit::Submitter& submitter, const Status& why, Effects& effects);
/// The answer for those who wait for a procedure when the executor stops.
[[nodiscard]] Status goes_on_in_next_life();
/// Queues `status` for those who wait for procedures that are perhaps not loaded yet.
void answer_early_waits(EngineCore& core, const Status& status, Effects& effects)
    PV2_REQUIRES(core.state_mutex);
/// The store has failed: queues that answer for the waiters of all procedures.
void answer_all_waiters(EngineCore& core, Effects& effects) PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
