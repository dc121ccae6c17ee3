// SPDX-License-Identifier: Apache-2.0
//
// A waiting order is tried again in each section in which something in its domain may have ended
// (EndingOrder::kMayGoOn). By then the order may no longer make sense: the domain may have ended,
// gone forward, or become part of a wider failure.

#include "orders/bypass.h"

#include <pv2/base/assert.h>

#include <utility>

#include "core/effects.h"
#include "model/names.h"
#include "model/rollback_plan.h"
#include "orders/repair_record.h"
#include "orders/repair_refusal.h"
#include "steps/offloads.h"
#include "tree/domains.h"
#include "tree/failure.h"
#include "tree/members_at_work.h"
#include "tree/rollback.h"

namespace pv2 {
namespace {

// Lets the order wait. No step of the domain of `head` begins until the order is carried out.
void let_order_wait(EngineCore& core, Execution& head, AuditEntry entry, Reply<Status> reply,
                    Effects& effects) PV2_REQUIRES(core.state_mutex) {
  auto& waiting = core.state.orders.waiting;
  if (waiting.size() >= WaitingOrder::kMax) {
    const std::string why = fmt::format(
        "{} orders to bypass wait until steps have ended, which is as many as may wait; try again",
        WaitingOrder::kMax);
    return effects.reply(std::move(reply), Status(StatusCode::kUnavailable, why));
  }
  waiting.push_back({head.id, std::move(entry), std::move(reply)});
  make_way_for_order(core, head);
}

// Why a waiting order can no longer be carried out, or OK.
Status why_not_any_more(EngineCore& core, const WaitingOrder& order)
    PV2_REQUIRES(core.state_mutex) {
  Execution* const head = core.find(order.head);
  if (head == nullptr || head->record.reported || is_over(*head)) {
    return refused(fmt::format("{} ended before it could be bypassed", name_of(order.head)));
  }
  const Execution* const failing = failing_domain(*head);
  if (failing == nullptr) {
    return refused(fmt::format("{} went forward again before it could be bypassed; look again",
                               name_of(order.head)));
  }
  if (failing != head) {
    return refused(
        fmt::format("the tree of {} failed around {} before that could be bypassed; look again",
                    name_of(*failing), name_of(order.head)));
  }
  return Status();
}

// Whether no member of the domain is in the middle of a step. If so, no further undo of it begins.
bool comes_to_rest(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  return busy_member(core, head) == nullptr && stop_turns(core, head, effects);
}

// Whether the order stops waiting: it is carried out, or refused because it no longer can be.
bool try_again(EngineCore& core, WaitingOrder& order, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  Looks::one();
  if (Status late = why_not_any_more(core, order); !late.ok()) {
    if (Execution* const head = core.find(order.head)) head->domain.ending = EndingOrder::kNone;
    effects.reply(std::move(order.reply), late);
    return true;
  }
  Execution& head = *core.find(order.head);
  PV2_ASSERT(head.domain.makes_way(), "a domain makes way for the order that waits to end it");
  if (!why_too_late(head).ok()) return false;
  if (head.domain.ending != EndingOrder::kMayGoOn) return false;
  head.domain.ending = EndingOrder::kWaits;
  if (!comes_to_rest(core, head, effects)) return false;
  const Order ends{.kind = Order::Kind::kBypass, .about = &head, .head = &head};
  commit_order(core, ends, std::move(order.entry), std::move(order.reply), effects);
  return true;
}

}  // namespace

void bypass(EngineCore& core, const Order& order, AuditEntry entry, Reply<Status> reply,
            Effects& effects) {
  PV2_ASSERT(order.kind == Order::Kind::kBypass, "only an order to bypass may wait");
  Execution& head = *order.head;
  const bool at_once = head.domain.is_stopped() && comes_to_rest(core, head, effects);
  at_once ? commit_order(core, order, std::move(entry), std::move(reply), effects)
          : let_order_wait(core, head, std::move(entry), std::move(reply), effects);
}

void carry_out_waiting_orders(EngineCore& core, Effects& effects) {
  auto& waiting = core.state.orders.waiting;
  if (waiting.empty()) return;
  core.widen();
  if (Status stopped = core.unavailable(); !stopped.ok()) {
    return refuse_waiting_orders(core, stopped, effects);
  }
  core.flush();  // then every kQueued member is in a queue, or polled
  std::erase_if(waiting, [&](WaitingOrder& order) PV2_REQUIRES(core.state_mutex) {
    return try_again(core, order, effects);
  });
}

void refuse_waiting_orders(EngineCore& core, const Status& why, Effects& effects) {
  for (WaitingOrder& order : core.state.orders.waiting) {
    effects.reply(std::move(order.reply), why);
  }
  core.state.orders.waiting.clear();
}

bool is_busy(EngineCore& core, const Execution& member) {
  if (member.phase == Phase::kIdle || member.phase == Phase::kWaiting) return false;
  return member.phase != Phase::kQueued ||
         core.scheduler.place_of(member, 0).where == QueuePlace::Where::kOut;
}

const Execution* busy_member(EngineCore& core, Execution& head) {
  if (!why_too_late(head).ok()) return &head;
  PV2_ASSERT(head.domain.failing() == &head, "a domain was stopped before an order ends it");
  core.flush();  // then every kQueued member is in a queue, or polled
  if (head.domain.rare->rollback) {
    for (const Execution* const member : head.domain.rare->rollback->begun()) {
      if (is_busy(core, *member)) return member;
    }
  }
  // The other members are idle, except those that a worker had already taken, which are counted.
  std::size_t at_work = 0;
  for_each_at_work(head, [&](const Execution& /*member*/) { ++at_work; });
  return head.domain.rare->in_flight_inside == at_work ? nullptr : &head;
}

}  // namespace pv2
