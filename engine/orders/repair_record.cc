// SPDX-License-Identifier: Apache-2.0
//
// Each kind of order has one function that fills its record. Nothing is refused here: the plan
// decided that in the same section.

#include "orders/repair_record.h"

#include <pv2/base/assert.h>

#include <memory>
#include <string>
#include <utility>

#include "core/effects.h"
#include "model/names.h"
#include "model/rollback_plan.h"
#include "pv2/engine/limits.h"
#include "pv2/engine/procedure_registry.h"
#include "records/audit_row.h"
#include "records/inbox_codec.h"
#include "records/procedure_rows.h"
#include "steps/offloads.h"
#include "tree/domains.h"
#include "tree/flight.h"
#include "tree/member_step.h"
#include "tree/members_at_work.h"

namespace pv2 {
namespace {

// A record that repeats the last one; the caller changes what the order is about.
std::unique_ptr<StepCommit> unchanged(EngineCore& core, Execution& execution)
    PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(execution.phase != Phase::kInFlight,
             "a member that an order changes has no record on the way");
  auto commit = core.state.spares.steps.take(core.seat());
  commit->execution = &execution;
  commit->next = as_it_is(core, execution);
  if (execution.record.state == ProcedureState::kFailed) commit->kind = StepCommit::Kind::kUndo;
  return commit;
}

void note_history(StepCommit& commit, Outcome::Kind kind, std::uint32_t step) {
  commit.next.history =
      HistoryEntry{step, commit.execution->record.attempt, kind, commit.next.updated,
                   commit.is_undo() && kind != Outcome::Kind::kBypassed};
}

std::unique_ptr<StepCommit> retry_undo(EngineCore& core, const Order& order)
    PV2_REQUIRES(core.state_mutex) {
  auto commit = unchanged(core, *order.about);
  note_history(*commit, Outcome::Kind::kRetriedNow, order.step);
  Transition& next = commit->next;
  next.parked = false;
  next.attempt = 1;
  next.requeue = true;
  next.deadline.reset();
  return commit;
}

// Replaces the wait by one of length zero, so it is over at once in this run and after a restart.
std::unique_ptr<StepCommit> end_wait(EngineCore& core, const Order& order)
    PV2_REQUIRES(core.state_mutex) {
  Execution& member = *order.about;
  auto commit = unchanged(core, member);
  note_history(*commit, Outcome::Kind::kRetriedNow, order.step);
  Transition& next = commit->next;
  core.begin_wait(Duration::zero(), next);
  next.ends_waits = false;
  if (member.record.failure() != nullptr) {
    commit->is_undo() ? next.set_undo_error(member.record.failure()->undo)
                      : next.set_error(member.record.failure()->error);
  }
  return commit;
}

std::unique_ptr<StepCommit> skip_undo(EngineCore& core, const Order& order)
    PV2_REQUIRES(core.state_mutex) {
  Execution& member = *order.about;
  Domain& domain = order.head->domain;
  PV2_ASSERT(is_parked_in_undo(member), "an undo that is skipped is parked");
  auto commit = unchanged(core, member);
  note_history(*commit, Outcome::Kind::kSkipped, order.step);
  Turn& turn = member.edit_turn();
  turn.step = order.step;
  turn.takes_locks = order.step == 0;
  turn.leads = &member == order.head;
  turn.ends_domain = turn.leads && domain.rare->rollback->left() == 1;
  Transition& next = commit->next;
  next.parked = false;
  next.attempt = 1;
  next.unsure = false;
  next.step = 0;
  if (turn.takes_locks) return commit;  // it goes on without them
  next.undo = UndoChange::kPop;
  const bool for_operation = member.locks().scope() == LockScope::kOperation;
  if (!for_operation && !turn.keeps_for_descendants) next.holds_locks = false;
  if (turn.left > 1) return commit;
  const bool ends = !turn.leads || turn.ends_domain;
  if (ends) next.state = ProcedureState::kRolledBack;
  if (ends) next.holds_locks = false;
  if (turn.ends_domain) next.set_error(domain.rare->cause);
  if (turn.ends_domain) next.bypassed = member.record.sent_back;
  if (turn.ends_domain) next.reported = !member.is_root();
  return commit;
}

std::unique_ptr<StepCommit> retry_step(EngineCore& core, const Order& order)
    PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(order.step != 0, "an order to try again names a step");
  auto commit = unchanged(core, *order.about);
  commit->kind = StepCommit::Kind::kStep;
  note_history(*commit, Outcome::Kind::kRetriedNow, order.step);
  Transition& next = commit->next;
  next.state = ProcedureState::kRunnable;
  next.parked = false;
  next.attempt = 1;
  // If no domain around the member has failed, the record is published like that of any step.
  if (failing_domain(*order.about) != nullptr) next.order = OrderEffect::kForward;
  return commit;
}

std::unique_ptr<StepCommit> skip_step(EngineCore& core, const Order& order)
    PV2_REQUIRES(core.state_mutex) {
  const Execution& member = *order.about;
  auto commit = retry_step(core, order);
  Transition& next = commit->next;
  next.history->outcome = Outcome::Kind::kSkipped;
  ++next.visits;
  next.unsure = false;
  next.step = order.following;
  const StepKind kind = member.type->find_step(member.record.step)->kind;
  if (kind == StepKind::kUndoable && !member.record.no_return) next.undo = UndoChange::kPush;
  if (kind == StepKind::kPointOfNoReturn) next.undo = UndoChange::kClear;
  if (kind == StepKind::kPointOfNoReturn) next.no_return = true;
  if (order.following == 0) next.state = ProcedureState::kSuccess;
  if (order.following == 0) next.holds_locks = false;
  return commit;
}

