// SPDX-License-Identifier: Apache-2.0
//
// Read decide() first. The upper half of the file is about forward steps, the lower half about
// undos.

#include "steps/step_decision.h"

#include <fmt/format.h>

#include <utility>

#include "model/check_limits.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/procedure_registry.h"
#include "steps/offloads.h"
#include "steps/step_effects.h"
#include "steps/step_frame.h"
#include "steps/step_pause.h"
#include "steps/step_record.h"

namespace pv2 {
namespace {

// How often a step asks for room for its children: for about nine minutes with the defaults.
constexpr std::uint32_t kRoomAttempts = 10;

template <class... Parts>
Status defect(fmt::format_string<Parts...> format, Parts&&... parts) {
  return {StatusCode::kInternal, fmt::format(format, std::forward<Parts>(parts)...)};
}

}  // namespace

// A forward step that throws is a defect and fails for good. An undo has to end, so it is retried.
Outcome StepDecision::as_if_thrown(const Status& why) const {
  return {.kind = frame_.undo ? Outcome::Kind::kRetry : Outcome::Kind::kFail, .error = why};
}

void StepDecision::decide(Outcome outcome) {
  Transition& next = frame_.commit.next;
  if (!effects_.thrown.ok()) outcome = as_if_thrown(effects_.thrown);
  if (frame_.timed_out && frame_.execution.work() != nullptr) stop_work_of_wait(outcome.kind);
  const bool known = is_known(outcome.kind);
  const Outcome::Kind recorded = known ? outcome.kind : Outcome::Kind::kFail;
  next.history = HistoryEntry{frame_.step, next.attempt, recorded, frame_.now, frame_.undo};
  if (!known) {
    return record_.fail_or_park(
        defect("step {} answered an Outcome of kind {}, which does not exist; answer next(), "
               "done(), wait(), retry() or fail()",
               frame_.name(), static_cast<unsigned>(outcome.kind)));
  }
  if (!effects_.refused().ok()) return record_.fail_or_park(effects_.refused());
  frame_.undo ? decide_undo(outcome) : decide_forward(outcome);
}

// The wait has timed out. Tells its work to stop if the step does not wait again, because no step
// takes its values any more. A step that goes on for another reason may want the effect of its
// work, which then runs on. StepRecord tells the work of an attempt that is given up.
void StepDecision::stop_work_of_wait(Outcome::Kind answer) {
  if (answer == Outcome::Kind::kWait) return;
  frame_.core.offloads->stop(frame_.execution, frame_.place_of_work(0));
}

void StepDecision::decide_forward(Outcome& outcome) {
  using Kind = Outcome::Kind;
  switch (outcome.kind) {
    case Kind::kNext:
      return go_to(outcome.next_step);
    case Kind::kAgain:
      frame_.commit.next.requeue = true;
      return advance_to(frame_.step);
    case Kind::kDone:
      return finish(std::move(outcome.result));
    case Kind::kWait:
      if (Status refused = why_no_wait(outcome); !refused.ok()) {
        return record_.fail(std::move(refused));
      }
      return pause_.wait_for(outcome);
    case Kind::kRetry:
      return pause_.back_off(outcome.error, outcome.unsure);
    case Kind::kFail:
      return record_.fail(std::move(outcome.error));
    case Kind::kUndone:
      return record_.fail(
          defect("step {} answered undone() but is not being undone", frame_.name()));
    case Kind::kRetriedNow:
    case Kind::kSkipped:
    case Kind::kSentBack:
    case Kind::kBypassed:
      return record_.fail(
          defect("step {} answered what only an operator can order", frame_.name()));
  }
}

// A step that waits runs again from its start, and would spawn or submit a second time. One that
// waits for itself never runs again.
Status StepDecision::why_no_wait(const Outcome& outcome) const {
  if (effects_.children.size() != 0) {
    return defect("step {} spawned children but answered wait(); next() waits for them",
                  frame_.name());
  }
  if (effects_.roots.size() != 0) {
    return defect(
        "step {} submitted a procedure but answered wait(): it would submit it again "
        "when it goes on; submit it in the run that ends the step",
        frame_.name());
  }
  const ProcedureId self = frame_.execution.id;
  if (frame_.commit.producer == self && !outcome.timeout) {
    return {StatusCode::kInvalidArgument,
            fmt::format("step {} waits for what procedure {} completes (completed_by()), but that "
                        "is the procedure itself; name the one that completes it",
                        frame_.name(), self.value)};
  }
  return Status();
}

void StepDecision::go_to(std::uint32_t step) {
  const ProcedureType& type = *frame_.execution.type;
  if (type.find_step(step) == nullptr) {
    return record_.fail(defect("step {} answered next({}), which is not in kSteps of {}",
                               frame_.name(), step, type.name));
  }
  advance_to(step);
}

void StepDecision::finish(std::string result) {
  if (result.size() > record_bytes_max(frame_.core.store_limits)) {
    return record_.fail(frame_.too_large("the result", result.size()));
  }
  frame_.commit.next.set_result(std::move(result));
  advance_to(0);
}

// The step is done. The children that it spawned run before the next step or the end.
void StepDecision::advance_to(std::uint32_t step) {
  PV2_ASSERT(!frame_.undo, "an undo does not advance to another step");
  if (Status encoded = record_.encode_image(); !encoded.ok()) return cannot_advance(encoded);
  if (Status adopted = effects_.adopt_procedures(); !adopted.ok()) return cannot_advance(adopted);
  Transition& next = frame_.commit.next;
  next.step = step;
  next.attempt = 1;
  next.unsure = false;
  ++next.visits;
  if (Status noted = note_undo(step); !noted.ok()) return record_.fail(std::move(noted));
  const bool waits = frame_.commit.spawns();
  if (step == 0 && !waits) {
    record_.become(ProcedureState::kSuccess);
    record_.release_object();
    return;
  }
  record_.become(waits ? ProcedureState::kWaiting : ProcedureState::kRunnable);
  if (waits) frame_.execution.object.reset();
  frame_.execution.slots.clear();  // on this thread, because the values in the slots are the user's
}

// Notes what a finished step means for a rollback. Fails if the procedure has too many steps to
// undo.
Status StepDecision::note_undo(std::uint32_t step_after) {
  const StepInfo* const info = frame_.info();
  PV2_ASSERT(info != nullptr, "the type has the step that ran");
  const Execution& execution = frame_.execution;
  Transition& next = frame_.commit.next;
  const StepKind kind = info->kind;
  if (kind == StepKind::kUndoable && !execution.record.no_return) {
    if (execution.record.undo.size() >= limits::kUndoEntries) {
      return {StatusCode::kInvalidArgument,
              fmt::format("{} has {} steps to undo and may not add another", execution.type->name,
                          limits::kUndoEntries)};
    }
    next.undo = UndoChange::kPush;
  } else if (kind == StepKind::kPointOfNoReturn && step_after != frame_.step) {
    next.undo = UndoChange::kClear;
    next.no_return = true;
  }
  return Status();
}

// The step is done but cannot be recorded as done. If the obstacle may go away, its answer is
// forgotten and the step runs again; else it fails.
void StepDecision::cannot_advance(const Status& error) {
  const bool not_now = error.code() == StatusCode::kUnavailable;
  const bool unread = error.code() == StatusCode::kIoError;
  // Other procedures may end and leave room. But if all live procedures wait for room, some have to
  // fail.
  const bool crowded =
      effects_.children.may_find_room() && frame_.execution.record.attempt < kRoomAttempts;
  if (!not_now && !unread && !crowded) return record_.fail(error);
  Transition& next = frame_.commit.next;
  next.set_result({});
  next.requeue = false;
  next.interrupted_due = frame_.own_due;
  if (next.history) next.history->outcome = Outcome::Kind::kRetry;
  // A disk that cannot be read may stay unreadable, and a full engine may stay full. So these
  // attempts are counted and reported to the host, and use up the attempts of the step, as if it
  // had answered retry().
  if (unread || crowded) return pause_.back_off(error, false);
  pause_.back_off_unused(error);
}

void StepDecision::decide_undo(Outcome& outcome) {
  frame_.commit.next.state = ProcedureState::kFailed;
  if (Status refused = why_no_undo(); !refused.ok()) return record_.park(std::move(refused));
  using Kind = Outcome::Kind;
  switch (outcome.kind) {
    case Kind::kUndone:
      return undone();
    case Kind::kWait:
      return pause_.wait_for(outcome);
    case Kind::kRetry:
      return retry_undo(outcome);
    case Kind::kFail:
      return record_.park(std::move(outcome.error));
    case Kind::kNext:
    case Kind::kAgain:
    case Kind::kDone:
    case Kind::kRetriedNow:
    case Kind::kSkipped:
    case Kind::kSentBack:
    case Kind::kBypassed:
      return record_.park(
          defect("the undoing of step {} answered next(), again() or done(); undone() was meant?",
                 frame_.name()));
  }
}

Status StepDecision::why_no_undo() const {
  const char* const what = effects_.children.size() != 0 ? "spawned children"
                           : effects_.roots.size() != 0  ? "submitted a procedure"
                                                         : nullptr;
  if (what == nullptr) return Status();
  return {StatusCode::kNotSupported, fmt::format("the undoing of step {} {}", frame_.name(), what)};
}

void StepDecision::undone() {
  const Turn& turn = frame_.execution.turn();
  PV2_ASSERT(turn.left != 0, "a turn that ends was counted as left");
  PV2_ASSERT(!turn.ends_domain || turn.leads, "the turn that ends a domain is that of its head");
  if (Status encoded = record_.encode_image(); !encoded.ok()) {
    return record_.park(std::move(encoded));
  }
  Transition& next = frame_.commit.next;
  next.undo = UndoChange::kPop;
  next.attempt = 1;
  next.unsure = false;
  next.step = 0;
  next.holds_locks = keeps_locks_after(turn);
  if (turn.left == 1) end_turns();
  record_.release_object();
}

bool StepDecision::keeps_locks_after(const Turn& turn) const {
  if (turn.locks_after != LocksAfterTurn::kIfAtOnce) {
    return turn.locks_after == LocksAfterTurn::kKept;
  }
  return !frame_.core.scheduler.contended(frame_.execution);
}

// The last turn of this procedure is over: it is rolled back. Only the head of the domain keeps its
// state, and what it holds for the operation, until no member of the domain has anything left to
// undo.
void StepDecision::end_turns() {
  const Execution& execution = frame_.execution;
  Transition& next = frame_.commit.next;
  const bool stays = execution.turn().leads && !execution.turn().ends_domain;
  next.holds_locks = next.holds_locks && stays;
  next.state = stays ? ProcedureState::kFailed : ProcedureState::kRolledBack;
  if (!execution.turn().ends_domain) return;
  next.set_error(execution.domain.rare->cause);
  next.bypassed = execution.record.sent_back;
  next.reported = !execution.is_root();
}

void StepDecision::retry_undo(const Outcome& outcome) {
  Transition& next = frame_.commit.next;
  if (next.attempt >= frame_.core.options.retry.undo_attempts) {
    return record_.park(outcome.error.with_context(fmt::format("{} attempts to undo step {}",
                                                               next.attempt, frame_.name())),
                        outcome.unsure);
  }
  pause_.back_off(outcome.error, outcome.unsure);
  next.undo = UndoChange::kPush;  // the turn is not over
  // The record keeps the error that the tree failed with, in addition to this one.
  next.set_undo_error(next.error());
  next.set_error(Status());
}

}  // namespace pv2
