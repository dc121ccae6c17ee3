// SPDX-License-Identifier: Apache-2.0
//
// LockTable, wait cycles. An entry waits for other entries in four cases:
//  - In line for a key: for the holders of the key whose mode excludes its own (unless an ancestor
//    of the entry covers the key), and for the waiters before it whose mode does.
//  - In line for a key with a limit: for the entries that have the places, or get them before it.
//  - As a parent: for its descendants.
//  - With a reported wait: for the producer that the report names.
//
// Most entries go on only after all of the entries that they wait for. An entry in line for a place
// waits only until any one place comes free. So it is stuck when, of the holders and of the waiters
// before it, at least as many are stuck as there are places.
//
// A wait that may have closed a cycle is noted, and costs no more than that. A search comes later.
// It begins with the waits of which every cycle has one (waiters that have a parent, and reported
// waits), follows the entries that these wait for, and copies each waiter, holder and key once
// (WaitGraph), in sections between which other threads work. The members of a cycle stand still, so
// a cycle that stood when the search began is in the copy. A cycle found in the copy is verified in
// one section, and then kept until one of its links ends.
//
// The next search skips the members of a kept cycle, so a kept cycle that stands no more would hide
// the other cycles that its members are in. Two rules prevent that:
//  - As long as no search is due (suspects_cycles_), each kept cycle stands, link by link. So
//    every change that makes a link, or ends a link of a kept cycle, makes a search due; an entry
//    that stops waiting also opens its cycles at once. A link also ends while its entry waits on: a
//    waiter begins to pass the waiters before it, or a parent no longer waits for a descendant,
//    because another descendant has its turn.
//  - A search checks each kept cycle again when it begins, and drops those that stand no more. A
//    search that drops one later, or has found enough and leaves others out, makes another due.

#include <pv2/base/assert.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lock_table.h"

