// SPDX-License-Identifier: Apache-2.0
//
// From the user's answer to the record. Read run() first; decide() is the one place where an
// Outcome becomes a state.

#include "step_run.h"

#include <pv2/scheduler/lock_upgrade.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "admission.h"
#include "check_limits.h"
#include "guard.h"
#include "offloads.h"
#include "procedure_rows.h"
#include "row_bindings.h"
#include "row_keys.h"

namespace pv2 {
namespace {

// What a later record of the same procedure may need beyond this one, whose fields it repeats: the
// error of its failure, and that which it is parked with or why its undo is tried again; who was in
// the middle of a step when its tree failed, two numbers per range; an entry of the undo list and
// one of the history, flags and times, and the audit entry of an order with its copy. Each string
// with its framing; all numbers of a row together have less than 256 bytes.
constexpr std::size_t kErrorField = limits::kErrorBytes + sizeof("...") + 16;
constexpr std::size_t kNumbers = 256;
constexpr std::size_t kAuditRow = limits::kWhoBytes + limits::kWhyBytes + kNumbers;
constexpr std::size_t kInterrupted = InterruptedMembers::kRangesMax * 2 * 10 + 4;
static_assert(limits::kLaterRecordBytes >=
                  2 * kErrorField + kInterrupted + kNumbers + 2 * kAuditRow,
              "the record of an order fits behind every record of a step");
// An abort, or an order that becomes one, is a record of its own.
static_assert(limits::kBatchBytesMin >= 3 * kAuditRow + kNumbers,
              "an abort with its audit entry and the copy fits every store");
static_assert(limits::kBatchBytesMin >= 4 * limits::kLaterRecordBytes,
              "every store leaves room for a record beside what is kept free");
static_assert(limits::kBatchOperationsMin >= 4, "a lost root is a header, a state, two audit rows");
// How often a step asks for room for its children: a bit more than ten minutes with the defaults.
constexpr std::uint32_t kRoomAttempts = 10;

// Whether the host is told that a step has failed so often: 10, 20, 40, 80 ... times. What gets
// better by itself has usually done so before, and what does not is told ever more rarely.
bool is_told_of(std::uint32_t attempt) {
  constexpr std::uint32_t kFirst = 10;
  return attempt % kFirst == 0 && std::has_single_bit(attempt / kFirst);
}

// Whether the wall clock has jumped between the two: more than a clock that is kept in step is off.
bool differs_much(WallTime one, WallTime other) {
  constexpr Duration kMuch = std::chrono::seconds(2);
  return one < other ? later(one, kMuch) < other : later(other, kMuch) < one;
}

}  // namespace

Status bounded(Status error) {
  if (error.message().size() <= limits::kErrorBytes) return error;
  return Status(error.code(), shortened(error.message(), limits::kErrorBytes));
}

Duration backoff_delay(const RetryPolicy& policy, std::uint32_t attempt, Random& random) {
  Duration delay = std::min(policy.base, policy.cap);
  if (delay <= Duration::zero()) return Duration::zero();  // doubled it stays so
  for (std::uint32_t i = 1; i < attempt && delay < policy.cap; ++i) {
    delay = delay <= policy.cap / 2 ? delay * 2 : policy.cap;
  }
  // In two parts, as the product of both numbers may be too large.
  const Duration spread =
      delay / 100 * policy.jitter_percent + delay % 100 * policy.jitter_percent / 100;
  if (spread == Duration::zero()) return delay;
  const Duration extra(
      static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(spread.count()) + 1)));
  return delay + std::min(extra, Duration::max() - delay);
}

Status describe_new(Procedure& object, Execution& execution, std::string& scratch) {
  const ProcedureType& type = *execution.type;
  Status status = guarded([&] { return "fields(), locks() or priority() of " + type.name; },
                          [&] {
                            scratch.clear();
                            type.encode(object, FieldSelection::kArguments, scratch);
                            execution.arguments = scratch;
                            scratch.clear();
                            type.encode(object, FieldSelection::kState, scratch);
                            execution.record.image = scratch;
                            execution.locks = object.locks();
                            execution.priority = object.priority();
                          });
  return status.ok() ? check_locks(type.name, execution.locks) : status;
}

Result<std::unique_ptr<Procedure>> object_of(const Execution& execution) {
  const ProcedureType& type = *execution.type;
  std::unique_ptr<Procedure> object;
  Status made =
      guarded([&] { return "making a " + type.name + " from its record"; },
              [&]() -> Status {
                object = type.create();
                Status read = type.decode(*object, FieldSelection::kArguments, execution.arguments);
                if (read.ok())
                  read = type.decode(*object, FieldSelection::kState, execution.record.image);
                return read;
              });
  if (!made.ok()) return made;
  return object;
}

