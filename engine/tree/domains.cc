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
  Execution* const failing = member.head()->domain.failing();
  PV2_ASSERT(failing == nullptr || failing->domain.state != DomainState::kForward,
             "a failing domain does not go forward");
  return failing;
}

bool is_in_flight(Execution& head) {
  const Domain& domain = head.domain;
  if (domain.rare->work != nullptr) return true;
  return (domain.failing() == &head ? domain.rare->in_flight_inside : domain.in_flight) != 0;
}

bool failed_before(Execution& member, CommitSequence sequence) {
  return member.head()->domain.rare->first_failure < sequence;
}

bool is_parked(Execution& member) {
  const bool has_ended = member.record.state == ProcedureState::kRolledBack;
  if (has_ended || !member.is_undone_with_its_tree()) return false;
  const Domain& own = member.head()->domain;
  return member.record.parked || own.is_parked() ||
         (own.failing() != nullptr && own.failing()->domain.is_parked());
}

bool stands_still(Execution& member) {
  const Execution* const failed = failing_domain(member);
  const bool has_turn = failed != nullptr && failed->domain.rare->rollback &&
                        failed->domain.rare->rollback->has_begun(member);
  return is_parked(member) && (member.record.parked || !has_turn);
}

bool is_to_be_undone(Execution& member) {
  const Execution* const failing = failing_domain(member);
  if (failing == nullptr) return false;
  if (failing->domain.state != DomainState::kStopped) return true;
  const Execution* head = member.head();
  while (head != failing && !head->domain.is_stopped()) head = head->outer_domain();
  return head != failing;
}

bool is_over(Execution& member) { return member.head()->domain.is_over(); }

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
  PV2_ASSERT(member.record.parked && member.record.failure() != nullptr,
             "a record that parks says why");
  member.phase.move_to(Phase::kIdle);
  const Status& why = member.record.failure()->parked;
  core.state.news.add(ProcedureNews::Kind::kParked, member, why);
  effects.log(LogLevel::kError, name_of(member) + " is parked with its locks: " + why.to_string());
}

void note_parked(Execution& member) {
  OnDemand<RareOfDomain>& rare = member.root()->domain.rare;
  if (member.record.parked || member.domain.is_parked()) {
    auto& standing = rare.edit().standing;
    if (!standing) standing = std::make_unique<MembersById>();
    standing->emplace(member.id, &member);
  } else if (rare->standing) {
    rare->standing->erase(member.id);
  }
}

namespace {

// A member under `head` that is past its point of no return and that no order has sent back, so
// that it can be neither finished nor undone if its domain fails; or nullptr.
const Execution* beyond_return(Execution& head) {
  const Execution* found = nullptr;
  if (head.record.sent_back || head.root()->domain.rare->beyond == 0) return nullptr;
  for (Execution& member : Subtree(head)) {
    if (stands_beyond_return(member)) found = &member;
  }
  return found;
}

}  // namespace

bool can_be_undone(Execution& head) {
  if (beyond_return(head) != nullptr) return false;
  if (head.root()->domain.rare->begun == 0) return true;
  for (const Execution& member : Subtree(head)) {
    if (member.no_return_mark == NoReturn::kBegun) return false;
  }
  return true;
}

namespace {

// Counts `member`, which is past its point of no return, or no longer does.
void count_beyond(Execution& member, bool counts) {
  if (member.is_kept_above()) return;
  const auto count = [counts](std::uint32_t& beyond) {
    PV2_ASSERT(counts || beyond != 0, "a member past its point of no return is counted");
    counts ? ++beyond : --beyond;
  };
  count(member.root()->domain.rare.edit().beyond);
  if (Execution* const above = member.place->final_above) {
    count(above->edit_place().children.beyond);
  }
}

}  // namespace

void count_no_return(Execution& member, NoReturn now) {
  const NoReturn before = std::exchange(member.no_return_mark, now);
  if (before == now) return;
  if (before == NoReturn::kBeyond) count_beyond(member, false);
  if (now == NoReturn::kBeyond) count_beyond(member, true);
  RareOfDomain& counts = member.root()->domain.rare.edit();
  PV2_ASSERT(before != NoReturn::kBegun || counts.begun != 0,
             "a member that has begun to pass it is counted");
  if (before == NoReturn::kBegun) --counts.begun;
  if (now == NoReturn::kBegun) ++counts.begun;
}

