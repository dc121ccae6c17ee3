// SPDX-License-Identifier: Apache-2.0
//
// LockTable, the ranks: a waiter lends its rank to the entries it waits for, so that urgent work is
// not held up by work that is not. The rank of an entry is the largest of these: its own; its
// parent's, as the parent waits for it; that of each waiter for a key that it holds, or behind it
// in line for a key, in a mode that excludes its own; and that of each entry reported to wait for
// it.
//
// lift_all() lends ranks on, and rank_anew() takes lent ranks back; nothing else changes a rank. A
// rank rises at most once per distinct rank, and falls only when a wait ends, so lines of any
// length cost little while all entries in them have equal ranks.

#include <pv2/base/assert.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lock_table.h"
#include "rank.h"

namespace pv2 {

void LockTable::count_rank(RankCounts& ranks, std::uint16_t rank) {
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), std::pair(rank, std::size_t{0}));
  if (at != ranks.end() && at->first == rank) {
    ++at->second;
  } else {
    ranks.insert(at, {rank, 1});
  }
}

void LockTable::uncount_rank(RankCounts& ranks, std::uint16_t rank) {
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), std::pair(rank, std::size_t{0}));
  PV2_ASSERT(at != ranks.end() && at->first == rank && at->second != 0,
             "a rank that is no longer counted was counted");
  if (--at->second == 0) ranks.erase(at);
}

void LockTable::set_rank(SchedulerEntry& entry, std::uint16_t rank) {
  PV2_ASSERT(rank >= entry.own_rank_, "an entry has at least its own rank");
  if (const auto at = reported_.find(&entry); at != reported_.end()) {
    RankCounts& ranks = reporters_.at(at->second.producer).ranks;
    uncount_rank(ranks, entry.rank_);
    count_rank(ranks, rank);
  }
  entry.rank_ = rank;
  if (entry.place_ == SchedulerEntry::Place::kReady) {
    reranked_.push_back(&entry);
  } else if (rank_class(rank) > rank_class(entry.queued_rank_)) {
    ++lifts_of_polled_;
  }
}

void LockTable::lift(SchedulerEntry& entry, std::uint16_t rank) {
  if (entry.rank_ >= rank) return;
  set_rank(entry, rank);
  lifted_.push_back(&entry);
}

// Lends the rank of `waiter` to the entries it waits for at each of its keys. Each waiter before it
// has done the same, so the walk ends at the first one before it that excludes all others and has
// its rank already. A key is skipped if a waiter at or behind this place, which waits for all
// others before it, has already lent this rank or a larger one there.
void LockTable::lift_those_ahead(const SchedulerEntry& waiter) {
  const std::uint16_t rank = waiter.rank_;
  const std::uint64_t ticket = ticket_of(waiter);
  for (const std::uintptr_t word : links_of(waiter)) {
    const LockLink link(word);
    LockNode& node = link.node();
    const bool waits_for_all = link.mode() == LockMode::kExclusive || node.limited();
    const auto lifted = lifted_lines_.find(&node);
    const bool is_lifted = lifted != lifted_lines_.end() && lifted->second.rank >= rank &&
                           lifted->second.before >= ticket;
    if (is_lifted) continue;
    std::uint64_t done = 0;
    const auto lift_line = [&](LockRecordList& line, bool may_stop) {
      for (auto at = line.rbegin(); at != line.rend() && at->ticket() > done; ++at) {
        ++looks_;
        if (at->ticket() >= ticket) continue;
        if (may_stop && at->entry().rank_ >= rank) {
          done = at->ticket();
          return;
        }
        lift(at->entry(), rank);
      }
    };
    lift_line(node.waiters(Kin::kRoot, LockMode::kExclusive), true);
    lift_line(node.waiters(Kin::kNested, LockMode::kExclusive), true);
    if (waits_for_all) {
      lift_line(node.waiters(Kin::kRoot, LockMode::kShared), node.limited());
      lift_line(node.waiters(Kin::kNested, LockMode::kShared), node.limited());
    }
    if (done != 0) continue;  // the waiter met there has lent, or will lend, to the rest
    node.for_each_holder_against(waits_for_all ? LockMode::kExclusive : LockMode::kShared,
                                 [&](LockRecord& holder) { lift(holder.entry(), rank); });
    if (waits_for_all && node.waiter_count() > 1) lifted_lines_[&node] = {rank, ticket};
  }
}