namespace pv2 {

// ---- Nested waiters: every cycle has one, or a reported wait ----

// An entry that stands in line is in no other list, so its list links are free.
void LockTable::link_nested(SchedulerEntry& entry) {
  PV2_ASSERT(waits(entry), "an entry that joins the nested waiters stands in line");
  entry.next_ = nullptr;
  entry.prev_ = last_nested_;
  (last_nested_ != nullptr ? last_nested_->next_ : first_nested_) = &entry;
  last_nested_ = &entry;
}

void LockTable::unlink_nested(SchedulerEntry& entry) {
  PV2_ASSERT(first_nested_ != nullptr, "an entry that leaves the nested waiters was among them");
  for (WaitSearch* const search : searches_) {
    if (search->next_nested == &entry) search->next_nested = entry.next_;
  }
  (entry.prev_ != nullptr ? entry.prev_->next_ : first_nested_) = entry.next_;
  (entry.next_ != nullptr ? entry.next_->prev_ : last_nested_) = entry.prev_;
  entry.next_ = entry.prev_ = nullptr;
}

bool LockTable::waits_for_its_turn(const SchedulerEntry& entry) const {
  if (turns_ == 0) return false;
  const auto wait = reported_.find(&entry);
  return wait != reported_.end() && wait->second.why == WaitLink::Why::kTurn;
}

// ---- The search ----

void LockTable::begin(WaitSearch& search) {
  if (search.keeps) {
    suspects_cycles_ = false;
    drop_standing_unless([this](const StandingCycle& standing) { return stands(standing); });
  }
  search.last_ticket = last_ticket_;
  search.cursor.last_ticket = last_ticket_;
  search.next_nested = first_nested_;
  search.reported_left = reported_order_.size();
  search.limit_changes = limit_changes_;
  search.at_limits = standing_at_limits_ != 0;
  for (const StandingCycle& standing : standing_) {
    for (const WaitLink& link : standing.cycle.links) search.standing.insert(link.waiter.value);
  }
  searches_.push_back(&search);
  cursors_.push_back(&search.cursor);
}

bool LockTable::copy_waits(WaitSearch& search) {
  constexpr std::uint64_t kStepMax = 3;  // how many looks a step of the search takes
  const std::uint64_t before = looks_;
  for (bool first = true; first || looks_ - before + kStepMax <= search.looks_max; first = false) {
    if (search.next_line < search.lines_to_copy.size()) {
      copy_party(search);
    } else if (search.next_member < search.graph.member_count()) {
      follow(search);
    } else if (search.next_nested != nullptr) {
      const SchedulerEntry& entry = *std::exchange(search.next_nested, search.next_nested->next_);
      if (ticket_of(entry) > search.last_ticket) {
        search.next_nested = nullptr;
        continue;
      }
      (void)add_member(search, entry);
    } else if (search.reported_left = std::min(search.reported_left, reported_order_.size());
               search.reported_left != 0) {
      (void)add_member(search, *reported_order_[--search.reported_left]);
    } else {
      return false;
    }
  }
  return true;
}

// Copies what `entry` waits for, as far as one look tells.
std::pair<WaitGraph::Index, bool> LockTable::add_member(WaitSearch& search,
                                                        const SchedulerEntry& entry) const {
  ++looks_;
  const auto [index, is_new] = search.graph.member_for(entry, entry.id);
  if (!is_new) return {index, false};
  WaitGraph::Member& member = search.graph.member(index);
  member.since = entry.since_;
  if (waits(entry)) {
    member.ticket = member.stamp = ticket_of(entry);
    member.passes = passes_waiters(entry);
  }
  if (const auto at = reported_.find(&entry); at != reported_.end()) {
    member.producer = at->second.producer;
    member.why = at->second.why;
    member.reported_since = at->second.since;
    member.stamp = std::max(member.stamp, at->second.stamp);
  }
  return {index, true};
}

// Copies one party of the next line. Of the holders only those that may wait for something are
// copied.
void LockTable::copy_party(WaitSearch& search) const {
  ++looks_;
  const auto [line, number] = search.lines_to_copy[search.next_line];
  if (search.cursor.node == nullptr) {
    search.cursor.node = search.graph.line(line).node;
    search.cursor.line = number;
    search.cursor.in_line = false;
  }
  PV2_ASSERT(search.cursor.node == search.graph.line(line).node && search.cursor.line == number,
             "a key that is being copied stays known");
  const std::optional<PartyAt> party = next_party(search.cursor);
  if (!party) {
    search.cursor.node = nullptr;
    ++search.next_line;
    return;
  }
  const SchedulerEntry& entry = party->record.entry();
  if (party->holds) {
    PV2_ASSERT(entry.holds_locks_, "an entry among the holders of a key holds its set");
    const bool may_wait = entry.waiting_descendants_ != 0 ||
                          (!reported_.empty() &&
                           (entry.first_known_child() != nullptr || reported_.contains(&entry)));
    if (!may_wait) return;
    search.graph.line(line).holders.push_back(
        {&entry, party->record.mode(), party->record.exempt()});
    return;
  }
  PV2_ASSERT(waits(entry), "an entry in a line waits");
  const WaitGraph::Index index = add_member(search, entry).first;
  // A member that was copied before and has begun another wait since is left to the next search.
  if (index == WaitGraph::kNobody || search.graph.member(index).ticket != party->record.ticket()) {
    return;
  }
  search.graph.line(line).waiters.push_back({party->record.ticket(), index, party->record.mode()});
}

// Follows the next member by one step: to one of its keys, and then to an ancestor.
//
// A parent waits for its child. A parent that stands in line itself waits for its locks first, and
// once it has them its children pass the line. In a rollback a parent does not wait for a member
// that only waits for its turn, but for the member whose turn it is, which may be below such a
// member.
void LockTable::follow(WaitSearch& search) const {
  ++looks_;
  const WaitGraph::Index index = search.next_member;
  const WaitGraph::Member member = search.graph.member(index);
  if (!search.gone.contains(member.entry)) {
    const SchedulerEntry& entry = *member.entry;
    const auto reported = reported_.find(&entry);
    if (reported != reported_.end() && waits(*reported->second.producer)) {
      (void)add_member(search, *reported->second.producer);
    }
    const bool in_line = member.ticket != 0;
    const bool goes_on = in_line && !is_still_in_line(search, member);
    if (in_line && !goes_on && search.next_link < entry.locks_->node_count_) {
      return add_want(search, entry, LockLink(links_of(entry)[search.next_link++]));
    }
    const bool waits_for_turn = member.producer != nullptr && member.why == WaitLink::Why::kTurn;
    const SchedulerEntry* const ancestor =
        search.ancestor != nullptr ? search.ancestor : entry.parent();
    search.ancestor = nullptr;
    if (!goes_on && !waits_for_turn && ancestor != nullptr && !waits(*ancestor)) {
      const WaitGraph::Index above = add_member(search, *ancestor).first;
      if (above != WaitGraph::kNobody) search.graph.add_child_wait(above, index);
      if (waits_for_its_turn(*ancestor) && ancestor->parent() != nullptr) {
        search.ancestor = ancestor->parent();
        return;
      }
    }
  }
  ++search.next_member;
  search.next_link = 0;
  search.ancestor = nullptr;
}

void LockTable::add_want(WaitSearch& search, const SchedulerEntry& entry, LockLink link) const {
  LockNode& node = link.node();
  const auto [line, is_new] = search.graph.line_for(node);
  if (is_new) ++node.references;  // until the search ends
  WaitGraph::Want want;
  want.member = search.next_member;
  want.line = line;
  want.mode = link.mode();
  want.covered = covered(entry, node, link.mode());
  want.exempt = want.covered || covered(entry, node, LockMode::kShared);
  search.graph.add_want(want);

  // Only the lines it may wait for are copied: a child that passes all waiters does not need
  // theirs.
  const bool for_a_place = node.limited() && !want.exempt;
  const bool for_a_holder = !node.free_for(want.mode) && !want.covered;
  if (for_a_holder || for_a_place) copy_line(search, line, kHolderLine);
  if (search.graph.member(want.member).passes) return;
  for (const LockMode mode : {LockMode::kExclusive, LockMode::kShared}) {
    if (!excludes(mode, want.mode) && !for_a_place) continue;
    for (const Kin kin : {Kin::kRoot, Kin::kNested}) {
      copy_line(search, line, waiter_line(kin, mode));
    }
  }
}

void LockTable::copy_line(WaitSearch& search, WaitGraph::Index line, std::size_t number) {
  unsigned& wanted = search.graph.line(line).wanted;
  if ((wanted >> number & 1U) != 0) return;
  wanted |= 1U << number;
  search.lines_to_copy.push_back({line, number});
}

bool LockTable::is_still_in_line(const WaitSearch& search, const WaitGraph::Member& member) const {
  PV2_ASSERT(member.ticket != 0,
             "a member that may still be in line stood there when it was copied");
  if (search.gone.contains(member.entry)) return false;
  return waits(*member.entry) && ticket_of(*member.entry) == member.ticket;
}

// ---- What was found ----

bool LockTable::confirm(WaitSearch& search) const {
  for (std::size_t room = search.looks_max; room != 0; --room) {
    if (search.confirmed == search.to_confirm.size()) return false;
    ++looks_;
    if (goes_on(search, search.graph.member(search.to_confirm[search.confirmed++]))) {
      search.refuted = true;
    }
  }
  return true;
}

// Whether a wait of the member that was copied has ended. A wait for a child is not looked at: the
// child is a member too.
bool LockTable::goes_on(const WaitSearch& search, const WaitGraph::Member& member) const {
  if (search.gone.contains(member.entry)) return true;
  if (member.ticket != 0 && !is_still_in_line(search, member)) return true;
  if (member.producer == nullptr) return false;
  const auto at = reported_.find(member.entry);
  return at == reported_.end() || at->second.producer != member.producer ||
         at->second.why != member.why || at->second.stamp > member.stamp;
}

// In a rollback a parent waits for a descendant past the members between that wait for their turn.
bool LockTable::waits_for_child(const SchedulerEntry& one, const SchedulerEntry& other) const {
  if (waits_for_its_turn(other)) return false;
  for (const SchedulerEntry* a = other.parent(); a != nullptr && !waits(*a); a = a->parent()) {
    if (a == &one) return true;
    if (!waits_for_its_turn(*a)) return false;
  }
  return false;
}

// Whether the link stands, by the rule in obstacle() and the reported waits. Both entries are
// known.
bool LockTable::waits_for(const SchedulerEntry& one, const SchedulerEntry& other, WaitLink::Why why,
                          const LockNode* node) const {
  ++looks_;
  switch (why) {
    case WaitLink::Why::kChild:
      return waits_for_child(one, other);
    case WaitLink::Why::kReported:
    case WaitLink::Why::kTurn: {
      const auto at = reported_.find(&one);
      return at != reported_.end() && at->second.producer == &other && at->second.why == why;
    }
    case WaitLink::Why::kHolder:
    case WaitLink::Why::kAhead:
    case WaitLink::Why::kLimit:
      break;
  }
  PV2_ASSERT(node != nullptr, "a waiter in line waits at a key");
  if (!waits(one)) return false;
  const std::optional<LockMode> mode = mode_at(one, *node);
  const std::optional<LockMode> theirs = mode_at(other, *node);
  PV2_ASSERT(mode, "a waiter in the line for a key has asked for it");
  if (!theirs) return false;
  const bool is_ahead = waits(other) && ticket_of(other) < ticket_of(one);
  if (why == WaitLink::Why::kLimit) {
    return node->limited() && !covered(one, *node, LockMode::kShared) &&
           (other.holds_locks_ || (is_ahead && !passes_waiters(one)));
  }
  if (!excludes(*mode, *theirs)) return false;
  if (why == WaitLink::Why::kHolder) return other.holds_locks_ && !covered(one, *node, *mode);
  return is_ahead && !passes_waiters(one);
}

// A member that has begun another wait since it was copied is left to the next search.
bool LockTable::is_still_so(const WaitSearch& search, const WaitLink& link,
                            const WaitGraph::Member& waiter, const WaitGraph::Member& awaited,
                            const LockNode* node) const {
  if (search.gone.contains(waiter.entry) || search.gone.contains(awaited.entry)) return false;
  if (node != nullptr && !is_still_in_line(search, waiter)) return false;
  if (link.why == WaitLink::Why::kAhead && !is_still_in_line(search, awaited)) return false;
  return waits_for(*waiter.entry, *awaited.entry, link.why, node);
}

bool LockTable::stands(const StandingCycle& standing) const {
  const auto& links = standing.cycle.links;
  PV2_ASSERT(links.size() == standing.parties.size(), "each link of a known cycle has its entry");
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto& [entry, node] = standing.parties[i];
    const SchedulerEntry& awaited = *standing.parties[(i + 1) % links.size()].entry;
    PV2_ASSERT(entry->id == links[i].waiter,
               "the entry of a link of a known cycle is the link's waiter");
    if (!waits_for(*entry, awaited, links[i].why, node)) return false;
  }
  return true;
}

