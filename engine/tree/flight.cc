// SPDX-License-Identifier: Apache-2.0
//
// The counts are in the head of the member's own domain, and in the head of the widest stopped
// domain around it.

#include "tree/flight.h"

#include "core/effects.h"
#include "model/rollback_plan.h"
#include "tree/domains.h"
#include "tree/rollback.h"

namespace pv2 {
void enter_flight(Execution& member) {
  Domain& own = member.head()->domain;
  PV2_ASSERT(!own.is_over() || own.rare->work == nullptr,
             "no member of a domain that is over takes flight");
  ++own.in_flight;
  Execution* const failed = own.failing();
  if (failed != nullptr) ++failed->domain.rare.edit().in_flight_inside;
  note_no_return(member);
}

void left_flight(EngineCore& core, Execution& member, Effects& effects) {
  Domain& own = member.head()->domain;
  PV2_ASSERT(own.in_flight > 0, "a member that leaves flight was counted");
  --own.in_flight;
  note_no_return(member);
  Execution* const failed = own.failing();
  if (failed == nullptr) return;
  let_order_look(core, *failed);
  PV2_ASSERT(failed->domain.rare->in_flight_inside > 0,
             "a failed domain counts all members in flight within it");
  if (--failed->domain.rare.edit().in_flight_inside > 0) return;
  if (failed->domain.rare->work != nullptr) return;  // that work begins the rollback or its turns
  if (failed->domain.failing() != failed) return;    // a work on a wider domain does
  if (failed->domain.rare->rollback) {
    begin_turns(core, *failed, effects);
  } else if (!failed->domain.is_parked()) {
    begin_rollback(core, *failed, effects);
  }
}

bool may_begin(Execution& member) {
  const Execution* const failed = failing_domain(member);
  // The work that stops the tree may not have visited this domain yet.
  if (failed == nullptr) return member.root()->domain.failing() == nullptr;
  if (failed->domain.makes_way()) return false;
  return failed->domain.is_undone() && !failed->is_quarantined() && member.has_turn();
}

void put_turn_back(EngineCore& core, Execution& member) {
  if (!makes_way_for_order(member)) return;
  let_order_look(core, *failing_domain(member));
  member.leave_turn();
  Domain& domain = failing_domain(member)->domain;
  if (domain.rare->rollback) domain.rare->rollback->put_back(member);
}

void drop_from_flight(EngineCore& core, Execution& member) {
  PV2_ASSERT(member.phase == Phase::kInFlight, "a member that is dropped from flight is in flight");
  member.phase.move_to(Phase::kIdle);
  put_turn_back(core, member);
  member.leave_turn();  // an inner domain's turn: the wider domain's plan will contain it
  core.abandon_waits(member);
  if (member.granted_by_poll()) core.settle(member, Disposition::kParkUnlock);
}

}  // namespace pv2
