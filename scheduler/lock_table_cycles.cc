// SPDX-License-Identifier: Apache-2.0
//
// LockTable, cycles of waiting. Who waits for whom: a waiter for those who hold a key of its set in
// a mode that excludes it (unless an ancestor covers it), and for those who stand before it in line
// for one; where a key has a limit, for those who have the places or get them first; a parent for
// its descendants; and whoever said so for whom he named.
//
// A cycle is closed by the last of these to come about, so it is looked for when an entry begins to
// wait, from there backwards: who waits for it, who waits for those. A root that nobody was
// reported to wait for closes none, as nobody stands behind it yet; so the search costs something
// only for a child whose ancestors are waited for.

#include <algorithm>
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

  /// How many waiters it has looked at.
  [[nodiscard]] std::size_t cost() const noexcept { return stuck_.size() + 1; }

  /// A cycle through the target, or one without links.
  WaitCycle run() {
    look_behind(target_);
    for (std::size_t i = 0; i < stuck_.size() && found_ == nullptr; ++i) look_behind(*stuck_[i]);
    return found_ != nullptr ? cycle() : WaitCycle();
  }

 private:
  struct Reason {
    const SchedulerEntry* awaited;
    WaitLink::Why why;
    const LockNode* node;
  };

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
    // A parent that stands in line itself waits for that first, and its children will then pass.
    if (entry.parent != nullptr && !waits(*entry.parent) && holds_up_its_parent(entry)) {
      add(*entry.parent, {&entry, WaitLink::Why::kChild, nullptr});
    }
    for (const SchedulerEntry* const waiter : table_.reporters_of(entry)) {
      add(*waiter, {&entry, table_.reported_.at(waiter).why, nullptr});
    }
    if (entry.records_ == nullptr) return;
    for (const std::uintptr_t word : links_of(entry)) {
      const LockLink link(word);
      look_behind_at(entry, link.node(), link.mode());
      if (link.node().limited()) look_at_limit(entry, link.node());
    }
  }

  // In a rollback a parent does not wait for a member that only waits for its turn, but for the one
  // whose turn it is, and that may be below such a member.
  [[nodiscard]] bool holds_up_its_parent(const SchedulerEntry& entry) const {
    const auto wait = table_.reported_.find(&entry);
    if (wait == table_.reported_.end() || wait->second.why != WaitLink::Why::kTurn) return true;
    const auto reason = reasons_.find(&entry);
    return reason != reasons_.end() && reason->second.why == WaitLink::Why::kChild;
  }

  void look_behind_at(const SchedulerEntry& entry, LockNode& node, LockMode mode) {
    if (node.waiter_count == 0) return;
    const bool in_line = waits(entry);
    const std::uint64_t after = in_line ? entry.records_->ticket : 0;
    for (const Kin kin : {Kin::kRoot, Kin::kNested}) {
      for (const LockMode waiting : {LockMode::kExclusive, LockMode::kShared}) {
        if (mode == LockMode::kShared && waiting == LockMode::kShared) continue;
        const LockRecordList& line = node.waiters(kin, waiting);
        for (auto at = line.rbegin(); at != line.rend() && at->ticket > after; ++at) {
          const SchedulerEntry& waiter = *at->entry;
          if (kin == Kin::kNested && in_line && has_holding_ancestor(waiter)) continue;
          if (kin == Kin::kNested && !in_line && covered(waiter, node, waiting)) continue;
          const auto why = in_line ? WaitLink::Why::kAhead : WaitLink::Why::kHolder;
          add(waiter, {&entry, why, &node});
        }
      }
    }
  }

  // A line for places stands still when as many before it are stuck as there are places; until then
  // somebody there goes on and gives his back. A limit of 0 is waited out by nobody but an
  // operator.
  void look_at_limit(const SchedulerEntry& entry, LockNode& node) {
    if (node.waiter_count == 0 || node.limit == 0) return;
    std::vector<std::pair<std::uint64_t, const SchedulerEntry*>> order;
    std::uint32_t stuck = 0;
    for (const auto& list : node.holding) {
      for (const LockRecord& record : list) stuck += record.exempt == 0 && is_stuck(*record.entry);
    }
    for (const auto& lists : node.waiting) {
      for (const auto& list : lists) {
        for (const LockRecord& record : list) order.emplace_back(record.ticket, record.entry);
      }
    }
    std::sort(order.begin(), order.end());
    for (const auto& [ticket, waiter] : order) {
      const bool passes = has_holding_ancestor(*waiter);
      if (passes && covered(*waiter, node, LockMode::kShared)) continue;
      if (stuck >= node.limit) add(*waiter, {&entry, WaitLink::Why::kLimit, &node});
      if (!passes) stuck += is_stuck(*waiter);
    }
  }

  [[nodiscard]] bool is_stuck(const SchedulerEntry& entry) const {
    return &entry == &target_ || reasons_.contains(&entry);
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
  boost::unordered_flat_map<const SchedulerEntry*, Reason> reasons_;
  std::vector<const SchedulerEntry*> stuck_;
  const SchedulerEntry* found_ = nullptr;
};

void LockTable::find_cycle_through(const SchedulerEntry& waiter) {
  if (waiter.parent == nullptr && reported_.empty()) return;
  WaitCycle cycle = CycleSearch(*this, waiter).run();
  if (!cycle.links.empty()) closed_cycles_.push_back(std::move(cycle));
}

std::span<SchedulerEntry* const> LockTable::reporters_of(const SchedulerEntry& producer) const {
  const auto at = reporters_.find(&producer);
  if (at == reporters_.end()) return {};
  return at->second;
}

void LockTable::report_wait(SchedulerEntry& waiter, SchedulerEntry& producer, WaitLink::Why why,
                            SteadyTime now) {
  end_reported_wait(waiter);
  reported_.insert_or_assign(&waiter, ReportedWait{&producer, why, now});
  reporters_[&producer].push_back(&waiter);
  lifted_.push_back(&waiter);
  lift_all();
  find_cycle_through(waiter);
}

void LockTable::end_reported_wait(SchedulerEntry& waiter) {
  const auto wait = reported_.find(&waiter);
  if (wait == reported_.end()) return;
  std::vector<SchedulerEntry*> borrowers{&waiter};
  add_borrowers(borrowers);
  const auto reporters = reporters_.find(wait->second.producer);
  std::erase(reporters->second, &waiter);
  if (reporters->second.empty()) reporters_.erase(reporters);
  reported_.erase(wait);
  rank_anew(borrowers);
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
        if (&record == record.entry->records_) look(*record.entry);
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
