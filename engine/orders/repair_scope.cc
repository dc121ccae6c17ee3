// SPDX-License-Identifier: Apache-2.0
//
// Parked members are found in the lists that their roots keep (RareOfDomain::standing), so an order
// need not search a large tree for them.

#include "orders/repair_scope.h"

#include <pv2/base/assert.h>

#include "model/names.h"
#include "model/tree_walk.h"
#include "orders/repair_refusal.h"
#include "tree/domains.h"
#include "tree/member_step.h"

namespace pv2 {
namespace {

// The oldest member within the domain of `head` that `is_it` accepts, among those that are parked
// or whose domain is parked; or nullptr.
template <class Test>
Execution* first_standing(Execution& head, Test is_it) {
  return find_within(head.root()->domain.rare->standing, head, [&](Execution& member) {
    return is_it(member) && (&member == &head || !is_over(member));
  });
}

// Whether an order to `target` is about the whole domain of `head`.
bool stands_for(const Execution& target, const Execution& head) {
  return &target == &head || target.is_root();
}

bool failed_in(Execution& member, const Execution& head) {
  return member.record.state == ProcedureState::kFailed && member.head() == &head;
}

// The member that failed first, among those whose own domain is that of `head`; or nullptr.
Execution* first_failed(Execution& head) {
  Execution* found = nullptr;
  for (Execution& member : Subtree(head)) {
    if (!failed_in(member, head) || !member.record.failure()) continue;
    const bool earlier =
        found == nullptr || member.record.failure()->sequence < found->record.failure()->sequence;
    if (earlier) found = &member;
  }
  return found;
}

}  // namespace

Execution& scope_of(Execution& target) {
  if (Execution* const failed = failing_domain(target)) return *failed;
  if (has_given_up(target)) return *target.head();
  if (!target.is_root()) return *target.root();
  Execution* const parked = first_standing(target, [](const Execution& member) {
    return member.reports() && member.domain.is_parked();
  });
  if (parked != nullptr) return *failing_domain(*parked);  // a domain around it may have failed
  Execution* const given_up = first_given_up(target);
  return given_up != nullptr ? *given_up->head() : target;
}

DomainState state_of(const Execution& head) noexcept {
  PV2_ASSERT(head.is_head(), "only a head has the state of a domain");
  return head.is_quarantined() ? DomainState::kQuarantined : DomainState(head.domain.state);
}

Execution* given_up_at(Execution& target) {
  if (has_given_up(target)) return &target;
  return target.is_root() ? first_given_up(target) : nullptr;
}

Execution* first_given_up(Execution& head) { return first_standing(head, has_given_up); }

Execution* first_idle_given_up(Execution& head) {
  return first_standing(
      head, [](Execution& member) { return has_given_up(member) && member.phase == Phase::kIdle; });
}

Execution* parked_member(Execution& head) { return first_standing(head, is_parked_in_undo); }

Result<Execution*> parked_at(Execution& target, Execution& head) {
  Execution* const parked = is_parked_in_undo(target) ? &target : parked_member(head);
  PV2_ASSERT(parked != nullptr, "a domain that is parked in an undo has a member with that undo");
  if (&target != parked && !stands_for(target, head)) {
    return refused(fmt::format("the tree of {} is parked at {}, not at {}", name_of(head),
                               name_of(*parked), name_of(target)));
  }
  if (Status moving = why_not_moved(*parked); !moving.ok()) return moving;
  return parked;
}

Result<Execution*> failed_at(Execution& target, Execution& head) {
  Execution* found = failed_in(target, head) ? &target : nullptr;
  if (found == nullptr && stands_for(target, head)) found = first_failed(head);
  if (found == nullptr) {
    return refused(fmt::format("the tree of {} is parked, but not because {} failed", name_of(head),
                               name_of(target)));
  }
  if (found->record.step == 0 || found->type == nullptr) {
    return refused(fmt::format(
        "the record of {} does not say which step failed; send the tree back, or bypass it",
        name_of(*found)));
  }
  if (is_in_flight(head)) return busy(head);
  if (Status late = why_too_late(*found); !late.ok()) return late;
  return found;
}

}  // namespace pv2