StepRun::StepRun(EngineCore& core, Execution& execution, StepCommit& commit, Random& random,
                 const std::shared_ptr<WakeTarget>& wake_target)
    : core_(core),
      execution_(execution),
      commit_(commit),
      random_(random),
      wake_target_(wake_target),
      now_(core.clock.wall_now()),
      step_(execution.turn.step != 0 ? execution.turn.step : execution.record.step),
      undo_(execution.turn.step != 0) {
  commit_.execution = &execution;
  commit_.kind = undo_ ? StepCommit::Kind::kUndo : StepCommit::Kind::kStep;
  commit_.next.begin(execution.record, now_);
  commit_.next.undo_is_unfinished = undo_;
  commit_.next.holds_locks = true;  // the scheduler hands out only what holds its locks
}

StepRun::~StepRun() = default;

bool StepRun::run() {
  if (!execution_.object && !make_object()) {
    if (error_.code() == StatusCode::kCorruption) return false;
    cannot_make_object();
    encode_record();
    return true;
  }
  execution_.object_failures = 0;
  execution_.started = true;
  decide(call_user_code());
  if (!commit_.needs_record) return true;
  encode_record();
  StoreLimits limits = core_.store.limits();
  limits.batch_bytes -= std::min(limits.batch_bytes / 4, limits::kLaterRecordBytes);
  if (!fits(limits, commit_.batch)) {
    Status error(StatusCode::kInvalidArgument,
                 "step " + step_name() + " of procedure " + std::to_string(execution_.id.value) +
                     " writes " + std::to_string(commit_.batch.operations()) + " rows, " +
                     std::to_string(commit_.batch.bytes()) + " bytes; " + core_.store.name() +
                     " takes " + std::to_string(limits.batch_operations) + " rows, " +
                     std::to_string(limits.batch_bytes) + " bytes in one batch");
    abandon_children();
    undo_ ? park(std::move(error)) : fail(std::move(error));
    encode_record();
    PV2_ASSERT(fits(core_.store.limits(), commit_.batch),
               "the record of a failure fits what the record before it left free");
  }
  return true;
}

bool StepRun::make_object() {
  auto object = object_of(execution_);
  error_ = object.status();
  if (object.ok()) execution_.object = *std::move(object);
  return error_.ok();
}

Outcome StepRun::call_user_code() {
  PV2_ASSERT(execution_.object != nullptr, "a step runs on an object");
  PV2_ASSERT(step_ != 0, "only a step runs");
  StepContext context(*this);
  auto outcome = guarded([&] { return "step " + step_name() + " of " + execution_.type->name; },
                         [&] {
                           return undo_ ? execution_.object->rollback(context)
                                        : execution_.object->execute(context);
                         });
  if (outcome.ok()) return *std::move(outcome);
  // A forward step that throws is a defect and fails for good; an undo has to end, so it is tried
  // again.
  return {.kind = undo_ ? Outcome::Kind::kRetry : Outcome::Kind::kFail, .error = outcome.status()};
}

void StepRun::decide(Outcome outcome) {
  if (execution_.work) stop_work_of_attempt(outcome.kind);
  if (!is_known(outcome.kind)) {
    Status error(StatusCode::kInternal,
                 "step " + step_name() + " answered an Outcome of kind " +
                     std::to_string(static_cast<unsigned>(outcome.kind)) +
                     ", which does not exist; answer next(), done(), wait(), retry() or fail()");
    commit_.next.history =
        HistoryEntry{step_, commit_.next.attempt, Outcome::Kind::kFail, now_, undo_};
    return undo_ ? park(std::move(error)) : fail(std::move(error));
  }
  commit_.next.history = HistoryEntry{step_, commit_.next.attempt, outcome.kind, now_, undo_};
  if (!refused_.ok()) return undo_ ? park(refused_) : fail(refused_);
  undo_ ? decide_undo(outcome) : decide_forward(outcome);
}