void LockTable::lift_all() {
  while (!lifted_.empty()) {
    SchedulerEntry& entry = *lifted_.back();
    lifted_.pop_back();
    for (SchedulerEntry* c = entry.first_known_child(); c != nullptr;
         c = c->family_->next_sibling) {
      lift(*c, entry.rank_);
    }
    // No entry has less than the lowest rank, so lending that lifts none.
    if (waits(entry) && entry.rank_ > ranks_.front().first) lift_those_ahead(entry);
    if (const auto at = reported_.find(&entry); at != reported_.end()) {
      lift(*at->second.producer, entry.rank_);
    }
  }
  lifted_lines_.clear();
}

// The rank lent to `entry` by its parent and by the entries reported to wait for it. These are
// counted by rank, as the waits for one producer end one by one.
std::uint16_t LockTable::rank_lent_outside_lines(const SchedulerEntry& entry) const {
  std::uint16_t lent = entry.parent() != nullptr ? entry.parent()->rank_ : 0;
  if (const auto at = reporters_.find(&entry); at != reporters_.end()) {
    lent = std::max(lent, at->second.ranks.back().first);
  }
  return lent;
}

// The rank lent to a holder by the lines at its keys. Behind the first waiter that excludes all
// others, none has a larger rank than that waiter, so the walk ends there.
std::uint16_t LockTable::rank_lent_in_lines(const SchedulerEntry& holder) {
  std::uint16_t lent = 0;
  for (const std::uintptr_t word : links_of(holder)) {
    const LockLink link(word);
    LockNode& node = link.node();
    if (node.waiter_count() == 0) continue;
    const bool limited = node.limited();
    const std::uint64_t last =
        node.first_conflict(limited ? LockMode::kExclusive : LockMode::kShared);
    for (const Kin kin : {Kin::kRoot, Kin::kNested}) {
      for (const LockMode mode : {LockMode::kExclusive, LockMode::kShared}) {
        const bool both_read = mode == LockMode::kShared && link.mode() == LockMode::kShared;
        if (both_read && !limited) continue;
        for (const LockRecord& record : node.waiters(kin, mode)) {
          if (record.ticket() > last) break;
          ++looks_;
          lent = std::max(lent, record.entry().rank_);
        }
      }
    }
  }
  return lent;
}

// Lends ranks to all waiters in the line for `node`, and to its holders, in one pass from the back.
void LockTable::lend_in_line(LockNode& node) {
  std::uint16_t writers = 0;  // the largest ranks of the waiters behind, by mode
  std::uint16_t readers = 0;
  const auto lent_to = [&](LockMode mode) {
    const bool by_all = mode == LockMode::kExclusive || node.limited();
    return by_all ? std::max(writers, readers) : writers;
  };
  struct Place {
    LockRecordList& line;
    LockMode mode;
    LockRecordList::reverse_iterator at;
  };
  const auto last_of = [&](Kin kin, LockMode mode) {
    LockRecordList& line = node.waiters(kin, mode);
    return Place{line, mode, line.rbegin()};
  };
  Place places[] = {
      last_of(Kin::kRoot, LockMode::kShared), last_of(Kin::kRoot, LockMode::kExclusive),
      last_of(Kin::kNested, LockMode::kShared), last_of(Kin::kNested, LockMode::kExclusive)};
  for (;;) {
    Place* last = nullptr;
    for (Place& place : places) {
      if (place.at == place.line.rend()) continue;
      if (last == nullptr || place.at->ticket() > last->at->ticket()) last = &place;
    }
    if (last == nullptr) break;
    ++looks_;
    SchedulerEntry& entry = last->at->entry();
    lift(entry, lent_to(last->mode));
    std::uint16_t& largest = last->mode == LockMode::kExclusive ? writers : readers;
    largest = std::max(largest, entry.rank_);
    ++last->at;
  }
  for (LockRecord& holder : node.holders) lift(holder.entry(), lent_to(holder.mode()));
}

