// SPDX-License-Identifier: Apache-2.0
//
// LockTable, the ranks: who waits lends his rank to those he waits for, so that urgent work is not
// held up by work that nobody hurries. An entry has the largest of: its own rank, its parent's
// (which waits for it), that of whoever stands in line for a key that it holds or is before it in
// the line, in a mode that excludes its own, and that of whoever was reported to wait for it.
//
// Lending spreads in lift_all(), and what was lent is taken back in rank_anew(); nothing else
// changes a rank. A rank rises at most once per distinct rank, and falls only when a wait ends, so
// queues of any length cost little while everybody in them is equal.

#include <algorithm>
#include <utility>
#include <vector>

#include "lock_table.h"

namespace pv2 {

void LockTable::count_rank(std::uint16_t rank) {
  const auto at = std::lower_bound(ranks_.begin(), ranks_.end(), std::pair(rank, std::size_t{0}));
  if (at != ranks_.end() && at->first == rank) {
    ++at->second;
  } else {
    ranks_.insert(at, {rank, 1});
  }
}

void LockTable::uncount_rank(std::uint16_t rank) {
  const auto at = std::lower_bound(ranks_.begin(), ranks_.end(), std::pair(rank, std::size_t{0}));
  if (--at->second == 0) ranks_.erase(at);
}

void LockTable::set_rank(SchedulerEntry& entry, std::uint16_t rank) {
  entry.rank_ = rank;
  if (entry.place_ == SchedulerEntry::Place::kReady) reranked_.push_back(&entry);
}

void LockTable::lift(SchedulerEntry& entry, std::uint16_t rank) {
  if (entry.rank_ >= rank) return;
  set_rank(entry, rank);
  lifted_.push_back(&entry);
}

// Those whom `waiter` waits for at a key get its rank. Whoever stands before it has done the same,
// so at the first root before it that excludes everybody and has its rank already, the line before
// that one is done.
void LockTable::lift_those_ahead(const SchedulerEntry& waiter) {
  const std::uint16_t rank = waiter.rank_;
  const std::uint64_t ticket = waiter.blocks_->ticket;
  for (const std::uintptr_t word : links_of(waiter)) {
    const LockLink link(word);
    LockNode& node = link.node();
    const bool reads = link.mode() == LockMode::kShared;
    for (LockRecord& holder : node.holders(LockMode::kExclusive)) lift(holder.entry(), rank);
    if (!reads || node.limited()) {
      for (LockRecord& holder : node.holders(LockMode::kShared)) lift(holder.entry(), rank);
    }
    std::uint64_t done = 0;
    const auto lift_line = [&](LockRecordList& line, bool may_stop) {
      for (auto at = line.rbegin(); at != line.rend() && at->ticket() > done; ++at) {
        if (at->ticket() >= ticket) continue;
        if (may_stop && at->entry().rank_ >= rank) {
          done = at->ticket();
          return;
        }
        lift(at->entry(), rank);
      }
    };
    lift_line(node.waiters(Kin::kRoot, LockMode::kExclusive), true);
    lift_line(node.waiters(Kin::kNested, LockMode::kExclusive), false);
    if (reads && !node.limited()) continue;
    lift_line(node.waiters(Kin::kRoot, LockMode::kShared), false);
    lift_line(node.waiters(Kin::kNested, LockMode::kShared), false);
  }
}

void LockTable::lift_all() {
  while (!lifted_.empty()) {
    SchedulerEntry& entry = *lifted_.back();
    lifted_.pop_back();
    for (SchedulerEntry* c = entry.first_child_; c != nullptr; c = c->next_sibling_) {
      lift(*c, entry.rank_);
    }
    // Nobody has less than the lowest rank, so it lifts nobody.
    if (waits(entry) && entry.rank_ > ranks_.front().first) lift_those_ahead(entry);
    if (const auto at = reported_.find(&entry); at != reported_.end()) {
      lift(*at->second.producer, entry.rank_);
    }
  }
}

// What an entry has from others, as the rule says it.
std::uint16_t LockTable::rank_lent_to(const SchedulerEntry& entry) const {
  std::uint16_t lent = entry.parent != nullptr ? entry.parent->rank_ : 0;
  if (!reported_.empty()) {
    for (const SchedulerEntry* const waiter : reporters_of(entry)) {
      lent = std::max(lent, waiter->rank_);
    }
  }
  if (entry.blocks_ == nullptr) return lent;
  const std::uint64_t after = waits(entry) ? entry.blocks_->ticket : 0;
  for (const std::uintptr_t word : links_of(entry)) {
    const LockLink link(word);
    LockNode& node = link.node();
    if (node.waiter_count == 0) continue;
    for (const Kin kin : {Kin::kRoot, Kin::kNested}) {
      for (const LockMode mode : {LockMode::kExclusive, LockMode::kShared}) {
        const bool both_read = mode == LockMode::kShared && link.mode() == LockMode::kShared;
        if (both_read && !node.limited()) continue;
        const LockRecordList& line = node.waiters(kin, mode);
        for (auto at = line.rbegin(); at != line.rend() && at->ticket() > after; ++at) {
          lent = std::max(lent, at->entry().rank_);
          if (lent >= ranks_.back().first) return lent;  // there is no larger one
        }
      }
    }
  }
  return lent;
}

// Adds to the lenders everybody who may have a part of his rank from them, over any number of
// steps.
void LockTable::add_borrowers(std::vector<SchedulerEntry*>& borrowers) const {
  boost::unordered_flat_set<const SchedulerEntry*> seen(borrowers.begin(), borrowers.end());
  const auto add = [&](SchedulerEntry& entry) {
    if (entry.rank_ > entry.own_rank_ && seen.insert(&entry).second) borrowers.push_back(&entry);
  };
  for (std::size_t i = 0; i < borrowers.size(); ++i) {
    SchedulerEntry& entry = *borrowers[i];
    for (SchedulerEntry* c = entry.first_child_; c != nullptr; c = c->next_sibling_) add(*c);
    if (const auto at = reported_.find(&entry); at != reported_.end()) add(*at->second.producer);
    if (!waits(entry)) continue;
    for (const std::uintptr_t word : links_of(entry)) {
      const LockLink link(word);
      LockNode& node = link.node();
      for (const LockMode mode : {LockMode::kExclusive, LockMode::kShared}) {
        const bool both_read = mode == LockMode::kShared && link.mode() == LockMode::kShared;
        if (both_read && !node.limited()) continue;
        for (LockRecord& holder : node.holders(mode)) add(holder.entry());
        for (const Kin kin : {Kin::kRoot, Kin::kNested}) {
          for (LockRecord& ahead : node.waiters(kin, mode)) {
            if (ahead.ticket() >= entry.blocks_->ticket) break;
            add(ahead.entry());
          }
        }
      }
    }
  }
}

// Everything that was lent among them is taken back, and lent again as it is now.
void LockTable::rank_anew(const std::vector<SchedulerEntry*>& entries) {
  for (SchedulerEntry* const entry : entries) set_rank(*entry, entry->own_rank_);
  for (SchedulerEntry* const entry : entries) lift(*entry, rank_lent_to(*entry));
  // One that lost nothing still lends to those of them that it waits for.
  for (SchedulerEntry* const entry : entries) lifted_.push_back(entry);
  lift_all();
}

}  // namespace pv2
