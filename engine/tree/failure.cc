// SPDX-License-Identifier: Apache-2.0
//
// A domain is stopped for one of four reasons: a record of a failure, an abort, quarantine, or an
// order that is to end the domain.

#include "tree/failure.h"

#include <utility>

#include "core/effects.h"
#include "model/names.h"
#include "model/tree_walk.h"
#include "model/tree_work.h"
#include "pv2/engine/procedure_registry.h"
#include "tree/domains.h"
#include "tree/flight.h"
#include "tree/member_step.h"
#include "tree/rollback.h"
#include "tree/tree_works.h"

namespace pv2 {
namespace {

// Stops the domain of `head`, which went forward until now and is within no stopped domain.
void stop_domain(EngineCore& core, Execution& head, DomainState why)
    PV2_REQUIRES(core.state_mutex) {
  Domain& domain = head.domain;
  PV2_ASSERT(head.is_head(), "a domain is stopped at its head");
  PV2_ASSERT(domain.failing() == nullptr, "no wider domain has failed");
  PV2_ASSERT(domain.rare->in_flight_inside == 0,
             "a domain that goes forward counts only its own members");
  move_to(head, why);
  RareOfDomain& rare = domain.rare.edit();
  rare.failing = &head;
  rare.in_flight_inside = domain.in_flight;
  // Workers give runs back if other members may be in flight. The member that failed is counted
  // until its record has been dealt with; members of the domains within are not counted yet. In a
  // large tree stopped() recalls them only some sections later.
  if (domain.in_flight > 1 || head.first_child() != nullptr) core.recall_runs();
  begin_work(core, head, TreeWork::Kind::kStop);
}

// A domain that was stopped for an order has changed: it has failed after all, a domain within it
// has failed or goes forward again, or it is quarantined. Visits each member again, so that
// RareOfDomain::begun is right.
void stop_again(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex) {
  TreeWork* const work = head.domain.rare->work;
  if (work == nullptr) {
    begin_work(core, head, TreeWork::Kind::kStop);
  } else {
    PV2_ASSERT(work->kind == TreeWork::Kind::kStop,
               "the only work on a domain stopped for an order is to stop it");
    work->cursor = TreeCursor(head);
  }
}

}  // namespace

void fail_tree(EngineCore& core, Execution& head) {
  if (head.domain.state == DomainState::kForward) stop_domain(core, head, DomainState::kFailed);
}

void failed_too_late(EngineCore& core, Execution& member) {
  Execution* const failing = failing_domain(member);
  PV2_ASSERT(failing != nullptr, "a member that fails too late is in a stopped domain");
  if (failing->domain.state != DomainState::kStopped) return;
  Execution& own = *member.head();
  if (!own.domain.is_undone() && !own.domain.is_parked()) move_to(own, DomainState::kFailed);
  stop_again(core, *failing);
}

void repaired_too_late(EngineCore& core, Execution& member) {
  Execution& own = *member.head();
  const bool is_stopped_around = failing_domain(own)->domain.state == DomainState::kStopped;
  if (!is_stopped_around || !own.domain.is_stopped()) return;
  if (&own == failing_domain(own) || domain_has_failed(own)) return;
  move_to(own, DomainState::kForward);
  own.domain.deadlock_victim = false;
  own.domain.rare.edit().cause = Status();
  find_failed_domains(own);  // planning its rollback had set the domains within to kForward
  stop_again(core, *failing_domain(own));
}

void abort_tree(EngineCore& core, Execution& root, Effects& effects) {
  PV2_ASSERT(root.is_root(), "the member that is aborted is a root");
  PV2_ASSERT(core.has_shares, "no worker goes on with a root while it is aborted");
  fail_tree(core, root);
  Domain& domain = root.domain;
  if (domain.state == DomainState::kStopped) {
    move_to(root, DomainState::kFailed);
    stop_again(core, root);
  }
  if (domain.rare->in_flight_inside != 0) core.recall_runs();
  const bool stands = domain.rare->in_flight_inside == 0 && domain.rare->work == nullptr;
  if (stands && domain.state == DomainState::kFailed) begin_rollback(core, root, effects);
}

namespace {

// A member for which `is_it` holds, to name it in a message; or nullptr if none of the first 128
// members is one.
template <class Test>
const Execution* find_few(Execution& root, Test is_it) {
  constexpr std::size_t kFew = 128;
  std::size_t left = kFew;
  for (Execution& member : Subtree(root)) {
    if (is_it(member)) return &member;
    if (--left == 0) return nullptr;
  }
  return nullptr;
}

}  // namespace

Status why_not_abortable(Execution& root) {
  const std::string name = name_of(root.id);
  const auto refused = [&](const std::string& why) {
    return Status(StatusCode::kFailedPrecondition, name + " cannot be aborted: " + why);
  };
  if (root.phase == Phase::kInserting) {
    return Status(StatusCode::kUnavailable, name + " is just being submitted; try again");
  }
  if (root.is_quarantined()) return refused("it is quarantined");
  if (root.domain.ending == EndingOrder::kDurable) {
    return refused("an operator has ended it, and it waits for its offloaded work");
  }
  if (root.domain.is_parked())
    return refused("it is parked, and can be neither finished nor undone");
  if (root.domain.is_stopped() && root.domain.state != DomainState::kStopped) {
    return refused("it has failed already and is being undone");
  }
  const bool is_beyond = root.domain.rare->beyond != 0 && !root.record.sent_back;
  // The counts may be too high for a moment: members of a failing domain count until the work that
  // stops them has visited them, and members of a domain that an operator has ended until they have
  // left.
  const Status later(StatusCode::kUnavailable,
                     name + " cannot be aborted while a part of its tree ends or fails; try again");
  if ((is_beyond || root.domain.rare->begun != 0) && root.domain.works() != nullptr) return later;
  if (is_beyond) {
    const Execution* const beyond = find_few(root, stands_beyond_return);
    return refused(beyond == nullptr ? "one of its members has passed its point of no return"
                                     : name_of(beyond->id) + " has passed its point of no return");
  }
  if (root.domain.rare->begun != 0) {
    // In a domain that has failed, a member counts until its step has ended.
    const Execution* const ending = find_few(root, [](Execution& member) {
      return member.no_return_mark == NoReturn::kBegun && is_to_be_undone(member);
    });
    if (ending != nullptr) return later;
    const Execution* const begun = find_few(
        root, [](const Execution& member) { return member.no_return_mark == NoReturn::kBegun; });
    return refused(begun == nullptr
                       ? "one of its members has begun its point of no return"
                       : name_of(begun->id) + " has begun its point of no return, step " +
                             std::string(begun->type->find_step(begun->record.step)->name));
  }
  return Status();
}

void quarantine_tree(EngineCore& core, Execution& root, const Status& reason, Effects& effects) {
  PV2_ASSERT(root.is_root(), "the member that is quarantined is a root");
  PV2_ASSERT(!reason.ok(), "a quarantine has a reason");
  PV2_ASSERT(core.has_shares, "no worker goes on with a root while it is quarantined");
  if (root.is_quarantined()) return;
  Domain& domain = root.domain;
  if (domain.state == DomainState::kForward) {
    stop_domain(core, root, DomainState::kQuarantined);
  } else if (domain.state == DomainState::kStopped) {
    stop_again(core, root);
  } else if (domain.rare->work == nullptr) {  // members that are being undone stop too
    begin_work(core, root, TreeWork::Kind::kStop);
  }
  move_to(root, DomainState::kQuarantined);
  domain.rare.edit().cause = reason;
  core.state.news.add(ProcedureNews::Kind::kQuarantined, root, reason);
  effects.log(LogLevel::kError,
              name_of(root) + " is quarantined with its locks: " + reason.to_string());
}

void make_way_for_order(EngineCore& core, Execution& head) {
  PV2_ASSERT(core.has_shares, "no worker goes on with a root that makes way for an order");
  Domain& domain = head.domain;
  domain.ending = EndingOrder::kMayGoOn;
  if (domain.state == DomainState::kForward) stop_domain(core, head, DomainState::kStopped);
  core.recall_runs();
}

namespace {

void stop_member(EngineCore& core, Execution& member) PV2_REQUIRES(core.state_mutex) {
  core.stop_work(member);
  switch (member.phase) {
    case Phase::kQueued:
      if (core.scheduler.withdraw(member)) {
        member.phase.move_to(Phase::kIdle);
      } else {  // a worker has polled it, and will find that it must not begin
        member.phase.move_to(Phase::kDropping);
        enter_flight(member);
      }
      core.abandon_waits(member);
      break;
    case Phase::kWaiting:
      member.phase.move_to(Phase::kIdle);
      core.abandon_waits(member);
      break;
    case Phase::kInserting:
    case Phase::kInFlight:  // in flight: counted already
    case Phase::kDropping:
    case Phase::kIdle:
      break;
  }
}

// Stops `member`, and if it is a head notes in it that the domain of `head` is the widest stopped
// one around it.
void stop(EngineCore& core, Execution& head, Execution& member) PV2_REQUIRES(core.state_mutex) {
  if (member.is_head() && member.domain.failing() != &head) {
    // `before` still counts the members of domains within it that this work has not visited yet.
    if (Execution* const before = std::exchange(member.domain.rare.edit().failing, &head)) {
      PV2_ASSERT(before->domain.rare->in_flight_inside >= member.domain.in_flight,
                 "a failed domain counts all members in flight within it");
      before->domain.rare.edit().in_flight_inside -= member.domain.in_flight;
    }
    head.domain.rare.edit().in_flight_inside += member.domain.in_flight;
  }
  PV2_ASSERT(failing_domain(member) == &head, "a stopped member is in the domain that stopped it");
  stop_member(core, member);
  note_no_return(member);
}

// All members under `head` were stopped.
void stopped(EngineCore& core, Execution& head, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  const Domain& domain = head.domain;
  let_order_look(core, head);
  if (domain.rare->in_flight_inside != 0) core.recall_runs();
  if (head.is_quarantined() || domain.rare->in_flight_inside != 0) return;
  if (domain.state == DomainState::kFailed) begin_rollback(core, head, effects);
}

}  // namespace

void stop_all(EngineCore& core, TreeWork& work, Effects& effects) {
  core.flush();  // so that every kQueued member is in a queue, or polled
  while (Execution* const member = next_to_visit(core, work)) stop(core, work.head, *member);
  if (work.cursor.at() != nullptr) return;
  const auto over = take_off(work);
  stopped(core, over->head, effects);
}

}  // namespace pv2
