// SPDX-License-Identifier: Apache-2.0
//
// LockTable, the audit: counts everything and follows every link again, slowly, and compares the
// result with what is kept. For tests and for builds that check themselves; it looks at all
// entries.

#include <pv2/base/assert.h>

#include <algorithm>
#include <vector>

#include "lock_table.h"

namespace pv2 {

void LockTable::check_invariants() const {
  boost::unordered_flat_map<const SchedulerEntry*, std::uint32_t> descendants;
  boost::unordered_flat_set<const SchedulerEntry*> entries;
  std::size_t nested = 0;
  std::size_t limited = 0;
  for (const LockNode& node : known_) {
    PV2_ASSERT(node.references != 0, "only a key with references is known");
    PV2_ASSERT(nodes_.find(const_cast<LockNode*>(&node)) != nullptr,
               "a key in the list is in the index");
    limited += node.limited() ? 1 : 0;
    check_holders(node, entries);
    nested += check_waiters(node, entries, descendants);
  }
  PV2_ASSERT(std::ranges::distance(known_.begin(), known_.end()) ==
                 static_cast<std::ptrdiff_t>(nodes_.size()),
             "the index and the list name the same keys");
  PV2_ASSERT(limited == limits_, "the keys with a limit are counted");
  for (const SchedulerEntry* entry = first_nested_; entry != nullptr; entry = entry->next_) {
    PV2_ASSERT(waits(*entry) && entry->stands_with_nested_,
               "an entry among the nested waiters stands in line with them");
    PV2_ASSERT(nested != 0, "no entry is among the nested waiters twice");
    --nested;
  }
  PV2_ASSERT(nested == 0, "every nested waiter is in the list of nested waiters");
  for (const SchedulerEntry* const entry : entries) {
    const auto at = descendants.find(entry);
    PV2_ASSERT(entry->waiting_descendants_ == (at == descendants.end() ? 0 : at->second),
               "an entry counts its descendants that wait");
    PV2_ASSERT(entry->rank_ >= entry->own_rank_, "an entry has at least its own rank");
  }
  check_reports();
  check_standing();
}

void LockTable::check_holders(const LockNode& node,
                              boost::unordered_flat_set<const SchedulerEntry*>& entries) const {
  std::uint32_t exempt = 0;
  std::uint32_t exclusive = 0;
  std::uint32_t shared = 0;
  for (const LockRecord& record : node.holders) {
    const SchedulerEntry& entry = record.entry();
    PV2_ASSERT(entry.holds_locks_, "an entry among the holders of a key holds its set");
    PV2_ASSERT(mode_at(entry, node) == record.mode(), "a holder asked for the key in this mode");
    PV2_ASSERT(record.mode() == LockMode::kShared || shared == 0,
               "the exclusive holders of a key come first");
    entries.insert(&entry);
    exempt += record.exempt() ? 1 : 0;
    ++(record.mode() == LockMode::kExclusive ? exclusive : shared);
  }
  PV2_ASSERT(exclusive == node.exclusive && shared == node.shared,
             "the holders of a key are counted by mode");
  PV2_ASSERT(node.taken() == node.holder_count() - exempt,
             "the holders that take no place are counted");
  PV2_ASSERT(node.references >= node.holder_count() + node.waiter_count(),
             "each holder and each waiter refers to its key");
}

std::size_t LockTable::check_waiters(
    const LockNode& node, boost::unordered_flat_set<const SchedulerEntry*>& entries,
    boost::unordered_flat_map<const SchedulerEntry*, std::uint32_t>& descendants) const {
  std::size_t nested = 0;
  std::uint32_t count = 0;
  for (const Kin kin : {Kin::kRoot, Kin::kNested}) {
    for (const LockMode mode : {LockMode::kShared, LockMode::kExclusive}) {
      std::uint64_t before = 0;
      for (const LockRecord& record : node.waiters(kin, mode)) {
        SchedulerEntry& entry = record.entry();
        PV2_ASSERT(waits(entry), "an entry in a line waits");
        PV2_ASSERT(kin_of(entry) == kin, "a waiter stands with its kin");
        PV2_ASSERT(mode_at(entry, node) == mode && record.mode() == mode,
                   "a waiter asked for the key in this mode");
        PV2_ASSERT(record.ticket() > before, "a line is in order of arrival");
        PV2_ASSERT(record.ticket() <= last_ticket_, "a ticket was given out");
        before = record.ticket();
        ++count;
        entries.insert(&entry);
        if (!is_first(record)) continue;
        nested += kin == Kin::kNested ? 1 : 0;
        for (const SchedulerEntry* a = entry.parent(); a != nullptr; a = a->parent()) {
          ++descendants[a];
          entries.insert(a);
        }
        PV2_ASSERT(owes_ || !may_take(entry, record.ticket()),
                   "while no grant is owed, no waiter may take its set");
      }
    }
  }
  PV2_ASSERT(count == node.waiter_count(), "the waiters of a key are counted");
  return nested;
}

void LockTable::check_reports() const {
  std::size_t turns = 0;
  for (const auto& [producer, reporters] : reporters_) {
    RankCounts ranks;
    for (const SchedulerEntry* const waiter : reporters.waiters) count_rank(ranks, waiter->rank_);
    PV2_ASSERT(!ranks.empty() && ranks == reporters.ranks,
               "a producer counts the ranks of those that wait for it");
  }
  PV2_ASSERT(reported_.size() == reported_order_.size(),
             "each reported wait has a place in the order of all");
  for (std::size_t i = 0; i < reported_order_.size(); ++i) {
    const auto wait = reported_.find(reported_order_[i]);
    PV2_ASSERT(wait != reported_.end() && wait->second.number == i,
               "a reported wait knows its place among all");
    const auto reporters = reporters_.find(wait->second.producer);
    PV2_ASSERT(reporters != reporters_.end() &&
                   reporters->second.waiters[wait->second.place] == reported_order_[i],
               "a producer knows each entry that waits for it");
    turns += wait->second.why == WaitLink::Why::kTurn ? 1 : 0;
  }
  PV2_ASSERT(turns == turns_, "the waits for a turn are counted");
}

void LockTable::check_standing() const {
  const auto untold =
      static_cast<std::size_t>(std::ranges::count(standing_, false, &StandingCycle::told));
  const auto at_limits = static_cast<std::size_t>(
      std::ranges::count(standing_, true, &StandingCycle::through_a_limit));
  PV2_ASSERT(untold == untold_cycles_, "the cycles that no caller was told of are counted");
  PV2_ASSERT(at_limits == standing_at_limits_, "the cycles through limits are counted");
  for (const StandingCycle& standing : standing_) {
    PV2_ASSERT(standing.cycle.links.size() > 1, "a cycle has at least two waiters");
    PV2_ASSERT(suspects_cycles_ || stands(standing),
               "a known cycle stands as long as no search is due");
    for (std::size_t i = 0; i < standing.cycle.links.size(); ++i) {
      const WaitLink& next = standing.cycle.links[(i + 1) % standing.cycle.links.size()];
      PV2_ASSERT(standing.cycle.links[i].awaited == next.waiter,
                 "the entry awaited in one link of a cycle is the waiter of the next link");
    }
  }
}

}  // namespace pv2
