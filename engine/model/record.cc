// SPDX-License-Identifier: Apache-2.0
//
// How one record follows another. The codec and Record::assign() both use these functions, so a
// restart reads what the engine had in memory.

#include "model/record.h"

#include <utility>

namespace pv2 {
namespace {

// The failure that the next record takes over from `last`; nullptr: none. A procedure that is being
// undone keeps its first failure. One that goes on by the order of an operator keeps none.
const Failure* lasting_failure(const Record& last, const Transition& next) noexcept {
  const bool failed =
      next.state == ProcedureState::kFailed || next.state == ProcedureState::kRolledBack;
  return failed && last.state == ProcedureState::kFailed ? last.failure() : nullptr;
}

}  // namespace

std::optional<Outcome::Kind> Record::last_outcome() const noexcept {
  for (std::size_t i = history.size(); i-- > 0;) {
    const Outcome::Kind last = history.at(i).outcome;
    if (!is_order(last)) return last;
  }
  return std::nullopt;
}

bool Record::backs_off() const noexcept {
  const auto last = last_outcome();
  return last ? *last == Outcome::Kind::kRetry : attempt > 1;
}

FailureAfter failure_after(const Record& last, const Transition& next) noexcept {
  static const Status kNone;
  const Failure* const before = lasting_failure(last, next);
  const Status& error_before = before != nullptr ? before->error : kNone;
  const auto sequence = before != nullptr ? std::optional(before->sequence) : std::nullopt;
  if (next.parked) {
    const bool again = next.error().ok() && before != nullptr;
    return {error_before, again ? before->parked : next.error(), next.undo_error(), sequence};
  }
  return {next.error().ok() ? error_before : next.error(), kNone, next.undo_error(), sequence};
}

bool Record::may_become(ProcedureState next, MovedBy by) const noexcept {
  if (state == next || is_legal_transition(state, next)) return true;
  return by == MovedBy::kBypass && next == ProcedureState::kRolledBack && !is_finished(state);
}

void Record::assign(Transition& next, std::uint32_t ran_step, CommitSequence sequence) {
  PV2_ASSERT(may_become(next.state, next.bypassed ? MovedBy::kBypass : MovedBy::kStep),
             "a record moves a state along the table");
  PV2_ASSERT(!next.parked || !is_finished(next.state), "a procedure that has ended is not parked");
  PV2_ASSERT(!next.has_error() || next.undo_error().ok() || next.state == ProcedureState::kFailed,
             "only a failed procedure has the error of an undo");
  if (may_carry_failure(*this, next)) {
    const FailureAfter after = failure_after(*this, next);
    std::unique_ptr<Failure> carried;
    if (!after.is_none()) {
      carried = std::make_unique<Failure>(
          Failure{after.error, after.sequence.value_or(sequence), after.parked, after.undo});
    }
    set_failure(std::move(carried));
  }
  const auto [kept, adds] = undo_after(*this, next, ran_step);
  if (kept == 0 && !adds) undo.clear();
  while (undo.size() > kept) undo.pop_back();
  if (adds) undo.push_back({ran_step, next.undo_is_unfinished ? kUnfinishedStep : sequence});
  if (next.history) history.add(*next.history);
  if (next.new_image) image.swap(next.image);
  next.new_image = false;
  if (next.interrupted() != nullptr) set_interrupted(next.take_interrupted());
  set_result(next.result());
  static_cast<Progress&>(*this) = next;
}

void Record::assign_wait(const Transition& next) noexcept {
  const Progress recorded = *this;
  static_cast<Progress&>(*this) = next;
  updated = recorded.updated;
  holds_locks = recorded.holds_locks;
  ended_age = recorded.ended_age;
  in_results = recorded.in_results;
}

void Transition::begin(const Record& last, WallTime now) noexcept {
  static_cast<Progress&>(*this) = last;
  stop_waiting();
  updated = now;
  ended_age = kNotDated;
  in_results = false;
}

void Transition::reset() noexcept {
  CompactBytes memory;
  if (image.size() <= kImageKept) memory.swap(image);
  std::destroy_at(this);  // rebuilt in place: assigning costs three times as much
  std::construct_at(this);
  image.swap(memory);
}

}  // namespace pv2
