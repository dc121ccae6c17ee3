// SPDX-License-Identifier: Apache-2.0
//
// Questions about the step that a member is at, answered from its record and from what this run
// knows: whether the step may have begun, is a point of no return, or is to be undone. The
// functions change nothing; they are called under the state mutex, or by the member's owner.

#pragma once

#include "core/engine_core.h"

namespace pv2 {

/// Whether an attempt at the current step has ended in a wait or a back-off, by the history. True
/// also if the history is full and has only orders, because older entries are lost.
[[nodiscard]] bool has_tried(const Execution& execution);

/// Whether the record of `member` is at a step that has to be undone if it was begun, and is not in
/// the undo list yet.
[[nodiscard]] bool stands_at_undoable_step(const Execution& member);

/// Whether `member` is interrupted: it has begun, or may have begun before a restart, a step for
/// which stands_at_undoable_step() holds.
[[nodiscard]] bool was_left_in_the_middle(const Execution& member);

/// Whether `member` has a point of no return, ahead of it or passed. True also if its type is not
/// known.
[[nodiscard]] bool may_not_return(const Execution& member);

/// Whether `member` was interrupted in its current step, by the records that the heads around it
/// wrote before a rollback. nullopt: no head has such a record. If several have, false wins.
[[nodiscard]] std::optional<bool> recorded_interruption(Execution& member);

/// Whether a record of a head says that `member` was not interrupted in its current step.
[[nodiscard]] bool is_known_not_begun(Execution& member);

/// Whether a restart has to assume that the current step was begun, by the record alone.
/// `held_locks`: the record says that the procedure holds its locks.
[[nodiscard]] bool may_have_begun(const Execution& execution, bool held_locks);

/// The current step of `member`, if it would be undone with its tree although no undo list names
/// it: a run of it has begun, or may be under way. 0: none.
[[nodiscard]] std::uint32_t step_that_may_have_begun(Execution& member);

/// The step of `execution` that is being undone or, between turns, the next one to be undone.
/// 0: none.
[[nodiscard]] std::uint32_t step_to_undo(const Execution& execution);

/// Whether the current step of `member` is its point of no return, begun or not.
[[nodiscard]] bool stands_before_no_return(const Execution& member);

/// Whether the current step of `member` is its point of no return, and may have had effects.
[[nodiscard]] bool has_begun_no_return(const Execution& member);

/// Whether `member` is past its point of no return and would have to be undone with its tree: if
/// its domain fails, it can be neither finished nor undone.
[[nodiscard]] bool stands_beyond_return(Execution& member);

/// Whether `member` has parked because its attempts at a step are used up, in a tree that is not
/// quarantined and with no stopped domain around it.
[[nodiscard]] bool has_given_up(Execution& member);

/// Whether an undo of `member` itself waits for an operator.
[[nodiscard]] inline bool is_parked_in_undo(const Execution& member) {
  return member.record.parked && member.record.state == ProcedureState::kFailed;
}

/// Whether an undo of `member` has begun and is not over, by its record. An undo that has made no
/// record yet is not found: a restart would not know of it either.
[[nodiscard]] bool has_begun_undo(const Execution& member);

/// Whether a step of `member`, or its undo, was begun or has failed, and is the first to be undone.
/// It was done under the locks that the member holds now, if it holds them per step or per visit.
[[nodiscard]] bool is_half_done(const Execution& member);

/// Whether the record of `member` says that it has failed or was undone, or its inbox has an abort.
[[nodiscard]] bool has_failed_itself(const Execution& member);

/// Whether `member` waits only for its own offloaded work: its last step is done, and its children
/// have finished.
[[nodiscard]] bool is_done_but_for_work(const Execution& member);

/// A transition that repeats the last record of `execution`: nothing changes but the time left to
/// wait.
[[nodiscard]] Transition as_it_is(const EngineCore& core, const Execution& execution);

}  // namespace pv2