void StepRun::decide_forward(Outcome& outcome) {
  using Kind = Outcome::Kind;
  if (outcome.kind == Kind::kWait && !spawned_.empty()) {
    return fail(Status(
        StatusCode::kInternal,
        "step " + step_name() + " spawned children but answered wait(); next() waits for them"));
  }
  if (outcome.kind == Kind::kWait && !submitted_.empty()) {
    return fail(Status(StatusCode::kInternal,
                       "step " + step_name() +
                           " submitted a procedure but answered wait(): it would submit it again "
                           "when it goes on; submit it in the run that ends the step"));
  }
  switch (outcome.kind) {
    case Kind::kNext:
      if (execution_.type->find_step(outcome.next_step) == nullptr) {
        return fail(Status(StatusCode::kInternal, "step " + step_name() + " answered next(" +
                                                      std::to_string(outcome.next_step) +
                                                      "), which is not in kSteps of " +
                                                      execution_.type->name));
      }
      return advance_to(outcome.next_step);
    case Kind::kAgain:
      commit_.next.requeue = true;
      return advance_to(step_);
    case Kind::kDone:
      if (outcome.result.size() > record_bytes_max(core_.store.limits())) {
        return fail(too_large("the result", outcome.result.size()));
      }
      commit_.next.result = std::move(outcome.result);
      return advance_to(0);
    case Kind::kWait:
      return wait_for(outcome);
    case Kind::kRetry:
      return back_off(outcome);
    case Kind::kFail:
      return fail(std::move(outcome.error));
    case Kind::kUndone:
      return fail(Status(StatusCode::kInternal,
                         "step " + step_name() + " answered undone() but is not being undone"));
    case Kind::kRetriedNow:
    case Kind::kSkipped:
    case Kind::kSentBack:
    case Kind::kBypassed:
      return fail(Status(StatusCode::kInternal,
                         "step " + step_name() + " answered what only an operator can order"));
  }
}

// The step is done. Its children, if any, come before whatever follows.
void StepRun::advance_to(std::uint32_t step) {
  if (!encode_image() || !adopt_children() || !adopt_roots()) return cannot_advance();
  Transition& next = commit_.next;
  next.step = step;
  next.attempt = 1;
  next.unsure = false;
  ++next.visits;
  PV2_ASSERT(execution_.type->find_step(step_) != nullptr, "a step that ran is one of its type");
  PV2_ASSERT(!undo_, "an undo advances to nothing");
  const StepKind kind = execution_.type->find_step(step_)->kind;
  if (kind == StepKind::kUndoable && !execution_.record.no_return) {
    if (execution_.record.undo.size() >= limits::kUndoEntries) {
      abandon_children();
      return fail(Status(StatusCode::kInvalidArgument,
                         execution_.type->name + " has " + std::to_string(limits::kUndoEntries) +
                             " steps to undo and may not add another"));
    }
    next.undo = UndoChange::kPush;
  } else if (kind == StepKind::kPointOfNoReturn && step != step_) {
    next.undo = UndoChange::kClear;
    next.no_return = true;
  }
  const bool waits = !commit_.children.empty();
  if (step == 0 && !waits) {
    become(ProcedureState::kSuccess);
    release_object();
    return;
  }
  become(waits ? ProcedureState::kWaiting : ProcedureState::kRunnable);
  if (waits) execution_.object.reset();
  execution_.slots.clear();  // on this thread, because the values in them are the user's
}

void StepRun::wait_for(const Outcome& outcome) {
  Transition& next = commit_.next;
  const bool wants_signals = inbox_use_ && !inbox_use_->wanted.empty();
  if (execution_.slots.empty() && !wants_signals && !outcome.timeout) {
    Status error(StatusCode::kInternal,
                 "step " + step_name() + " answered wait() but awaits nothing and has no timeout");
    return undo_ ? park(std::move(error)) : fail(std::move(error));
  }
  next.ends_waits = false;
  next.awaits = !execution_.slots.empty() || wants_signals;
  if (wants_signals) {
    commit_.inbox_use = std::make_unique<InboxUse>();
    commit_.inbox_use->wanted = inbox_use_->wanted;
  }
  bool new_deadline = false;
  if (outcome.timeout) {
    // The deadline counts from the first wait of this visit: being woken does not move it.
    const bool waited_before =
        execution_.record.deadline && !execution_.wait.timed_out && !execution_.record.backs_off();
    waited_before ? core_.go_on_waiting(execution_, next)
                  : core_.begin_wait(*outcome.timeout, next);
    // After a jump of the wall clock the deadline in the record is wrong, and a restart would
    // believe it.
    new_deadline = !waited_before || differs_much(*next.deadline, *execution_.record.deadline);
  }
  if (!encode_image()) return undo_ ? park(error_) : fail(error_);
  if (!undo_) become(outcome.timeout ? ProcedureState::kWaitingTimeout : ProcedureState::kRunnable);
  // Locks that a record says are held may only be given back by another record: a later holder's
  // would contradict it.
  const bool gives_locks_back = execution_.record.holds_locks && !next.holds_locks;
  // A restart would sit out the deadline of a record that does not say so.
  const bool begins_to_await = outcome.timeout && next.awaits && !execution_.record.awaits;
  // Its record says that it backs off, until when and why; a restart would believe that.
  const bool ends_back_off = !undo_ && execution_.record.state == ProcedureState::kWaitingTimeout &&
                             execution_.record.backs_off() && !outcome.timeout;
  commit_.needs_record = new_deadline || begins_to_await || gives_locks_back || ends_back_off ||
                         next.image != execution_.record.image.view() || !rows_.empty();
  if (!commit_.needs_record) {
    if (next.deadline) {  // as recorded
      next.deadline = execution_.record.deadline;
      next.patience = execution_.record.patience;
    }
    next.history.reset();  // the listing shows what is durable
  } else if (undo_) {
    next.undo = UndoChange::kPush;  // its turn is not over
  }
  execution_.object.reset();  // a wait may be long: its fields are kept, as over a crash
}

