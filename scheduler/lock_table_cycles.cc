// SPDX-License-Identifier: Apache-2.0
//
// LockTable, cycles of waiting. Who waits for whom: a waiter for those who hold a key of its set in
// a mode that excludes it (unless an ancestor covers it), and for those who stand before it in line
// for one; where a key has a limit, for those who have the places or get them first; a parent for
// its descendants; and whoever said so for whom he named.
//
// Most of these wait for all of their kind; who stands in line for a place waits only until any of
// those that are taken comes free. So a line for places stands still when as many before it are
// stuck as there are places.
//
// A cycle is closed by the last of these to come about, so it is looked for when an entry begins to
// wait, from there backwards: who waits for it, who waits for those. A root that nobody was
// reported to wait for closes none, as nobody stands behind it yet; so the search costs something
// only for a child whose ancestors are waited for. An entry may close several at once: one is told
// of, and when that is opened, it is looked again.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lock_table.h"

namespace pv2 {

class LockTable::CycleSearch {
 public:
  CycleSearch(const LockTable& table, const SchedulerEntry& target)
      : table_(table), target_(target) {}

  /// How many times it has looked at somebody.
  [[nodiscard]] std::size_t cost() const noexcept { return cost_; }

  /// A cycle through the target, or one without links.
  WaitCycle run() {
    look_behind_all();
    // At a limit everybody who might be stuck was taken to be. Those who cannot be without others
    // who are not are left out until nobody is; they are few.
    while (met_limit_ && found_ != nullptr) {
      assumed_ = std::exchange(reasons_, {});
      look_behind_all();
      if (reasons_.size() == assumed_->size()) break;
    }
    return found_ != nullptr ? cycle() : WaitCycle();
  }

 private:
  struct Reason {
    const SchedulerEntry* awaited;
    WaitLink::Why why;
    const LockNode* node;
  };
  using Reasons = boost::unordered_flat_map<const SchedulerEntry*, Reason>;
  using Line = std::vector<std::pair<std::uint64_t, const SchedulerEntry*>>;
  /// A line of waiters is looked at from its end, and once behind those who stand in it, once
  /// behind holders: the foremost that was looked at behind either, or null.
  using Seen = std::array<const LockRecord*, 2>;
  /// The same for those in line for a place who get none: so many were not looked at.
  struct PlaceLine {
    Line parties;
    std::array<std::size_t, 2> unseen;
  };

  void look_behind_all() {
    found_ = nullptr;
    stuck_.clear();
    place_lines_.clear();
    seen_.clear();
    look_behind(target_);
    for (std::size_t i = 0; i < stuck_.size(); ++i) {
      if (found_ != nullptr && !met_limit_) break;
      look_behind(*stuck_[i]);
    }
    cost_ += stuck_.size() + 1;
  }

  // `waiter` waits for `awaited`, which waits for the target.
  void add(const SchedulerEntry& waiter, const Reason& reason) {
    if (&waiter == &target_) {
      if (found_ == nullptr) found_ = reason.awaited;
      reasons_.try_emplace(&waiter, reason);
      return;
    }
    if (reasons_.try_emplace(&waiter, reason).second) stuck_.push_back(&waiter);
  }

  void look_behind(const SchedulerEntry& entry) {
    add_ancestors(entry);
    for (const SchedulerEntry* const waiter : table_.reporters_of(entry)) {
      add(*waiter, {&entry, table_.reported_.at(waiter).why, nullptr});
    }
    if (entry.blocks_ == nullptr) return;
    const auto links = links_of(entry);
    for (std::size_t i = 0; i < links.size(); ++i) {
      const LockLink link(links[i]);
      look_behind_at(entry, link.node(), link.mode());
      if (link.node().limited()) look_at_limit(entry, link.node(), record_of(entry, i));
    }
  }

  // A parent waits for its child. One that stands in line itself waits for that first, and its
  // children will then pass. In a rollback a parent does not wait for a member that only waits for
  // its turn, but for the one whose turn it is, and that may be below such a member.
  void add_ancestors(const SchedulerEntry& entry) {
    if (waits_for_its_turn(entry)) return;
    for (const SchedulerEntry* a = entry.parent; a != nullptr && !waits(*a); a = a->parent) {
      add(*a, {&entry, WaitLink::Why::kChild, nullptr});
      if (!waits_for_its_turn(*a)) return;
    }
  }

  [[nodiscard]] bool waits_for_its_turn(const SchedulerEntry& entry) const {
    const auto wait = table_.reported_.find(&entry);
    return wait != table_.reported_.end() && wait->second.why == WaitLink::Why::kTurn;
  }

