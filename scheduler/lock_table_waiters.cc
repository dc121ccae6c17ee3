// SPDX-License-Identifier: Apache-2.0
//
// LockTable, the waiters: the lines at the keys, and which waiters are asked again after an event.
// It makes no rule of its own: it asks may_take(), and every shortcut here says why no other waiter
// could be concerned.

#include <pv2/base/assert.h>
#include <pv2/base/prefetch.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "lock_table.h"

namespace pv2 {
namespace {

// A chunk is 16 KB; chunks are kept for reuse.
constexpr std::size_t kBlocksPerChunk = 256;

}  // namespace

Kin LockTable::kin_of(const SchedulerEntry& entry) noexcept {
  return entry.stands_with_nested_ ? Kin::kNested : Kin::kRoot;
}

void LockTable::wait(SchedulerEntry& entry, SteadyTime now) {
  PV2_ASSERT(entry.locks_ != nullptr && entry.locks_->node_count_ != 0,
             "an entry that waits for locks asks for some");
  PV2_ASSERT(!entry.holds_locks_ && !entry.locks_->has_blocks(),
             "an entry that begins to wait neither holds nor waits");
  make_contests(entry, At::kAllKeys);  // before anything is changed
  // While an entry stands in line it waits for its locks, and not for its children: a cycle through
  // it as their parent is open.
  open_cycles_with(entry);
  const std::uint64_t ticket = ++last_ticket_;
  const auto links = links_of(entry);
  entry.locks_->known_.blocks = new_blocks(entry, ticket);
  entry.stands_with_nested_ = entry.parent() != nullptr || is_waited_for_to_be_undone(entry);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const LockLink link(links[i]);
    ++looks_;
    PV2_ASSERT(link.node().contest, "a key has its lines before the first waiter joins one");
    Contest& contest = *link.node().contest;
    LockRecordList& line = contest.line(kin_of(entry), link.mode());
    PV2_ASSERT(line.empty() || line.back().ticket() < ticket, "a line is in order of arrival");
    LockRecord& record = record_of(entry, i);
    if (link.mode() == LockMode::kExclusive) record.set_exclusive();
    line.push_back(record);
    ++contest.waiter_count;
  }
  entry.since_ = now;
  if (entry.stands_with_nested_) link_nested(entry);
  for (SchedulerEntry* a = entry.parent(); a != nullptr; a = a->parent()) ++a->waiting_descendants_;
  if (!one_rank()) {
    lifted_.push_back(&entry);
    lift_all();
  }
  // A root is the last in its lines: it closes a cycle only if a reported wait is for it.
  if (entry.parent() != nullptr || !reported_.empty()) suspects_cycles_ = true;
}

void LockTable::cancel(SchedulerEntry& entry, SteadyTime now) {
  PV2_ASSERT(waits(entry), "an entry that is taken out of its lines stands in them");
  std::vector<SchedulerEntry*> borrowers{&entry};
  if (!one_rank()) add_borrowers(borrowers);
  unlink_waits(entry);
  recycle(std::exchange(entry.locks_->known_.blocks, nullptr), links_of(entry).size());
  rank_anew(borrowers);
  suspect_if_it_waits(entry);  // for its children, now that it no longer stands in line
  for (const std::uintptr_t word : links_of(entry)) {
    concern(LockLink(word).node(), LockLink(word).mode());
  }
  serve_concerned(now);
}

void LockTable::hold_as_newcomer(SchedulerEntry& entry, SteadyTime now) {
  hold(entry, now);
  // There are waiters at its keys only if it passed them; they now wait for it.
  if (!one_rank()) {
    lift(entry, rank_lent_in_lines(entry));
    lift_all();
  }
  if (entry.waiting_descendants_ != 0) {
    ask_below(entry);
    serve_concerned(now);
  }
  suspect_if_it_waits(entry);
}

bool LockTable::at_a_limit(const SchedulerEntry& entry) noexcept {
  const auto links = links_of(entry);
  return std::any_of(links.begin(), links.end(),
                     [](std::uintptr_t word) { return LockLink(word).node().limited(); });
}

void LockTable::grant(SchedulerEntry& entry, SteadyTime now) {
  PV2_ASSERT(waits(entry), "an entry that is granted its set has waited for it");
  // No waiter is before a root that is granted, except at a key with places for several. A
  // descendant may have passed the waiters before it. In both cases the entry no longer waits for
  // them.
  std::vector<SchedulerEntry*> borrowers;
  if (!one_rank() && (entry.stands_with_nested_ || at_a_limit(entry))) {
    borrowers.push_back(&entry);
    add_borrowers(borrowers);
  }
  unlink_waits(entry);
  hold(entry, now);
  rank_anew(borrowers);
  granted_.push_back(entry);
  suspect_if_it_waits(entry);
  // The waiters behind it had counted it as needing a place, and it needed none.
  const auto links = links_of(entry);
  for (std::size_t i = 0; i < links.size(); ++i) {
    LockNode& node = LockLink(links[i]).node();
    if (node.lacked_places() && record_of(entry, i).exempt()) concern(node, LockMode::kExclusive);
  }
}

