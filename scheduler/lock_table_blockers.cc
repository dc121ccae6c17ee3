// SPDX-License-Identifier: Apache-2.0
//
// LockTable, the blockers: which entries are in the way of one waiter. It follows the rule in
// obstacle(), but does not stop at the first obstacle. It looks at no more parties than the caller
// asked for, and counts the rest from the counters of the keys, so that it stays short at a key
// with a million waiters.

#include <algorithm>

#include "lock_table.h"

namespace pv2 {
namespace {

// Collects links up to a bound, and counts what did not fit.
class Blockers {
 public:
  Blockers(const SchedulerEntry& waiter, SteadyTime since, QueuePlace& place, std::size_t most)
      : waiter_(waiter), since_(since), place_(place), most_(most) {}

  void add(const SchedulerEntry* awaited, WaitLink::Why why, const ResourceKey& key) {
    if (full()) {
      ++place_.more;
      return;
    }
    WaitLink& link = place_.blockers.emplace_back();
    link.waiter = waiter_.id;
    if (awaited != nullptr) link.awaited = awaited->id;
    link.why = why;
    link.key = key;
    link.since = since_;
  }
  [[nodiscard]] bool full() const noexcept { return place_.blockers.size() >= most_; }
  void count_more(std::size_t more) noexcept { place_.more += more; }

  /// Adds the parties of a list that exclude `mode` and have a smaller ticket than `before`.
  void add_all(const LockRecordList& list, LockMode mode, std::uint64_t before, WaitLink::Why why,
               const ResourceKey& key) {
    for (const LockRecord& record : list) {
      if (!excludes(record.mode(), mode) || record.ticket() >= before || full()) return;
      if (&record.entry() == &waiter_) continue;
      if (why == WaitLink::Why::kLimit && record.exempt()) continue;  // it takes no place
      add(&record.entry(), why, key);
    }
  }

 private:
  const SchedulerEntry& waiter_;
  SteadyTime since_;
  QueuePlace& place_;
  std::size_t most_;
};

}  // namespace

void LockTable::blockers_of(const SchedulerEntry& entry, std::size_t most,
                            QueuePlace& place) const {
  if (const auto at = reported_.find(&entry); at != reported_.end()) {
    const ReportedWait& wait = at->second;
    Blockers(entry, wait.since, place, most).add(wait.producer, wait.why, {});
  }
  if (!waits(entry)) return;
  Blockers blockers(entry, entry.since_, place, most);
  const std::uint64_t ticket = ticket_of(entry);
  const bool passes = passes_waiters(entry);
  for (const std::uintptr_t word : links_of(entry)) {
    const LockNode& node = LockLink(word).node();
    const LockMode mode = LockLink(word).mode();
    const std::size_t before = place.blockers.size();
    if (!node.free_for(mode) && !(passes && covered(entry, node, mode))) {
      blockers.add_all(node.holders, mode, UINT64_MAX, WaitLink::Why::kHolder, node.key);
      const std::size_t excluding =
          node.exclusive + (mode == LockMode::kExclusive ? node.shared : 0);
      const std::size_t listed = place.blockers.size() - before;
      if (excluding > listed) blockers.count_more(excluding - listed);
      continue;  // the line behind these holders adds nothing
    }
    if (!passes && node.first_conflict(mode) < ticket) {
      for (const Kin kin : {Kin::kRoot, Kin::kNested}) {
        for (const LockMode of : {LockMode::kExclusive, LockMode::kShared}) {
          blockers.add_all(node.waiters(kin, of), mode, ticket, WaitLink::Why::kAhead, node.key);
        }
      }
      if (blockers.full()) blockers.count_more(1);  // the line may be long: it is not counted
      continue;
    }
    if (node.limited() && !slot_for(entry, node, ticket, passes)) {
      // Whatever the modes are.
      const auto add = [&](const LockRecordList& list, std::uint64_t before) {
        blockers.add_all(list, LockMode::kExclusive, before, WaitLink::Why::kLimit, node.key);
      };
      add(node.holders, UINT64_MAX);
      const std::size_t listed = place.blockers.size() - before;
      const std::size_t holders = node.taken();
      if (holders > listed) blockers.count_more(holders - listed);
      if (holders == 0 && node.limit() == 0) {
        blockers.add(nullptr, WaitLink::Why::kLimit, node.key);
      } else if (holders < node.limit()) {
        node.for_each_line([&](const LockRecordList& line) { add(line, ticket); });
      }
    }
  }
}

}  // namespace pv2