bool LockTable::stands(const WaitSearch& search, const WaitGraph::FoundCycle& found) const {
  const auto& links = found.cycle.links;
  PV2_ASSERT(links.size() == found.members.size() && links.size() == found.lines.size(),
             "each link of a found cycle has its member and its line");
  if (found.through_a_limit && (search.refuted || search.limit_changes != limit_changes_)) {
    return false;
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto& waiter = search.graph.member(found.members[i]);
    const auto& awaited = search.graph.member(found.members[(i + 1) % links.size()]);
    const WaitGraph::Index line = found.lines[i];
    const LockNode* const node =
        line != WaitGraph::kNobody ? search.graph.line(line).node : nullptr;
    if (!is_still_so(search, links[i], waiter, awaited, node)) return false;
  }
  return true;
}

void LockTable::verify(WaitSearch& search) {
  std::erase_if(search.found, [&](const auto& found) { return !stands(search, found); });
}

void LockTable::adopt(WaitSearch& search) {
  forget_standing_that_opened(search);
  const std::size_t found = search.found.size();
  verify(search);
  if (search.found.size() != found) suspects_cycles_ = true;  // another may stand instead
  if (search.graph.found_enough()) suspects_cycles_ = true;   // and there may be more
  for (WaitGraph::FoundCycle& cycle : search.found) {
    const ProcedureId last = cycle.cycle.links.front().waiter;
    const bool known = std::ranges::any_of(
        standing_, [&](const StandingCycle& standing) { return standing.cycle.has(last); });
    if (known) continue;  // another search was faster
    standing_at_limits_ += cycle.through_a_limit ? 1 : 0;
    ++untold_cycles_;
    StandingCycle standing{std::move(cycle.cycle), {}, cycle.through_a_limit, false};
    for (std::size_t i = 0; i < cycle.members.size(); ++i) {
      const WaitGraph::Index line = cycle.lines[i];
      standing.parties.push_back(
          {search.graph.member(cycle.members[i]).entry,
           line != WaitGraph::kNobody ? search.graph.line(line).node : nullptr});
    }
    PV2_ASSERT(stands(standing), "a cycle stands when it becomes known");
    standing_.push_back(std::move(standing));
  }
}