void StepRun::back_off(const Outcome& outcome) {
  Transition& next = commit_.next;
  forget_effects();
  next.unsure = next.unsure || outcome.unsure;
  next.error = bounded(outcome.error.ok() ? Status(StatusCode::kUnavailable,
                                                   "step " + step_name() + " asked for a retry")
                                          : outcome.error);
  const std::uint32_t most = undo_ ? 0 : max_attempts();
  if (most != 0 && next.attempt >= most) {
    return park_forward(std::to_string(next.attempt) +
                        (next.attempt == 1 ? " attempt" : " attempts") + " at step " + step_name() +
                        (next.unsure ? ", of which one may have had its effect" : ""));
  }
  if (is_told_of(next.attempt)) next.retried = next.error;
  sleep_before(next.attempt + 1, next.attempt);
}

// Nothing of the step has run, and its record is sound: a constructor, or fields(), threw. What it
// lacked may be there later, so no attempt at the step is used up; but it does not go on for ever.
void StepRun::cannot_make_object() {
  PV2_ASSERT(!execution_.object && !error_.ok(), "there is no object, and a reason");
  PV2_ASSERT(spawned_.empty() && submitted_.empty() && rows_.empty(), "no step has run");
  Transition& next = commit_.next;
  next.history = HistoryEntry{step_, next.attempt, Outcome::Kind::kRetry, now_, undo_};
  next.error = bounded(error_);
  const std::uint32_t failures = ++execution_.object_failures;
  if (failures >= core_.options.retry.undo_attempts) {
    execution_.object_failures = 0;  // whoever has it tried again gives it as many
    const std::string count =
        std::to_string(failures) + (failures == 1 ? " attempt" : " attempts") + " to begin it";
    undo_ ? park(error_.with_context(count)) : park_forward(count + ", at step " + step_name());
    return;
  }
  if (is_told_of(failures)) next.retried = next.error;
  sleep_before(next.attempt, failures);
  if (!undo_) return;
  next.state = ProcedureState::kFailed;
  next.undo = UndoChange::kPush;  // its turn is not over
  next.error = Status();          // the record keeps the error that the tree failed with
}

// Not through a fault of the step: what it said is forgotten, and it runs again.
void StepRun::cannot_advance() {
  const bool not_now = error_.code() == StatusCode::kUnavailable;
  const bool unread = error_.code() == StatusCode::kIoError;
  // Others may end and leave room; but if all that are live wait for room, some have to give up.
  const bool crowded = !has_room_ && may_find_room_ && execution_.record.attempt < kRoomAttempts;
  if (!not_now && !unread && !crowded) return fail(error_);
  Transition& next = commit_.next;
  next.result.clear();
  next.requeue = false;
  if (next.history) next.history->outcome = Outcome::Kind::kRetry;
  // A disk that cannot be read may stay so: that is counted, told of, and in the end parked, as if
  // the step had answered retry().
  if (unread || crowded) return back_off({.kind = Outcome::Kind::kRetry, .error = error_});
  // What it asks of the engine cannot be had just now: no attempt is used up. It may be had before
  // the back-off ends, and then the step is woken.
  forget_effects();
  next.error = bounded(error_);
  next.ends_waits = false;
  sleep_before(next.attempt, next.attempt);
}

void StepRun::sleep_before(std::uint32_t attempt, std::uint32_t failures) {
  Transition& next = commit_.next;
  core_.begin_wait(backoff_delay(core_.options.retry, failures, random_), next);
  next.attempt = attempt;
  if (!undo_) become(ProcedureState::kWaitingTimeout);
  release_object();
}

