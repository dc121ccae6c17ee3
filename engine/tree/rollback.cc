// SPDX-License-Identifier: Apache-2.0
//
// Each lane of the plan undoes one turn at a time. The last turn begins when no member is in flight
// any more; after it the head ends.

#include "tree/rollback.h"

#include "core/effects.h"
#include "model/rollback_plan.h"
#include "model/tree_work.h"
#include "tree/domains.h"
#include "tree/flight.h"
#include "tree/join.h"
#include "tree/member_step.h"
#include "tree/members_at_work.h"
#include "tree/tree_works.h"

namespace pv2 {
void begin_rollback(EngineCore& core, Execution& head, Effects& /*effects*/) {
  PV2_ASSERT(head.domain.failing() == &head, "the widest domain that failed is undone");
  PV2_ASSERT(head.domain.rare->in_flight_inside == 0,
             "a rollback begins when no member is in flight");
  if (head.domain.state == DomainState::kStopped) return;
  if (head.domain.rare->work == nullptr) begin_work(core, head, TreeWork::Kind::kPlan);
}

namespace {

// `member`, whose next turn comes after turns of `scope` and its descendants, reports that it waits
// for `scope` if it holds locks: those turns may need the same locks, and deadlocks are found by
// reported waits. A member that waits for its own descendants reports nothing, like every parent.
void wait_for_turn(EngineCore& core, Execution& member, Execution& scope)
    PV2_REQUIRES(core.state_mutex) {
  core.end_reported_wait(member);
  const bool keeps_others_out = !member.locks().empty() && member.holds_locks();
  if (&member == &scope || !keeps_others_out) return;
  core.report_wait(member, scope, WaitLink::Why::kTurn);
}

// What a member holds per step or per visit it gives back after the undo of a step, as it did after
// the step: others may need it before the next turn of the member.
LocksAfterTurn locks_after_turn(const Execution& member, const RollbackPlan& rollback) {
  if (member.locks().scope() == LockScope::kOperation) return LocksAfterTurn::kKept;
  if (member.turn().keeps_for_descendants) return LocksAfterTurn::kKept;
  return rollback.goes_on_with(member) ? LocksAfterTurn::kIfAtOnce : LocksAfterTurn::kGivenBack;
}

void begin_turn(EngineCore& core, Execution& head, const UndoTurn& turn, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  Execution& member = *turn.execution;
  PV2_ASSERT(
      member.phase == Phase::kIdle || (member.record.parked && member.phase == Phase::kInFlight),
      "a turn begins when its member does nothing, or an order about it is on the way");
  PV2_ASSERT(member.turn().left != 0, "a turn that begins is counted by its member");
  PV2_ASSERT(failing_domain(member) == &head, "a turn belongs to the widest domain that failed");
  Turn& of_member = member.edit_turn();
  of_member.step = turn.entry.step;
  of_member.takes_locks = turn.kind == UndoTurn::Kind::kFirst;
  of_member.leads = &member == &head;
  of_member.ends_domain = of_member.leads && head.domain.rare->rollback->left() == 1;
  of_member.locks_after = locks_after_turn(member, *head.domain.rare->rollback);
  core.end_reported_wait(member);
  if (member.record.parked) {  // older turns of its lane wait for the operator too
    (void)gives_back_kept_locks(core, member, effects);
    return;
  }
  if (turn.kind == UndoTurn::Kind::kLast) {
    return commit_last_record(core, member, ProcedureState::kRolledBack, LastRecord::kLastTurn,
                              effects);
  }
  // It was in a back-off between two attempts to undo, or waited only for a time. If it awaited
  // something else, the undo runs again and asks for it.
  if (member.record.deadline && !member.record.awaits) {
    member.phase.move_to(Phase::kWaiting);
    core.arm_timer(member, effects);
    return;
  }
  core.queue(member, member.holds_locks() ? Disposition::kFront : Disposition::kBack);
}

// Whether the last turn may begin or, if it is over, the head may end. Both wait until no member is
// in flight; left_flight() calls begin_turns() again then. While the domain is parked in an undo,
// the last turn may begin only if it is that undo, which waits for the operator in its turn.
bool may_end(Execution& head) {
  const Domain& domain = head.domain;
  if (domain.rare->in_flight_inside != 0) return false;
  if (!domain.is_parked()) return true;
  const UndoTurn* const last = domain.rare->rollback->last();
  return last != nullptr && domain.rare->parked_undos == 1 && is_parked_in_undo(*last->execution);
}

}  // namespace

void begin_turns(EngineCore& core, Execution& head, Effects& effects) {
  Domain& domain = head.domain;
  RollbackPlan& rollback = *domain.rare->rollback;
  // If a wider domain has failed, its plan will replace this one. If a work on this domain is under
  // way, it begins the turns.
  if (domain.failing() != &head || head.is_quarantined() || domain.rare->work != nullptr) return;
  if (domain.makes_way()) return;
  PV2_ASSERT(domain.is_undone(), "a domain whose turns begin is being undone");
  if (rollback.left() <= 1 && !may_end(head)) return;
  if (rollback.left() == 0) {
    return commit_last_record(core, head, ProcedureState::kRolledBack, LastRecord::kEndsDomain,
                              effects);
  }
  std::vector<const UndoTurn*> turns;
  while (core.looks.have_room() && rollback.may_begin()) {
    if (const UndoTurn* const turn = rollback.begin_next()) turns.push_back(turn);
  }
  if (!rollback.may_begin()) {
    for (const RollbackPlan::Wait& wait : rollback.take_new_waits(kSectionPauses / 2)) {
      wait_for_turn(core, *wait.member, *wait.scope);
    }
  }
  for (const UndoTurn* const turn : turns) begin_turn(core, head, *turn, effects);
  // With one turn left no other member waits: that turn has begun.
  const bool all = !rollback.may_begin() && (!rollback.has_new_waits() || rollback.left() <= 1);
  if (!all) begin_work(core, head, TreeWork::Kind::kTurns);
}

bool stop_turns(EngineCore& core, Execution& head, Effects& effects) {
  if (!head.domain.rare->rollback) return true;
  core.flush();  // so that every kQueued member is in a queue, or polled
  std::vector<Execution*> stopped;
  bool all = true;
  for (Execution* const member : head.domain.rare->rollback->begun()) {
    if (member->phase != Phase::kQueued) continue;
    all = core.scheduler.withdraw(*member) && all;
    if (!all) break;
    member->phase.move_to(Phase::kIdle);
    stopped.push_back(member);
  }
  if (all) return true;
  for (Execution* const member : stopped) {
    head.domain.rare->rollback->put_back(*member);
    member->leave_turn();
  }
  begin_turns(core, head, effects);
  return false;
}

namespace {

void wait_in_turn(EngineCore& core, Execution& execution, const StepCommit& commit,
                  Effects& effects) PV2_REQUIRES(core.state_mutex) {
  const bool arrived =
      execution.wait.wake_pending || (execution.inbox && execution.inbox->has_wanted());
  if (arrived && !commit.next.ends_waits) {
    execution.wait.wake_pending = false;
    return core.queue(execution, Disposition::kFront);
  }
  execution.phase.move_to(Phase::kWaiting);
  if (execution.record.deadline) core.arm_timer(execution, effects);
}

void end_turn(EngineCore& core, Execution& head, Execution& execution)
    PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(!has_work(execution), "an undo that is over has no work outstanding");
  core.end_reported_wait(execution);  // it still waits if an operator passed over its turn
  Turn& turn = execution.edit_turn();
  if (!turn.takes_locks) turn.stopped.reset();  // an interrupted step is the newest one
  execution.leave_turn();
  turn.is_ahead = true;
  PV2_ASSERT(turn.left != 0, "a turn that ends was counted as left");
  --turn.left;
  head.domain.rare->rollback->end(execution);
  const bool gives_back = !execution.record.holds_locks && execution.holds_locks();
  if ((turn.left == 0 && &execution != &head) || gives_back) {
    core.settle(execution, Disposition::kParkUnlock);
  }
  if (turn.left != 0 && gives_back) core.flush();  // before its next turn is queued
}

// An undo of `execution` that had not got its locks was skipped. If something below it is to be
// undone next, it takes them first. False: the turn is only over.
bool takes_locks_after_skip(Execution& head, Execution& execution) {
  const bool works_under_them = execution.locks().scope() == LockScope::kOperation &&
                                execution.first_child() != nullptr && !execution.holds_locks();
  if (!works_under_them || !head.domain.rare->rollback->take_locks_instead(execution)) return false;
  execution.edit_turn().stopped.reset();
  execution.leave_turn();
  return true;
}

}  // namespace