// The entry keeps its records: it goes on to hold, or the caller recycles them.
void LockTable::unlink_waits(SchedulerEntry& entry) {
  open_cycles_with(entry);
  const auto links = links_of(entry);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const LockLink link(links[i]);
    Contest& contest = link.node().edit_contest();
    LockRecordList& list = contest.line(kin_of(entry), link.mode());
    ++looks_;
    PV2_ASSERT(contest.waiter_count != 0, "a waiter that leaves its line was counted there");
    erase(list, record_of(entry, i));
    // With a million entries waiting, the next in line is in no cache when the lock comes free. Its
    // record was just touched when its predecessor was erased, so its address is at hand.
    if (!list.empty()) prefetch(&list.front().entry());
    --contest.waiter_count;
  }
  if (!asked_.empty()) asked_.erase(ticket_of(entry));
  if (entry.stands_with_nested_) unlink_nested(entry);
  for (SchedulerEntry* a = entry.parent(); a != nullptr; a = a->parent()) {
    PV2_ASSERT(a->waiting_descendants_ != 0, "an ancestor knows of each descendant that waits");
    --a->waiting_descendants_;
  }
}

// Others have begun to wait until `head` and its descendants are undone. From now on those of them
// that stand in line pass the waiters before them, and a cycle through these waiters is open.
void LockTable::let_pass(SchedulerEntry& head, SteadyTime now) {
  if (!stands_in_line_below(head)) return;
  if (waits(head) && !head.stands_with_nested_) stand_with_nested(head);
  ask_below(head);
  serve_concerned(now);
  suspects_cycles_ = true;
}

// Moves a waiter from the lines of the roots to those of the nested waiters, which are asked one by
// one.
void LockTable::stand_with_nested(SchedulerEntry& entry) {
  const auto links = links_of(entry);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const LockLink link(links[i]);
    LockRecord& record = record_of(entry, i);
    erase(link.node().waiters(Kin::kRoot, link.mode()), record);
    LockRecordList& line = link.node().waiters(Kin::kNested, link.mode());
    const auto behind = std::find_if(line.begin(), line.end(), [&](const LockRecord& other) {
      return other.ticket() > record.ticket();
    });
    line.insert(behind, record);
  }
  entry.stands_with_nested_ = true;
  link_nested(entry);
}

// An entry that held or waited for `node` in `mode` no longer does. Only waiters that this mode
// excluded are concerned: readers never waited for a reader, except for a place.
void LockTable::concern(LockNode& node, LockMode mode) {
  if (node.waiter_count() == 0) return;
  for (const Kin kin : {Kin::kRoot, Kin::kNested}) {
    for (const LockMode waiting : {LockMode::kExclusive, LockMode::kShared}) {
      const bool both_read = mode == LockMode::kShared && waiting == LockMode::kShared;
      if (both_read && !node.lacked_places()) continue;
      LockRecordList& list = node.waiters(kin, waiting);
      if (!list.empty()) concerned_.push_back({&node, kin, waiting, list.begin()});
    }
  }
}

bool LockTable::exhausted(const Cursor& cursor) noexcept {
  LockRecordList& list = cursor.node->waiters(cursor.kin, cursor.mode);
  // The key is held again, or has no place left: a waiter covered by an ancestor never waited for
  // this key, and all others wait on.
  if (cursor.at == list.end() || !cursor.node->free_for(cursor.mode)) return true;
  if (cursor.node->limited() && cursor.node->taken() >= cursor.node->limit()) return true;
  if (cursor.kin == Kin::kNested) return false;
  // Roots pass no waiter, so a root behind a waiter that excludes it need not be asked.
  if (cursor.mode == LockMode::kExclusive) return cursor.at != list.begin();
  return cursor.node->first_conflict(cursor.mode) < cursor.at->ticket();
}

