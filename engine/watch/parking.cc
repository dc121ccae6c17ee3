// SPDX-License-Identifier: Apache-2.0
//
// A tree is parked in undos of its members, or because it failed beyond a point of no return.

#include "watch/parking.h"

#include <pv2/base/assert.h>

#include "model/looks.h"
#include "model/names.h"
#include "tree/domains.h"
#include "tree/member_step.h"

namespace pv2 {

Execution& parked_head(Execution& member) {
  Execution* const failed = failing_domain(member);
  if (failed != nullptr && failed->domain.is_parked()) return *failed;
  return *member.head();
}

Execution* parked_undo(Execution& head, ParkedLooks& looks) {
  if (looks.head == &head) return looks.undo;
  const auto& standing = head.root()->domain.rare->standing;
  looks.head = &head;
  looks.undo = nullptr;
  if (!standing) return nullptr;
  // Ids grow from parent to child, so no member of the domain stands before its head.
  for (auto at = standing->lower_bound(head.id); at != standing->end() && looks.left != 0; ++at) {
    --looks.left;
    Looks::one();
    Execution& member = *at->second;
    const bool is_inside = member.head() == &head || failing_domain(member) == &head;
    if (is_inside && is_parked_in_undo(member)) return looks.undo = &member;
  }
  return nullptr;
}

namespace {

Status own_reason(const Execution& parked) {
  const Failure* const failure = parked.record.failure();
  return failure != nullptr ? failure->shown() : Status();
}

}  // namespace

Status why_parked(Execution& member, ParkedLooks& looks) {
  if (member.record.parked) return own_reason(member);
  Execution& head = parked_head(member);
  PV2_ASSERT(head.domain.is_parked(), "who is not parked itself is parked with its domain");
  if (head.domain.state == DomainState::kParkedBeyond) {
    return head.domain.rare->cause.with_context("the tree of " + name_of(head.id) +
                                                " failed after a point of no return");
  }
  if (const Execution* const parked = parked_undo(head, looks)) {
    return own_reason(*parked).with_context(name_of(parked->id) + " is parked");
  }
  return {StatusCode::kFailedPrecondition,
          "an undo in the tree of " + name_of(head.id) +
              " is parked; its member was not found among the parked members looked at"};
}

}  // namespace pv2