// Whether `producer` may have its rank from `waiter`, which is reported to wait for it. If not, the
// end of that wait lowers no rank, and the tree below `producer`, which is of any size, need not be
// looked at. A descendant has the rank of `producer` from above; what counts is only what it, or an
// entry between the two, has from elsewhere.
bool LockTable::may_lend(SchedulerEntry& waiter, const SchedulerEntry& producer) {
  const std::uint16_t rank = producer.rank_;
  if (waiter.rank_ < rank) return false;
  for (SchedulerEntry* entry = &waiter; entry != &producer; entry = entry->parent()) {
    if (entry == nullptr) return true;  // no descendant
    if (entry->own_rank_ >= rank || waits(*entry)) return true;
    if (entry->holds_locks_ && rank_lent_in_lines(*entry) >= rank) return true;
    const auto reporters = reporters_.find(entry);
    if (reporters != reporters_.end() && reporters->second.ranks.back().first >= rank) return true;
  }
  return false;
}

// Adds to the lenders every entry that may have its rank from them, over any number of steps.
// Entries that were looked at because they stand before a waiter that excludes all others are not
// looked at again for the waiters between.
void LockTable::add_borrowers(std::vector<SchedulerEntry*>& borrowers) {
  boost::unordered_flat_set<const SchedulerEntry*> seen(borrowers.begin(), borrowers.end());
  boost::unordered_flat_map<const LockNode*, std::uint64_t> seen_before;
  const auto add = [&](SchedulerEntry& entry) {
    if (entry.rank_ > entry.own_rank_ && seen.insert(&entry).second) borrowers.push_back(&entry);
  };
  for (std::size_t i = 0; i < borrowers.size(); ++i) {
    SchedulerEntry& entry = *borrowers[i];
    for (SchedulerEntry* c = entry.first_known_child(); c != nullptr;
         c = c->family_->next_sibling) {
      ++looks_;
      add(*c);
    }
    if (const auto at = reported_.find(&entry); at != reported_.end()) add(*at->second.producer);
    if (!waits(entry)) continue;
    const std::uint64_t ticket = ticket_of(entry);
    for (const std::uintptr_t word : links_of(entry)) {
      const LockLink link(word);
      LockNode& node = link.node();
      std::uint64_t& before = seen_before[&node];
      if (before >= ticket) continue;
      const bool waits_for_all = link.mode() == LockMode::kExclusive || node.limited();
      if (waits_for_all) before = ticket;
      node.for_each_holder_against(waits_for_all ? LockMode::kExclusive : LockMode::kShared,
                                   [&](LockRecord& holder) { add(holder.entry()); });
      for (const LockMode mode : {LockMode::kExclusive, LockMode::kShared}) {
        if (mode == LockMode::kShared && !waits_for_all) continue;
        for (const Kin kin : {Kin::kRoot, Kin::kNested}) {
          for (LockRecord& ahead : node.waiters(kin, mode)) {
            if (ahead.ticket() >= ticket) break;
            ++looks_;
            add(ahead.entry());
          }
        }
      }
    }
  }
}

// Takes back every rank lent among `entries`, and lends again by the waits of now.
void LockTable::rank_anew(const std::vector<SchedulerEntry*>& entries) {
  for (SchedulerEntry* const entry : entries) set_rank(*entry, entry->own_rank_);
  for (SchedulerEntry* const entry : entries) lift(*entry, rank_lent_outside_lines(*entry));
  boost::unordered_flat_set<LockNode*> lines;
  for (SchedulerEntry* const entry : entries) {
    if (entry->holds_locks_) lift(*entry, rank_lent_in_lines(*entry));
    if (!waits(*entry)) continue;
    for (const std::uintptr_t word : links_of(*entry)) lines.insert(&LockLink(word).node());
  }
  for (LockNode* const node : lines) lend_in_line(*node);
  // An entry that lost nothing still lends to those of `entries` that it waits for.
  for (SchedulerEntry* const entry : entries) lifted_.push_back(entry);
  lift_all();
}

}  // namespace pv2
