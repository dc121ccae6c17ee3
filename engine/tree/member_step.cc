// SPDX-License-Identifier: Apache-2.0
//
// The history and the locks in the record decide whether a restart assumes that a step was begun.

#include "tree/member_step.h"

#include <algorithm>
#include <optional>

#include "pv2/engine/procedure_registry.h"
#include "tree/domains.h"

namespace pv2 {
bool has_tried(const Execution& execution) {
  for (std::size_t i = execution.record.history.size(); i-- > 0;) {
    const HistoryEntry last = execution.record.history.at(i);
    if (is_order(last.outcome)) continue;
    const bool tried =
        last.outcome == Outcome::Kind::kWait || last.outcome == Outcome::Kind::kRetry;
    return tried && last.step == execution.record.step;
  }
  return execution.record.history.size() == History::kCapacity;
}

bool stands_at_undoable_step(const Execution& member) {
  if (member.record.step == 0 || member.type == nullptr || member.record.no_return) return false;
  if (member.record.state != ProcedureState::kRunnable &&
      member.record.state != ProcedureState::kWaitingTimeout) {
    return false;
  }
  if (!member.record.undo.empty() && member.record.undo.back().step == member.record.step)
    return false;
  const StepInfo* const info = member.type->find_step(member.record.step);
  return info != nullptr && info->kind == StepKind::kUndoable;
}

bool was_left_in_the_middle(const Execution& member) {
  return member.started && stands_at_undoable_step(member);
}

bool may_not_return(const Execution& member) {
  if (member.type == nullptr || member.record.no_return) return true;
  return std::any_of(member.type->steps.begin(), member.type->steps.end(),
                     [](const StepInfo& step) { return step.kind == StepKind::kPointOfNoReturn; });
}

std::optional<bool> recorded_interruption(Execution& member) {
  std::optional<bool> said;
  if (member.root()->domain.rare->heads_that_say_it == 0) return said;
  for (Execution* head = member.head(); head != nullptr; head = head->outer_domain()) {
    const InterruptedMembers* const interrupted = head->record.interrupted();
    if (interrupted != nullptr) said = said.value_or(true) && interrupted->contains(member.id);
  }
  return said;
}

bool is_known_not_begun(Execution& member) { return !recorded_interruption(member).value_or(true); }

// A procedure with a lock set begins no step before a record says that it holds its locks. If its
// last record does not say so, an attempt at the step may still have given them back, to wait or to
// back off; the history tells.
bool may_have_begun(const Execution& execution, bool held_locks) {
  if (held_locks || execution.locks().empty()) return true;
  return has_tried(execution);
}

std::uint32_t step_that_may_have_begun(Execution& member) {
  if (member.record.state == ProcedureState::kFailed) {
    const Execution* const failed = failing_domain(member);
    const bool planned = failed != nullptr && failed->domain.rare->rollback != nullptr;
    if (!planned || member.turn().stopped == nullptr) return 0;
    const bool recorded =
        !member.record.undo.empty() && member.record.undo.back().step == member.record.step;
    return recorded ? 0 : member.record.step;
  }
  if (!stands_at_undoable_step(member)) return 0;
  // While a member is in flight, `started` belongs to its worker.
  return member.phase == Phase::kInFlight || member.started ? member.record.step : 0;
}

std::uint32_t step_to_undo(const Execution& execution) {
  if (execution.turn_step() != 0) return execution.turn_step();
  const bool undoes =
      execution.record.state == ProcedureState::kFailed && execution.record.step == 0;
  return undoes && !execution.record.undo.empty() ? execution.record.undo.back().step : 0;
}

bool stands_before_no_return(const Execution& member) {
  if (member.has_turn() || member.type == nullptr) return false;
  const StepInfo* const info = member.type->find_step(member.record.step);
  return info != nullptr && info->kind == StepKind::kPointOfNoReturn;
}

// The history names the current step last if the step was retried, waited or repeated itself. An
// order may have come after that, or before the first attempt.
bool has_begun_no_return(const Execution& member) {
  if (!stands_before_no_return(member)) return false;
  if (member.phase == Phase::kInFlight || member.started) return true;
  const History& history = member.record.history;
  for (std::size_t i = history.size(); i-- > 0;) {
    const HistoryEntry last = history.at(i);
    if (!is_order(last.outcome)) return last.step == member.record.step;
  }
  return history.size() == History::kCapacity;
}

bool stands_beyond_return(Execution& member) {
  return member.record.no_return && member.is_undone_with_its_tree() && !is_over(member);
}

bool has_given_up(Execution& member) {
  return member.record.parked && member.record.state != ProcedureState::kFailed &&
         !member.is_quarantined() && failing_domain(member) == nullptr;
}

bool has_begun_undo(const Execution& member) {
  if (member.record.state != ProcedureState::kFailed || member.record.undo.empty()) return false;
  const History& history = member.record.history;
  for (std::size_t i = history.size(); i-- > 0;) {
    const HistoryEntry last = history.at(i);
    if (is_order(last.outcome) && last.outcome != Outcome::Kind::kSkipped) continue;
    const bool is_over =
        last.outcome == Outcome::Kind::kUndone || last.outcome == Outcome::Kind::kSkipped;
    return last.undo && !last.is_of_locks() && !is_over;
  }
  return history.size() == History::kCapacity;
}

bool is_half_done(const Execution& member) {
  if (has_begun_undo(member) || was_left_in_the_middle(member)) return true;
  const Record& record = member.record;
  if (record.state == ProcedureState::kFailed && record.step == 0) {
    // It has taken its locks for an undo, which the life before may have called.
    return record.holds_locks && !member.turn().is_ahead;
  }
  if (record.undo.empty() || record.undo.back().step != record.step) return false;
  const bool failed_in_it = record.state == ProcedureState::kFailed &&
                            record.failure() != nullptr && !record.failure()->error.ok();
  return failed_in_it || member.started;  // it repeats the step, whose undo is recorded once
}

bool has_failed_itself(const Execution& member) {
  if (member.record.state == ProcedureState::kFailed) return true;
  if (member.record.state == ProcedureState::kRolledBack) return true;
  return member.inbox && member.inbox->abort() != nullptr;
}

bool is_done_but_for_work(const Execution& member) {
  return member.phase == Phase::kWaiting && member.record.state == ProcedureState::kRunnable &&
         member.record.step == 0 && member.children().unfinished == 0;
}

Transition as_it_is(const EngineCore& core, const Execution& execution) {
  Transition same;
  same.begin(execution.record, core.clock.wall_now());
  same.set_result(std::string(execution.record.result()));
  core.go_on_waiting(execution, same);
  same.awaits = execution.record.awaits;  // also of a wait without a deadline
  return same;
}

}  // namespace pv2
