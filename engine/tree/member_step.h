// SPDX-License-Identifier: Apache-2.0
//
// What the record of a member and this run say about the step that it is at: whether that may have
// begun, is a point of no return, or is to be undone. Questions only.

#pragma once

#include "core/engine_core.h"

namespace pv2 {

/// Whether an attempt at the step that it is at has ended in a wait or a back-off. A ring that is
/// full of orders says no more.
[[nodiscard]] bool has_tried(const Execution& execution);

/// Whether its record stands at a step that is undone if it was begun.
[[nodiscard]] bool stands_at_undoable_step(const Execution& member);

[[nodiscard]] bool was_left_in_the_middle(const Execution& member);

/// Whether it has a point of no return, before or behind it.
[[nodiscard]] bool may_not_return(const Execution& member);

/// What the records of the heads around a member say of the step at which it stands: nothing, or
/// whether it was in the middle of it when one of them was about to be undone.
[[nodiscard]] std::optional<bool> recorded_interruption(Execution& member);

[[nodiscard]] bool is_known_not_begun(Execution& member);

/// Whether a restart has to take the step that it is at for begun, by its record alone.
[[nodiscard]] bool may_have_begun(const Execution& execution, bool held_locks);

/// The step that no record names and that is undone if its tree is, because a run of it has begun,
/// or is just under way; 0: none.
[[nodiscard]] std::uint32_t step_that_may_have_begun(Execution& member);

/// The step of it that is undone now, or next when nothing of it is left to run; 0: none.
[[nodiscard]] std::uint32_t step_to_undo(const Execution& execution);

/// Whether `member` is about to begin the step that is its point of no return.
[[nodiscard]] bool stands_before_no_return(const Execution& member);

/// Whether the step that it is at is its point of no return, and may have had effects.
[[nodiscard]] bool has_begun_no_return(const Execution& member);

/// Whether it can be neither finished nor undone.
[[nodiscard]] bool stands_beyond_return(Execution& member);

/// Whether it has used up its attempts, and nothing around it has failed.
[[nodiscard]] bool has_given_up(Execution& member);

/// Whether its own undo waits for an operator.
[[nodiscard]] inline bool is_parked_in_undo(const Execution& member) {
  return member.record.parked && member.record.state == ProcedureState::kFailed;
}

/// Whether an undo of it has begun and is not over, by its record. An undo of which nothing was
/// recorded yet is not found: a restart would know nothing of it either.
[[nodiscard]] bool has_begun_undo(const Execution& member);

/// Whether its record says that it has failed, or that of an abort does.
[[nodiscard]] bool has_failed_itself(const Execution& member);

/// Whether all that it waits for is work of its own: it was done, and its children have finished.
[[nodiscard]] bool is_done_but_for_work(const Execution& member);

/// What a record of it says if nothing happened but time.
[[nodiscard]] Transition as_it_is(const EngineCore& core, const Execution& execution);

}  // namespace pv2
