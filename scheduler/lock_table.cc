// SPDX-License-Identifier: Apache-2.0
//
// LockTable: the lock rules. The rule itself is obstacle(); around it, keys become nodes and sets
// are taken and given back. lock_table_waiters.cc says which waiters are asked again after a
// release, lock_table_listing.cc makes the listing for people.

#include "lock_table.h"

#include <pv2/base/assert.h>
#include <pv2/base/keyed_hash.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace pv2 {
namespace {

// No waiter is ahead of a restored holder; every waiter is ahead of a newcomer.
constexpr std::uint64_t kRestoring = 0;
constexpr std::uint64_t kNewcomer = UINT64_MAX;
// Looking through this many addresses costs less than comparing a few keys.
constexpr std::size_t kFewLinks = 32;

// Names of tables, for example, are chosen by clients.
std::uint32_t hash_of(const ResourceKey& key) noexcept {
  return static_cast<std::uint32_t>(internal::keyed_hash(key.name, internal::hash_secret()) +
                                    static_cast<std::size_t>(key.cls) * 0x9E3779B9U);
}

}  // namespace

LockTable::~LockTable() {
  known_.clear();
  nodes_.for_each([](LockNode* node) {
    // Entries that hold or wait at the end belong to their owner; their records belong to the
    // table.
    node->holders.clear();
    delete node;
  });
  for (LockBlock* blocks : many_blocks_) delete[] blocks;
}

// ---- Keys and nodes ----

// The set gives its keys away: to the nodes, as far as these are new. Without memory the process
// ends here: an entry that has lost its locks must not run.
void LockTable::find_nodes(EntryLocks& locks) noexcept {
  PV2_ASSERT(locks.node_count_ == 0, "the nodes of an entry are found once");
  const ResourceKey* const primary = &locks.set_.primary();
  LockRequests requests = std::move(locks.set_).requests();
  PV2_ASSERT(requests.size() <= SchedulerEntry::kMaxLocks,
             "an entry asks for at most kMaxLocks locks");
  std::uintptr_t* const words = locks.begin_links(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    ResourceKey& key = requests[i].key;
    if (&key == primary) locks.primary_node_ = static_cast<std::uint16_t>(i);
    LockNode& node = node_for(std::move(key));
    ++node.references;
    words[i] = LockLink(node, requests[i].mode).word();
  }
}

void LockTable::meet(SchedulerEntry& entry, std::uint16_t own_rank) {
  SchedulerEntry* const parent = entry.parent();
  if (parent != nullptr) parent->make_family();  // before anything is changed
  if (!entry.locks().empty()) find_nodes(*entry.locks_);
  count_rank(ranks_, own_rank);
  entry.own_rank_ = entry.rank_ = own_rank;
  if (parent != nullptr) {
    SchedulerEntry*& first = parent->family_->first_child;
    entry.family_->next_sibling = first;
    if (first != nullptr) first->family_->prev_sibling = &entry;
    first = &entry;
    entry.rank_ = std::max(own_rank, parent->rank_);
  }
  if (entry.first_known_child() == nullptr) return;
  lifted_.push_back(&entry);
  lift_all();
}

void LockTable::forget(SchedulerEntry& entry) {
  PV2_ASSERT(!entry.holds_locks_ && !waits(entry),
             "an entry that is forgotten neither holds nor waits");
  PV2_ASSERT(entry.waiting_descendants_ == 0, "no descendant of an entry that is forgotten waits");
  for (const std::uintptr_t word : links_of(entry)) {
    LockNode& node = LockLink(word).node();
    PV2_ASSERT(node.references != 0, "an entry refers only to known keys");
    if (--node.references == 0) drop(node);
  }
  if (entry.locks_ != nullptr) entry.locks_->drop_links();
  if (!reported_.empty()) {
    end_reported_wait(entry);
    for (const SchedulerEntry* const waiter : reporters_of(entry)) erase_report(*waiter);
    reporters_.erase(&entry);
  }
  uncount_rank(ranks_, entry.own_rank_);
  entry.own_rank_ = entry.rank_ = 0;
  open_cycles_with(entry);
  for (WaitSearch* const search : searches_) search->gone.insert(&entry);
  if (entry.parent() == nullptr) return;
  SchedulerEntry*& next = entry.family_->next_sibling;
  SchedulerEntry*& prev = entry.family_->prev_sibling;
  (prev != nullptr ? prev->family_->next_sibling : entry.parent()->family_->first_child) = next;
  if (next != nullptr) next->family_->prev_sibling = prev;
  next = prev = nullptr;
}