// Asks the waiters of all concerned lists, and those in `asked_`, in one merged order of arrival:
// with several keys released at once, going key by key would let a later waiter of the first key
// pass an earlier one of the second. The cursors are a heap, as the release of a set of many keys
// concerns as many lists.
//
// A section asks at most kServedMax waiters. The rest is owed: their cursors stay, and a cursor is
// moved on when the waiter it stands at leaves its line meanwhile.
void LockTable::serve_concerned(SteadyTime now) {
  owes_ = false;
  std::size_t heap = 0;  // how many cursors, from the first, are in the heap
  const auto came_later = [](const Cursor& a, const Cursor& b) {
    return a.at->ticket() > b.at->ticket();
  };
  const auto take_first_out = [&]() -> Cursor& {
    std::pop_heap(concerned_.begin(), concerned_.begin() + static_cast<std::ptrdiff_t>(heap),
                  came_later);
    return concerned_[--heap];
  };
  while (true) {
    // The cursors that have just been added, or moved on.
    const auto moved = concerned_.begin() + static_cast<std::ptrdiff_t>(heap);
    concerned_.erase(std::remove_if(moved, concerned_.end(), exhausted), concerned_.end());
    for (; heap < concerned_.size(); ++heap) {
      std::push_heap(concerned_.begin(), concerned_.begin() + static_cast<std::ptrdiff_t>(heap + 1),
                     came_later);
    }
    if (concerned_.empty() && asked_.empty()) return;
    if (room_ == 0) {
      owes_ = true;
      owed_since_ = now;
      return;
    }
    if (!concerned_.empty() && exhausted(concerned_.front())) {
      take_first_out();
      concerned_.pop_back();
      continue;
    }
    --room_;
    const auto asked = asked_.begin();
    const bool is_asked =
        !asked_.empty() && (concerned_.empty() || asked->first <= concerned_.front().at->ticket());
    SchedulerEntry& entry = is_asked ? *asked->second : concerned_.front().at->entry();
    const std::uint64_t ticket = ticket_of(entry);
    PV2_ASSERT(waits(entry), "a waiter that is asked again stands in line");
    // The grant unlinks all records of the entry, so every cursor that stands on one moves on
    // first.
    while (heap != 0 && concerned_.front().at->ticket() == ticket) ++take_first_out().at;
    if (is_asked) asked_.erase(asked);
    if (!may_take(entry, ticket)) continue;
    grant(entry, now);
    if (entry.waiting_descendants_ != 0) ask_below(entry);
  }
}

// The waiters at and below `head` are to be asked: `head` has taken its set, or others have begun
// to wait until `head` and its descendants are undone. Nobody else is concerned. Such an event
// makes no key and no place free, and no waiter leaves a line (the grant of `head` itself says what
// that changes). All that it changes is who passes waiters and which keys an ancestor covers, and
// both ask only about the entry itself and its ancestors. Cursors would not find these waiters: to
// them a key that an ancestor holds is not free.
void LockTable::ask_below(SchedulerEntry& head) {
  std::uint32_t unmet = head.waiting_descendants_ + (waits(head) ? 1 : 0);
  std::vector<SchedulerEntry*> heads{&head};
  while (!heads.empty()) {
    SchedulerEntry& entry = *heads.back();
    heads.pop_back();
    ++looks_;
    if (waits(entry)) {
      asked_.emplace(ticket_of(entry), &entry);
      --unmet;
    }
    if (entry.waiting_descendants_ == 0) continue;
    for (SchedulerEntry* c = entry.first_known_child(); c != nullptr;
         c = c->family_->next_sibling) {
      ++looks_;
      if (stands_in_line_below(*c)) heads.push_back(c);
    }
  }
  if (unmet == 0) return;
  // An entry between is not known yet, so no way leads down to its children.
  for (SchedulerEntry* waiter = first_nested_; waiter != nullptr; waiter = waiter->next_) {
    ++looks_;
    const SchedulerEntry* a = waiter->parent();
    while (a != nullptr && a != &head) a = a->parent();
    if (a == &head) asked_.emplace(ticket_of(*waiter), waiter);
  }
}

void LockTable::move_concerned_from(const LockRecord& record) {
  for (Cursor& cursor : concerned_) {
    LockRecordList& list = cursor.node->waiters(cursor.kin, cursor.mode);
    if (cursor.at != list.end() && &*cursor.at == &record) ++cursor.at;
  }
}

void LockTable::forget_concerned(const LockNode& node) {
  std::erase_if(concerned_, [&](const Cursor& cursor) { return cursor.node == &node; });
}

LockBlock* LockTable::new_blocks(SchedulerEntry& entry, std::uint64_t ticket) {
  const std::size_t count = blocks_for(entry.locks_->node_count_);
  LockBlock* blocks = nullptr;
  if (count > 1) {
    blocks = *many_blocks_.insert(new LockBlock[count]).first;
  } else {
    if (free_blocks_.empty()) add_blocks();
    blocks = free_blocks_.back();
    free_blocks_.pop_back();
  }
  for (std::size_t i = 0; i < count; ++i) {
    blocks[i].entry = &entry;
    blocks[i].ticket = ticket;
    blocks[i].exempt = blocks[i].exclusive = 0;
  }
  return blocks;
}

void LockTable::add_blocks() {
  block_chunks_.push_back(std::make_unique<LockBlock[]>(kBlocksPerChunk));
  for (std::size_t i = kBlocksPerChunk; i > 0; --i) {
    free_blocks_.push_back(&block_chunks_.back()[i - 1]);
  }
}

void LockTable::recycle(LockBlock* blocks, std::size_t records) {
  if (blocks_for(records) <= 1) {
    free_blocks_.push_back(blocks);
  } else {
    many_blocks_.erase(blocks);
    delete[] blocks;
  }
}

}  // namespace pv2
