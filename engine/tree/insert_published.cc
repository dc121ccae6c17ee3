// SPDX-License-Identifier: Apache-2.0
//
// InsertCommit: what follows when the first record of a root is durable. The root becomes a tree of
// its own, and is queued or waits for its start; all callers that submitted it are told its id.

#include "core/effects.h"
#include "core/engine_core.h"
#include "model/requests.h"
#include "submission/waiters.h"
#include "tree/domains.h"
#include "tree/join.h"

namespace pv2 {
namespace {

void answer_submitters(InsertCommit& commit, Execution& root, Effects& effects) {
  for (InsertCommit::Submitter& submitter : commit.submitters) {
    if (submitter.taker) {
      root.waiters.push_front({std::move(submitter.taker)});
    } else {
      effects.reply(std::move(submitter.reply), Submitted{root.id, submitter.replayed});
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
  } else {
    core.queue(root, Disposition::kBack);
  }
  core.state.news.add(ProcedureNews::Kind::kAdded, root);
  answer_submitters(*this, root, effects);
  for (const PutOff& step : put_off) core.wake(step.id, step.epoch);
  core.state.spares.inserts.give_back(std::unique_ptr<InsertCommit>(this));
}

void InsertCommit::failed(EngineCore& core, const RequestFailure& why, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  const std::unique_ptr<InsertCommit> owned(this);
  execution->phase.move_to(Phase::kIdle);
  execution->inserting = nullptr;
  if (execution->nonce) core.state.submissions.nonces.erase(execution->nonce);
  for (Submitter& submitter : submitters) refuse(submitter, why.unknown, effects);
}

}  // namespace pv2