LockNode& LockTable::node_for(ResourceKey&& key) {
  const Probe probe{key, hash_of(key)};
  if (LockNode* const* const found = nodes_.find(probe)) return **found;

  auto node = std::make_unique<LockNode>();
  node->key = std::move(key);
  node->hash = probe.hash;
  nodes_.insert(node.get());
  known_.push_back(*node);
  return *node.release();
}

void LockTable::drop(LockNode& node) {
  PV2_ASSERT(!node.limited() && node.holder_count() == 0 && node.waiter_count() == 0,
             "a key without references is neither held nor waited for");
  if (!cursors_.empty()) move_cursors_from(node);
  if (owes_) forget_concerned(node);
  nodes_.erase(&node);
  known_.erase(known_.iterator_to(node));
  delete &node;
}

std::span<const std::uintptr_t> LockTable::links_of(const SchedulerEntry& entry) noexcept {
  if (entry.locks_ == nullptr) return {};
  return entry.locks_->links();
}

LockNode* LockTable::entity(const SchedulerEntry& entry) noexcept {
  const auto links = links_of(entry);
  return links.empty() ? nullptr : &LockLink(links[entry.locks_->primary_node_]).node();
}

// ---- The rule ----

std::optional<LockMode> LockTable::mode_at(const SchedulerEntry& entry,
                                           const LockNode& node) noexcept {
  auto links = links_of(entry);
  if (links.size() > kFewLinks) {  // the links are in order of their keys
    const auto key_of = [](std::uintptr_t word) -> const ResourceKey& {
      return LockLink(word).node().key;
    };
    const auto at = std::ranges::lower_bound(links, node.key, {}, key_of);
    links = {at, std::min<std::size_t>(1, static_cast<std::size_t>(links.end() - at))};
  }
  for (const std::uintptr_t word : links) {
    const LockLink link(word);
    if (&link.node() == &node) return link.mode();
  }
  return std::nullopt;
}

bool LockTable::covered(const SchedulerEntry& entry, const LockNode& node, LockMode mode) noexcept {
  for (const SchedulerEntry* a = entry.parent(); a != nullptr; a = a->parent()) {
    if (holds(*a, node, mode)) return true;
  }
  return false;
}

bool LockTable::has_holding_ancestor(const SchedulerEntry& entry) noexcept {
  for (const SchedulerEntry* a = entry.parent(); a != nullptr; a = a->parent()) {
    if (a->holds_locks_) return true;
  }
  return false;
}

// Whether an entry waits for its turn in the undoing of `head` and all its descendants.
bool LockTable::is_undone(const SchedulerEntry& head) const noexcept {
  const auto at = reporters_.find(&head);
  return at != reporters_.end() && at->second.turns != 0;
}

// Whether others keep their locks because they are undone after `entry`. An entry that stands in
// line, or begins to, waits for no turn of its own.
bool LockTable::is_waited_for_to_be_undone(const SchedulerEntry& entry) const noexcept {
  if (turns_ == 0) return false;
  for (const SchedulerEntry* head = &entry; head != nullptr; head = head->parent()) {
    if (is_undone(*head)) return true;
  }
  return false;
}

// The one predicate: the key for which an entry that arrived with `ticket` may not take its set
// now, or null.
//
// A key must be free for the mode asked for, or held by an ancestor in at least that mode. And no
// entry passes an earlier waiter whose request excludes its own, except a descendant of a holder:
// the holder does not end before that descendant, so if the waiter waits for the holder, on any key
// and over any number of steps, queueing the descendant behind the waiter would make a deadlock. A
// member that is being undone while others of its tree, which hold their locks, wait for their turn
// passes waiters for the same reason. And a key with a limit needs a free place.
const LockNode* LockTable::obstacle(const SchedulerEntry& entry,
                                    std::uint64_t ticket) const noexcept {
  const bool passes = passes_waiters(entry);
  const auto links = links_of(entry);
  // The key that was in the way at the last look comes first, then the others in turn: an entry
  // that waits for very many keys is asked each time one of them comes free.
  const std::size_t first = links.empty() ? 0 : entry.locks_->key_in_the_way();
  PV2_ASSERT(first == 0 || first < links.size(),
             "the key that was in the way is one of the entry's keys");
  const auto in_the_way = [&](std::size_t at) {
    entry.locks_->set_key_in_the_way(at);
    return &LockLink(links[at]).node();
  };
  bool has_limit = false;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::size_t at = first + i < links.size() ? first + i : first + i - links.size();
    ++looks_;
    const LockNode& node = LockLink(links[at]).node();
    const LockMode mode = LockLink(links[at]).mode();
    const bool is_free = node.free_for(mode) || (passes && covered(entry, node, mode));
    const bool is_next = passes || node.first_conflict(mode) >= ticket;
    has_limit |= node.limited();
    // At the last look it was a place that lacked, if the key has one to lack.
    const bool lacks_place_again =
        i == 0 && first != 0 && node.limited() && !slot_for(entry, node, ticket, passes);
    if (!is_free || !is_next || lacks_place_again) return in_the_way(at);
  }
  if (!has_limit) return nullptr;
  // Last, because it may walk along a line: most of those who wait behind free places lack another
  // key.
  for (std::size_t at = 0; at < links.size(); ++at) {
    ++looks_;
    const LockNode& node = LockLink(links[at]).node();
    if (node.limited() && !slot_for(entry, node, ticket, passes)) return in_the_way(at);
  }
  return nullptr;
}

