// SPDX-License-Identifier: Apache-2.0
//
// LockNode: one key of the lock table: its holders, its waiters, and the queue of the entity it
// names. Each entry that refers to it (holding, waiting, queued or parked) counts as a reference,
// so a key and its queue live as long as an entry needs them. Plain data; LockTable has the rules
// and ReadyQueue the order.

#pragma once

#include <pv2/base/block_cache.h>
#include <pv2/base/resource.h>

#include <algorithm>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "entity_queue.h"
#include "pv2/scheduler/scheduler_entry.h"

namespace pv2 {

/// One entry at one key: in line for it, or holding it. The block of the record names the entry,
/// and the place in that block says which of the entry's keys it is. Linked while the entry waits
/// or holds.
struct LockRecord
    : boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>> {
  [[nodiscard]] SchedulerEntry& entry() const noexcept;
  /// A waiter's order of arrival, over all keys.
  [[nodiscard]] std::uint64_t ticket() const noexcept;
  /// Whether a holder takes no slot of the key's limit.
  [[nodiscard]] bool exempt() const noexcept;
  /// The mode in which the entry asks for the key, set when the record is linked.
  [[nodiscard]] LockMode mode() const noexcept;
  void set_exclusive() noexcept;
};

/// The records of one entry at three of its keys; at more keys, the next block follows. Exactly one
/// cache line: with a million entries waiting, each block is one cache miss when its turn comes.
/// Owned by the table's pool.
struct alignas(64) LockBlock {
  static constexpr std::size_t kRecords = 3;

  [[nodiscard]] static LockBlock& of(const LockRecord& record) noexcept {
    return *reinterpret_cast<LockBlock*>(reinterpret_cast<std::uintptr_t>(&record) & ~63ULL);
  }

  SchedulerEntry* entry = nullptr;
  std::uint64_t ticket : 58 = 0;
  std::uint64_t exempt : 3 = 0;     ///< A bit for each record.
  std::uint64_t exclusive : 3 = 0;  ///< Likewise; in a new block none is set.
  LockRecord records[kRecords];
};
static_assert(sizeof(LockBlock) == 64);

inline SchedulerEntry& LockRecord::entry() const noexcept { return *LockBlock::of(*this).entry; }
inline std::uint64_t LockRecord::ticket() const noexcept { return LockBlock::of(*this).ticket; }
inline bool LockRecord::exempt() const noexcept {
  const LockBlock& block = LockBlock::of(*this);
  return (block.exempt >> (this - block.records) & 1U) != 0;
}
inline LockMode LockRecord::mode() const noexcept {
  const LockBlock& block = LockBlock::of(*this);
  const bool exclusive = (block.exclusive >> (this - block.records) & 1U) != 0;
  return exclusive ? LockMode::kExclusive : LockMode::kShared;
}
inline void LockRecord::set_exclusive() noexcept {
  LockBlock& block = LockBlock::of(*this);
  block.exclusive |= 1U << (this - block.records);
}

using LockRecordList =
    boost::intrusive::list<LockRecord, boost::intrusive::constant_time_size<false>>;

/// Whether two entries cannot hold a key at once, unless they are of one tree.
[[nodiscard]] constexpr bool excludes(LockMode a, LockMode b) noexcept {
  return a == LockMode::kExclusive || b == LockMode::kExclusive;
}

/// Whether a waiter may be let past others, because it has a parent or its tree is being undone.
/// Waiters that may are asked one by one.
enum class Kin : std::uint8_t { kRoot = 0, kNested = 1 };

/// What a key needs once entries have waited for it, or a limit was set, or a child took it while
/// another entry held it: its waiters, each line in the order of the tickets, and its limit.
struct Contest : Recycled {
  static constexpr std::uint32_t kNoLimit = UINT32_MAX;

  LockRecordList lines[2][2];  ///< By kin and mode.
  std::uint32_t waiter_count = 0;
  std::uint32_t limit = kNoLimit;  ///< How many may hold it at once, not counting the exempt.
  std::uint32_t exempt = 0;        ///< Holders that took it under an ancestor.

  [[nodiscard]] LockRecordList& line(Kin kin, LockMode mode) noexcept {
    return lines[static_cast<int>(kin)][mode == LockMode::kExclusive];
  }
  /// That of all keys that need none. It stays as it is.
  [[nodiscard]] static Contest& none() noexcept {
    static Contest& none = *new Contest();  // never destroyed: a scheduler may be static
    return none;
  }
};

struct LockNode;

/// One request of an entry, resolved: a node and a mode in one word, as EntryLocks stores it.
class LockLink {
 public:
  explicit LockLink(std::uintptr_t word) noexcept : word_(word) {}
  LockLink(LockNode& node, LockMode mode) noexcept
      : word_(reinterpret_cast<std::uintptr_t>(&node) | (mode == LockMode::kExclusive ? 1U : 0U)) {}