bool LockTable::end(WaitSearch& search) {
  for (std::size_t room = search.looks_max; search.lines_released < search.graph.line_count();
       --room) {
    if (room == 0) return true;
    ++looks_;
    LockNode& node = *search.graph.line(search.lines_released++).node;
    PV2_ASSERT(node.references != 0, "a search keeps its keys known until it ends");
    if (--node.references == 0) drop(node);
  }
  std::erase(searches_, &search);
  std::erase(cursors_, &search.cursor);
  return false;
}

template <class Keep>
bool LockTable::drop_standing_unless(Keep&& keep) {
  return 0 != std::erase_if(standing_, [&](const StandingCycle& standing) {
           if (keep(standing)) return false;
           PV2_ASSERT(standing.told || untold_cycles_ != 0,
                      "a cycle that no caller was told of is counted");
           PV2_ASSERT(!standing.through_a_limit || standing_at_limits_ != 0,
                      "a cycle through a limit is counted");
           untold_cycles_ -= standing.told ? 0 : 1;
           standing_at_limits_ -= standing.through_a_limit ? 1 : 0;
           return true;
         });
}

// A cycle through a limit may be opened by an entry that is in none of its links. This search
// skipped the members of that cycle, so it may have missed another cycle that they are in.
void LockTable::forget_standing_that_opened(const WaitSearch& search) {
  if (!search.at_limits) return;
  const auto still_stuck = [&](const StandingCycle& standing) {
    for (std::size_t i = 0; i < standing.parties.size(); ++i) {
      const WaitLink& link = standing.cycle.links[i];
      const bool at_limit = link.why == WaitLink::Why::kLimit;
      if (!search.graph.is_stuck(link.waiter)) return false;
      if (at_limit && !search.graph.lacks_place(link.waiter, standing.parties[i].node))
        return false;
    }
    return true;
  };
  const bool any = drop_standing_unless([&](const StandingCycle& standing) {
    return !standing.through_a_limit || still_stuck(standing);
  });
  if (any) suspects_cycles_ = true;  // at a limit
}

