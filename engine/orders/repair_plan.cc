// SPDX-License-Identifier: Apache-2.0
//
// One function for each verb. What a verb means follows from the state of the domain:
//
//     state         | retry_now      | skip_step  | fail_and_roll_back | bypass
//     --------------|----------------|------------|--------------------|---------
//     kForward      | step (1), wait | step (1)   | aborts the root    | ends (1)
//     kStopped      | wait           |            | aborts the root    | ends
//     kFailed       | wait           |            | aborts the root    | ends
//     kRollingBack  | wait           |            | aborts the root    | ends
//     kParkedInUndo | undo, wait     | undo       | aborts the root (2)| ends
//     kParkedBeyond | step           | step       | sends back         | ends
//     kQuarantined  |                |            |                    | ends
//
//     (1) if a member used up its attempts
//     (2) if the target is outside the part that is parked, else refused

#include "orders/repair_plan.h"

#include <algorithm>
#include <string>

#include "model/names.h"
#include "model/rollback_plan.h"
#include "orders/repair_refusal.h"
#include "orders/repair_scope.h"
#include "pv2/engine/procedure_registry.h"
#include "tree/domains.h"

namespace pv2 {
namespace {

Order about_step(Order::Kind kind, Execution& member, Execution& head) {
  return {.kind = kind, .about = &member, .head = &head, .step = member.record.step};
}

// The turn of the rollback at which `parked` is parked; of no step, if it could not take its locks.
// nullptr: its record names none.
const UndoTurn* parked_turn(const Execution& head, const Execution& parked) {
  const RollbackPlan* const plan = head.domain.rare->rollback.get();
  const UndoTurn* const turn = plan != nullptr ? plan->newest_of(parked) : nullptr;
  return turn != nullptr && turn->kind != UndoTurn::Kind::kLast ? turn : nullptr;
}

Status quarantined(const Execution& execution) {
  return refused(fmt::format("{} is quarantined; nothing of it can run", name_of(execution)));
}

// ---- retry_now ----

// A member in its turn waits for no child, whatever its count of unfinished children says.
bool waits_for_time(const Execution& target) {
  return target.phase == Phase::kWaiting && target.record.deadline.has_value() &&
         (target.has_turn() || target.children().unfinished == 0);
}

Result<Order> plan_retry_of_undo(Execution& target, Execution& head) {
  const auto parked = parked_at(target, head);
  if (!parked.ok()) return parked.status();
  const UndoTurn* const turn = parked_turn(head, **parked);
  return Order{.kind = Order::Kind::kRetryUndo,
               .about = *parked,
               .head = &head,
               .step = turn != nullptr ? turn->entry.step : 0};
}

Result<Order> plan_end_of_wait(Execution& target, Execution& head) {
  if (waits_for_time(target)) {
    if (Status late = why_too_late(target); !late.ok()) return late;
    return Order{.kind = Order::Kind::kEndWait,
                 .about = &target,
                 .head = &head,
                 .step = target.turn_step() != 0 ? target.turn_step() : target.record.step};
  }
  if (target.phase == Phase::kInFlight || target.phase == Phase::kDropping) return busy(target);
  return refused(fmt::format("{} is in no back-off and no timed wait", name_of(target)));
}

Result<Order> plan_retry(Execution& target, Execution& head) {
  const DomainState state = state_of(head);
  if (state == DomainState::kQuarantined) return quarantined(target);
  if (state == DomainState::kParkedInUndo) {
    // An undo beside the parked one may go on, and be in a back-off.
    return waits_for_time(target) ? plan_end_of_wait(target, head)
                                  : plan_retry_of_undo(target, head);
  }
  if (state == DomainState::kParkedBeyond) {
    const auto failed = failed_at(target, head);
    if (!failed.ok()) return failed.status();
    return about_step(Order::Kind::kRetryStep, **failed, head);
  }
  Execution* const given_up = given_up_at(target);
  if (given_up == nullptr) return plan_end_of_wait(target, head);
  if (Status moving = why_not_moved(*given_up); !moving.ok()) return moving;
  return about_step(Order::Kind::kRetryStep, *given_up, head);
}

// ---- skip_step ----

Result<Order> plan_skip_of_undo(Execution& target, Execution& head, std::uint32_t next_step) {
  const auto parked = parked_at(target, head);
  if (!parked.ok()) return parked.status();
  if (Status works = why_work_forbids(**parked); !works.ok()) return works;
  const UndoTurn* const turn = parked_turn(head, **parked);
  if (turn == nullptr) {
    return refused(fmt::format(
        "the record of {} does not say which step is to be undone; let it be retried, or bypass it",
        name_of(**parked)));
  }
  if (next_step != 0) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("RepairNote::next_step is {}, but what is skipped is an undo, which "
                              "nothing of it follows",
                              next_step));
  }
  return Order{
      .kind = Order::Kind::kSkipUndo, .about = *parked, .head = &head, .step = turn->entry.step};
}