void stop_counting_below(Execution& kept) {
  const std::uint32_t below = std::exchange(kept.edit_place().children.beyond, 0);
  RareOfDomain& counts = kept.root()->domain.rare.edit();
  PV2_ASSERT(!kept.is_undone_with_its_tree(), "what is below a member stays if it stays itself");
  PV2_ASSERT(below <= counts.beyond, "a root counts all members past their point of no return");
  counts.beyond -= below;
}

NoReturn no_return_now(Execution& member) {
  if (stands_beyond_return(member)) return NoReturn::kBeyond;
  // A step that was in flight when its domain failed may still pass the point. The later records of
  // a member that is to be undone do not.
  const bool was_in_flight =
      member.phase == Phase::kInFlight && member.no_return_mark == NoReturn::kBegun;
  const bool may_pass = was_in_flight || !is_to_be_undone(member);
  return may_pass && has_begun_no_return(member) ? NoReturn::kBegun : NoReturn::kAhead;
}

void note_no_return(Execution& member) {
  if (member.no_return_mark == NoReturn::kNone) return;
  count_no_return(member, no_return_now(member));
}

void find_failed_domains(Execution& top) {
  for (Execution& member : Subtree(top)) {
    if (!has_failed_itself(member)) continue;
    Execution& head = *member.head();
    if (head.domain.state == DomainState::kForward) move_to(head, DomainState::kFailed);
  }
}

void note_failing(Execution& top) {
  Execution* const outer = top.is_root() ? nullptr : top.outer_domain();
  PV2_ASSERT(outer == nullptr || outer->domain.failing() == nullptr, "no wider domain has failed");
  for (Execution& member : Subtree(top)) {
    if (!member.is_head()) continue;
    Domain& domain = member.domain;
    Execution* const around = &member == &top ? nullptr : member.outer_domain()->domain.failing();
    Execution* const failing = around != nullptr ? around : domain.is_stopped() ? &member : nullptr;
    if (failing == nullptr && !domain.rare.is_made()) continue;
    domain.rare.edit().failing = failing;
    domain.rare.edit().in_flight_inside = 0;
    if (failing != nullptr) failing->domain.rare.edit().in_flight_inside += domain.in_flight;
  }
}

void retire_plan(Domain& domain, Effects& effects) {
  if (domain.rare->rollback) {
    effects.retired_plans.push_back(std::move(domain.rare.edit().rollback));
  }
}

bool domain_has_failed(Execution& head) {
  for (Execution& member : Subtree(head)) {
    if (has_failed_itself(member) && member.head() == &head) return true;
  }
  return false;
}

namespace {

// The domains within a failed one learn of the failure.
void spread_failures(Execution& root) {
  for (Execution& member : Subtree(root)) {
    if (!member.is_head()) continue;
    RareOfDomain& rare = member.domain.rare.edit();
    if (!member.domain.is_stopped()) rare.first_failure = CommitSequence{UINT64_MAX};
    rare.stopped_since = std::min(rare.first_failure, root.domain.rare->first_failure);
    if (member.is_root()) continue;
    rare.first_failure =
        std::min(rare.first_failure, member.outer_domain()->domain.rare->first_failure);
  }
}

}  // namespace

void find_failures(Execution& root) {
  find_failed_domains(root);
  bool found = false;
  const auto note = [&](Execution& member, CommitSequence sequence) {
    CommitSequence& first = member.head()->domain.rare.edit().first_failure;
    first = std::min(first, sequence);
    found = true;
  };
  for (Execution& member : Subtree(root)) {
    const InboxMessage* const abort = member.inbox ? member.inbox->abort() : nullptr;
    if (abort != nullptr) note(member, abort->sequence);
    const bool failed = member.record.state == ProcedureState::kFailed ||
                        member.record.state == ProcedureState::kRolledBack;
    if (!failed || !member.record.failure() || member.record.failure()->error.ok()) continue;
    note(member, member.record.failure()->sequence);
  }
  if (found) spread_failures(root);
  note_failing(root);
}

bool is_about_to_fail(const Execution& member) {
  const Domain& tree = member.root()->domain;
  if (tree.abort_accepted) return true;
  if (!tree.rare.is_made() || !tree.rare->had_victim) return false;
  for (const Execution* head = member.head(); head != nullptr; head = head->outer_domain()) {
    if (head->domain.deadlock_victim) return true;
  }
  return false;
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