// `entry` no longer waits, or gives its locks back. Other cycles that share a part of the forgotten
// ones may stand; and a cycle through a limit may be opened by an entry that is in none of its
// links.
void LockTable::forget_cycles_with(const SchedulerEntry& entry) {
  if (standing_at_limits_ != 0) suspects_cycles_ = true;
  const bool any = drop_standing_unless(
      [&](const StandingCycle& standing) { return !standing.cycle.has(entry.id); });
  if (any) suspects_cycles_ = true;
}

std::vector<WaitCycle> LockTable::take_closed_cycles() {
  std::vector<WaitCycle> cycles;
  for (StandingCycle& standing : standing_) {
    if (!std::exchange(standing.told, true)) cycles.push_back(standing.cycle);
  }
  PV2_ASSERT(cycles.size() == untold_cycles_, "the cycles that no caller was told of are counted");
  untold_cycles_ = 0;
  return cycles;
}

// ---- Reported waits ----

std::span<SchedulerEntry* const> LockTable::reporters_of(const SchedulerEntry& producer) const {
  const auto at = reporters_.find(&producer);
  if (at == reporters_.end()) return {};
  return at->second.waiters;
}

void LockTable::report_wait(SchedulerEntry& waiter, SchedulerEntry& producer, WaitLink::Why why,
                            SteadyTime now) {
  end_reported_wait(waiter);
  Reporters& reporters = reporters_[&producer];
  const bool is_new =
      reported_
          .try_emplace(&waiter, ReportedWait{&producer, why, now, reporters.waiters.size(),
                                             reported_order_.size(), ++last_ticket_})
          .second;
  PV2_ASSERT(is_new, "a waiter has at most one reported wait");
  reporters.waiters.push_back(&waiter);
  count_rank(reporters.ranks, waiter.rank_);
  reported_order_.push_back(&waiter);
  lifted_.push_back(&waiter);
  lift_all();
  suspects_cycles_ = true;
  if (why != WaitLink::Why::kTurn) return;
  ++turns_;
  if (++reporters.turns == 1) let_pass(producer, now);
}