// How many attempts the step has; 0: any number.
std::uint32_t StepRun::max_attempts() const {
  const StepInfo* const info = execution_.type->find_step(step_);
  if (info != nullptr && info->max_attempts != 0) return info->max_attempts;
  if (execution_.type->max_attempts != 0) return execution_.type->max_attempts;
  return core_.options.retry.max_attempts;
}

// The attempts are used up: it stays where it is, with its locks, until an operator acts. Whatever
// else there is in its tree goes on.
void StepRun::park_forward(const std::string& after) {
  Transition& next = commit_.next;
  become(ProcedureState::kRunnable);
  next.parked = true;
  next.holds_locks = execution_.locks.scope() != LockScope::kVisit || has_work();
  next.deadline.reset();
  next.error = bounded(next.error.with_context(after));
  release_object();
}

void StepRun::fail(Status error) {
  Transition& next = commit_.next;
  forget_effects();
  next.error = bounded(
      error.ok() ? Status(StatusCode::kInternal, "step " + step_name() + " failed without an error")
                 : std::move(error));
  next.attempt = 1;
  next.step = step_;  // which one it was: an operator may have it tried again
  next.requeue = false;
  next.visits = execution_.record.visits;
  next.result.clear();
  next.deadline.reset();
  next.no_return = execution_.record.no_return;
  const StepInfo* const info = execution_.type->find_step(step_);
  const bool undoable =
      info != nullptr && info->kind == StepKind::kUndoable && !execution_.record.no_return;
  next.undo = undoable ? UndoChange::kPush : UndoChange::kKeep;
  next.ends_waits = true;
  commit_.needs_record = true;
  if (next.history) next.history->outcome = Outcome::Kind::kFail;
  become(ProcedureState::kFailed);
  release_object();
}

void StepRun::decide_undo(Outcome& outcome) {
  Transition& next = commit_.next;
  next.state = ProcedureState::kFailed;
  if (!spawned_.empty()) {
    return park(Status(StatusCode::kNotSupported,
                       "the undoing of step " + step_name() + " spawned children"));
  }
  if (!submitted_.empty()) {
    return park(Status(StatusCode::kNotSupported,
                       "the undoing of step " + step_name() + " submitted a procedure"));
  }
  using Kind = Outcome::Kind;
  switch (outcome.kind) {
    case Kind::kUndone: {
      PV2_ASSERT(execution_.turn.left != 0, "a turn that is over was left");
      PV2_ASSERT(!execution_.turn.ends_domain || execution_.turn.leads,
                 "the last to be undone is the head");
      if (!encode_image()) return park(error_);
      next.undo = UndoChange::kPop;
      next.attempt = 1;
      next.unsure = false;
      next.step = 0;
      if (execution_.turn.left > 1) break;
      next.state = ProcedureState::kRolledBack;  // that was its last one
      // The head of what is undone goes last, when nothing else is left.
      next.holds_locks = execution_.turn.leads && !execution_.turn.ends_domain;
      if (next.holds_locks) next.state = ProcedureState::kFailed;
      if (execution_.turn.ends_domain) {
        next.error = execution_.domain.cause;
        next.bypassed = execution_.record.sent_back;
        next.reported = !execution_.is_root();
      }
      break;
    }
    case Kind::kWait:
      return wait_for(outcome);
    case Kind::kRetry:
      if (next.attempt >= core_.options.retry.undo_attempts) {
        return park(outcome.error.with_context(std::to_string(next.attempt) +
                                               " attempts to undo step " + step_name()));
      }
      back_off(outcome);
      next.undo = UndoChange::kPush;  // its turn is not over
      // The record keeps the error that the tree failed with, beside this one.
      next.undo_error = std::exchange(next.error, Status());
      return;
    case Kind::kFail:
      return park(std::move(outcome.error));
    case Kind::kNext:
    case Kind::kAgain:
    case Kind::kDone:
    case Kind::kRetriedNow:
    case Kind::kSkipped:
    case Kind::kSentBack:
    case Kind::kBypassed:
      return park(Status(StatusCode::kInternal,
                         "the undoing of step " + step_name() +
                             " answered next(), again() or done(); undone() was meant?"));
  }
  release_object();
}

