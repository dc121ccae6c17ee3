// SPDX-License-Identifier: Apache-2.0
//
// Questions about the failure domains around a member: whether one has failed, is parked, or is
// over; and the changes of their state and of the counts that the root keeps. A domain changes its
// state in move_to() and nowhere else, except a new one that adopt() finds to be over.
//
// The questions are asked, and the changes made, under the state mutex. "Walks the tree" means that
// a function visits every member of the subtree that it is given.

#pragma once

#include "core/engine_core.h"

namespace pv2 {

/// The head of the widest domain around `member` that has failed, is quarantined, or was stopped so
/// that an order can end it; or nullptr.
[[nodiscard]] Execution* failing_domain(Execution& member);

/// Whether a member of the domain of `head` is in flight, or a TreeWork on the domain is under way.
/// If `head` is the head of the widest stopped domain, members of the domains within count too.
[[nodiscard]] bool is_in_flight(Execution& head);

/// After a restart: whether the records say that a domain around `member` failed, or was aborted,
/// before the commit `sequence`.
[[nodiscard]] bool failed_before(Execution& member, CommitSequence sequence);

/// Whether `member`, its own domain, or the widest stopped domain around it waits for an operator.
/// False for a member that was undone already, or has succeeded and is not undone with its tree.
[[nodiscard]] bool is_parked(Execution& member);

/// Like is_parked(), but false for a member that is not parked itself and whose turn has begun,
/// while an undo of another member is parked.
[[nodiscard]] bool stands_still(Execution& member);

/// Whether a domain around `member` has failed or its tree is quarantined. False if the domains
/// were only stopped so that an order can end them.
[[nodiscard]] bool is_to_be_undone(Execution& member);

/// Whether the domain of `member` is over: no step of `member` is ever run or undone.
[[nodiscard]] bool is_over(Execution& member);

/// Changes the state of the domain of `head`, and notes in its root whether the head is parked.
void move_to(Execution& head, DomainState state);

/// Moves the domain of `head` to `how`, a parked state, with its locks; logs `why` and tells the
/// listeners.
void park_tree(EngineCore& core, Execution& head, DomainState how, const std::string& why,
               Effects& effects) PV2_REQUIRES(core.state_mutex);

/// A record that parks `member`, whose attempts are used up, was published. The member waits for an
/// operator; the rest of its tree goes on.
void park_member(EngineCore& core, Execution& member, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Notes in the root whether `member` is parked, or is the head of a parked domain.
void note_parked(Execution& member);

/// Whether no member under `head` is past its point of no return or has begun to pass it. Members
/// past it do not count once an operator has sent `head` back. Walks the tree if the root counts
/// such a member.
[[nodiscard]] bool can_be_undone(Execution& head);

/// Marks `member` with `now`, and adapts the counts of its root (RareOfDomain::beyond and begun).
void count_no_return(Execution& member, NoReturn now);

/// `kept`, which is final on success, has succeeded: the members below it that are past their point
/// of no return do not count any more.
void stop_counting_below(Execution& kept);

/// The mark that `member` should have now, if it has a point of no return.
[[nodiscard]] NoReturn no_return_now(Execution& member);

/// Brings the mark of `member` and the counts of its root up to date. Called whenever they may have
/// changed: `member` enters or leaves flight, is stopped, or goes on.
void note_no_return(Execution& member);

/// Moves each domain under `top`, that of `top` included, from kForward to kFailed if a record of
/// one of its own members says that it has failed. Walks the tree.
void find_failed_domains(Execution& top);

/// Sets RareOfDomain::failing and in_flight_inside in each head under `top`, that of `top`
/// included, from the states of the domains; outer domains come first. No domain around `top` is
/// stopped. Walks the tree.
void note_failing(Execution& top);

/// The plan of the domain's rollback, if it has one, is destroyed after the mutex was released.
void retire_plan(Domain& domain, Effects& effects);

/// Whether a record of the domain of `head`, not of a domain within it, says that it has failed.
/// Walks the tree.
[[nodiscard]] bool domain_has_failed(Execution& head);

/// After a restart: notes in the heads of a tree which domains have failed by their records, and
/// when. Walks the tree.
void find_failures(Execution& root);

/// Whether a record that fails or aborts a domain around `member` is on its way: no member of that
/// domain begins its point of no return.
[[nodiscard]] bool is_about_to_fail(const Execution& member);

/// Whether an order is to end the widest stopped domain around `member`: nothing of it begins.
[[nodiscard]] bool makes_way_for_order(Execution& member);

/// Has an order that waits to end the domain of `head` looked at again, because something that it
/// may have waited for is over. Does nothing if no such order waits.
void let_order_look(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