void LockTable::end_reported_wait(SchedulerEntry& waiter) {
  const auto wait = reported_.find(&waiter);
  if (wait == reported_.end()) return;
  const SchedulerEntry& producer = *wait->second.producer;
  std::vector<SchedulerEntry*> borrowers;
  if (may_lend(waiter, producer)) {
    borrowers.push_back(&waiter);
    add_borrowers(borrowers);
  }
  const auto reporters = reporters_.find(&producer);
  if (wait->second.why == WaitLink::Why::kTurn) {
    PV2_ASSERT(reporters->second.turns != 0, "a waiter for a turn is counted at its producer");
    // This wait let the waiters at and below the producer pass others.
    if (--reporters->second.turns == 0 && stands_in_line_below(producer)) suspects_cycles_ = true;
  }
  // The last one takes its place, without a shift: a producer that a hundred thousand wait for ends
  // their waits one by one.
  std::vector<SchedulerEntry*>& others = reporters->second.waiters;
  reported_.at(others.back()).place = wait->second.place;
  others[wait->second.place] = others.back();
  others.pop_back();
  uncount_rank(reporters->second.ranks, waiter.rank_);
  if (others.empty()) reporters_.erase(reporters);
  erase_report(waiter);
  rank_anew(borrowers);
}

void LockTable::erase_report(const SchedulerEntry& waiter) {
  open_cycles_with(waiter);
  const auto wait = reported_.find(&waiter);
  PV2_ASSERT(wait != reported_.end(), "a report that ends was made");
  const bool for_its_turn = wait->second.why == WaitLink::Why::kTurn;
  PV2_ASSERT(!for_its_turn || turns_ != 0, "a wait for a turn that ends was counted");
  if (for_its_turn) --turns_;
  const std::size_t number = wait->second.number;
  PV2_ASSERT(reported_order_[number] == &waiter, "a reported wait knows its place among all");
  reported_.at(reported_order_.back()).number = number;
  reported_order_[number] = reported_order_.back();
  reported_order_.pop_back();
  reported_.erase(&waiter);
  // Its ancestors wait for it again, and through it for the waiters below it.
  if (for_its_turn) suspect_if_it_waits(waiter);
}

std::string to_string(const WaitCycle& cycle) {
  std::string text;
  for (const WaitLink& link : cycle.links) {
    const std::string awaited = std::to_string(link.awaited.value);
    if (!text.empty()) text += "; ";
    text += "procedure " + std::to_string(link.waiter.value);
    switch (link.why) {
      case WaitLink::Why::kHolder:
        text += " waits for " + to_string(link.key) + ", held by procedure " + awaited;
        break;
      case WaitLink::Why::kAhead:
        text += " waits for " + to_string(link.key) + " behind procedure " + awaited;
        break;
      case WaitLink::Why::kLimit:
        text += " waits for a place at " + to_string(link.key) + ", of which procedure " + awaited +
                " has or gets one";
        break;
      case WaitLink::Why::kChild:
        text += " waits for its child " + awaited;
        break;
      case WaitLink::Why::kReported:
        text += " waits for something that procedure " + awaited + " has to do";
        break;
      case WaitLink::Why::kTurn:
        text += " waits for its turn in the undoing of procedure " + awaited;
        break;
    }
  }
  return text;
}

}  // namespace pv2
