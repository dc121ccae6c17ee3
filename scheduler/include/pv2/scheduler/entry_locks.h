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
#include <optional>
#include <span>

namespace pv2 {

struct LockBlock;

/// Owned by its entry. The owner of the entry may change it until the first call of the scheduler
/// that gets the entry. That call makes the links. From when it has returned until the entry
/// completes nothing here changes that can be read, so any thread may read it without a mutex.
class EntryLocks : public Recycled {
 public:
  EntryLocks() = default;
  ~EntryLocks() { drop_links(); }
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
  [[nodiscard]] LockScope scope() const noexcept { return set_.scope(); }
  [[nodiscard]] LockSet to_set() const;

 private:
  friend class LockTable;
  friend class SchedulerEntry;

  void drop_links() noexcept {
    if (node_count_ > kFewNodes) delete[] many_nodes_;
    node_count_ = 0;
  }
  [[nodiscard]] std::span<const std::uintptr_t> links() const noexcept {
    return {node_count_ <= kFewNodes ? few_nodes_ : many_nodes_, node_count_};
  }

  // Without keys from when the links are made. The scope stays.
  LockSet set_;
  // The nodes of the keys, in the order of the keys; more than three have a block of their own.
  // Each is the address of a LockNode, with the lowest bit set if it is asked for exclusively: so
  // the lock rules touch only the nodes.
  static constexpr std::size_t kFewNodes = 3;
  union {
    std::uintptr_t few_nodes_[kFewNodes] = {};
    std::uintptr_t* many_nodes_;
  };
  LockBlock* blocks_ = nullptr;  // while holding or waiting: a record per key
  std::uint16_t node_count_ = 0;
  std::uint16_t primary_node_ = 0;
};

}  // namespace pv2
