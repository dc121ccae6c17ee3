// SPDX-License-Identifier: Apache-2.0
//
// A procedure that kept locks for its work gives them back when the work has ended, or after a
// restart, which the work does not outlive. If its last record says that it holds them, a record of
// its own (kGiveBack) gives them back; no other thread uses the procedure until that record is
// durable.

#include "tree/members_at_work.h"

#include <algorithm>
#include <utility>

#include "core/effects.h"
#include "records/procedure_rows.h"
#include "tree/domains.h"
#include "tree/flight.h"
#include "tree/member_step.h"

namespace pv2 {
namespace {

// Whether the procedure, in its present state, would hold no locks if it had had no work
// outstanding when it began to wait.
bool keeps_locks_for_work(Execution& execution) {
  // While it is queued, only the scheduler knows whether it holds its locks.
  if (execution.phase != Phase::kIdle && execution.phase != Phase::kWaiting) return false;
  const LockScope scope = execution.locks().scope();
  if (scope == LockScope::kOperation || execution.locks().empty() || !execution.holds_locks()) {
    return false;
  }
  if (is_parked_in_undo(execution)) {
    return execution.phase == Phase::kIdle && scope == LockScope::kVisit;
  }
  if (execution.has_turn() || failing_domain(execution) != nullptr) return false;
  if (execution.phase == Phase::kIdle) return execution.record.parked && scope == LockScope::kVisit;
  // Its children may hold the same keys, because its locks cover them: without the locks two of
  // them could hold one key exclusively.
  if (execution.record.state == ProcedureState::kWaiting) return false;
  if (scope == LockScope::kStep) return true;
  return execution.record.state == ProcedureState::kWaitingTimeout && execution.record.backs_off();
}

// A transition that repeats the last record, without the locks.
Transition record_without_locks(const EngineCore& core, const Execution& execution) {
  Transition same = as_it_is(core, execution);
  same.holds_locks = false;
  // A step that runs under locks kept for earlier work makes no record when it waits. Without locks
  // and without a history entry a restart would take that step for one that never began.
  if (execution.started && execution.record.step != 0 && !execution.has_turn() &&
      !may_have_begun(execution, same.holds_locks)) {
    same.history = HistoryEntry{execution.record.step, execution.record.attempt,
                                Outcome::Kind::kWait, same.updated};
  }
  const Failure* const failure = execution.record.failure();
  if (failure == nullptr) return same;
  if (execution.record.state == ProcedureState::kFailed && !execution.record.parked) {
    same.set_error(failure->error);
    same.set_undo_error(failure->undo);
  } else {
    same.set_error(failure->shown());
  }
  return same;
}

}  // namespace

void give_back_locks(EngineCore& core, Execution& execution, Effects& effects) {
  PV2_ASSERT(execution.phase != Phase::kInFlight, "a procedure has at most one record on the way");
  PV2_ASSERT(execution.record.holds_locks && !has_work(execution),
             "locks that are given back are in the record, and no work needs them");
  auto commit = core.state.spares.steps.take(core.seat());
  commit->execution = &execution;
  commit->kind = StepCommit::Kind::kGiveBack;
  commit->next = record_without_locks(core, execution);
  update_state(execution, commit->next, 0, commit->batch);
  core.state.timers.cancel(execution);
  execution.phase.move_to(Phase::kInFlight);
  enter_flight(execution);
  effects.commits.push_back(*commit.release());
}

namespace {

// Counts down the members with work that the order in `head` waits for. After the last one the
// order is handed on to be published.
void one_less_to_await(Execution& head, Effects& effects) {
  OutstandingWork& work = *head.work();
  PV2_ASSERT(work.last_order && work.last_order_awaits > 0,
             "an order counts the members that it waits for");
  if (--work.last_order_awaits == 0) effects.durable.push_back(*work.last_order.release());
}

}  // namespace

void work_begins(Execution& member) {
  std::unique_ptr<MembersById>& at_work = member.root()->domain.rare.edit().at_work;
  if (!at_work) at_work = std::make_unique<MembersById>();
  enter_flight(member);
  at_work->emplace(member.id, &member);
}

void work_ends(Execution& member, Effects& effects) {
  PV2_ASSERT(!has_work(member), "a member whose work ends has no piece outstanding");
  PV2_ASSERT(member.root()->domain.rare->at_work != nullptr,
             "a member at work is counted by its root");
  member.root()->domain.rare->at_work->erase(member.id);
  if (Execution* const head = std::exchange(member.work()->ended_with, nullptr)) {
    one_less_to_await(*head, effects);
  }
}

void work_looked_after(EngineCore& core, Execution& execution, Kept locks, Effects& effects) {
  if (has_work(execution)) return;
  PV2_ASSERT(!execution.work()->held_back, "a record is held back only while work is outstanding");
  if (execution.phase == Phase::kInFlight || execution.work()->ends) return;
  execution.rare_of_run.edit().work.reset();
  if (locks == Kept::kMaybe) (void)gives_back_kept_locks(core, execution, effects);
}

bool gives_back_kept_locks(EngineCore& core, Execution& execution, Effects& effects) {
  if (has_work(execution) || !keeps_locks_for_work(execution)) return false;
  if (!execution.record.holds_locks) {
    core.settle(execution, Disposition::kParkUnlock);
    return false;
  }
  give_back_locks(core, execution, effects);
  return true;
}

bool waits_for_work(StepCommit& last_order) {
  Execution& head = *last_order.execution;
  PV2_ASSERT(head.is_head(), "an order that ends a domain has its head");
  PV2_ASSERT(head.domain.ending == EndingOrder::kDurable,
             "the head knows that the order is durable");
  std::size_t awaited = 0;
  for_each_at_work(head, [&](Execution& member) {
    PV2_ASSERT(member.work()->ended_with == nullptr || member.work()->ended_with == &head,
               "one order at most ends a member");
    member.work()->ended_with = &head;
    ++awaited;
  });
  if (awaited == 0) return false;
  OutstandingWork& work = head.edit_work();
  work.ends = true;
  PV2_ASSERT(!work.last_order, "one order at most ends a domain");
  work.last_order.reset(&last_order);
  work.last_order_awaits = awaited;
  return true;
}

}  // namespace pv2
