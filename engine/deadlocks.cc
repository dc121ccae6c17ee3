// SPDX-License-Identifier: Apache-2.0
//
// The youngest tree is the one whose root has the highest id: it has probably done least. One that
// fails already, or is past its point of no return, is passed over: failing it again frees nothing.

#include "deadlocks.h"

#include <algorithm>
#include <utility>

#include "record_codec.h"
#include "tree.h"

namespace pv2 {
namespace {

bool stands_in_line(const WaitLink& link) {
  return link.why == WaitLink::Why::kHolder || link.why == WaitLink::Why::kAhead ||
         link.why == WaitLink::Why::kLimit;
}

// The member of the youngest tree that waits in the lock table, or null.
Execution* youngest(EngineCore& core, const WaitCycle& cycle) PV2_REQUIRES(core.state_mutex) {
  Execution* found = nullptr;
  for (const WaitLink& link : cycle.links) {
    Execution* const member = stands_in_line(link) ? core.find(link.waiter) : nullptr;
    if (member == nullptr || member->phase != Phase::kQueued) continue;
    if (member->root->tree.failed || !can_be_undone(*member->root)) continue;
    if (found == nullptr || member->root->id > found->root->id) found = member;
  }
  return found;
}

// The step that it was about to run may have been begun before (again(), a back-off, a restart).
bool has_begun_its_step(const Execution& member) {
  if (!member.started || member.step == 0 || member.no_return) return false;
  const StepInfo* const info = member.type->find_step(member.step);
  return info != nullptr && info->kind == StepKind::kUndoable;
}

void fail_in_line(EngineCore& core, Execution& member, const std::string& why, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  core.flush();
  if (!core.scheduler.withdraw(member)) return;  // it was granted: the cycle is open
  core.abandon_waits(member);
  auto commit = core.state.spare_steps.take();
  commit->execution = &member;
  Transition& last = commit->next;
  last.state = ProcedureState::kFailed;
  last.no_return = member.no_return;
  last.holds_locks = false;
  last.now = core.clock.wall_now();
  last.undo = has_begun_its_step(member) ? UndoChange::kPush : UndoChange::kKeep;
  last.history = HistoryEntry{member.step, member.attempt, Outcome::Kind::kFail, last.now};
  last.error = Status(StatusCode::kAborted,
                      "given up to end a deadlock, as the youngest in it: " + why +
                          "; submit it again, or let all of them take their locks in one order");
  update_state(member, last, member.step, commit->batch);
  member.phase = Phase::kInFlight;
  ++member.root->tree.in_flight;
  effects.commits.push_back(*commit.release());
}

}  // namespace

void resolve_deadlocks(EngineCore& core, Publisher& publisher) {
  Effects effects;
  {
    StateLock lock(core);
    core.state.deadlock_task_posted = false;  // what is closed from here on is another task's
    if (!core.unavailable().ok()) return;
    for (const WaitCycle& cycle : core.scheduler.take_new_cycles()) {
      const std::string why = to_string(cycle);
      Execution* const member = core.options.deadlock_policy == DeadlockPolicy::kFailYoungest
                                    ? youngest(core, cycle)
                                    : nullptr;
      effects.log(LogLevel::kError,
                  "deadlock: " + why +
                      (member != nullptr ? ". Procedure " + std::to_string(member->root->id.value) +
                                               " is the youngest and is undone"
                                         : ". Nothing ends it by itself"));
      if (member != nullptr) fail_in_line(core, *member, why, effects);
    }
  }
  publisher.perform(effects);
}

}  // namespace pv2
