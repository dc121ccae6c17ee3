// SPDX-License-Identifier: Apache-2.0
//
// Read look_at() first. Some contradictions are real only while the engine is calm: after the store
// has failed, or while the engine stops, what was on the way is dropped as it is.

#include "watch/member_audit.h"

#include <cstdint>
#include <string>

#include "model/rollback_plan.h"
#include "steps/offloads.h"
#include "tree/domains.h"
#include "tree/member_step.h"
#include "tree/members_at_work.h"
#include "watch/domain_audit.h"

namespace pv2 {
namespace {

bool has_ended(const Execution& member) {
  return member.record.state == ProcedureState::kSuccess || member.record.reported;
}

// Whether the member's domain knows of a failure around it, or is leaving.
bool goes_back(const Execution& member) {
  return member.head()->domain.failing() != nullptr || member.head()->domain.is_over() ||
         member.root()->domain.is_over();
}

// Whether an order that ends a domain around the member may be on its way although nothing has
// failed. Such an order has stopped all members, and its record is that of the head.
bool is_to_be_ended(const Execution& member) {
  for (const Execution* head = member.head(); head != nullptr; head = domain_around(*head)) {
    if (head != &member && head->phase == Phase::kInFlight) return true;
  }
  return false;
}

// A failure that is on its way ends the wait of a member that was about to pass its point of no
// return.
bool waits_for_nothing(const Execution& member) {
  const bool wants = member.inbox && !member.inbox->wanted.empty();
  return !member.record.deadline && member.children().unfinished == 0 && member.slots.empty() &&
         !wants && !has_work(member) && !is_about_to_fail(member);
}

}  // namespace

void MemberAudit::look_at(const Execution& member) {
  const ProcedureId id = member.id;
  if (!audited_.is_live(&member, id)) {
    return findings_.add_of(member, "it is in the table under another id");
  }
  if (!audited_.state.ids.was_issued(id) && audited_.state.ids.has_begun()) {
    findings_.add_of(member, "its id has not been issued yet");
  }
  // Nothing is linked yet for an insert that the store has refused, or for a child whose record the
  // store has.
  if (member.record.state == ProcedureState::kInitializing) return look_at_new(member);
  if (member.inserting != nullptr || member.phase == Phase::kInserting) {
    findings_.add_of(member, "its first record is durable, and on the way");
  }
  look_at_place_in_tree(member);
  look_at_children(member);
  look_at_marks(const_cast<Execution&>(member));  // asks functions that take no const member
  if (!audited_.calm) return;
  audit_domain(audited_, member, counts_, findings_);
  look_at_phase(member);
  look_at_work(member);
  if (member.inbox) look_at_inbox(member);
}

void MemberAudit::look_at_new(const Execution& member) {
  const bool known = member.phase == Phase::kInserting && member.inserting != nullptr;
  if (!known && audited_.calm) {
    findings_.add_of(member, "it has no record, and none is on the way");
  }
  if (!known) return;
  if (member.inserting->execution != &member) {
    findings_.add_of(member, "its first record is of another one");
  }
  if (!member.is_root()) findings_.add_of(member, "it is inserted by itself, but is no root");
}

void MemberAudit::look_at_place_in_tree(const Execution& member) {
  const Execution* const parent = member.parent_execution();
  const Execution* const head = parent == nullptr || member.reports() ? &member : parent->head();
  const Execution* const beside = parent == nullptr                             ? nullptr
                                  : member.undo_order == UndoOrder::kConcurrent ? &member
                                                                                : parent->beside();
  if (parent != nullptr) ++counts_.children_live;
  if (parent != nullptr && !audited_.is_live(parent, parent->id)) {
    findings_.add_of(member, "its parent is not live");
  }
  if (member.head() != head) {
    findings_.add_of(member, "it is in another domain than its parent says");
  }
  if (member.beside() != beside) {
    findings_.add_of(member, "it is undone beside others than its parent says");
  }
  if (!member.waiters.empty() && !member.is_root()) {
    findings_.add_of(member, "a caller waits for its result, and it is a child");
  }
}

void MemberAudit::look_at_children(const Execution& parent) {
  const Execution* before = nullptr;
  bool has_unexamined = parent.children().unexamined == nullptr;
  std::size_t unfinished = 0;
  for (const Execution* child = parent.first_child(); child != nullptr;
       child = child->siblings().next) {
    ++counts_.children_linked;
    const bool is_of_its_tree = child->root() == parent.root();
    if (!is_of_its_tree) findings_.add_of(*child, "its root is not that of its parent");
    const bool is_its_child = !is_of_its_tree || child->parent_execution() == &parent;
    if (!is_its_child || !audited_.is_live(child, child->id)) {
      return findings_.add_of(parent, "one of its children is not, or is not live");
    }
    look_at_child(parent, *child, before);
    has_unexamined = has_unexamined || parent.children().unexamined == child;
    // The parent is told when all that the child spawned has left.
    const bool is_leaving = child->record.reported && child->domain.rare->work != nullptr;
    if (!has_ended(*child) || is_leaving) ++unfinished;
    before = child;
  }
  if (parent.children().last != before) {
    findings_.add_of(parent, "its youngest child is another one");
  }
  if (!has_unexamined) findings_.add_of(parent, "it is to look at a child that it has not");
  // In a failed domain, a parent learns of the ends of its children only when the domain goes on.
  if (audited_.calm && !goes_back(parent)) look_at_unfinished(parent, unfinished);
}

void MemberAudit::look_at_child(const Execution& parent, const Execution& child,
                                const Execution* before) {
  if (child.siblings().prev != before) {
    findings_.add_of(child, "its older sibling is another one");
  }
  if (!(parent.id < child.id)) findings_.add_of(child, "its id is below that of its parent");
  if (before != nullptr && before->place->spawned_at > child.place->spawned_at) {
    findings_.add_of(child, "it is older than the sibling before it");
  }
}

void MemberAudit::look_at_unfinished(const Execution& parent, std::size_t unfinished) {
  findings_.compare(parent, "its number of unfinished children", parent.children().unfinished,
                    unfinished);
  if (unfinished != 0 && parent.record.state != ProcedureState::kWaiting) {
    findings_.add_of(parent, "it has unfinished children, and does not wait for them");
  }
  const bool waits_for_them =
      parent.record.state == ProcedureState::kWaiting && parent.phase == Phase::kWaiting;
  if (waits_for_them && unfinished == 0) {
    findings_.add_of(parent, "it waits for children, and has none");
  }
}

// Compares the member with what its root knows of it; orders use that instead of a search.
void MemberAudit::look_at_marks(Execution& member) {
  AuditCounts::OfHead& counted = counts_.by_head[member.root()];
  if (has_work(member)) ++counted.at_work;
  if (member.children().beyond != 0) counts_.beyond_below[&member];  // to be compared
  if (member.no_return_mark == NoReturn::kBeyond && !member.is_kept_above()) {
    ++counted.beyond;
    if (member.place->final_above != nullptr) ++counts_.beyond_below[member.place->final_above];
  }
  if (member.no_return_mark == NoReturn::kBegun) ++counted.begun;
  if (member.record.parked || member.domain.is_parked()) {
    ++counted.standing;
    look_at_standing(member);
  }
  if (!audited_.calm || member.leaves()) return;
  const Execution* const failing = member.head()->domain.failing();
  if (failing != nullptr && is_parked_in_undo(member)) ++counts_.by_head[failing].parked_undos;
  look_at_no_return(member);
}

void MemberAudit::look_at_standing(const Execution& member) {
  const auto& standing = member.root()->domain.rare->standing;
  const auto at = standing ? standing->find(member.id) : decltype(standing->end())();
  if (!standing || at == standing->end() || at->second != &member) {
    findings_.add_of(member, "it is parked, and its root does not know");
  }
}

void MemberAudit::look_at_no_return(Execution& member) {
  const NoReturn mark = member.no_return_mark;
  const NoReturn now = mark == NoReturn::kNone ? mark : no_return_now(member);
  const bool is_beyond = now == NoReturn::kBeyond;
  // The mark of a member below one that stays counts nowhere, and is left as it is.
  const bool counts = !member.is_kept_above();
  if (counts && (mark == NoReturn::kBeyond) != is_beyond) {
    findings_.add_of(member, "it is counted wrongly among those past their point of no return");
  }
  const bool has_begun = now == NoReturn::kBegun;
  if ((mark == NoReturn::kBegun) != has_begun && !is_beyond && !audited_.may_not_know(member)) {
    findings_.add_of(member, "it is counted wrongly among those that have begun to pass it");
  }
}

void MemberAudit::look_at_phase(const Execution& member) {
  if (member.phase == Phase::kInFlight) ++counts_.in_flight;
  const Execution* const failing = member.head()->domain.failing();
  const bool is_over = member.root()->domain.is_over() || member.head()->domain.is_over();
  const bool waits = member.phase == Phase::kQueued || member.phase == Phase::kWaiting;
  // A procedure that was polled, and is about to be taken, is kQueued but in no queue.
  if (member.phase != Phase::kQueued &&
      audited_.core.scheduler.place_of(member, 0).where != QueuePlace::Where::kOut) {
    findings_.add_of(member, "the scheduler has it in a queue, and it is not queued");
  }
  if (is_over) {
    if (waits) findings_.add_of(member, "it is over, and waits for something");
    // A tree whose end is taken back by an earlier abort has such a record, and is not over.
    if (failing == member.root() && failing->domain.is_over() &&
        failing->record.state == ProcedureState::kSuccess) {
      findings_.add_of(member, "its tree has ended well, and it counts as failed");
    }
    return;
  }
  if (audited_.may_not_know(member)) return;
  if (failing == nullptr) return look_at_forward(member);
  const bool has_turn =
      failing->domain.rare->rollback && failing->domain.rare->rollback->has_begun(member);
  if (waits && !has_turn) {
    findings_.add_of(member, "what fails together has failed, and it goes forward");
  }
}

// For a member around which nothing has failed.
void MemberAudit::look_at_forward(const Execution& member) {
  const bool waits = member.phase == Phase::kQueued || member.phase == Phase::kWaiting;
  const bool stands = member.record.parked || is_finished(member.record.state);
  if (stands && waits) {
    findings_.add_of(member, "it has ended or is parked, and waits for something");
  }
  if (!stands && member.phase == Phase::kIdle && !is_to_be_ended(member)) {
    findings_.add_of(member, "it goes forward, and nothing will happen to it");
  }
  if (member.has_turn()) {
    findings_.add_of(member, "nothing has failed, and a step of it is undone");
  }
  if (member.record.state == ProcedureState::kSuccess && member.phase == Phase::kIdle &&
      !member.locks().empty() && member.holds_locks()) {
    findings_.add_of(member, "it has succeeded, and holds locks");
  }
  if (member.phase != Phase::kWaiting) return;
  if (waits_for_nothing(member)) findings_.add_of(member, "it waits for nothing");
  if (member.first_child() != nullptr && !member.locks().is_known()) {
    findings_.add_of(member, "its children may read its locks, which the scheduler does not know");
  }
}

void MemberAudit::look_at_work(const Execution& member) {
  const OutstandingWork* const work = member.work();
  if (work == nullptr) return;
  for (const auto& piece : work->pieces) {
    if (piece->id != member.id) {
      findings_.add_of(member, "it has work of another one outstanding");
    }
  }
  if (work->held_back) {
    if (work->pieces.empty()) findings_.add_of(member, "its record is held back for no work");
    if (member.phase != Phase::kInFlight) {
      findings_.add_of(member, "its record is held back, and it goes on");
    }
  }
  if (work->ended_with != nullptr) {
    if (work->pieces.empty()) findings_.add_of(member, "its end is put off for no work");
    ++counts_.by_head[work->ended_with].awaited;
  }
  if (!work->last_order) return;
  if (work->last_order_awaits == 0) {
    findings_.add_of(member, "the order that ends it waits for no member");
  }
  counts_.ordered.push_back(&member);
}

void MemberAudit::look_at_inbox(const Execution& member) {
  const Inbox& inbox = *member.inbox;
  std::size_t signals = 0;
  std::size_t bytes = 0;
  std::uint64_t last = 0;
  bool has_abort = inbox.abort() == nullptr;
  for (const auto& message : inbox.messages) {
    if (message->number <= last) findings_.add_of(member, "its messages are not in order");
    last = message->number;
    has_abort = has_abort || message.get() == inbox.abort();
    if (message->kind != InboxMessage::Kind::kSignal) continue;
    ++signals;
    bytes += Inbox::size_of(*message);
  }
  if (last >= inbox.next_number) {
    findings_.add_of(member, "the number of its next message is taken");
  }
  if (!has_abort) findings_.add_of(member, "it was aborted by a message that it has not");
  // The counters include the signals that are on the way.
  if (inbox.signals < signals || inbox.signal_bytes < bytes) {
    findings_.add_of(member, "it has more signals than are counted");
  }
}

}  // namespace pv2
