// SPDX-License-Identifier: Apache-2.0
//
// StepCommit: what follows when the record of a step, of an undo, of a lock grant or of an order is
// durable. Read published() at the end first: the execution takes over its record; its children and
// the roots that it submitted become live; then one row of the table at `Follows` applies.

#include <algorithm>
#include <utility>

#include "core/effects.h"
#include "core/engine_core.h"
#include "model/names.h"
#include "model/requests.h"
#include "model/tree_work.h"
#include "pv2/engine/procedure_registry.h"
#include "tree/domains.h"
#include "tree/ending.h"
#include "tree/failure.h"
#include "tree/flight.h"
#include "tree/join.h"
#include "tree/member_step.h"
#include "tree/members_at_work.h"
#include "tree/resume.h"
#include "tree/rollback.h"
#include "tree/take_over.h"

namespace pv2 {
namespace {

// Logs a retry and tells the listeners. A step without a bound on its attempts is retried for ever,
// but never silently.
void tell_of_retry(EngineCore& core, const Execution& execution, const StepCommit& commit,
                   Effects& effects) PV2_REQUIRES(core.state_mutex) {
  const std::uint32_t number = commit.is_undo() ? execution.turn_step() : execution.record.step;
  const StepInfo* const step = execution.type->find_step(number);
  core.state.news.add(ProcedureNews::Kind::kRetrying, execution, commit.next.retried());
  effects.log(LogLevel::kWarning,
              name_of(execution) + " has failed " + std::to_string(execution.record.attempt - 1) +
                  " times " + (commit.is_undo() ? "to undo step " : "at step ") +
                  (step != nullptr ? std::string(step->name) : std::to_string(number)) +
                  " and goes on trying: " + commit.next.retried().to_string());
}

// Whether an operator ordered it.
bool is_order(const StepCommit& commit) {
  return commit.next.history && is_order(commit.next.history->outcome);
}

// Whether an operator ordered that everything under a head ends (bypass).
bool is_last_order(const StepCommit& commit) {
  return is_order(commit) && commit.next.history->outcome == Outcome::Kind::kBypassed;
}

// Removes the messages that the record consumed from the inbox, and notes which messages the
// procedure waits for.
void use_inbox(Execution& execution, StepCommit& commit) {
  PV2_ASSERT(commit.execution == &execution, "a record consumes messages of its own procedure");
  if (!execution.inbox) execution.inbox = std::make_unique<Inbox>();
  Inbox& inbox = *execution.inbox;
  inbox.wanted.clear();
  if (!commit.rare->inbox_use) return;
  InboxUse& use = *commit.rare.edit().inbox_use;
  if (!use.given.empty()) {
    std::sort(use.given.begin(), use.given.end());
    inbox.consume_if([&](const InboxMessage& message) {
      return std::binary_search(use.given.begin(), use.given.end(), message.number);
    });
  }
  inbox.wanted = std::move(use.wanted);
}

// The children that the step spawned become live. They are queued in go_on(), when their parent
// waits for them.
void adopt_children(EngineCore& core, Execution& parent, StepCommit& commit, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  RareOfStep& rare = commit.rare.edit();
  for (Execution* child : rare.children) {
    Looks::one();
    PV2_ASSERT(child->parent_execution() == &parent && child->phase == Phase::kInserting,
               "a record makes children of its own procedure durable");
    child->record.move_to(ProcedureState::kRunnable);
    child->record.updated = child->submitted;
    child->phase.move_to(Phase::kIdle);
    ++core.counts_of(*child->type).submitted;
    core.state.live.emplace(child->id, child);
    adopt(*child);
    core.state.news.add(ProcedureNews::Kind::kAdded, *child);
  }
  PV2_ASSERT(core.state.spawning >= rare.reserved, "children were counted when they were made");
  core.state.spawning -= std::exchange(rare.reserved, 0);
  if (rare.children.empty()) return;
  parent.edit_place().children.unfinished = static_cast<std::uint32_t>(rare.children.size());
  PV2_ASSERT(parent.children().joined == parent.children().unfinished,
             "a join begins with the children of one step");
  core.state.ids.reserve(effects);
}

// The record that gives locks back was published. The procedure goes on waiting; or it is queued,
// or ends, if what it waited for arrived while the record was on the way.
void gave_back(EngineCore& core, Execution& execution, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(!execution.has_turn() || is_parked_in_undo(execution),
             "an undo keeps its locks until it is over, or parked");
  const bool arrived =
      execution.wait.wake_pending || (execution.inbox && execution.inbox->has_wanted());
  execution.phase.move_to(execution.record.parked ? Phase::kIdle : Phase::kWaiting);
  if (arrived && !execution.record.parked) {
    execution.wait.wake_pending = false;
    return core.queue(execution, Disposition::kBackUnlock);
  }
  core.settle(execution, Disposition::kParkUnlock);
  if (execution.record.parked) return;
  if (execution.record.state == ProcedureState::kWaiting && execution.children().unfinished == 0) {
    core.flush();  // the scheduler has its locks back before it is queued
    return children_finished(core, execution, effects);
  }
  if (execution.record.deadline) core.arm_timer(execution, effects);
}

// The record of a lock grant was published.
void granted(EngineCore& core, Execution& execution, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  if (execution.takes_locks()) return locks_taken(core, execution, effects);
  if (execution.has_turn()) execution.edit_turn().is_ahead = true;
  core.queue(execution, Disposition::kFront);
}

// What follows a published step in a tree that goes forward (or the grant for a turn of rollback).
void go_on(EngineCore& core, Execution& execution, StepCommit& commit, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  const Transition& next = commit.next;
  const bool unlock = !next.holds_locks;
  if (commit.kind == StepCommit::Kind::kGrant) return granted(core, execution, effects);
  if (commit.kind == StepCommit::Kind::kGiveBack) return gave_back(core, execution, effects);
  if (next.parked) {
    if (unlock) core.settle(execution, Disposition::kParkUnlock);
    return park_member(core, execution, effects);
  }
  switch (next.state) {
    case ProcedureState::kFailed:
      PV2_ASSERT(execution.record.failure() != nullptr, "a record of a failure says why");
      execution.phase.move_to(Phase::kIdle);
      fail_tree(core, *execution.head());
      return;
    case ProcedureState::kSuccess:
      execution.phase.move_to(Phase::kIdle);
      core.settle(execution, Disposition::kParkUnlock);
      core.state.news.add(ProcedureNews::Kind::kFinished, execution);
      child_finished(core, execution, effects);
      return;
    case ProcedureState::kWaiting:
      PV2_ASSERT(execution.children().unfinished != 0,
                 "a procedure that waits for children has some");
      execution.phase.move_to(Phase::kWaiting);
      if (unlock) core.settle(execution, Disposition::kParkUnlock);
      for (Execution* child : commit.rare->children) core.queue(*child, Disposition::kFront);
      return;
    case ProcedureState::kRunnable:
    case ProcedureState::kWaitingTimeout:
      break;
    case ProcedureState::kInitializing:
    case ProcedureState::kRolledBack:
      PV2_ASSERT(false, "no step ends in this state");
  }
  if (next.ends_waits && next.state == ProcedureState::kRunnable) {
    const auto place = next.requeue ? Disposition::kBack : Disposition::kFront;
    return core.queue(execution, unlock ? Disposition::kBackUnlock : place);
  }
  // What the step waits for arrived while the record was on the way.
  if (execution.wait.wake_pending || (execution.inbox && execution.inbox->has_wanted())) {
    execution.wait.wake_pending = false;
    return core.queue(execution, unlock ? Disposition::kBackUnlock : Disposition::kFront);
  }
  execution.phase.move_to(Phase::kWaiting);
  if (unlock) core.settle(execution, Disposition::kParkUnlock);
  if (execution.record.deadline) return core.arm_timer(execution, effects);
  Execution* const producer = commit.producer ? core.find(commit.producer) : nullptr;
  if (producer != nullptr && producer != &execution) {
    core.report_wait(execution, *producer, WaitLink::Why::kReported);
  }
}

// Whether nothing follows from a record of `execution` because the domain of `head`, the widest
// around it, is stopped. Either its rollback is not planned yet (a plan will see this record), or
// never will be, because the tree is quarantined; or this is the record of a step that went
// forward.
bool stops_here(const Execution& head, const Execution& execution, const StepCommit& commit) {
  if (!head.domain.is_undone() || head.is_quarantined()) return true;
  const bool ordered = commit.next.order != OrderEffect::kNone;
  return !execution.has_turn() && !ordered && !commit.is_undo();
}

/// What follows from a record: the first row that applies.
///
///     the root is rolled back, or succeeded and is not stopped    kTreeEnds
///     the record ends a child whose failure is reported           kDomainEnds
///     a domain around the member is stopped, and its rollback     kStandsStill
///     is not planned, or the record is of a step forward
///     an order about a domain parked beyond a point of no return  kOrder
///     the record is of an undo                                    kUndo
///     else                                                        kGoesOn
enum class Follows : std::uint8_t { kTreeEnds, kDomainEnds, kStandsStill, kOrder, kUndo, kGoesOn };

Follows what_follows(Execution& execution, const StepCommit& commit) {
  const Execution* const failed = failing_domain(execution);
  const ProcedureState state = execution.record.state;
  const bool root_ends =
      state == ProcedureState::kRolledBack || (is_finished(state) && failed == nullptr);
  if (execution.is_root() && root_ends) return Follows::kTreeEnds;
  if (commit.next.reported) return Follows::kDomainEnds;
  if (failed != nullptr && stops_here(*failed, execution, commit)) return Follows::kStandsStill;
  if (commit.next.order != OrderEffect::kNone) return Follows::kOrder;
  return commit.is_undo() ? Follows::kUndo : Follows::kGoesOn;
}

// A domain around `execution` is stopped: the execution does nothing more. Its record still counts
// for its parent's join and for what has failed or was repaired.
void stand_still(EngineCore& core, Execution& execution, const StepCommit& commit)
    PV2_REQUIRES(core.state_mutex) {
  execution.phase.move_to(Phase::kIdle);
  execution.leave_turn();
  const ProcedureState state = execution.record.state;
  if (state == ProcedureState::kSuccess && !execution.is_root()) {
    child_ended_too_late(execution);
    // Of the others the listeners are told when they are undone.
    if (!execution.is_undone_with_its_tree()) {
      core.state.news.add(ProcedureNews::Kind::kFinished, execution);
    }
  }
  if (state == ProcedureState::kFailed && !commit.is_undo()) failed_too_late(core, execution);
  if (commit.next.order == OrderEffect::kForward) repaired_too_late(core, execution);
  core.abandon_waits(execution);
  if (!commit.next.holds_locks) core.settle(execution, Disposition::kParkUnlock);
}

// The work of `execution` may have ended while the record was on the way.
void look_after_work(EngineCore& core, Execution& execution, const StepCommit& commit,
                     Effects& effects) PV2_REQUIRES(core.state_mutex) {
  if (execution.work() == nullptr) return;
  const Kept locks = commit.next.holds_locks ? Kept::kMaybe : Kept::kNo;
  work_looked_after(core, execution, locks, effects);
}

void follow_up(EngineCore& core, Execution& execution, StepCommit& commit, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  switch (what_follows(execution, commit)) {
    case Follows::kTreeEnds:
      return finish_root(core, execution, effects);
    case Follows::kDomainEnds:
      domain_ended(core, execution, effects);
      break;
    case Follows::kStandsStill:
      stand_still(core, execution, commit);
      break;
    case Follows::kOrder:
      return order_published(core, execution, commit, effects);
    case Follows::kUndo:
      undo_published(core, execution, commit, effects);
      look_after_work(core, execution, commit, effects);
      break;
    case Follows::kGoesOn:
      go_on(core, execution, commit, effects);
      look_after_work(core, execution, commit, effects);
      break;
  }
  left_flight(core, execution, effects);
}

// With each record of a step, children that have ended and have nothing to undo leave, unless this
// record ends the domain, so that all its members leave.
void drop_children(EngineCore& core, Execution& execution, const StepCommit& commit,
                   Effects& effects) PV2_REQUIRES(core.state_mutex) {
  const bool all_leave =
      commit.next.reported || (execution.is_root() && is_finished(execution.record.state));
  const bool is_step = !commit.is_undo() && commit.kind != StepCommit::Kind::kGrant;
  if (execution.first_child() == nullptr || !is_step || all_leave) return;
  drop_ended_children(core, execution, effects);
}

void answer_with(StepCommit& commit, const Status& status, Effects& effects) {
  if (!commit.rare.is_made() || !commit.rare->reply) return;
  effects.reply(std::exchange(commit.rare.edit().reply, {}), status);
}

}  // namespace

void StepCommit::published(EngineCore& core, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  Execution& about = *execution;
  // Set before anything else: each record that is published after this one was durable after it.
  if (is_last_order(*this)) about.domain.ending = EndingOrder::kDurable;
  TreeWorks* const works = about.root()->domain.works();
  if (is_order(*this) && works != nullptr) return works->put_off.push_back(*this);
  PV2_ASSERT(about.phase == Phase::kInFlight, "a published record is of a member in flight");
  PV2_ASSERT(about.wait.timer_index == Wait::kNoTimer, "a member in flight waits for no time");
  PV2_ASSERT(!spawns() || about.children().unfinished == 0,
             "a member that spawns has joined those that it spawned before");
  if (is_last_order(*this) && waits_for_work(*this)) return answer_with(*this, Status(), effects);
  take_over_record(about, *this);
  if (!is_only_locks() && (about.inbox || (rare.is_made() && rare->inbox_use))) {
    use_inbox(about, *this);
  }
  if (next.is_retried()) tell_of_retry(core, about, *this, effects);
  answer_with(*this, Status(), effects);
  if (rare.is_made()) {
    adopt_children(core, about, *this, effects);
    for (InsertCommit* submitted : rare->roots) submitted->published(core, effects);
  }
  drop_children(core, about, *this, effects);
  follow_up(core, about, *this, effects);
  core.state.spares.steps.give_back(std::unique_ptr<StepCommit>(this), core.seat());
}

void StepCommit::failed(EngineCore& core, const RequestFailure& why, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  execution->phase.move_to(Phase::kIdle);
  answer_with(*this, why.unknown, effects);
  for (Execution* child : rare->children) {  // in the table, so that stop() finds and frees them
    child->phase.move_to(Phase::kIdle);
    core.state.live.emplace(child->id, child);
  }
  core.state.spawning -= rare->reserved;
  for (InsertCommit* submitted : rare->roots) submitted->failed(core, why, effects);
  core.state.spares.steps.give_back(std::unique_ptr<StepCommit>(this), core.seat());
}

}  // namespace pv2