  // Who was looked at behind one of those who are stuck is not looked at again behind the next: a
  // line of any length costs one look at each who stands in it.
  void look_behind_at(const SchedulerEntry& entry, LockNode& node, LockMode mode) {
    if (node.waiter_count == 0) return;
    const bool in_line = waits(entry);
    const std::uint64_t after = in_line ? entry.blocks_->ticket : 0;
    for (const Kin kin : {Kin::kRoot, Kin::kNested}) {
      for (const LockMode waiting : {LockMode::kExclusive, LockMode::kShared}) {
        if (mode == LockMode::kShared && waiting == LockMode::kShared) continue;
        const LockRecordList& line = node.waiters(kin, waiting);
        if (line.empty() || line.back().ticket() <= after) continue;
        const LockRecord*& seen = seen_[&line][in_line ? 0 : 1];
        auto at = seen == nullptr ? line.rbegin()
                                  : LockRecordList::const_reverse_iterator(line.iterator_to(*seen));
        for (; at != line.rend() && at->ticket() > after; ++at) {
          seen = &*at;
          ++cost_;
          const SchedulerEntry& waiter = at->entry();
          if (kin == Kin::kNested && in_line && table_.passes_waiters(waiter)) continue;
          if (kin == Kin::kNested && !in_line && covered(waiter, node, waiting)) continue;
          const auto why = in_line ? WaitLink::Why::kAhead : WaitLink::Why::kHolder;
          add(waiter, {&entry, why, &node});
        }
      }
    }
  }

  // Those for whom the places are gone wait for each of those who have or get one: for `entry` too,
  // if it is one of these.
  void look_at_limit(const SchedulerEntry& entry, LockNode& node, const LockRecord& record) {
    // A limit of 0 is waited out by nobody but an operator.
    if (node.waiter_count == 0 || node.limit == 0) return;
    met_limit_ = true;
    const bool in_line = waits(entry);
    if (!in_line && record.exempt()) return;
    const auto [at, is_new] = place_lines_.try_emplace(&node);
    PlaceLine& line = at->second;
    if (is_new) {
      line.parties = without_a_place(node);
      line.unseen.fill(line.parties.size());
    }
    const std::uint64_t after = in_line ? record.ticket() : 0;
    for (std::size_t& i = line.unseen[in_line ? 0 : 1]; i != 0; --i) {
      const auto& [ticket, waiter] = line.parties[i - 1];
      if (ticket <= after) return;
      ++cost_;
      if (in_line && table_.passes_waiters(*waiter)) continue;
      add(*waiter, {&entry, WaitLink::Why::kLimit, &node});
    }
  }

  // Who stands in line for a place, and as many are stuck before him as there are places.
  [[nodiscard]] Line without_a_place(const LockNode& node) const {
    std::uint32_t holders = 0;
    for (const auto& list : node.holding) {
      for (const LockRecord& record : list) {
        holders += !record.exempt() && is_stuck(record.entry()) ? 1 : 0;
      }
    }
    Line line;
    for (const auto& lists : node.waiting) {
      for (const auto& list : lists) {
        for (const LockRecord& record : list) line.emplace_back(record.ticket(), &record.entry());
      }
    }
    std::sort(line.begin(), line.end());
    std::uint32_t before = 0;
    std::erase_if(line, [&](const auto& party) {
      const SchedulerEntry& waiter = *party.second;
      const bool nested = waiter.parent != nullptr || waiter.stands_with_nested_;
      const bool exempt = nested && covered(waiter, node, LockMode::kShared);
      const bool passes = nested && table_.passes_waiters(waiter);
      const bool waits = !exempt && holders + (passes ? 0 : before) >= node.limit;
      before += waits || is_stuck(waiter) ? 1 : 0;
      return !waits;
    });
    return line;
  }

  // As far as is known: everybody in the first look who waits for anything but his place.
  [[nodiscard]] bool is_stuck(const SchedulerEntry& entry) const {
    if (assumed_) return &entry == &target_ || assumed_->contains(&entry);
    if (entry.waiting_descendants_ != 0 || !table_.reported_.empty()) return true;
    return waits(entry) && entry.node_count_ > 1;
  }

