// SPDX-License-Identifier: Apache-2.0
//
// One waiter is answered with the result itself. Many waiters are a crowd, which one task answers
// after the state mutex is released: the critical section does not walk along them.

#include "submission/waiters.h"

#include <memory>
#include <utility>

#include "core/early_wait.h"
#include "core/effects.h"

namespace pv2 {

void answer_waiters(EngineCore& core, Execution& root, const Result<ProcedureResult>& result,
                    Effects& effects) {
  if (root.waiters.empty()) return;
  if (root.waiters.has_one()) {
    return effects.reply(root.waiters.take_oldest().reply, result);
  }
  struct Crowd {
    WaitList waiters;
    Result<ProcedureResult> result;
  };
  auto crowd = std::make_shared<Crowd>(Crowd{std::move(root.waiters), result});
  effects.crowds.push_back([&core, crowd = std::move(crowd)]() noexcept {
    while (!crowd->waiters.empty()) {
      Waiter waiter = crowd->waiters.take_oldest();
      switch (waiter.reply.on) {
        case ReplyOn::kHere:
        case ReplyOn::kWaitingCaller:
          waiter.reply.tell(crowd->result);
          break;
        case ReplyOn::kEngine:
          call_back(waiter.reply.tell, Result<ProcedureResult>(crowd->result));
          break;
        case ReplyOn::kPool:
          core.pool->post([crowd, tell = std::move(waiter.reply.tell)] {
            call_back(tell, Result<ProcedureResult>(crowd->result));
          });
          break;
      }
    }
  });
}

void refuse(InsertCommit::Submitter& submitter, const Status& why, Effects& effects) {
  if (submitter.taker) return effects.reply(std::move(submitter.taker), why);
  effects.reply(std::move(submitter.reply), why);
}

Status goes_on_in_next_life() {
  return Status(StatusCode::kStopping,
                "the executor is stopping; the procedure goes on when its store is opened again, "
                "unless it has just ended");
}

void answer_all_waiters(EngineCore& core, Effects& effects) {
  for (Execution& execution : core.state.live) {
    answer_waiters(core, execution, core.state.life.store_failure, effects);
  }
  answer_early_waits(core, core.state.life.store_failure, effects);
}

void answer_early_waits(EngineCore& core, const Status& status, Effects& effects) {
  for (EarlyWait& wait : core.state.early_waits) {
    effects.reply(std::move(wait.waiter.reply), status);
  }
  core.state.early_waits.clear();
}

}  // namespace pv2
