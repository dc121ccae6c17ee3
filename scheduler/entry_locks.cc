// SPDX-License-Identifier: Apache-2.0
//
// EntryLocks: reads the keys where they are. An entry refers to its nodes until it completes, and a
// node with references keeps its key, so the scheduler's mutex is not needed.

#include "pv2/scheduler/entry_locks.h"

#include <pv2/base/assert.h>

#include "lock_node.h"

namespace pv2 {

const ResourceKey& EntryLocks::key(std::size_t index) const noexcept {
  PV2_ASSERT(index < size(), "the index names a lock of the entry");
  return node_count_ != 0 ? LockLink(links()[index]).node().key : set_.requests()[index].key;
}

LockMode EntryLocks::mode(std::size_t index) const noexcept {
  PV2_ASSERT(index < size(), "the index names a lock of the entry");
  return node_count_ != 0 ? LockLink(links()[index]).mode() : set_.requests()[index].mode;
}

std::optional<LockMode> EntryLocks::find(const ResourceKey& wanted) const noexcept {
  std::size_t begin = 0;
  std::size_t end = size();
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    if (key(middle) < wanted) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  if (begin == size() || key(begin) != wanted) return std::nullopt;
  return mode(begin);
}

const ResourceKey& EntryLocks::primary() const noexcept {
  return node_count_ != 0 ? key(primary_node_) : set_.primary();
}

LockSet EntryLocks::to_set() const {
  if (node_count_ == 0) return set_;
  LockSet all;
  all.scope(scope_);
  // The key that is added first becomes the primary one.
  all.key(primary(), mode(primary_node_));
  for (const std::uintptr_t word : links())
    all.key(LockLink(word).node().key, LockLink(word).mode());
  return all;
}

}  // namespace pv2
