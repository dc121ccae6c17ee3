// SPDX-License-Identifier: Apache-2.0
//
// A wait writes a record only if a restart would go wrong without one, so most waits cost no disk
// access. A back-off always writes one, because its delay survives a restart.

#include "steps/step_pause.h"

#include <fmt/format.h>

#include <algorithm>
#include <typeinfo>
#include <utility>

#include "core/state_lock.h"
#include "model/check_limits.h"
#include "pv2/engine/event.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/procedure_registry.h"
#include "steps/backoff.h"
#include "steps/step_effects.h"
#include "steps/step_frame.h"
#include "steps/step_record.h"
#include "tree/members_at_work.h"

namespace pv2 {
namespace {

// Whether the wall clock has jumped between the two. Clocks that are kept in step differ by less.
bool differs_much(WallTime one, WallTime other) {
  constexpr Duration kMuch = std::chrono::seconds(2);
  return one < other ? later(one, kMuch) < other : later(other, kMuch) < one;
}

std::string attempts(std::uint32_t count) {
  return fmt::format("{} {}", count, count == 1 ? "attempt" : "attempts");
}

}  // namespace

void StepPause::wait_for(const Outcome& outcome) {
  Execution& execution = frame_.execution;
  Transition& next = frame_.commit.next;
  const bool wants_signals = effects_.wants_signals();
  if (!wants_signals && !outcome.timeout && nothing_can_wake()) {
    const bool has_all = std::all_of(execution.slots.begin(), execution.slots.end(),
                                     [](const AwaitSlot* slot) { return slot->ready(); });
    const char* const what = execution.slots.empty() ? "awaits nothing"
                             : has_all               ? "has got everything that it awaits"
                                                     : "awaits what nobody can complete any more";
    return record_.fail_or_park(Status(
        StatusCode::kInternal,
        fmt::format("step {} answered wait() but {} and has no timeout", frame_.name(), what)));
  }
  next.ends_waits = false;
  next.awaits = !execution.slots.empty() || wants_signals;
  if (wants_signals) {
    frame_.commit.rare.edit().inbox_use.emplace().wanted = effects_.inbox_use->wanted;
  }
  const bool new_deadline = outcome.timeout && set_deadline(*outcome.timeout);
  if (Status encoded = record_.encode_image(); !encoded.ok()) {
    return record_.fail_or_park(std::move(encoded));
  }
  if (!frame_.undo) {
    record_.become(outcome.timeout ? ProcedureState::kWaitingTimeout : ProcedureState::kRunnable);
  }
  frame_.commit.needs_record = wait_needs_record(outcome.timeout.has_value(), new_deadline);
  if (!frame_.commit.needs_record) {
    if (next.deadline) {  // keeps the recorded deadline
      next.deadline = execution.record.deadline;
      next.patience = execution.record.patience;
    }
    next.history.reset();  // a listing shows what is durable
  } else if (frame_.undo) {
    next.undo = UndoChange::kPush;  // the turn is not over
  }
  // A wait may be long; the next run decodes the fields, as after a crash.
  execution.object.reset();
}

// Whether no wake can come for what the step awaits. A value may arrive while the step runs. Then
// its wake may be on the way, or the procedure runs again because of it. Offloaded work leaves its
// value first, and wakes the procedure when it has ended; an executor that stops makes no such
// wake.
bool StepPause::nothing_can_wake() const {
  const Execution& execution = frame_.execution;
  const auto may_come = [](const AwaitSlot* slot) { return may_still_come(*slot); };
  if (std::any_of(execution.slots.begin(), execution.slots.end(), may_come)) return false;
  if (execution.slots.empty()) return true;
  const StateLock lock(frame_.core, Width::kNarrow);
  if (execution.wait.wake_pending) return false;
  if (has_work(execution)) {
    const OutstandingWork& work = *execution.work();
    if (work.wakes(execution.wait.epoch) || work.put_off_epoch == execution.wait.epoch)
      return false;
  }
  return frame_.core.unavailable().ok();
}

// Whether what this slot awaits has not come, and may. If nobody but the procedure knows the slot,
// its completion was dropped, or was never handed out: no call of it is under way either. An event
// knows its slots without sharing them.
bool StepPause::may_still_come(const AwaitSlot& slot) {
  switch (slot.source()) {
    case AwaitSlot::Source::kOffload:
      return !slot.ready();
    case AwaitSlot::Source::kPutOff:  // the end of other work wakes it
      return false;
    case AwaitSlot::Source::kCompletion:
    case AwaitSlot::Source::kNotBegun:
      break;
  }
  if (slot.has_woken()) return false;
  return slot.ready() || slot.is_shared() || slot.type() == typeid(EventSlot);
}

// Sets when the wait ends. Returns whether this differs from the deadline in the last record.
bool StepPause::set_deadline(Duration timeout) {
  const Record& last = frame_.execution.record;
  Transition& next = frame_.commit.next;
  // The deadline counts from the first wait of this visit: neither a wake nor a back-off of the
  // engine moves it.
  const bool goes_on = frame_.own_due != kNotDue && !frame_.timed_out;
  goes_on ? frame_.core.go_on_waiting(frame_.own_due, next) : frame_.core.begin_wait(timeout, next);
  // The last record has the deadline of a back-off; or, after a jump of the wall clock, a wrong
  // one. A restart would believe it.
  return !goes_on || last.backs_off() || differs_much(*next.deadline, *last.deadline);
}

bool StepPause::wait_needs_record(bool has_timeout, bool new_deadline) const {
  const Record& last = frame_.execution.record;
  const Transition& next = frame_.commit.next;
  // Locks that a record names are given back only with another record. Otherwise that record would
  // contradict the record of a later holder.
  const bool gives_locks_back = last.holds_locks && !next.holds_locks;
  // If no record says that the step awaits something, a restart waits until the deadline.
  const bool begins_to_await = has_timeout && next.awaits && !last.awaits;
  // The last record says until when the step waits, or backs off; a restart would repeat that.
  const bool says_a_time = frame_.undo ? last.deadline.has_value() && !last.awaits
                                       : last.state == ProcedureState::kWaitingTimeout;
  const bool drops_deadline = says_a_time && !has_timeout;
  return new_deadline || begins_to_await || gives_locks_back || drops_deadline ||
         next.image.view() != last.image.view() || !effects_.rows.empty();
}

void StepPause::back_off(const Status& error, bool unsure) {
  Transition& next = frame_.commit.next;
  record_.forget_effects();
  next.unsure = next.unsure || unsure;
  next.set_error(bounded(error.ok()
                             ? Status(StatusCode::kUnavailable,
                                      fmt::format("step {} asked for a retry", frame_.name()))
                             : error));
  const std::uint32_t most = frame_.undo ? 0 : max_attempts();
  if (most != 0 && next.attempt >= most) {
    return record_.give_up(
        fmt::format("{} at step {}{}", attempts(next.attempt), frame_.name(),
                    next.unsure ? ", of which one may have had its effect" : ""));
  }
  if (is_told_of(next.attempt)) next.set_retried(next.error());
  record_.sleep_before(next.attempt + 1, next.attempt);
}

void StepPause::back_off_unused(const Status& error) {
  Transition& next = frame_.commit.next;
  record_.forget_effects();
  next.set_error(bounded(error));
  next.ends_waits = false;
  record_.sleep_before(next.attempt, next.attempt);
}

void StepPause::back_off_without_object(const Status& error) {
  Execution& execution = frame_.execution;
  PV2_ASSERT(!execution.object && !error.ok(), "there is no object, and an error says why");
  PV2_ASSERT(effects_.children.size() == 0 && effects_.roots.size() == 0 && effects_.rows.empty(),
             "no step has run");
  Transition& next = frame_.commit.next;
  next.history =
      HistoryEntry{frame_.step, next.attempt, Outcome::Kind::kRetry, frame_.now, frame_.undo};
  next.set_error(bounded(error));
  next.interrupted_due = frame_.own_due;
  const std::uint32_t failures = ++execution.wait.without_object;
  if (failures >= frame_.core.options.retry.undo_attempts) {
    // A retry that an operator orders gets all these attempts again.
    execution.wait.without_object = 0;
    const std::string count = attempts(failures) + " to begin it";
    frame_.undo ? record_.park(error.with_context(count))
                : record_.give_up(fmt::format("{}, at step {}", count, frame_.name()));
    return;
  }
  if (is_told_of(failures)) next.set_retried(next.error());
  record_.sleep_before(next.attempt, failures);
  if (!frame_.undo) return;
  next.state = ProcedureState::kFailed;
  next.undo = UndoChange::kPush;  // the turn is not over
  next.set_error(Status());       // the record keeps the error that the tree failed with
}

// The step's limit of attempts; 0: no limit.
std::uint32_t StepPause::max_attempts() const {
  const StepInfo* const info = frame_.info();
  if (info != nullptr && info->max_attempts != 0) return info->max_attempts;
  if (frame_.execution.type->max_attempts != 0) return frame_.execution.type->max_attempts;
  return frame_.core.options.retry.max_attempts;
}

}  // namespace pv2