std::unique_ptr<StepCommit> send_back(EngineCore& core, const Order& order)
    PV2_REQUIRES(core.state_mutex) {
  Execution& head = *order.head;
  PV2_ASSERT(head.is_head(), "only the head of a domain is sent back");
  auto commit = unchanged(core, head);
  commit->kind = StepCommit::Kind::kStep;
  note_history(*commit, Outcome::Kind::kSentBack, head.record.step);
  commit->next.sent_back = true;
  commit->next.order = OrderEffect::kBack;
  if (head.record.failure() && head.record.state != ProcedureState::kFailed) {
    commit->next.set_error(head.record.failure()->error);  // of the attempt before this order
  }
  return commit;
}

// Members whose undo has begun, and members with offloaded work, make no more records.
void cut_off_members(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex) {
  if (head.domain.rare->rollback) {
    for (Execution* const member : head.domain.rare->rollback->begun()) {
      if (member->phase == Phase::kWaiting) member->phase.move_to(Phase::kIdle);
      core.abandon_waits(*member);
    }
  }
  for_each_at_work(head, [](Execution& member) { member.work()->ends = true; });
}

// The result of a bypassed domain.
Status bypassed(const Domain& domain, const AuditEntry& entry) {
  std::string text = "bypassed";
  if (!entry.who.empty()) text += " by " + entry.who;
  if (!entry.why.empty()) text += ": " + entry.why;
  if (!domain.rare->cause.ok()) text += "; it had failed with " + domain.rare->cause.to_string();
  if (text.size() > limits::kErrorBytes) text.resize(limits::kErrorBytes);
  return Status(StatusCode::kAborted, std::move(text));
}

std::unique_ptr<StepCommit> end_domain(EngineCore& core, const Order& order,
                                       const AuditEntry& entry) PV2_REQUIRES(core.state_mutex) {
  Execution& head = *order.head;
  PV2_ASSERT(head.is_head() && head.domain.rare->work == nullptr,
             "a domain that an order ends has no work on its members");
  PV2_ASSERT(head.domain.failing() == &head, "a domain that an order ends was stopped");
  cut_off_members(core, head);
  auto commit = unchanged(core, head);
  Transition& next = commit->next;
  next.state = ProcedureState::kRolledBack;
  next.step = 0;
  next.parked = false;
  next.bypassed = true;
  next.reported = !head.is_root();
  next.holds_locks = false;
  next.set_result({});
  next.deadline.reset();
  next.set_error(bypassed(head.domain, entry));
  note_history(*commit, Outcome::Kind::kBypassed, head.record.step);
  return commit;
}

std::unique_ptr<StepCommit> record_of(EngineCore& core, const Order& order, const AuditEntry& entry)
    PV2_REQUIRES(core.state_mutex) {
  switch (order.kind) {
    case Order::Kind::kRetryUndo:
      return retry_undo(core, order);
    case Order::Kind::kRetryStep:
      return retry_step(core, order);
    case Order::Kind::kEndWait:
      return end_wait(core, order);
    case Order::Kind::kSkipUndo:
      return skip_undo(core, order);
    case Order::Kind::kSkipStep:
      return skip_step(core, order);
    case Order::Kind::kSendBack:
      return send_back(core, order);
    case Order::Kind::kBypass:
      return end_domain(core, order, entry);
    case Order::Kind::kAbortRoot:
      break;
  }
  PV2_ASSERT(false, "an abort is a message, and has no record of its own");
  return nullptr;
}

void write_rows(StepCommit& commit) {
  Execution& execution = *commit.execution;
  if (execution.stored == Stored::kLost) {  // it has no other record
    insert_rows(execution, commit.next, commit.batch);
  } else {
    update_state(execution, commit.next,
                 commit.is_undo() ? execution.turn_step() : execution.record.step, commit.batch);
  }
}

// The audit rows belong to the root, whichever member the order is about.
std::uint64_t next_audit_number(Execution& root) {
  PV2_ASSERT(root.is_root(), "a root keeps the audit of its tree");
  if (!root.inbox) root.inbox = std::make_unique<Inbox>();
  root.audited = true;
  return root.inbox->next_number++;
}

}  // namespace

void commit_order(EngineCore& core, const Order& order, AuditEntry entry, Reply<Status> reply,
                  Effects& effects) {
  entry.step = order.step;
  auto commit = record_of(core, order, entry);
  commit->rare.edit().reply = std::move(reply);
  Execution& execution = *commit->execution;
  PV2_ASSERT(order.kind == Order::Kind::kEndWait || execution.wait.timer_index == Wait::kNoTimer,
             "a member that an order changes has no timer, unless its wait ends");
  Execution& root = *execution.root();
  const std::uint64_t number = next_audit_number(root);  // an end reads `audited`
  entry.procedure = execution.id;
  entry.at = commit->next.updated;
  core.date_end(execution, commit->next);
  write_rows(*commit);
  insert_audit(entry, root.id, number, commit->batch);
  effects.log(LogLevel::kWarning,
              fmt::format("{} of {} was ordered by '{}': {}", to_string(entry.verb),
                          name_of(execution), entry.who, entry.why));
  // What comes before may find no memory, and then changes nothing.
  core.state.timers.cancel(execution);
  execution.phase.move_to(Phase::kInFlight);
  enter_flight(execution);
  effects.commits.push_back(*commit.release());
}

}  // namespace pv2
