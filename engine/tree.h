// SPDX-License-Identifier: Apache-2.0
//
// What the members of one tree mean to each other: the join of a parent with its children, the
// failure of what fails together, its rollback, and its end. Free functions over executions, all
// under the state mutex; they decide, and leave the doing to Effects.
//
// What fails together is a domain: a root, or a child whose failure is only reported (its head),
// with all descendants. Domains lie in each other; the widest one that has failed is undone, and
// what was being undone within it is planned anew with it.
//
// The rule of failure: it takes effect when the failing record is published. A member is in flight
// from being taken by a worker until its record is published; rollback begins when nobody in the
// domain is. So no step runs beside an undo.

#pragma once

#include "engine_core.h"

namespace pv2 {

/// A child has succeeded (published): its parent goes on if it was the last one.
void child_finished(EngineCore& core, Execution& child, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// The same in a tree that has failed meanwhile: nobody goes on, but its parent is seen to wait for
/// one child less, as after a restart.
void child_ended_too_late(Execution& child);

/// A parent that waits has no unfinished child (any more): it goes on, or ends if only its children
/// were missing.
void children_finished(EngineCore& core, Execution& parent, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Whether all that it waits for is work of its own: it was done, and its children have finished.
[[nodiscard]] bool is_done_but_for_work(const Execution& member);

/// The head of the widest domain around `member` that has failed, or was stopped so that an order
/// can end it; or nullptr.
[[nodiscard]] Execution* failing_domain(Execution& member);
/// Whether a record says that a domain around `member` has failed.
[[nodiscard]] bool is_to_be_undone(Execution& member);

/// Whether somebody of the domain, or of those within it if it has failed, is in flight; or all of
/// them are just being stopped, planned for, or let go.
[[nodiscard]] bool is_in_flight(Execution& head);

/// After a restart: whether a domain around `member` failed, by what its records say, before that
/// commit.
[[nodiscard]] bool failed_before(Execution& member, CommitSequence sequence);

/// Has its root count whether it is past its point of no return, or has begun to pass it. Called
/// whenever that may have changed: it takes flight or has left it, is stopped, or goes on.
void note_no_return(Execution& member);
/// What it is then counted as, if its type has such a point.
[[nodiscard]] NoReturn no_return_now(Execution& member);
/// Has its root know whether it is parked, or what it is the head of.
void note_parked(Execution& member);

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

/// Whether it, or what fails together with it, waits for an operator.
[[nodiscard]] bool is_parked(Execution& member);
/// The same, except of what is undone beside a parked undo.
[[nodiscard]] bool stands_still(Execution& member);

/// Whether it ended with a domain whose failure was reported: nothing of it is ever run or undone.
[[nodiscard]] bool is_over(Execution& member);

/// A member has failed (published): from now on nothing of the domain of `head` goes forward.
void fail_tree(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex);
/// A member of what is stopped already has failed (published).
void failed_too_late(EngineCore& core, Execution& member) PV2_REQUIRES(core.state_mutex);
/// An order by which a member of what is stopped goes forward again was published.
void repaired_too_late(EngineCore& core, Execution& member) PV2_REQUIRES(core.state_mutex);

/// The whole tree is to be undone, for a reason that is durable (published). Rollback begins at
/// once if nobody of it is in flight.
void abort_tree(EngineCore& core, Execution& root, Effects& effects) PV2_REQUIRES(core.state_mutex);

/// Why an abort has to be refused, or OK: something in the tree is past its point of no return, or
/// may be about to pass it, or nothing in it goes forward any more.
[[nodiscard]] Status why_not_abortable(Execution& root);

/// Whether `member` is about to begin the step that is its point of no return.
[[nodiscard]] bool stands_before_no_return(const Execution& member);

/// Whether a step that a worker has taken may still begin, as far as its tree goes: nothing around
/// it has failed, or it is its turn to be undone.
[[nodiscard]] bool may_begin(Execution& member);
/// A member that a worker has taken does not begin, as its tree has failed; left_flight() follows.
void drop_from_flight(EngineCore& core, Execution& member) PV2_REQUIRES(core.state_mutex);
/// From now on nothing in the domain of `head` begins, until an order ends it. What goes forward
/// stops as if it had failed. No record says so: if it fails after all, or a wider domain does,
/// before the order is carried out, all of that is planned by the records, as after a restart.
void make_way_for_order(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex);
/// Whether an order waits to end the widest domain around `member` that has failed or was stopped.
[[nodiscard]] bool makes_way_for_order(Execution& member);
/// If so, the turn of `member`, which a worker had taken, has not begun.
void put_turn_back(EngineCore& core, Execution& member) PV2_REQUIRES(core.state_mutex);
/// `member` is durable: its tree, of which it may be the root, counts it from now on.
void adopt(Execution& member);

/// What a record of it says if nothing happened but time.
[[nodiscard]] Transition as_it_is(const EngineCore& core, const Execution& execution);

/// The step that no record names and that is undone if its tree is, because a run of it has begun,
/// or is just under way; 0: none.
[[nodiscard]] std::uint32_t step_that_may_have_begun(Execution& member);

/// The step of it that is undone now, or next when nothing of it is left to run; 0: none.
[[nodiscard]] std::uint32_t step_to_undo(const Execution& execution);

/// Whether a restart has to take the step that it is at for begun, by its record alone.
[[nodiscard]] bool may_have_begun(const Execution& execution, bool held_locks);

/// A worker has taken it, or its record is on the way.
void enter_flight(Execution& member);
/// That is over. In a domain that has failed the last one starts the rollback.
void left_flight(EngineCore& core, Execution& member, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// An undo was published: its turn is over, goes on, or is parked.
void undo_published(EngineCore& core, Execution& execution, StepCommit& commit, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// The order of an operator about a tree that is parked beyond a point of no return was published.
void order_published(EngineCore& core, Execution& execution, const StepCommit& commit,
                     Effects& effects) PV2_REQUIRES(core.state_mutex);

/// Its attempts are used up (published): it waits for an operator, and nobody else does.
void park_member(EngineCore& core, Execution& member, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// The last record of a child whose failure is only reported was published: what it spawned leaves,
/// and then its parent goes on if it was the last one.
void domain_ended(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex);

/// After a restart: notes in the heads of a tree what has failed by its records.
void find_failures(Execution& root);

/// After a restart, when failures are known: of the members of a tree, those whose step had not
/// begun, by what other records say. `recorded` is when the last record of each was written, of
/// those of whom that is known.
void forget_what_had_not_begun(Execution& root,
                               const FlatMap<ProcedureId, CommitSequence>& recorded);

/// What was loaded, or was stopped and repaired, goes on as its records say: forward, or back where
/// a domain has failed. Nobody of it runs.
void start_domain(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Nobody in it is about to be undone any more; false: a worker has just taken one, and all go on.
[[nodiscard]] bool stop_turns(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Children of `parent` leave that have ended, have nothing to undo, and are not of its last spawn:
/// that one it may still ask for, unless it has ended so itself. At most 128 are looked at; the
/// parent's next record goes on with the others.
void drop_ended_children(EngineCore& core, Execution& parent, Effects& effects)
    PV2_REQUIRES(core.state_mutex);
/// After a restart, the same all over a tree: their rows may not have been deleted yet.
void drop_all_ended(EngineCore& core, Execution& root, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Whether nothing in it is past its point of no return.
[[nodiscard]] bool can_be_undone(Execution& head);

/// The final record of a root is durable: keeps its result, answers who waits, lets go of the tree.
void finish_root(EngineCore& core, Execution& root, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Freezes a tree that this program does not understand; its locks stay held.
void quarantine_tree(EngineCore& core, Execution& root, const Status& reason, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Goes on with what is to be done to whole trees, as far as this section has room. Whether more is
/// left that can be gone on with in another one.
bool do_tree_works(EngineCore& core, Effects& effects) PV2_REQUIRES(core.state_mutex);

/// Of one that was left to be sorted (Effects::to_sort). Needs no lock: nobody else looks at it.
void sort_collected(TreeWork& work);
/// That is done, and it goes on in its turn.
void go_on_with_sorted(EngineCore& core, TreeWork& work) PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
