// SPDX-License-Identifier: Apache-2.0
//
// LiveTable: the live executions by id. Ids are issued in order, so those that are live lie close
// together, and share leaves of 64 ids. The leaves are found by a hash table. An ordered index with
// one entry for 64 leaves lets them be visited in order of id, a bounded piece at a time. It owns
// no execution.
//
//     bytes for each of 300 000, one id live in       1      16      64     200
//     this table                                      9      22      42      43
//     a hash table of ids                            28      28      28      28
//
// Dense neighbours lie on one cache line. Ids that lie far apart take more than in a hash table,
// and are rare: what lives long while all others end.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/block_cache.h>
#include <pv2/base/ids.h>

#include <bit>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "core/live_leaf.h"
#include "model/looks.h"

namespace pv2 {

/// Guarded by the engine's state mutex. At most one leaf is empty. A block is there exactly while a
/// leaf in it is.
class LiveTable {
  // The ordered index: which leaves there are in each block of 64 leaves; never 0.
  using Blocks = std::map<std::uint64_t, std::uint64_t, std::less<>,
                          BlockAllocator<std::pair<const std::uint64_t, std::uint64_t>>>;

  class Iterator;

 public:
  /// Throws std::bad_alloc; the table is then as it was.
  void emplace(ProcedureId id, Execution* execution) {
    PV2_ASSERT(id && execution != nullptr, "a live procedure has an id");
    const std::uint64_t number = leaf_of(id);
    LiveLeaf* leaf = find_leaf(number);
    if (leaf == nullptr) leaf = &make_leaf(number);
    const bool is_new = leaf->add(number_in_leaf(id), execution);
    PV2_ASSERT(is_new, "an id is in the table once");
    ++size_;
  }
  void erase(ProcedureId id) noexcept {
    const std::uint64_t number = leaf_of(id);
    LiveLeaf* const leaf = find_leaf(number);
    if (leaf == nullptr || !leaf->remove(number_in_leaf(id))) return;
    if (leaf->is_empty()) leave_empty(number);
    --size_;
  }
  void clear() {
    leaves_.clear();
    blocks_.clear();
    last_number_ = empty_ = kNoLeaf;
    size_ = 0;
  }
  /// nullptr: it is not live.
  [[nodiscard]] Execution* find(ProcedureId id) const {
    const LiveLeaf* const leaf = find_leaf(leaf_of(id));
    return leaf == nullptr ? nullptr : leaf->find(number_in_leaf(id));
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// All executions, in order of id. The table must not change meanwhile.
  [[nodiscard]] Iterator begin() const { return Iterator(*this, ProcedureId()); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

  /// Visits the executions with ids above `after`, in order, until `visit` returns false or `most`
  /// were visited. Returns the id to go on after, or 0 when all were visited. A gap between ids
  /// costs no more looks, however large it is.
  template <class Visit>
  ProcedureId visit_after(ProcedureId after, std::size_t most, Visit&& visit) const {
    PV2_ASSERT(most > 0, "a visit gets on");
    if (after.value == UINT64_MAX) return ProcedureId();
    for (Iterator at(*this, ProcedureId{after.value + 1}); at != end(); ++at) {
      Looks::one();
      if (!visit(*at) || --most == 0) return at.id();
    }
    return ProcedureId();
  }

 private:
  // Leaves are numbered like the blocks of 64 ids that they stand for.
  static constexpr std::uint64_t kLeavesOfBlock = 64;
  static constexpr std::uint64_t kNoLeaf = UINT64_MAX;
  static std::uint64_t leaf_of(ProcedureId id) noexcept { return id.value / LiveLeaf::kIds; }
  static unsigned number_in_leaf(ProcedureId id) noexcept { return id.value % LiveLeaf::kIds; }
  static std::uint64_t bit_of(std::uint64_t leaf) noexcept {
    return std::uint64_t{1} << leaf % kLeavesOfBlock;
  }

  // Most calls are for the leaf of the call before, so that leaf is kept.
  LiveLeaf* find_leaf(std::uint64_t number) const {
    if (last_number_ == number) return last_;
    const auto at = leaves_.find(number);
    if (at == leaves_.end()) return nullptr;
    last_number_ = number;
    return last_ = &at->second;
  }
  // The first execution of a leaf needs no more memory, so a new leaf does not stay empty.
  LiveLeaf& make_leaf(std::uint64_t number) {
    const auto block = blocks_.try_emplace(number / kLeavesOfBlock, 0).first;
    try {
      last_ = &leaves_[number];  // which may move all others
    } catch (...) {
      if (block->second == 0) blocks_.erase(block);
      throw;
    }
    last_number_ = number;
    block->second |= bit_of(number);
    return *last_;
  }
  // A leaf that has become empty stays until another one does: when few procedures are live, the
  // next id is often in the same leaf.
  void leave_empty(std::uint64_t number) noexcept {
    const std::uint64_t before = std::exchange(empty_, number);
    if (before == number || before == kNoLeaf) return;
    if (find_leaf(before)->is_empty()) erase_leaf(before);
  }
  void erase_leaf(std::uint64_t number) noexcept {
    leaves_.erase(number);
    last_number_ = kNoLeaf;
    const auto block = blocks_.find(number / kLeavesOfBlock);
    PV2_ASSERT(block != blocks_.end() && (block->second & bit_of(number)) != 0,
               "a leaf is in the ordered index");
    block->second &= ~bit_of(number);
    if (block->second == 0) blocks_.erase(block);
  }

  // Goes from one live execution to the next, in order of id.
  class Iterator {
   public:
    // Begins with the first id from `least` on.
    Iterator(const LiveTable& table, ProcedureId least)
        : table_(table), block_(table.blocks_.lower_bound(leaf_of(least) / kLeavesOfBlock)) {
      if (block_ == table_.blocks_.end()) return;
      leaves_ = block_->second;
      if (block_->first == leaf_of(least) / kLeavesOfBlock)
        leaves_ &= ~(bit_of(leaf_of(least)) - 1);
      look_into_leaf();
      if (leaf_ != nullptr && number_ == leaf_of(least)) at_ = leaf_->next(number_in_leaf(least));
      go_to_live();
    }

    [[nodiscard]] Execution& operator*() const { return *leaf_->find(at_); }
    [[nodiscard]] ProcedureId id() const noexcept {
      return ProcedureId{number_ * LiveLeaf::kIds + at_};
    }
    Iterator& operator++() {
      at_ = leaf_->next(at_ + 1);
      go_to_live();
      return *this;
    }
    friend bool operator==(const Iterator& at, std::default_sentinel_t /*end*/) noexcept {
      return at.leaf_ == nullptr;
    }

   private:
    // Goes to the next leaf if there is nothing left in this one.
    void go_to_live() {
      while (leaf_ != nullptr && at_ == LiveLeaf::kIds) {
        leaves_ &= leaves_ - 1;
        look_into_leaf();
      }
    }
    // The first of `leaves_`, or of the next block.
    void look_into_leaf() {
      leaf_ = nullptr;
      if (leaves_ == 0) {
        if (++block_ == table_.blocks_.end()) return;
        leaves_ = block_->second;
      }
      number_ = block_->first * kLeavesOfBlock + static_cast<unsigned>(std::countr_zero(leaves_));
      leaf_ = table_.find_leaf(number_);
      PV2_ASSERT(leaf_ != nullptr, "a leaf in the ordered index is in the table");
      at_ = leaf_->next(0);
    }

    const LiveTable& table_;
    Blocks::const_iterator block_;
    std::uint64_t leaves_ = 0;        // of the block, from the present one on
    std::uint64_t number_ = 0;        // of the present leaf
    const LiveLeaf* leaf_ = nullptr;  // nullptr: at the end
    unsigned at_ = 0;
  };

  // Mutable for find_leaf(), which returns a leaf that may be changed.
  mutable boost::unordered_flat_map<std::uint64_t, LiveLeaf> leaves_;
  Blocks blocks_;
  mutable std::uint64_t last_number_ = kNoLeaf;
  mutable LiveLeaf* last_ = nullptr;  // the leaf last_number_, if that is not kNoLeaf
  std::uint64_t empty_ = kNoLeaf;     // the leaf that was the last to become empty
  std::size_t size_ = 0;
};

}  // namespace pv2
