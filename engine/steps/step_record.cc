// SPDX-License-Identifier: Apache-2.0
//
// fail() and park() may follow another verb, if the record of that verb turned out too large. So
// they set every field that the other verbs may have changed.

#include "steps/step_record.h"

#include <fmt/format.h>

#include <utility>

#include "model/check_limits.h"
#include "model/guard.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/procedure_registry.h"
#include "records/procedure_rows.h"
#include "records/row_keys.h"
#include "steps/backoff.h"
#include "steps/offloads.h"
#include "steps/step_effects.h"
#include "steps/step_frame.h"
#include "tree/members_at_work.h"

namespace pv2 {

void StepRecord::become(ProcedureState state) {
  PV2_ASSERT(is_legal_transition(frame_.execution.record.state, state),
             "a step moves along the table of states");
  Transition& next = frame_.commit.next;
  next.state = state;
  next.holds_locks = state != ProcedureState::kSuccess && !gives_locks_back(state);
}

// Locks of scope step are given back when the procedure waits, or when another procedure waits for
// them; otherwise this record contains the grant for the next step. Locks of scope visit are kept
// while the visit waits. A procedure with outstanding work keeps all its locks.
bool StepRecord::gives_locks_back(ProcedureState state) const {
  const LockScope scope = frame_.execution.locks().scope();
  if (state == ProcedureState::kWaiting) return !effects_.children.are_covered();
  if (scope == LockScope::kOperation || state == ProcedureState::kFailed || frame_.has_work()) {
    return false;
  }
  if (scope == LockScope::kVisit && !frame_.commit.next.ends_waits) return false;
  const bool goes_on = state == ProcedureState::kRunnable && frame_.commit.next.ends_waits;
  return !goes_on || frame_.core.scheduler.contended(frame_.execution);
}

void StepRecord::sleep_before(std::uint32_t attempt, std::uint32_t failures) {
  Transition& next = frame_.commit.next;
  const Duration delay = backoff_delay(frame_.core.options.retry, failures, frame_.random);
  frame_.core.begin_wait(delay, next);
  next.attempt = attempt;
  if (!frame_.undo) become(ProcedureState::kWaitingTimeout);
  give_up_run();
}

void StepRecord::fail(Status error) {
  const Record& last = frame_.execution.record;
  Transition& next = frame_.commit.next;
  forget_effects();
  if (error.ok()) {
    error = Status(StatusCode::kInternal,
                   fmt::format("step {} failed without an error", frame_.name()));
  }
  next.set_error(bounded(std::move(error)));
  next.attempt = 1;
  next.step = frame_.step;  // an operator may order a retry of this step
  next.unsure = frame_.unsure;
  next.requeue = false;
  next.visits = last.visits;
  next.set_result({});
  next.deadline.reset();
  next.no_return = last.no_return;
  const StepInfo* const info = frame_.info();
  const bool undoable = info != nullptr && info->kind == StepKind::kUndoable && !last.no_return;
  next.undo = undoable ? UndoChange::kPush : UndoChange::kKeep;
  next.ends_waits = true;
  frame_.commit.needs_record = true;
  if (next.history) next.history->outcome = Outcome::Kind::kFail;
  become(ProcedureState::kFailed);
  release_object();
}

void StepRecord::park(Status error, bool unsure) {
  const Record& last = frame_.execution.record;
  Transition& next = frame_.commit.next;
  forget_effects();
  next.state = ProcedureState::kFailed;
  next.step = last.step;
  next.attempt = last.attempt;
  next.unsure = frame_.unsure || unsure;
  next.reported = next.bypassed = false;
  next.parked = true;
  next.undo = UndoChange::kPush;  // the turn is not over
  next.deadline.reset();
  next.ends_waits = true;
  next.holds_locks = frame_.execution.locks().scope() != LockScope::kVisit || frame_.has_work();
  const std::string name = frame_.name();
  next.set_error(bounded(
      error.ok() ? Status(StatusCode::kInternal, fmt::format("the undoing of step {} failed", name))
                 : error.with_context("cannot undo step " + name)));
  const bool retried = next.history && next.history->outcome == Outcome::Kind::kRetry;
  if (next.history && !retried) next.history->outcome = Outcome::Kind::kFail;
  frame_.commit.needs_record = true;
  give_up_run();
}

void StepRecord::fail_or_park(Status error) {
  frame_.undo ? park(std::move(error)) : fail(std::move(error));
}

void StepRecord::give_up(const std::string& after) {
  Transition& next = frame_.commit.next;
  become(ProcedureState::kRunnable);
  next.parked = true;
  next.holds_locks = frame_.execution.locks().scope() != LockScope::kVisit || frame_.has_work();
  next.deadline.reset();
  next.set_error(bounded(next.error().with_context(after)));
  give_up_run();
}

void StepRecord::forget_effects() {
  effects_.abandon_procedures();
  frame_.commit.batch.clear();
  if (frame_.commit.rare.is_made()) frame_.commit.rare.edit().inbox_use.reset();
  effects_.rows.clear();
  frame_.commit.next.new_image = false;
  frame_.commit.next.set_retried(Status());
}

void StepRecord::give_up_run() {
  release_object();
  if (frame_.execution.work() == nullptr) return;
  frame_.core.offloads->stop(frame_.execution, frame_.place_of_work(0));
}

void StepRecord::release_object() {
  frame_.execution.object.reset();
  frame_.execution.slots.clear();
}

Status StepRecord::encode_image() {
  const Execution& execution = frame_.execution;
  Transition& next = frame_.commit.next;
  std::string& image = frame_.scratch;
  image.clear();
  Status status =
      guarded([&] { return "fields() of " + execution.type->name; },
              [&] { execution.type->encode(*execution.object, FieldSelection::kState, image); });
  if (status.ok() && image.size() > record_bytes_max(frame_.core.store_limits)) {
    status = frame_.too_large("fields()", image.size());
  }
  next.new_image = false;
  if (!status.ok()) return status;
  if (execution.has_unknown_fields) {
    image = with_unknown_fields(execution.type->schema, FieldSelection::kState,
                                execution.record.image.view(), image);
  }
  next.image = image;
  next.new_image = true;
  return status;
}

void StepRecord::write() {
  PV2_ASSERT(frame_.commit.execution == &frame_.execution,
             "a record belongs to the procedure that ran");
  const bool ends_root = frame_.execution.is_root() && is_finished(frame_.commit.next.state);
  ends_root ? date_end() : frame_.commit.next.clear_end();
  if (frame_.core.keeps_records || is_large()) {
    update_state(frame_.execution, frame_.commit.next, frame_.step, frame_.commit.batch);
  }
  if (effects_.inbox_use) consume_signals();
  if (!effects_.rows.empty()) effects_.rows.append_to(frame_.commit.batch);
}

// Whether the record might be too large for a batch. Then it is made even for a store that does not
// keep it, so that a step that fits there also fits on disk.
bool StepRecord::is_large() const {
  const Execution& execution = frame_.execution;
  const Transition& next = frame_.commit.next;
  const RowBatch& roots = frame_.commit.batch;
  const StoreLimits& limits = frame_.core.store_limits;
  const std::size_t image = next.new_image ? next.image.size() : execution.record.image.size();
  const std::size_t bytes = roots.bytes() + effects_.rows.bytes() + execution.arguments.size() +
                            image + next.result().size();
  return bytes > limits.batch_bytes / 4 ||
         roots.operations() + effects_.rows.operations() > limits.batch_operations / 2;
}

// The rows of a root that ends move to the results in the same batch, provided that one batch of
// the store takes them together with everything else that this batch will have.
void StepRecord::date_end() {
  const Execution& execution = frame_.execution;
  Transition& next = frame_.commit.next;
  // An upper bound of a signal's key with its framing.
  constexpr std::size_t kBytesOfSignal = 64;
  constexpr std::size_t kOperationsOfEnd = 5;
  const std::size_t signals = effects_.inbox_use ? effects_.inbox_use->given.size() : 0;
  const RowBatch& roots = frame_.commit.batch;  // so far it has only the rows of submitted roots
  const RowChanges& rows = effects_.rows;
  frame_.core.date_end(execution, next, roots.bytes() + rows.bytes() + signals * kBytesOfSignal);
  const std::size_t operations =
      roots.operations() + rows.operations() + signals + kOperationsOfEnd;
  const bool fits_in = operations <= frame_.core.store_limits.batch_operations;
  if (!fits_in && !execution.record.in_results) next.in_results = false;
}

// Signals are consumed only by the record that ends the visit, or the undo, in which the step got
// them.
void StepRecord::consume_signals() {
  const bool is_over = frame_.commit.next.visits != frame_.execution.record.visits;
  if (!is_over && frame_.commit.next.undo != UndoChange::kPop) return;
  const std::vector<std::uint64_t>& given = effects_.inbox_use->given;
  for (const std::uint64_t number : given) {
    frame_.commit.batch.erase(Space::kProcedure, inbox_key(frame_.execution.id, number));
  }
  frame_.commit.rare.edit().inbox_use.emplace().given = given;
}

}  // namespace pv2