// The step after a skipped one: `wanted`, or the next row of the step table; 0: none.
Result<std::uint32_t> step_after(const Execution& member, std::uint32_t wanted) {
  const std::vector<StepInfo>& steps = member.type->steps;
  if (wanted != 0) {
    if (member.type->find_step(wanted) != nullptr) return wanted;
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} has no step {}", member.name_of_type(), wanted));
  }
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    if (steps[i].number == member.record.step) return steps[i + 1].number;
  }
  return std::uint32_t{0};
}

// The first step that must run and that the tree would go on without if `following` came next;
// nullptr: none.
const StepInfo* missed_step(const Execution& member, std::uint32_t following) {
  const std::vector<StepInfo>& steps = member.type->steps;
  const auto row_of = [&](std::uint32_t number) {
    return std::find_if(steps.begin(), steps.end(),
                        [&](const StepInfo& step) { return step.number == number; });
  };
  const auto failed = row_of(member.record.step);
  if (failed == steps.end()) return nullptr;
  const auto next = row_of(following);
  const auto end = next != steps.end() && next > failed ? next : failed + 1;
  const auto missed = std::find_if(failed, end, [](const StepInfo& step) { return step.must_run; });
  return missed == end ? nullptr : &*missed;
}

Result<Order> plan_skip_of_step(Execution& member, Execution& head, std::uint32_t next_step) {
  const auto following = step_after(member, next_step);
  if (!following.ok()) return following.status();
  if (const StepInfo* const missed = missed_step(member, *following); missed != nullptr) {
    const bool is_failed_one = missed->number == member.record.step;
    return refused(fmt::format(
        "{} failed at {}, {}, because later steps rely on it; {}, or ask preview() whether "
        "fail_and_roll_back or bypass is possible",
        name_of(member), name_of_step(member, member.record.step),
        is_failed_one ? "which must run"
                      : fmt::format("and {} lies between, which must run",
                                    name_of_step(member, missed->number)),
        is_failed_one ? "mend its cause and let it be retried" : "let that one follow"));
  }
  Order order = about_step(Order::Kind::kSkipStep, member, head);
  order.following = *following;
  return order;
}

Result<Order> plan_skip(Execution& target, Execution& head, std::uint32_t next_step) {
  const DomainState state = state_of(head);
  if (state == DomainState::kParkedInUndo) return plan_skip_of_undo(target, head, next_step);
  if (state == DomainState::kParkedBeyond) {
    const auto failed = failed_at(target, head);
    if (!failed.ok()) return failed.status();
    return plan_skip_of_step(**failed, head, next_step);
  }
  Execution* const given_up = given_up_at(target);
  if (given_up == nullptr) {
    return refused(fmt::format("the tree of {} is not parked", name_of(head)));
  }
  PV2_ASSERT(state != DomainState::kQuarantined, "no member of a quarantined tree has given up");
  if (Status works = why_work_forbids(*given_up); !works.ok()) return works;
  if (Status moving = why_not_moved(*given_up); !moving.ok()) return moving;
  return plan_skip_of_step(*given_up, head, next_step);
}

// ---- fail_and_roll_back ----

// Whether the order aborts the root. It does while the target goes forward, except from a part of
// the tree that failed beyond a point of no return: that part is sent back alone. A part that is
// parked in an undo is undone with the tree.
bool aborts_root(Execution& target, Execution& head) {
  const DomainState own = head.domain.state;
  if (!is_parked(own)) return true;
  return failing_domain(target) == nullptr && state_of(head) != DomainState::kParkedBeyond;
}

