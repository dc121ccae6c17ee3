// SPDX-License-Identifier: Apache-2.0
//
// InsertCommit: what follows when the first record of a root is durable. The root becomes a tree of
// its own, and is queued or waits for its start. Of the callers that submitted it, those that asked
// for the id are told, and those that asked for the result begin to wait.

#include "core/effects.h"
#include "core/engine_core.h"
#include "model/requests.h"
#include "submission/waiters.h"
#include "tree/domains.h"
#include "tree/join.h"

namespace pv2 {
namespace {

void answer_submitters(EngineCore& core, InsertCommit& commit, Execution& root, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  // Those who waited when the stop began are answered; nobody begins to wait after that.
  const bool is_stopping = !core.unavailable().ok();
  for (InsertCommit::Submitter& submitter : commit.submitters) {
    if (!submitter.taker) {
      effects.reply(std::move(submitter.reply), Submitted{root.id, submitter.replayed});
    } else if (is_stopping) {
      effects.reply(std::move(submitter.taker), goes_on_in_next_life());
    } else {
      root.waiters.add({std::move(submitter.taker), ++core.state.last_ticket});
    }
  }
}

}  // namespace

void InsertCommit::published(EngineCore& core, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  Execution& root = *execution;
  PV2_ASSERT(root.inserting == this, "a procedure that is inserted knows its first record");
  PV2_ASSERT(root.phase == Phase::kInserting, "a procedure is inserted once");
  const bool is_put_off = root.record.deadline.has_value();
  root.record.move_to(is_put_off ? ProcedureState::kWaitingTimeout : ProcedureState::kRunnable);
  root.record.holds_locks = holds_locks;
  root.record.updated = root.submitted;
  root.inserting = nullptr;
  ++core.counts_of(*root.type).submitted;
  core.state.ids.reserve(effects);
  adopt(root);
  if (is_put_off) {
    root.phase.move_to(Phase::kWaiting);
    core.arm_timer(root, effects);
  } else if (!core.loading.is_complete()) {
    root.phase.move_to(Phase::kIdle);
    core.state.held_back.push_back(&root);
  } else {
    core.queue(root, Disposition::kBack);
  }
  core.state.news.add(ProcedureNews::Kind::kAdded, root);
  answer_submitters(core, *this, root, effects);
  for (const PutOff& step : put_off) core.wake(step.id, step.epoch);
  core.state.spares.inserts.give_back(std::unique_ptr<InsertCommit>(this), core.seat());
}

void InsertCommit::failed(EngineCore& core, const RequestFailure& why, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  const std::unique_ptr<InsertCommit> owned(this);
  execution->phase.move_to(Phase::kIdle);
  execution->inserting = nullptr;
  core.state.submissions.nonces.remove(execution->nonce(), execution->id);
  for (Submitter& submitter : submitters) refuse(submitter, why.unknown, effects);
}

}  // namespace pv2