  [[nodiscard]] WaitCycle cycle() const {
    WaitCycle cycle;
    const SchedulerEntry* waiter = &target_;
    do {
      const Reason& reason = reasons_.at(waiter);
      const bool by_child = reason.why == WaitLink::Why::kChild;
      WaitLink& link = cycle.links.emplace_back();
      link.waiter = waiter->id;
      link.awaited = reason.awaited->id;
      link.why = reason.why;
      if (reason.node != nullptr) link.key = reason.node->key;
      link.since = by_child ? reason.awaited->since_ : waiter->since_;
      if (reason.why == WaitLink::Why::kReported || reason.why == WaitLink::Why::kTurn) {
        link.since = table_.reported_.at(waiter).since;
      }
      waiter = reason.awaited;
    } while (waiter != &target_);
    return cycle;
  }

  const LockTable& table_;
  const SchedulerEntry& target_;
  Reasons reasons_;
  std::optional<Reasons> assumed_;  // those who were reached by the look before
  std::vector<const SchedulerEntry*> stuck_;
  boost::unordered_flat_map<const LockNode*, PlaceLine> place_lines_;
  boost::unordered_flat_map<const LockRecordList*, Seen> seen_;
  bool met_limit_ = false;
  std::size_t cost_ = 0;
  const SchedulerEntry* found_ = nullptr;
};

void LockTable::search_cycles() {
  if (to_search_.empty() && !searches_everybody_) return;
  for (const SchedulerEntry* entry : std::exchange(to_search_, {})) find_cycle_through(*entry);
  if (!searches_everybody_) return;
  forget_opened_cycles();
  search_everybody();
  searches_everybody_ = false;
}

void LockTable::find_cycle_through(const SchedulerEntry& entry) {
  CycleSearch search(*this, entry);
  WaitCycle cycle = search.run();
  looks_ += search.cost();
  if (cycle.links.empty()) return;
  const bool stands =
      std::any_of(standing_.begin(), standing_.end(), [&](const StandingCycle& standing) {
        return std::ranges::equal(standing.cycle.links, cycle.links, {}, &WaitLink::waiter,
                                  &WaitLink::waiter);
      });
  if (stands) return;
  standing_.push_back({&entry, std::move(cycle)});
  ++untold_cycles_;
}

// At a limit a cycle may be opened by somebody who is in none of its links.
void LockTable::forget_opened_cycles() {
  if (limits_ == 0 && !searches_everybody_) return;
  std::erase_if(standing_, [this](const StandingCycle& standing) {
    if (!CycleSearch(*this, *standing.closed_by).run().links.empty()) return false;
    untold_cycles_ -= standing.told ? 0 : 1;
    return true;
  });
}

// Every cycle has a waiter that has a parent or was reported.
void LockTable::search_everybody() {
  const auto look = [this](const SchedulerEntry& entry) {
    const bool found =
        std::any_of(standing_.begin(), standing_.end(),
                    [&](const StandingCycle& standing) { return standing.cycle.has(entry.id); });
    if (!found) find_cycle_through(entry);
  };
  for (const LockNode& node : known_) {
    for (const LockRecordList& line : node.waiting[static_cast<int>(Kin::kNested)]) {
      for (const LockRecord& record : line) {
        if (is_first(record)) look(record.entry());
      }
    }
  }
  for (const auto& [waiter, wait] : reported_) look(*waiter);
}

// `entry` no longer waits, or gives its locks back. Whoever closed such a cycle may have closed
// others with it; and where there are limits, who was in none may be in one now that others go on.
void LockTable::forget_cycles_with(const SchedulerEntry& entry) {
  std::erase_if(standing_, [&](const StandingCycle& standing) {
    if (!standing.cycle.has(entry.id)) return false;
    untold_cycles_ -= standing.told ? 0 : 1;
    to_search_.push_back(standing.closed_by);
    searches_everybody_ = searches_everybody_ || limits_ != 0;
    return true;
  });
}

std::vector<WaitCycle> LockTable::take_closed_cycles() {
  forget_opened_cycles();
  std::vector<WaitCycle> cycles;
  for (StandingCycle& standing : standing_) {
    if (!std::exchange(standing.told, true)) cycles.push_back(standing.cycle);
  }
  untold_cycles_ = 0;
  return cycles;
}

// Whether at each of its keys at which it cannot have what it asks for, a sibling that asks for as
// much stands directly before it. Then it waits for that sibling and for those that the sibling
// waits for, and nobody waits for it who does not wait for the sibling: if it were in a cycle,
// there would have been one without it. So a parent may have any number of children that wait for
// the same thing, and they are searched through for the first of them only.
bool LockTable::waits_as_siblings_do(const SchedulerEntry& entry) const noexcept {
  if (!standing_.empty() || !reported_.empty() || entry.first_child_ != nullptr) return false;
  const std::uint64_t ticket = entry.blocks_->ticket;
  const auto links = links_of(entry);
  return std::all_of(links.begin(), links.end(), [&](std::uintptr_t word) {
    const LockMode mode = LockLink(word).mode();
    const LockNode& node = LockLink(word).node();
    if (node.free_for(mode) && node.first_conflict(mode) >= ticket && !node.limited()) return true;
    const LockRecord* before = nullptr;
    bool asks_for_as_much = false;
    for (const auto& lists : node.waiting) {
      for (const LockMode theirs : {LockMode::kShared, LockMode::kExclusive}) {
        const LockRecordList& line = lists[theirs == LockMode::kExclusive];
        auto last = line.rbegin();
        if (last != line.rend() && &last->entry() == &entry) ++last;
        if (last == line.rend() || (before != nullptr && last->ticket() < before->ticket()))
          continue;
        before = &*last;
        asks_for_as_much = theirs >= mode;
      }
    }
    return before != nullptr && before->entry().parent == entry.parent && asks_for_as_much;
  });
}

std::span<SchedulerEntry* const> LockTable::reporters_of(const SchedulerEntry& producer) const {
  const auto at = reporters_.find(&producer);
  if (at == reporters_.end()) return {};
  return at->second.waiters;
}

void LockTable::report_wait(SchedulerEntry& waiter, SchedulerEntry& producer, WaitLink::Why why,
                            SteadyTime now) {
  end_reported_wait(waiter);
  Reporters& reporters = reporters_[&producer];
  reported_.insert_or_assign(&waiter, ReportedWait{&producer, why, now, reporters.waiters.size()});
  reporters.waiters.push_back(&waiter);
  lifted_.push_back(&waiter);
  lift_all();
  to_search_.push_back(&waiter);
  if (why != WaitLink::Why::kTurn) return;
  ++turns_;
  if (++reporters.turns == 1) let_pass(producer, now);
}

void LockTable::end_reported_wait(SchedulerEntry& waiter) {
  const auto wait = reported_.find(&waiter);
  if (wait == reported_.end()) return;
  std::vector<SchedulerEntry*> borrowers{&waiter};
  add_borrowers(borrowers);
  const SchedulerEntry& producer = *wait->second.producer;
  const auto reporters = reporters_.find(&producer);
  if (wait->second.why == WaitLink::Why::kTurn && --reporters->second.turns == 0) {
    // That was what let them pass others.
    if (stands_in_line_below(producer)) searches_everybody_ = true;
  }
  // The last one takes its place: who completes what a hundred thousand wait for wakes them one by
  // one.
  std::vector<SchedulerEntry*>& others = reporters->second.waiters;
  reported_.at(others.back()).place = wait->second.place;
  others[wait->second.place] = others.back();
  others.pop_back();
  if (others.empty()) reporters_.erase(reporters);
  erase_report(waiter);
  rank_anew(borrowers);
}

void LockTable::erase_report(const SchedulerEntry& waiter) {
  open_cycles_with(waiter);
  const auto wait = reported_.find(&waiter);
  if (wait->second.why == WaitLink::Why::kTurn) --turns_;
  reported_.erase(wait);
}

// Every cycle has a waiter that has a parent or was reported; one cycle is listed once. The nested
// waiters of a key are searched from in one section, as a search cannot be interrupted either.
bool LockTable::search_section(TableCursor& cursor, std::vector<WaitCycle>& cycles,
                               boost::unordered_flat_set<std::uint64_t>& listed) const {
  std::size_t cost = 0;
  const auto look = [&](const SchedulerEntry& entry) {
    if (listed.contains(entry.id.value)) return;
    CycleSearch search(*this, entry);
    WaitCycle cycle = search.run();
    cost += search.cost();
    for (const WaitLink& link : cycle.links) listed.insert(link.waiter.value);
    if (!cycle.links.empty()) cycles.push_back(std::move(cycle));
  };
  for (; nested_waiters_ != 0 && cursor.node != nullptr; next_key(cursor)) {
    if (++cost > kSectionMax) return true;
    for (const LockRecordList& line : cursor.node->waiting[static_cast<int>(Kin::kNested)]) {
      for (const LockRecord& record : line) {
        if (is_first(record)) look(record.entry());
      }
    }
  }
  for (const auto& [waiter, wait] : reported_) look(*waiter);
  return false;
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