void StepRun::park(Status error) {
  Transition& next = commit_.next;
  forget_effects();
  // Whatever was decided before: its record may have been the last one, and too large.
  next.state = ProcedureState::kFailed;
  next.step = execution_.record.step;
  next.attempt = execution_.record.attempt;
  next.unsure = execution_.record.unsure;
  next.reported = next.bypassed = false;
  next.parked = true;
  next.undo = UndoChange::kPush;  // its turn is not over
  next.deadline.reset();
  next.ends_waits = true;
  next.holds_locks = execution_.locks.scope() != LockScope::kVisit || has_work();
  next.error = bounded(
      error.ok() ? Status(StatusCode::kInternal, "the undoing of step " + step_name() + " failed")
                 : error.with_context("cannot undo step " + step_name()));
  const bool retried = next.history && next.history->outcome == Outcome::Kind::kRetry;
  if (next.history && !retried) next.history->outcome = Outcome::Kind::kFail;
  commit_.needs_record = true;
  release_object();
}

bool StepRun::may_write_row(std::string_view row) {
  const RowBinding* const binding = binding_of(core_.options.row_bindings, row);
  if (binding == nullptr || holds_exclusively(core_, execution_, binding->key)) return true;
  if (refused_.ok()) {
    refused_ = Status(StatusCode::kFailedPrecondition,
                      "step " + step_name() + " changes a row with the prefix '" + binding->prefix +
                          "', which is bound to " + to_string(binding->key) + ", but procedure " +
                          std::to_string(execution_.id.value) +
                          " does not hold that exclusively; add it to locks()");
  }
  return false;
}

// What the step has written so far is in memory; so it is told at the first row too many.
bool StepRun::row_fits(std::string_view row, std::string_view value) {
  const StoreLimits limits = core_.store.limits();
  const std::size_t bytes_max = record_bytes_max(limits);
  const bool together = value.size() <= bytes_max && row.size() <= limits::kRowKeyBytes &&
                        rows_.bytes() + row.size() + value.size() <= bytes_max &&
                        rows_.operations() < limits.batch_operations;
  if (together) return true;
  if (!refused_.ok()) return false;
  if (row.size() > limits::kRowKeyBytes) {
    refused_ = check_bytes("step " + step_name() + ": the key of the row '" + shortened(row) + "'",
                           row.size(), limits::kRowKeyBytes);
    return false;
  }
  refused_ = Status(StatusCode::kInvalidArgument,
                    "step " + step_name() + " of procedure " + std::to_string(execution_.id.value) +
                        " writes " + std::to_string(rows_.operations() + 1) + " rows, " +
                        std::to_string(rows_.bytes() + row.size() + value.size()) + " bytes; " +
                        core_.store.name() + " takes " + std::to_string(limits.batch_operations) +
                        " rows, " + std::to_string(bytes_max) + " bytes in one batch");
  rows_.clear();  // the step may go on for long
  return false;
}

Status StepRun::too_large(std::string_view what, std::size_t bytes) const {
  return Status(StatusCode::kInvalidArgument,
                std::string(what) + " of a " + execution_.type->name + " at step " + step_name() +
                    " has " + std::to_string(bytes) + " bytes; " + core_.store.name() + " takes " +
                    std::to_string(record_bytes_max(core_.store.limits())) + " in one batch");
}

// A failed attempt leaves no trace but its record.
void StepRun::forget_effects() {
  abandon_children();
  commit_.inbox_use.reset();
  rows_.clear();  // with the attempt
  commit_.next.new_image = false;
  commit_.next.retried = Status();
}

void StepRun::become(ProcedureState state) {
  PV2_ASSERT(is_legal_transition(execution_.record.state, state),
             "a step moves along the table of states");
  Transition& next = commit_.next;
  next.state = state;
  next.holds_locks = state != ProcedureState::kSuccess && !gives_way(state);
}

// Locks that are held per step go back when it waits or somebody waits for them; otherwise the
// grant for the next step rides on this record. Those of a visit stay over its waits. Work that
// runs keeps all of them.
bool StepRun::gives_way(ProcedureState state) const {
  const LockScope scope = execution_.locks.scope();
  if (state == ProcedureState::kWaiting) return !covers_children_;
  if (scope == LockScope::kOperation || state == ProcedureState::kFailed || has_work()) {
    return false;
  }
  if (scope == LockScope::kVisit && !commit_.next.ends_waits) return false;
  const bool goes_on = state == ProcedureState::kRunnable && commit_.next.ends_waits;
  return !goes_on || core_.scheduler.contended(execution_);
}

PlaceOfWork StepRun::place_of_work(std::size_t index) const {
  return {step_, undo_, execution_.record.visits, index};
}

// Only the step itself adds to it: what has none now gets none before its record is published.
bool StepRun::has_work() const {
  if (execution_.work == nullptr) return false;
  StateLock lock(core_);
  return pv2::has_work(execution_);
}

