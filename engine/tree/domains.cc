// SPDX-License-Identifier: Apache-2.0
//
// A domain keeps its state in its head; the root keeps the counts of the tree. can_be_undone()
// walks the tree only if a count says that there is something to find.

#include "tree/domains.h"

#include <algorithm>
#include <utility>

#include "core/effects.h"
#include "model/names.h"
#include "model/rollback_plan.h"
#include "model/tree_walk.h"
#include "tree/member_step.h"

namespace pv2 {
Execution* failing_domain(Execution& member) {
  Execution* const failing = member.own_head().domain.failing;
  PV2_ASSERT(failing == nullptr || failing->domain.state != DomainState::kForward,
             "a failing domain does not go forward");
  return failing;
}

bool is_in_flight(Execution& head) {
  const Domain& domain = head.domain;
  if (domain.work != nullptr) return true;
  return (domain.failing == &head ? domain.in_flight_inside : domain.in_flight) != 0;
}

bool failed_before(Execution& member, CommitSequence sequence) {
  return member.own_head().domain.first_failure < sequence;
}

bool is_parked(Execution& member) {
  const Domain& own = member.own_head().domain;
  return member.record.parked || own.is_parked() ||
         (own.failing != nullptr && own.failing->domain.is_parked());
}

bool stands_still(Execution& member) {
  const Execution* const failed = failing_domain(member);
  const bool has_turn =
      failed != nullptr && failed->domain.rollback && failed->domain.rollback->has_begun(member);
  return is_parked(member) && (member.record.parked || !has_turn);
}

bool is_to_be_undone(Execution& member) {
  const Execution* const failing = failing_domain(member);
  if (failing == nullptr) return false;
  if (failing->domain.state != DomainState::kStopped) return true;
  const Execution* head = &member.own_head();
  while (head != failing && !head->domain.is_stopped()) head = head->outer_domain();
  return head != failing;
}

bool is_over(Execution& member) { return member.own_head().domain.is_over(); }

void move_to(Execution& head, DomainState state) {
  PV2_ASSERT(head.is_head(), "only a head has the state of a domain");
  head.domain.state.move_to(state);
  note_parked(head);
}

void park_tree(EngineCore& core, Execution& head, DomainState how, const std::string& why,
               Effects& effects) {
  PV2_ASSERT(is_parked(how), "the new state is a parked one");
  move_to(head, how);
  core.state.news.add(ProcedureNews::Kind::kParked, head,
                      Status(StatusCode::kFailedPrecondition, why));
  effects.log(LogLevel::kError, name_of(head) + " is parked with its locks: " + why);
}

void park_member(EngineCore& core, Execution& member, Effects& effects) {
  PV2_ASSERT(member.record.parked && member.record.failure != nullptr,
             "a record that parks says why");
  member.phase.move_to(Phase::kIdle);
  const Status& why = member.record.failure->parked;
  core.state.news.add(ProcedureNews::Kind::kParked, member, why);
  effects.log(LogLevel::kError, name_of(member) + " is parked with its locks: " + why.to_string());
}

void note_parked(Execution& member) {
  auto& standing = member.root->domain.standing;
  if (member.record.parked || member.domain.is_parked()) {
    if (!standing) standing = std::make_unique<MembersById>();
    standing->emplace(member.id, &member);
  } else if (standing) {
    standing->erase(member.id);
  }
}

namespace {

// A member under `head` that is past its point of no return and that no order has sent back, so
// that it can be neither finished nor undone if its domain fails; or nullptr.
const Execution* beyond_return(Execution& head) {
  const Execution* found = nullptr;
  if (head.record.sent_back || head.root->domain.beyond == 0) return nullptr;
  for (Execution& member : Subtree(head)) {
    if (stands_beyond_return(member)) found = &member;
  }
  return found;
}

}  // namespace

bool can_be_undone(Execution& head) {
  if (beyond_return(head) != nullptr) return false;
  if (head.root->domain.begun == 0) return true;
  for (const Execution& member : Subtree(head)) {
    if (member.no_return_mark == NoReturn::kBegun) return false;
  }
  return true;
}

void count_no_return(Execution& member, NoReturn now) {
  Domain& domain = member.root->domain;
  const NoReturn before = std::exchange(member.no_return_mark, now);
  if (before == now) return;
  PV2_ASSERT(before != NoReturn::kBeyond || domain.beyond != 0,
             "a member past its point of no return is counted");
  PV2_ASSERT(before != NoReturn::kBegun || domain.begun != 0,
             "a member that has begun to pass it is counted");
  if (before == NoReturn::kBeyond) --domain.beyond;
  if (before == NoReturn::kBegun) --domain.begun;
  if (now == NoReturn::kBeyond) ++domain.beyond;
  if (now == NoReturn::kBegun) ++domain.begun;
}

NoReturn no_return_now(Execution& member) {
  if (stands_beyond_return(member)) return NoReturn::kBeyond;
  const bool has_begun = !is_to_be_undone(member) && has_begun_no_return(member);
  return has_begun ? NoReturn::kBegun : NoReturn::kAhead;
}

void note_no_return(Execution& member) {
  if (member.no_return_mark == NoReturn::kNone) return;
  count_no_return(member, no_return_now(member));
}

void find_failed_domains(Execution& top) {
  for (Execution& member : Subtree(top)) {
    if (!has_failed_itself(member)) continue;
    Execution& head = member.own_head();
    if (head.domain.state == DomainState::kForward) move_to(head, DomainState::kFailed);
  }
}

void note_failing(Execution& top) {
  Execution* const outer = top.is_root() ? nullptr : top.outer_domain();
  PV2_ASSERT(outer == nullptr || outer->domain.failing == nullptr, "no wider domain has failed");
  for (Execution& member : Subtree(top)) {
    if (!member.is_head()) continue;
    Domain& domain = member.domain;
    Execution* const around = &member == &top ? nullptr : member.outer_domain()->domain.failing;
    domain.failing = around != nullptr ? around : domain.is_stopped() ? &member : nullptr;
    domain.in_flight_inside = 0;
    if (domain.failing != nullptr) domain.failing->domain.in_flight_inside += domain.in_flight;
  }
}

bool domain_has_failed(Execution& head) {
  for (Execution& member : Subtree(head)) {
    if (has_failed_itself(member) && &member.own_head() == &head) return true;
  }
  return false;
}

void find_failures(Execution& root) {
  find_failed_domains(root);
  for (Execution& member : Subtree(root)) {
    Domain& domain = member.own_head().domain;
    const InboxMessage* const abort = member.inbox ? member.inbox->abort() : nullptr;
    if (abort != nullptr) domain.first_failure = std::min(domain.first_failure, abort->sequence);
    const bool failed = member.record.state == ProcedureState::kFailed ||
                        member.record.state == ProcedureState::kRolledBack;
    if (!failed || !member.record.failure || member.record.failure->error.ok()) continue;
    domain.first_failure = std::min(domain.first_failure, member.record.failure->sequence);
  }
  for (Execution& member : Subtree(root)) {
    if (!member.is_head()) continue;
    Domain& domain = member.domain;
    if (!domain.is_stopped()) domain.first_failure = CommitSequence{UINT64_MAX};
    domain.stopped_since = std::min(domain.first_failure, root.domain.first_failure);
    if (member.is_root()) continue;
    domain.first_failure =
        std::min(domain.first_failure, member.outer_domain()->domain.first_failure);
  }
  note_failing(root);
}

bool makes_way_for_order(Execution& member) {
  const Execution* const failed = failing_domain(member);
  return failed != nullptr && failed->domain.makes_way();
}

void let_order_look(EngineCore& core, Execution& head) {
  const EndingOrder order = head.domain.ending;
  if (order != EndingOrder::kWaits && order != EndingOrder::kMayGoOn) return;
  head.domain.ending = EndingOrder::kMayGoOn;
  core.tree_work_waits.store(true);
}

}  // namespace pv2