// Whether one of the places that `node` is limited to is free for `entry` after each waiter ahead
// has one. An entry that was a holder before the restart stays one, even if the limit is smaller
// now.
bool LockTable::slot_for(const SchedulerEntry& entry, const LockNode& node, std::uint64_t ticket,
                         bool passes_waiters) const noexcept {
  if (ticket == kRestoring) return true;
  if (passes_waiters && covered(entry, node, LockMode::kShared)) return true;
  const std::uint32_t taken = node.taken();
  if (taken >= node.limit()) return false;
  const std::uint32_t places = node.limit() - taken;
  // A newcomer has all waiters ahead; a waiter is one of them itself.
  const std::uint32_t before_max = node.waiter_count() - (ticket == kNewcomer ? 0 : 1);
  if (passes_waiters || before_max < places) return true;
  if (ticket == kNewcomer) return false;
  const std::uint32_t before = node.waiters_before(ticket, places);
  looks_ += before;
  return before < places;
}

// ---- What callers do ----

bool LockTable::take(SchedulerEntry& entry, SteadyTime now) {
  PV2_ASSERT(!waits(entry), "a newcomer does not stand in line yet");
  if (!may_take(entry, kNewcomer)) return false;
  hold_as_newcomer(entry, now);
  return true;
}

Status LockTable::restore(SchedulerEntry& entry, SteadyTime now) {
  const LockNode* const node = obstacle(entry, kRestoring);
  if (node == nullptr) {
    hold_as_newcomer(entry, now);
    return {};
  }
  std::string holder = "nobody";
  if (node->holder_count() != 0) {
    holder = "procedure " + std::to_string(node->holders.front().entry().id.value);
  }
  return {StatusCode::kFailedPrecondition,
          "the locks of procedure " + std::to_string(entry.id.value) +
              " cannot be restored: " + to_string(node->key) + " is held by " + holder +
              "; one of the two records is wrong, inspect both before going on"};
}

void LockTable::release(SchedulerEntry& entry, SteadyTime now) {
  PV2_ASSERT(entry.holds_locks_, "an entry that gives its locks back holds them");
  unlink_hold(entry);
  // Only its parent and reported waiters still wait for it.
  if (!one_rank() && entry.rank_ > entry.own_rank_) {
    std::vector<SchedulerEntry*> borrowers{&entry};
    add_borrowers(borrowers);
    rank_anew(borrowers);
  }
  if (!concerned_.empty()) serve_concerned(now);
}

void LockTable::unlink_hold(SchedulerEntry& entry) {
  open_cycles_with(entry);
  if (entry.waiting_descendants_ != 0) suspects_cycles_ = true;  // they no longer pass waiters
  entry.holds_locks_ = false;
  const auto links = links_of(entry);
  PV2_ASSERT(!links.empty(), "an entry that gives locks back asked for some");
  for (std::size_t i = 0; i < links.size(); ++i) {
    const LockLink link(links[i]);
    LockNode& node = link.node();
    LockRecord& record = record_of(entry, i);
    ++looks_;
    PV2_ASSERT(node.count(link.mode()) != 0, "a hold that ends was counted at its key");
    erase(node.holders, record);
    if (record.exempt()) {
      PV2_ASSERT(node.contest && node.contest->exempt != 0,
                 "a hold without a place was counted as such");
      --node.contest->exempt;
    }
    // While others hold the key in the same mode, no excluded request becomes possible; but a place
    // may have come free that a waiter lacked.
    if (--node.count(link.mode()) == 0 || node.lacked_places()) concern(node, link.mode());
  }
  recycle(std::exchange(entry.locks_->known_.blocks, nullptr), links.size());
}