// The value of what the attempt has offloaded is not taken any more if the attempt is given up, or
// its wait has timed out and it does not wait on. What went on without it may want its effect.
void StepRun::stop_work_of_attempt(Outcome::Kind answer) {
  const bool timed_out =
      execution_.wait.timed_out && execution_.record.last_outcome() == Outcome::Kind::kWait;
  if (answer == Outcome::Kind::kWait || (answer != Outcome::Kind::kRetry && !timed_out)) return;
  core_.offloads->stop(execution_, place_of_work(0));
}

bool StepRun::encode_image() {
  Transition& next = commit_.next;
  next.image.clear();
  error_ = guarded(
      [&] { return "fields() of " + execution_.type->name; },
      [&] { execution_.type->encode(*execution_.object, FieldSelection::kState, next.image); });
  if (error_.ok() && next.image.size() > record_bytes_max(core_.store.limits())) {
    error_ = too_large("fields()", next.image.size());
    next.image.clear();
  }
  next.new_image = error_.ok();
  if (error_.ok() && execution_.has_unknown_fields) {
    next.image = with_unknown_fields(execution_.type->schema, FieldSelection::kState,
                                     execution_.record.image.view(), next.image);
  }
  return error_.ok();
}

// Children get ids, locks and records here; they are visible to nobody until the record is durable.
bool StepRun::adopt_children() {
  std::size_t bytes = 0;  // of the fields of all of them
  const auto is_concurrent = [](const Spawned& spawned) {
    return spawned.options.undo_order == UndoOrder::kConcurrent;
  };
  // Decided once, for all of them and for the record: the work may end meanwhile.
  covers_children_ =
      execution_.locks.empty() || execution_.locks.scope() == LockScope::kOperation || has_work();
  // One alone is undone beside nobody.
  const auto concurrent = std::count_if(spawned_.begin(), spawned_.end(), is_concurrent);
  for (Spawned& spawned : spawned_) {
    auto child = std::make_unique<Execution>();
    child->type = spawned.type;
    child->owner = execution_.owner.view();
    child->submitted = now_;
    child->spawned_at = execution_.record.visits + 1;
    child->on_failure = spawned.options.on_failure;
    if (concurrent > 1) child->undo_order = spawned.options.undo_order;
    child->belong_to(&execution_);
    child->record.step = spawned.type->steps.front().number;
    error_ = describe_new(*spawned.object, *child, commit_.scratch);
    bytes += child->arguments.size() + child->record.image.size();
    if (error_.ok() && bytes > record_bytes_max(core_.store.limits())) {
      error_ = too_large("what is spawned by step", bytes);
    }
    if (!error_.ok()) {
      abandon_children();
      return false;
    }
    core_.count_for_its_type(*child);
    child->object = std::move(spawned.object);
    PV2_ASSERT(child->root == execution_.root && child->parent == &execution_,
               "a child is of the tree of who spawns it");
    commit_.children.push_back(child.release());
  }
  spawned_.clear();
  if (commit_.children.empty()) return true;
  {
    StateLock lock(core_);
    const std::size_t others = core_.state.live.size() + core_.state.spawning;
    has_room_ = others + commit_.children.size() <= core_.options.max_live_procedures;
    may_find_room_ = commit_.children.size() < core_.options.max_live_procedures;
    if (!has_room_) error_ = no_room(others);
    const auto first_id =
        error_.ok() ? core_.allocate_ids(commit_.children.size()) : Result<ProcedureId>(error_);
    error_ = first_id.status();
    if (error_.ok()) core_.state.spawning += commit_.reserved = commit_.children.size();
    PV2_ASSERT(!error_.ok() || commit_.reserved == commit_.children.size(),
               "children that will be live are counted from now on");
    for (std::size_t i = 0; error_.ok() && i < commit_.children.size(); ++i) {
      commit_.children[i]->id = ProcedureId{first_id->value + i};
    }
  }
  for (std::size_t i = 0; error_.ok() && i < commit_.children.size(); ++i) {
    error_ = check_no_upgrade(*commit_.children[i]);
  }
  if (!error_.ok()) {
    abandon_children();
    return false;
  }
  Transition first;
  for (Execution* child : commit_.children) {
    // What is given back by this very record covers nobody: they stand in line behind that.
    child->record.holds_locks =
        covers_children_ ? core_.scheduler.admit(*child) : child->locks.empty();
    first.begin(child->record, now_);
    first.state = ProcedureState::kRunnable;
    insert_rows(*child, first, commit_.batch);
  }
  return true;
}

