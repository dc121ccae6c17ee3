// SPDX-License-Identifier: Apache-2.0
//
// The youngest tree is the one whose root has the highest id: it has probably done least. A tree
// that is failing already, or is past its point of no return, is passed over: failing it would free
// nothing. If no tree can be the victim, the youngest of those that are being undone is parked. If
// none is being undone, the youngest of all is parked, as if it had used up its attempts. A cycle
// through a tree that is about to fail or to be aborted is left alone: the scheduler searches again
// when the cycle opens.

#include "orders/deadlocks.h"

#include <pv2/base/assert.h>

#include <algorithm>
#include <utility>

#include "core/effects.h"
#include "core/state_lock.h"
#include "model/check_limits.h"
#include "model/names.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/procedure_registry.h"
#include "records/procedure_rows.h"
#include "tree/domains.h"
#include "tree/flight.h"
#include "tree/member_step.h"

namespace pv2 {
namespace {

bool stands_in_line(const WaitLink& link) {
  return link.why == WaitLink::Why::kHolder || link.why == WaitLink::Why::kAhead ||
         link.why == WaitLink::Why::kLimit;
}

// Whether `member` waits in a way that this file can end.
bool can_be_taken_out(const Execution& member, const WaitLink& link) {
  if (stands_in_line(link)) return member.phase == Phase::kQueued;
  return link.why == WaitLink::Why::kReported && member.phase == Phase::kWaiting;
}

// Whether the cycle opens without help: one of its members has ended, or a record that fails or
// aborts a member's tree is on its way.
bool is_about_to_open(EngineCore& core, const WaitCycle& cycle) PV2_REQUIRES(core.state_mutex) {
  return std::any_of(cycle.links.begin(), cycle.links.end(),
                     [&](const WaitLink& link) PV2_REQUIRES(core.state_mutex) {
                       Execution* const member = core.find(link.waiter);
                       if (member == nullptr) return true;
                       return failing_domain(*member) == nullptr && is_about_to_fail(*member);
                     });
}

// Among the members of `cycle` that `is_it` accepts, the one with the youngest tree; or nullptr.
template <class Test>
Execution* youngest(EngineCore& core, const WaitCycle& cycle, Test is_it)
    PV2_REQUIRES(core.state_mutex) {
  Execution* found = nullptr;
  for (const WaitLink& link : cycle.links) {
    Execution* const member = core.find(link.waiter);
    if (member == nullptr || !is_it(*member, link)) continue;
    if (found == nullptr || member->root()->id > found->root()->id) found = member;
  }
  return found;
}

// Whether the member's domain goes forward and can be undone.
bool can_be_victim(Execution& member, const WaitLink& link) {
  if (!can_be_taken_out(member, link)) return false;
  return failing_domain(member) == nullptr && can_be_undone(*member.head());
}

// Whether the member has an undo that waits in a line.
bool waits_with_its_undo(Execution& member, const WaitLink& link) {
  if (!stands_in_line(link) || member.phase != Phase::kQueued) return false;
  return member.has_turn() && !stands_still(member);
}

// Whether the member's domain goes forward; it need not be undoable.
bool goes_forward(Execution& member, const WaitLink& link) {
  if (!can_be_taken_out(member, link)) return false;
  return failing_domain(member) == nullptr && !member.has_turn();
}

// Whether an earlier run may have begun the member's current step: the step answered again(), backs
// off, or was interrupted by a restart.
bool has_begun_its_step(const Execution& member) {
  if (!member.started || member.record.step == 0 || member.record.no_return) return false;
  const StepInfo* const info = member.type->find_step(member.record.step);
  return info != nullptr && info->kind == StepKind::kUndoable;
}

// Takes `member` out of the line or the wait that it is in. False: a worker has just polled it, so
// the cycle is open.
bool take_out(EngineCore& core, Execution& member) PV2_REQUIRES(core.state_mutex) {
  core.flush();
  if (member.phase == Phase::kQueued && !core.scheduler.withdraw(member)) return false;
  core.abandon_waits(member);
  return true;
}

void write(Execution& member, std::unique_ptr<StepCommit> commit, Effects& effects) {
  PV2_ASSERT(member.phase == Phase::kQueued || member.phase == Phase::kWaiting,
             "a member that is taken out was queued or waited");
  PV2_ASSERT(member.wait.timer_index == Wait::kNoTimer, "a member that was taken out has no timer");
  commit->execution = &member;
  update_state(member, commit->next, commit->is_undo() ? member.turn_step() : member.record.step,
               commit->batch);
  member.phase.move_to(Phase::kInFlight);
  enter_flight(member);
  effects.commits.push_back(*commit.release());
}

void fail_in_line(EngineCore& core, Execution& member, const std::string& why, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  if (!take_out(core, member)) return;
  PV2_ASSERT(failing_domain(member) == nullptr, "a member of a failed domain does not fail again");
  PV2_ASSERT(!member.has_turn(), "a member of a deadlock's victim is not being undone");
  member.head()->domain.deadlock_victim = true;
  member.root()->domain.rare.edit().had_victim = true;
  auto commit = core.state.spares.steps.take(core.seat());
  Transition& last = commit->next;
  last.begin(member.record, core.clock.wall_now());
  last.state = ProcedureState::kFailed;
  last.attempt = 1;
  last.unsure = false;
  last.holds_locks = member.holds_locks() && !member.locks().empty();
  last.undo = has_begun_its_step(member) ? UndoChange::kPush : UndoChange::kKeep;
  last.history =
      HistoryEntry{member.record.step, member.record.attempt, Outcome::Kind::kFail, last.updated};
  last.set_error(
      bounded(Status(StatusCode::kDeadlock,
                     "given up to end a deadlock, as the youngest in it: " + why +
                         "; submit it again, or let all of them take their locks in one order")));
  write(member, std::move(commit), effects);
}

// Two rollbacks that need each other's locks can neither go on nor be undone. So the younger one is
// parked at this undo, without the locks that the undo waited for. Its tree keeps the locks that it
// holds, and the older tree waits for them.
void park_in_line(EngineCore& core, Execution& member, const std::string& why, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  if (!take_out(core, member)) return;
  auto commit = core.state.spares.steps.take(core.seat());
  PV2_ASSERT(member.has_turn(), "an undo that is parked is under way");
  commit->kind = StepCommit::Kind::kUndo;
  Transition& next = commit->next;
  next.begin(member.record, core.clock.wall_now());
  next.state = ProcedureState::kFailed;
  next.parked = true;
  if (member.takes_locks()) {
    next.history =
        HistoryEntry{0, member.record.attempt, Outcome::Kind::kRetry, next.updated, /*undo=*/true};
  } else {
    next.undo = UndoChange::kPush;  // the turn is not over
    next.undo_is_unfinished = true;
  }
  next.holds_locks = false;
  next.set_error(bounded(Status(
      StatusCode::kDeadlock,
      "its undoing is in a deadlock with others, as the youngest in it: " + why +
          "; undo by hand what " + name_of(member.id) + " has done, or free what it waits for")));
  write(member, std::move(commit), effects);
}

// Parks the member at its step, with the locks that it holds, until an operator acts. Procedures
// that wait for these locks wait as long.
void give_up_in_line(EngineCore& core, Execution& member, const std::string& why, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  if (!take_out(core, member)) return;
  auto commit = core.state.spares.steps.take(core.seat());
  Transition& next = commit->next;
  next = as_it_is(core, member);
  next.state = ProcedureState::kRunnable;
  next.stop_waiting();
  next.parked = true;
  next.holds_locks = member.holds_locks() && !member.locks().empty();
  next.set_error(
      bounded(Status(StatusCode::kDeadlock,
                     "it is in a deadlock with others that cannot be undone either, as the "
                     "youngest in it: " +
                         why +
                         "; free what it waits for and retry it, skip its step, or bypass its "
                         "tree")));
  write(member, std::move(commit), effects);
}

// Opens the cycle as the host's policy says, and logs the cycle with the consequence.
void resolve(EngineCore& core, const WaitCycle& cycle, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  const std::string why = to_string(cycle);
  const auto log = [&](const std::string& consequence) {
    effects.log(LogLevel::kError, fmt::format("deadlock: {}. {}", why, consequence));
  };
  if (core.options.deadlock_policy != DeadlockPolicy::kFailYoungest) {
    log("Nothing ends it by itself");
  } else if (Execution* const victim = youngest(core, cycle, can_be_victim)) {
    log(fmt::format("Procedure {} is the youngest and is undone", victim->root()->id));
    fail_in_line(core, *victim, why, effects);
  } else if (Execution* const undone = youngest(core, cycle, waits_with_its_undo)) {
    log(fmt::format("All of them are being undone; procedure {} is the youngest and is parked",
                    undone->root()->id));
    park_in_line(core, *undone, why, effects);
  } else if (Execution* const last = youngest(core, cycle, goes_forward)) {
    log(
        fmt::format("None of them can be undone; procedure {} is of the youngest and is parked "
                    "until an operator acts",
                    last->id));
    give_up_in_line(core, *last, why, effects);
  } else {
    log("Nothing ends it by itself");
  }
}

}  // namespace

void resolve_deadlocks(EngineCore& core, Publisher& publisher) {
  Effects effects;
  {
    StateLock lock(core);
    // A cycle that is suspected from now on needs a new search.
    core.state.deadlock_search.is_expected = false;
    if (!core.unavailable().ok()) return;
    for (const WaitCycle& cycle : core.scheduler.take_new_cycles()) {
      if (!is_about_to_open(core, cycle)) resolve(core, cycle, effects);
    }
  }
  publisher.perform(effects);
}

Deadlocks::Deadlocks(EngineCore& core, Publisher& publisher)
    : core_(core),
      publisher_(publisher),
      not_before_(core.clock.steady_now().time_since_epoch().count()) {}

void Deadlocks::expect_search() {
  if (core_.clock.is_manual()) return core_.pool->post([this] { search(); });
  const SteadyTime::rep now = core_.clock.steady_now().time_since_epoch().count();
  due_.store(std::max(now, not_before_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
  if (changed_) changed_();
}

std::optional<SteadyTime> Deadlocks::next_due() {
  const SteadyTime::rep due = due_.load(std::memory_order_relaxed);
  if (due == kNever) return std::nullopt;
  return SteadyTime(SteadyTime::duration(due));
}

std::size_t Deadlocks::fire(SteadyTime now) {
  const std::optional<SteadyTime> due = next_due();
  if (!due || now < *due) return 0;
  due_.store(kNever, std::memory_order_relaxed);
  core_.pool->post([this] { search(); });
  return 1;
}

bool Deadlocks::search_at_idle() {
  PV2_ASSERT(core_.options.workers == 0,
             "only an executor without workers searches when it is idle");
  if (!core_.scheduler.suspects_cycles() && !core_.scheduler.has_new_cycles()) return false;
  {
    StateLock lock(core_);
    if (!core_.state.deadlock_search.is_on || !core_.unavailable().ok()) return false;
  }
  search();
  return true;
}

void Deadlocks::search() {
  constexpr int kShare = 20;
  const SteadyTime begin = core_.clock.steady_now();
  core_.scheduler.search_cycles();
  const SteadyTime end = core_.clock.steady_now();
  const Duration pause = std::max<Duration>(
      kBetweenSearches, kShare * std::chrono::duration_cast<Duration>(end - begin));
  not_before_.store(later(end, pause).time_since_epoch().count(), std::memory_order_relaxed);
  resolve_deadlocks(core_, publisher_);
}

}  // namespace pv2