void LockTable::set_limit(const ResourceKey& key, std::uint32_t limit, SteadyTime now) {
  auto contest = std::make_unique<Contest>();  // before anything is changed
  LockNode& node = node_for(ResourceKey(key));
  const bool was_limited = node.limited();
  // Readers lend ranks to readers only at a key with a limit, however large it is.
  const bool lends_otherwise = was_limited != (limit != LockNode::kNoLimit) && !one_rank();
  std::vector<SchedulerEntry*> borrowers;
  node.for_each_line([&](const LockRecordList& line) {
    if (!lends_otherwise) return;
    for (const LockRecord& record : line) {
      ++looks_;
      borrowers.push_back(&record.entry());
    }
  });
  // The last waiter of each line comes first: add_borrowers() looks at all waiters before it and,
  // if it excludes all of them, does not look at them again for the waiters between.
  std::reverse(borrowers.begin(), borrowers.end());
  add_borrowers(borrowers);
  if (!node.contest) node.contest = std::move(contest);
  node.contest->limit = limit;
  rank_anew(borrowers);
  // A limit keeps its key known even while no entry refers to it.
  if (node.limited() && !was_limited) ++node.references, ++limits_;
  if (!node.limited() && was_limited) --node.references, --limits_;
  if (node.references == 0) return drop(node);
  concern(node, LockMode::kExclusive);
  serve_concerned(now);
  ++limit_changes_;
  suspects_cycles_ = true;  // fewer places than before may close a cycle
}

// The half of the rule that concerns waiters ahead. An entry that passes all waiters would get its
// set back at once, so giving way would be of no use.
bool LockTable::contended(const SchedulerEntry& entry) const noexcept {
  if (passes_waiters(entry)) return false;
  const auto links = links_of(entry);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const LockLink link(links[i]);
    const LockNode& node = link.node();
    if (node.first_conflict(link.mode()) != UINT64_MAX) return true;
    if (node.limited() && place_is_wanted(entry, node, i)) return true;
  }
  return false;
}

// Whether `entry`, at its i-th key, has a place of the limit that a waiter lacks: the places that
// are left do not suffice for all waiters. A limit of 0 lets no waiter go on, whoever gives way.
bool LockTable::place_is_wanted(const SchedulerEntry& entry, const LockNode& node,
                                std::size_t i) noexcept {
  if (!entry.holds_locks_ || record_of(entry, i).exempt()) return false;
  if (node.limit() == 0 || node.waiter_count() == 0) return false;
  return std::uint64_t{node.taken()} + node.waiter_count() > node.limit();
}

// For a waiter, at all its keys; for a child that takes its set, at the held ones, where it may be
// counted as a holder that takes no place. Called before anything is changed, because this may
// throw.
void LockTable::make_contests(const SchedulerEntry& entry, At at) {
  for (const std::uintptr_t word : links_of(entry)) {
    LockNode& node = LockLink(word).node();
    if (at == At::kAllKeys || node.holder_count() != 0) (void)node.edit_contest();
  }
}

void LockTable::hold(SchedulerEntry& entry, SteadyTime now) {
  PV2_ASSERT(!entry.holds_locks_, "a set is taken once");
  const auto links = links_of(entry);
  if (!links.empty() && entry.locks_->known_.blocks == nullptr) {
    // An entry that has waited finds them made.
    if (entry.parent() != nullptr) make_contests(entry, At::kHeldKeys);
    entry.locks_->known_.blocks = new_blocks(entry, 0);
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    PV2_ASSERT(entry.locks_->known_.blocks != nullptr,
               "an entry with locks has a record for each of them");
    const LockLink link(links[i]);
    LockNode& node = link.node();
    LockRecord& record = record_of(entry, i);
    ++looks_;
    // If the key has no holder, no ancestor holds it: the chain of ancestors, which may be long,
    // need not be climbed.
    const bool is_held = node.holder_count() != 0;
    if (is_held && entry.parent() != nullptr && covered(entry, node, LockMode::kShared)) {
      LockBlock::of(record).exempt |= 1U << i % LockBlock::kRecords;
      ++node.contest->exempt;
    }
    node.add_holder(record, link.mode());
  }
  entry.holds_locks_ = true;
  entry.since_ = now;
}

}  // namespace pv2