Status StepRun::no_room(std::size_t others) const {
  return {StatusCode::kResourceExhausted,
          "step " + step_name() + " spawns " + std::to_string(commit_.children.size()) +
              " children, and " + std::to_string(others) + " procedures are live; the limit is " +
              std::to_string(core_.options.max_live_procedures) + " (max_live_procedures)"};
}

// Roots get ids, locks and records in this step's batch; they too are visible to nobody until it is
// durable. A nonce that is known submits nothing.
bool StepRun::adopt_roots() {
  for (Submitting& submitting : submitted_) {
    const auto refused = std::make_shared<Status>();  // shared with whoever answers, maybe later
    auto insert = core_.admission->reserve_for_step(
        submitting.type, std::move(submitting.object), std::move(submitting.options),
        {.reply = {[refused](const Result<Submitted>& result) { *refused = result.status(); },
                   ReplyOn::kHere},
         .step = &execution_});
    if (insert) {
      insert->batch.for_each(
          [&](RowOperation, Space space, std::string_view key, std::string_view value) {
            commit_.batch.insert(space, key, value);
          });
      commit_.roots.push_back(insert.release());
    } else if (!refused->ok()) {
      error_ = refused->with_context("step " + step_name() + " submits a " + submitting.type);
      abandon_children();
      return false;
    }
  }
  submitted_.clear();
  return true;
}

void StepRun::abandon_roots() {
  submitted_.clear();
  for (InsertCommit* insert : commit_.roots) {
    core_.admission->withdraw(std::unique_ptr<InsertCommit>(insert));
  }
  commit_.roots.clear();
}

void StepRun::abandon_children() {
  abandon_roots();
  spawned_.clear();
  commit_.batch.clear();
  if (commit_.reserved != 0) {
    StateLock lock(core_);
    PV2_ASSERT(core_.state.spawning >= commit_.reserved,
               "children were counted when they were made");
    core_.state.spawning -= std::exchange(commit_.reserved, 0);
  }
  for (Execution* child : commit_.children) {
    const std::unique_ptr<Execution> owned(child);
    if (child->id) {
      EntryList one;
      one.push_back(*child, Disposition::kComplete);
      core_.scheduler.settle(std::move(one));
    }
    child->object.reset();
  }
  commit_.children.clear();
}

// All that is in the batch beside the end counts: it is moved only where that fits.
void StepRun::date_end() {
  if (!execution_.is_root() || !is_finished(commit_.next.state)) {
    return core_.date_end(execution_, commit_.next);
  }
  // The key of a signal and its framing take less.
  constexpr std::size_t kBytesOfSignal = 64;
  constexpr std::size_t kOperationsOfEnd = 5;
  const std::size_t signals = inbox_use_ ? inbox_use_->given.size() : 0;
  const RowBatch& roots = commit_.batch;  // that it submits
  core_.date_end(execution_, commit_.next,
                 roots.bytes() + rows_.bytes() + signals * kBytesOfSignal);
  const std::size_t operations =
      roots.operations() + rows_.operations() + signals + kOperationsOfEnd;
  const bool fits_in = operations <= core_.store.limits().batch_operations;
  if (!fits_in && !execution_.record.in_results) commit_.next.in_results = false;
}

void StepRun::encode_record() {
  PV2_ASSERT(commit_.execution == &execution_, "a record is that of the procedure that ran");
  date_end();
  update_state(execution_, commit_.next, step_, commit_.batch);
  if (inbox_use_) consume_signals();
  rows_.for_each(
      [&](RowOperation operation, Space space, std::string_view key, std::string_view value) {
        operation == RowOperation::kDelete ? commit_.batch.erase(space, key)
                                           : commit_.batch.put(space, key, value);
      });
}

// Signals are consumed by the record that ends the visit (or the undo) that got them, and by no
// other.
void StepRun::consume_signals() {
  const bool is_over = commit_.next.visits != execution_.record.visits;
  if (!is_over && commit_.next.undo != UndoChange::kPop) return;
  for (const std::uint64_t number : inbox_use_->given) {
    commit_.batch.erase(Space::kProcedure, inbox_key(execution_.id, number));
  }
  commit_.inbox_use = std::make_unique<InboxUse>();
  commit_.inbox_use->given = inbox_use_->given;
}

// The user's object and the values it awaited end on a worker, where user code belongs.
void StepRun::release_object() {
  execution_.object.reset();
  execution_.slots.clear();
}

std::string StepRun::step_name() const {
  const StepInfo* const info = execution_.type->find_step(step_);
  return info != nullptr ? std::string(info->name) : std::to_string(step_);
}

}  // namespace pv2