  [[nodiscard]] LockNode& node() const noexcept {
    return *reinterpret_cast<LockNode*>(word_ & ~std::uintptr_t{1});
  }
  [[nodiscard]] LockMode mode() const noexcept {
    return (word_ & 1U) != 0 ? LockMode::kExclusive : LockMode::kShared;
  }
  [[nodiscard]] std::uintptr_t word() const noexcept { return word_; }

 private:
  std::uintptr_t word_;
};

struct LockNode
    : boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>,
      Recycled {
  static constexpr std::uint32_t kNoLimit = Contest::kNoLimit;

  [[nodiscard]] const LockRecordList& waiters(Kin kin, LockMode mode) const noexcept {
    return (contest ? *contest : Contest::none()).line(kin, mode);
  }
  /// To take a waiter out. To add one, edit_contest() is asked for the line.
  [[nodiscard]] LockRecordList& waiters(Kin kin, LockMode mode) noexcept {
    return (contest ? *contest : Contest::none()).line(kin, mode);
  }
  [[nodiscard]] std::uint32_t waiter_count() const noexcept {
    return contest ? contest->waiter_count : 0;
  }
  [[nodiscard]] Contest& edit_contest() {
    if (!contest) contest = std::make_unique<Contest>();
    return *contest;
  }
  /// Visits the four lines.
  template <class Visit>
  void for_each_line(Visit&& visit) const {
    if (!contest) return;
    for (const auto& of_kin : contest->lines) {
      for (const LockRecordList& line : of_kin) visit(line);
    }
  }

  void add_holder(LockRecord& record, LockMode mode) noexcept {
    if (mode == LockMode::kExclusive) {
      record.set_exclusive();
      holders.push_front(record);
      ++exclusive;
    } else {
      holders.push_back(record);
      ++shared;
    }
  }
  /// Visits the holders that exclude `mode`.
  template <class Visit>
  void for_each_holder_against(LockMode mode, Visit&& visit) {
    for (LockRecord& holder : holders) {
      if (!excludes(holder.mode(), mode)) return;
      visit(holder);
    }
  }
  [[nodiscard]] std::uint32_t& count(LockMode mode) noexcept {
    return mode == LockMode::kExclusive ? exclusive : shared;
  }
  [[nodiscard]] std::uint32_t holder_count() const noexcept { return exclusive + shared; }

  /// Whether no holder excludes `mode`.
  [[nodiscard]] bool free_for(LockMode mode) const noexcept {
    return exclusive == 0 && (mode == LockMode::kShared || shared == 0);
  }

  /// The ticket of the first waiter that excludes `mode`, or UINT64_MAX.
  [[nodiscard]] std::uint64_t first_conflict(LockMode mode) const noexcept {
    std::uint64_t first = UINT64_MAX;
    if (waiter_count() == 0) return first;
    for (const auto& of_kin : contest->lines) {
      if (!of_kin[1].empty()) first = std::min(first, of_kin[1].front().ticket());
      if (mode == LockMode::kExclusive && !of_kin[0].empty()) {
        first = std::min(first, of_kin[0].front().ticket());
      }
    }
    return first;
  }

  [[nodiscard]] std::uint32_t limit() const noexcept { return contest ? contest->limit : kNoLimit; }
  [[nodiscard]] bool limited() const noexcept { return limit() != kNoLimit; }
  /// Holders that take a slot of the limit.
  [[nodiscard]] std::uint32_t taken() const noexcept {
    return holder_count() - (contest ? contest->exempt : 0);
  }
  /// When a place has come free, or a waiter has left the line: whether a waiter may have lacked a
  /// place before.
  [[nodiscard]] bool lacked_places() const noexcept {
    return limited() && std::uint64_t{taken()} + waiter_count() >= limit();
  }
  /// How many waiters have a smaller ticket, counted up to `most`. Walks along the lines.
  [[nodiscard]] std::uint32_t waiters_before(std::uint64_t ticket,
                                             std::uint32_t most) const noexcept {
    std::uint32_t before = 0;
    for_each_line([&](const LockRecordList& line) {
      auto at = line.begin();
      while (before < most && at != line.end() && at->ticket() < ticket) ++at, ++before;
    });
    return before;
  }

  std::uint32_t references = 0;
  std::uint32_t exclusive = 0;  ///< Holders; more than one only within a tree.
  std::uint32_t shared = 0;
  std::uint32_t hash = 0;
  LockRecordList holders;  ///< The exclusive ones first; both kinds only within a tree.
  /// Kept as long as the node once it is made. Nearly all keys have none.
  std::unique_ptr<Contest> contest;
  EntityQueue queue;
  ResourceKey key;
};
static_assert(sizeof(LockNode) <= 104, "nearly each procedure with a lock has a key of its own");

}  // namespace pv2
