// SPDX-License-Identifier: Apache-2.0
//
// Repair scope: which domain and which member an order is about. An operator may name any procedure
// of a tree. Often it is the root, and the blocking member is found from there.
//
// All functions here are called under the state mutex.

#pragma once

#include <pv2/base/status.h>

#include "model/execution.h"

namespace pv2 {

/// The head of the domain that an order to `target` is about: the widest failed domain around
/// `target`, or else the domain of `target` if it used up its attempts. For a root that goes
/// forward: the first parked domain within it, or else the domain of its oldest member that used up
/// its attempts, if there is one.
[[nodiscard]] Execution& scope_of(Execution& target);

/// The state of the domain of `head`. All domains of a quarantined tree are kQuarantined.
[[nodiscard]] DomainState state_of(const Execution& head) noexcept;

/// The member that used up its attempts and that `target` means: `target` itself, or the oldest
/// such member below a root; or nullptr.
[[nodiscard]] Execution* given_up_at(Execution& target);
/// The oldest member within the domain of `head` that used up its attempts; or nullptr.
[[nodiscard]] Execution* first_given_up(Execution& head);
/// Like first_given_up(), but no record of that member is on its way.
[[nodiscard]] Execution* first_idle_given_up(Execution& head);

/// The oldest member within the domain of `head` whose undo is parked; or nullptr.
[[nodiscard]] Execution* parked_member(Execution& head);
/// In a domain that is parked in an undo: the parked member that `target` means. That is `target`
/// itself, or the oldest such member if `target` stands for the whole domain. An error says why
/// there is none, or why it cannot be moved now.
[[nodiscard]] Result<Execution*> parked_at(Execution& target, Execution& head);
/// In a domain that is parked beyond a point of no return: the failed member that `target` means.
/// That is `target` itself, or the member that failed first if `target` stands for the whole
/// domain. A failure of a domain within this one is not the reason for the parking: that inner
/// domain is undone, and reported, when the outer one goes on. An error says why there is no such
/// member, or why it cannot be moved now.
[[nodiscard]] Result<Execution*> failed_at(Execution& target, Execution& head);

}  // namespace pv2