Result<Order> plan_send_back(Execution& head) {
  const DomainState state = state_of(head);
  if (state == DomainState::kQuarantined) return quarantined(head);
  const Execution* const parked =
      state == DomainState::kParkedBeyond ? nullptr : parked_member(head);
  if (parked != nullptr) {
    return refused(
        fmt::format("the tree of {} is being undone, and parked at {}; let that be "
                    "retried or skipped, or bypass the tree",
                    name_of(head), name_of(*parked)));
  }
  if (is_in_flight(head)) return busy(head);
  if (Status late = why_too_late(head); !late.ok()) return late;
  return Order{.kind = Order::Kind::kSendBack, .about = &head, .head = &head};
}

// ---- bypass ----

// Why a domain that goes forward cannot be bypassed, or OK. One of its members has to stand still:
// then no head around that member ends before the order is carried out.
Status why_it_goes_on(Execution& head) {
  const Execution* const given_up = first_given_up(head);
  if (given_up == nullptr) {
    const bool commits =
        head.root()->domain.rare->beyond != 0 || head.root()->domain.rare->begun != 0;
    return refused(fmt::format(
        "the tree of {} goes forward, and nobody in it has used up the attempts at a step; {}, or, "
        "if a part of it has failed, bypass that part by its own id",
        name_of(head),
        commits ? "let it go on, as it has begun a point of no return" : "abort it"));
  }
  return first_idle_given_up(head) != nullptr ? Status() : busy(*given_up);
}

// Whether an order to end a part of the tree of `root` is waiting.
bool order_waits_in(EngineCore& core, const Execution& root) PV2_REQUIRES(core.state_mutex) {
  const auto& waiting = core.state.orders.waiting;
  return std::any_of(waiting.begin(), waiting.end(),
                     [&](const WaitingOrder& order) PV2_REQUIRES(core.state_mutex) {
                       const Execution* const other = core.find(order.head);
                       return other != nullptr && other->root() == &root;
                     });
}

// A member in the middle of a step is no reason to refuse: the order waits for that step.
Result<Order> plan_bypass(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex) {
  if (head.stored == Stored::kTorn) {
    return refused(
        fmt::format("{} belongs to a root that is none; restore a backup", name_of(head)));
  }
  if (head.stored == Stored::kUnreadable) {
    return refused(
        fmt::format("{} has a record that cannot be read, and is kept as it is; restore a backup",
                    name_of(head)));
  }
  if (!is_stopped(state_of(head))) {
    if (Status moving = why_it_goes_on(head); !moving.ok()) return moving;
  }
  if (head.domain.ending == EndingOrder::kDurable) {
    return refused(fmt::format(
        "an operator has ended {} already, and it waits for its offloaded work", name_of(head)));
  }
  if (order_waits_in(core, *head.root())) {
    return Status(StatusCode::kUnavailable,
                  fmt::format("an order to bypass a part of the tree of {} waits until a step has "
                              "ended; look again",
                              name_of(*head.root())));
  }
  return Order{.kind = Order::Kind::kBypass, .about = &head, .head = &head};
}

// Why no order about the domain of `head` is accepted now, or OK.
Status why_not_now(const Execution& head) {
  const EndingOrder order = head.domain.ending;
  if (order != EndingOrder::kWaits && order != EndingOrder::kMayGoOn) return Status();
  return Status(
      StatusCode::kUnavailable,
      fmt::format("an order to bypass {} waits until a step has ended; look again", name_of(head)));
}

}  // namespace

Result<Order> plan_order(EngineCore& core, Execution& target, RepairVerb verb,
                         std::uint32_t next_step) {
  Execution& head = scope_of(target);
  if (verb == RepairVerb::kFailAndRollBack && aborts_root(target, head)) {
    return Order{.kind = Order::Kind::kAbortRoot, .about = target.root(), .head = target.root()};
  }
  if (Status later = why_not_now(head); !later.ok()) return later;
  switch (verb) {
    case RepairVerb::kRetryNow:
      return plan_retry(target, head);
    case RepairVerb::kSkipStep:
      return plan_skip(target, head, next_step);
    case RepairVerb::kFailAndRollBack:
      return plan_send_back(head);
    case RepairVerb::kBypass:
      return plan_bypass(core, head);
  }
  return refused("there is no such order");
}

}  // namespace pv2
