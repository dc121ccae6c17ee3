// SPDX-License-Identifier: Apache-2.0
//
// EntryLocks: the locks that an entry asks for. At first they are a LockSet. As soon as the
// scheduler knows the entry, they are links to the keys of the lock table, which have the names: so
// each name is in memory once, however many entries ask for it.

#pragma once

#include <pv2/base/block_cache.h>
#include <pv2/base/resource.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>

namespace pv2 {

struct LockBlock;

/// Owned by its entry. The owner of the entry may change it until the first call of the scheduler
/// that gets the entry. That call makes the links. From when it has returned until the entry
/// completes nothing here changes that can be read, so any thread may read it without a mutex.
class EntryLocks : public Recycled {
 public:
  EntryLocks() noexcept : set_() {}
  ~EntryLocks() {
    drop_links();
    set_.~LockSet();
  }
  EntryLocks(const EntryLocks&) = delete;
  EntryLocks& operator=(const EntryLocks&) = delete;

  /// Whether the scheduler knows them. If not, they may still change.
  [[nodiscard]] bool is_known() const noexcept { return node_count_ != 0 || set_.empty(); }

  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] std::size_t size() const noexcept {
    return node_count_ != 0 ? node_count_ : set_.requests().size();
  }
  /// The keys are in the one global order, each is there once. A key stays where it is, and as it
  /// is, as long as this may be read.
  [[nodiscard]] const ResourceKey& key(std::size_t index) const noexcept;
  [[nodiscard]] LockMode mode(std::size_t index) const noexcept;
  /// The mode in which `key` is asked for, if it is.
  [[nodiscard]] std::optional<LockMode> find(const ResourceKey& key) const noexcept;
  /// As LockSet::primary().
  [[nodiscard]] const ResourceKey& primary() const noexcept;
  [[nodiscard]] LockScope scope() const noexcept {
    return node_count_ != 0 ? scope_ : set_.scope();
  }
  [[nodiscard]] LockSet to_set() const;

 private:
  friend class LockTable;
  friend class SchedulerEntry;

  /// The set ends; `count` links take its place. Returns where they are to be written.
  [[nodiscard]] std::uintptr_t* begin_links(std::size_t count) {
    std::uintptr_t* many = nullptr;
    if (count > kFewNodes) {
      many = new std::uintptr_t[count + 1];
      many[count] = 0;  // see key_in_the_way()
    }
    scope_ = set_.scope();
    set_.~LockSet();
    new (&known_) Known();
    node_count_ = static_cast<std::uint16_t>(count);
    return many == nullptr ? known_.few_nodes : known_.many_nodes = many;
  }
  /// The links end; a set without keys and with the same scope takes their place.
  void drop_links() noexcept {
    if (node_count_ == 0) return;
    if (node_count_ > kFewNodes) delete[] known_.many_nodes;
    node_count_ = 0;
    (new (&set_) LockSet())->scope(scope_);
  }
  [[nodiscard]] std::span<const std::uintptr_t> links() const noexcept {
    return {node_count_ <= kFewNodes ? known_.few_nodes : known_.many_nodes, node_count_};
  }
  /// Of an entry that asks for many keys: which of them was in the way at the last look, or the
  /// first one (LockTable::obstacle()). It is kept behind the links.
  [[nodiscard]] std::size_t key_in_the_way() const noexcept {
    return node_count_ > kFewNodes ? known_.many_nodes[node_count_] : 0;
  }
  void set_key_in_the_way(std::size_t index) noexcept {
    if (node_count_ > kFewNodes) known_.many_nodes[node_count_] = index;
  }
  /// Whether the entry holds or waits.
  [[nodiscard]] bool has_blocks() const noexcept {
    return node_count_ != 0 && known_.blocks != nullptr;
  }

  static constexpr std::size_t kFewNodes = 3;
  struct Known {
    // The nodes of the keys, in the order of the keys; more than three have a block of their own.
    // Each is the address of a LockNode, with the lowest bit set if it is asked for exclusively: so
    // the lock rules touch only the nodes.
    union {
      std::uintptr_t few_nodes[kFewNodes] = {};
      std::uintptr_t* many_nodes;
    };
    LockBlock* blocks = nullptr;  // while holding or waiting: a record per key
  };

  // The set is needed until the links are made, and the links from then on: they share memory.
  union {
    LockSet set_;  // while node_count_ is 0
    Known known_;  // otherwise
  };
  std::uint16_t node_count_ = 0;
  // These two have a meaning only with known_.
  std::uint16_t primary_node_ = 0;
  LockScope scope_ = LockScope::kOperation;
};
static_assert(sizeof(EntryLocks) == 40, "each entry that asks for locks has one of these");

}  // namespace pv2
