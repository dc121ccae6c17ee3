// SPDX-License-Identifier: Apache-2.0
//
// only_goes_on() rules out whatever StepCommit::published() looks at besides the record itself.

#include "tree/take_over.h"

#include <pv2/base/assert.h>

#include "pv2/engine/procedure_registry.h"
#include "records/state_codec.h"
#include "tree/domains.h"
#include "tree/member_step.h"

namespace pv2 {
namespace {

// Applies the record to what this run knows of the waits of `execution`: they are over or go on.
void apply_to_run(Execution& execution, const Transition& next) {
  PV2_ASSERT(!next.deadline || next.due != kNotDue, "a deadline has a due time in this run");
  execution.wait.due = next.due;
  execution.wait.timed_out = false;
  if (execution.rare_of_run->interrupted_due != next.interrupted_due) {
    execution.rare_of_run.edit().interrupted_due = next.interrupted_due;
  }
  if (!next.ends_waits) return;
  ++execution.wait.epoch;
  execution.wait.wake_pending = false;
}

}  // namespace

void take_over_record(Execution& execution, StepCommit& commit) {
  Transition& next = commit.next;
  Record& record = execution.record;
  const bool is_grant = commit.kind == StepCommit::Kind::kGrant;
  PV2_ASSERT(!commit.is_only_locks() || is_grant == next.holds_locks,
             "a record of locks alone holds them exactly if it is a grant");
  const bool step_is_over = next.visits != record.visits || next.step != record.step;
  const bool had_interrupted = record.interrupted() != nullptr;
  const std::uint32_t ran_step = commit.is_undo() || is_grant ? execution.turn_step() : record.step;
  commit.was_parked = record.parked;
  execution.wait.ahead_of_record = !commit.needs_record;
  if (commit.needs_record) {
    if (next.undo == UndoChange::kPush && record.undo.empty()) {
      record.undo.reserve(execution.type->steps.size());  // once
    }
    record.assign(next, ran_step, commit.sequence);
    if (had_interrupted && ends_undo(execution, next)) record.set_interrupted(nullptr);
  } else {
    record.assign_wait(next);
  }
  if (step_is_over) execution.started = false;
  const bool has_succeeded = record.state == ProcedureState::kSuccess;
  if (has_succeeded && execution.children().beyond != 0) stop_counting_below(execution);
  if (commit.was_parked != record.parked) note_parked(execution);
  if (const bool has_interrupted = record.interrupted() != nullptr;
      has_interrupted != had_interrupted) {
    std::uint32_t& heads = execution.root()->domain.rare.edit().heads_that_say_it;
    has_interrupted ? ++heads : --heads;
  }
  if (!commit.is_only_locks()) apply_to_run(execution, next);
}

namespace {

// Whether the record is of a step that went forward to the next one, and brings nothing with it.
bool is_plain(const StepCommit& commit) {
  const Transition& next = commit.next;
  const bool is_next_step = commit.kind == StepCommit::Kind::kStep && commit.needs_record &&
                            next.state == ProcedureState::kRunnable && next.ends_waits &&
                            next.holds_locks && !next.requeue && !next.parked;
  return is_next_step && next.order == OrderEffect::kNone && !next.is_retried() &&
         next.interrupted() == nullptr && !commit.rare.is_made();
}

// Whether the procedure is a root without members, and nobody has to do with it.
bool is_alone(const Execution& execution) {
  const Domain& tree = execution.domain;
  return execution.is_root() && execution.first_child() == nullptr && !execution.has_turn() &&
         execution.inbox == nullptr && execution.work() == nullptr &&
         execution.record.interrupted() == nullptr && !execution.record.parked &&
         !execution.wait.is_reported && !execution.granted_by_poll() &&
         execution.no_return_mark == NoReturn::kNone && tree.state == DomainState::kForward &&
         tree.failing() == nullptr && tree.works() == nullptr && !tree.makes_way() &&
         !tree.abort_accepted && !tree.deadlock_victim;
}

}  // namespace

bool only_goes_on(const EngineCore& core, const EngineCore::Share& /*share*/,
                  const StepCommit& commit) {
  return commit.status.ok() && is_plain(commit) && is_alone(*commit.execution) &&
         !core.is_halted.load(std::memory_order_relaxed);
}

}  // namespace pv2