void locks_taken(EngineCore& core, Execution& execution, Effects& effects) {
  Execution* const head = failing_domain(execution);
  PV2_ASSERT(head != nullptr, "a member takes its locks for an undo in a failed domain");
  PV2_ASSERT(execution.turn().left > 1 || &execution == head,
             "a member that takes its locks has a turn after which they go back");
  execution.phase.move_to(Phase::kIdle);
  end_turn(core, *head, execution);
  begin_turns(core, *head, effects);
}

void undo_published(EngineCore& core, Execution& execution, StepCommit& commit, Effects& effects) {
  Execution* const failed = failing_domain(execution);
  PV2_ASSERT(failed != nullptr, "a member that is undone is in a failed domain");
  Execution& head = *failed;
  Domain& domain = head.domain;
  PV2_ASSERT(domain.is_undone(), "a domain with an undo is being undone");
  const Transition& done = commit.next;
  execution.phase.move_to(Phase::kIdle);
  if (done.parked) {
    PV2_ASSERT(execution.record.failure() != nullptr, "a record that parks says why");
    if (!done.holds_locks && execution.holds_locks()) {
      core.settle(execution, Disposition::kParkUnlock);
    }
    if (!commit.was_parked) ++domain.rare.edit().parked_undos;
    return park_tree(core, head, DomainState::kParkedInUndo,
                     execution.record.failure()->parked.to_string(), effects);
  }
  const bool ordered = done.history && is_order(done.history->outcome);
  if (commit.was_parked) {
    PV2_ASSERT(domain.rare->parked_undos != 0, "a parked undo is counted");
    --domain.rare.edit().parked_undos;
  }
  if (ordered && domain.rare->parked_undos == 0) move_to(head, DomainState::kRollingBack);
  const bool goes_on_without_locks =
      ordered && execution.takes_locks() && done.history->outcome == Outcome::Kind::kSkipped;
  const bool is_skipped_step = ordered && done.undo == UndoChange::kPop && !is_finished(done.state);
  // A member that is finished without a pop has had its last turn.
  if (done.undo == UndoChange::kPop || is_finished(done.state) || goes_on_without_locks) {
    if (!is_skipped_step || !takes_locks_after_skip(head, execution)) {
      end_turn(core, head, execution);
    }
  } else if (done.requeue) {  // an operator ordered the undo to be tried again
    domain.rare->rollback->put_back(execution);
    // Before it begins again it may have to wait for work of its last attempt.
    execution.leave_turn();
  } else {  // a wait or a back-off inside the turn
    return wait_in_turn(core, execution, commit, effects);
  }
  begin_turns(core, head, effects);
}

}  // namespace pv2
