// SPDX-License-Identifier: Apache-2.0
//
// What the domains around a member say: whether one has failed, is parked or over, and how its root
// and its heads are told. A domain changes its state here (move_to) and nowhere else.

#pragma once

#include "core/engine_core.h"

namespace pv2 {

/// The head of the widest domain around `member` that has failed, or was stopped so that an order
/// can end it; or nullptr.
[[nodiscard]] Execution* failing_domain(Execution& member);

/// Whether somebody of the domain, or of those within it if it has failed, is in flight; or all of
/// them are just being stopped, planned for, or let go.
[[nodiscard]] bool is_in_flight(Execution& head);

/// After a restart: whether a domain around `member` failed, by what its records say, before that
/// commit.
[[nodiscard]] bool failed_before(Execution& member, CommitSequence sequence);

/// Whether it, or what fails together with it, waits for an operator.
[[nodiscard]] bool is_parked(Execution& member);

/// The same, except of what is undone beside a parked undo.
[[nodiscard]] bool stands_still(Execution& member);

/// Whether a record says that a domain around `member` has failed.
[[nodiscard]] bool is_to_be_undone(Execution& member);

/// Whether it ended with a domain whose failure was reported: nothing of it is ever run or undone.
[[nodiscard]] bool is_over(Execution& member);

/// Its root knows which heads are parked.
void move_to(Execution& head, DomainState state);

void park_tree(EngineCore& core, Execution& head, DomainState how, const std::string& why,
               Effects& effects) PV2_REQUIRES(core.state_mutex);

/// Its attempts are used up (published): it waits for an operator, and nobody else does.
void park_member(EngineCore& core, Execution& member, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Has its root know whether it is parked, or what it is the head of.
void note_parked(Execution& member);

/// Whether nothing in it is past its point of no return.
[[nodiscard]] bool can_be_undone(Execution& head);

void count_no_return(Execution& member, NoReturn now);

/// What it is then counted as, if its type has such a point.
[[nodiscard]] NoReturn no_return_now(Execution& member);

/// Has its root count whether it is past its point of no return, or has begun to pass it. Called
/// whenever that may have changed: it takes flight or has left it, is stopped, or goes on.
void note_no_return(Execution& member);

/// What the records of each domain below `top` say of itself. One that is over says nothing.
void find_failed_domains(Execution& top);

/// Every head below `top`, which is in no domain that has failed, learns which domains around it
/// have: an outer one before those within it.
void note_failing(Execution& top);

/// Whether a record of its own domain says that it has failed.
[[nodiscard]] bool domain_has_failed(Execution& head);

/// After a restart: notes in the heads of a tree what has failed by its records.
void find_failures(Execution& root);

/// Whether an order waits to end the widest domain around `member` that has failed or was stopped.
[[nodiscard]] bool makes_way_for_order(Execution& member);

/// The order that is to end what fails together under `head` may have waited for what is just over.
void let_order_look(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
