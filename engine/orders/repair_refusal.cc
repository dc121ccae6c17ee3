// SPDX-License-Identifier: Apache-2.0
//
// Refusals that several verbs share. kUnavailable tells the operator to try again;
// kFailedPrecondition, that another order is needed.

#include "orders/repair_refusal.h"

#include <utility>

#include "model/names.h"
#include "steps/offloads.h"
#include "tree/members_at_work.h"

namespace pv2 {

Status refused(std::string why) { return Status(StatusCode::kFailedPrecondition, std::move(why)); }

Status busy(const Execution& execution) {
  return Status(StatusCode::kUnavailable,
                fmt::format("a step of {} is running or about to; try again", name_of(execution)));
}

Status why_too_late(Execution& about) {
  for (Execution* head = about.head(); head != nullptr; head = head->outer_domain()) {
    const bool moves = head != &about && head->phase == Phase::kInFlight;
    if (moves || head->domain.rare->work != nullptr) return busy(*head);
  }
  return Status();
}

Status why_not_moved(Execution& member) {
  return member.phase == Phase::kIdle ? why_too_late(member) : busy(member);
}

Status why_work_forbids(const Execution& member) {
  if (!has_work(member)) return Status();
  return Status(
      StatusCode::kUnavailable,
      fmt::format("work that {} offloaded at step {} still runs; try again when it has ended",
                  name_of(member), name_of_step(member, member.work()->pieces.front()->step)));
}

}  // namespace pv2
