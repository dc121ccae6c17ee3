// SPDX-License-Identifier: Apache-2.0
//
// Repair scope: which domain and which member an order is about. An operator names any procedure of
// a tree. Often it is the root, and the member that stands in the way is found from there.
//
// All functions here are called under the state mutex.

#pragma once

#include <pv2/base/status.h>

#include "model/execution.h"

namespace pv2 {

/// The head of the domain that an order to `target` is about: the widest domain around it that has
/// failed, or else the domain of a member that used up its attempts. For a root that goes forward
/// it is the first domain within it that is parked, if there is one.
[[nodiscard]] Execution& scope_of(Execution& target);

/// The state of the domain of `head`; kQuarantined for all domains of a quarantined tree.
[[nodiscard]] DomainState state_of(const Execution& head) noexcept;

/// The member that used up its attempts and that `target` means: itself, or the oldest one below a
/// root; or nullptr.
[[nodiscard]] Execution* given_up_at(Execution& target);
/// The oldest member within the domain of `head` that used up its attempts; or nullptr.
[[nodiscard]] Execution* first_given_up(Execution& head);
/// Likewise, but no record of that member is on the way.
[[nodiscard]] Execution* first_idle_given_up(Execution& head);

/// The oldest member within the domain of `head` whose undo is parked; or nullptr.
[[nodiscard]] Execution* parked_member(Execution& head);
/// In a domain that is parked in an undo: the member with that undo that `target` means. That is
/// `target` itself, or the oldest one if `target` stands for the whole domain. Else why it is none,
/// or cannot be moved now.
[[nodiscard]] Result<Execution*> parked_at(Execution& target, Execution& head);
/// In a domain that is parked beyond a point of no return: the failed member that `target` means.
/// That is `target` itself, or the member that failed first if `target` stands for the whole
/// domain. A failure in a domain within it is not why it is parked: that one is undone, and
/// reported, when the outer domain goes on. Else why it is none, or cannot be moved now.
[[nodiscard]] Result<Execution*> failed_at(Execution& target, Execution& head);

}  // namespace pv2
