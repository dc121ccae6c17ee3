// SPDX-License-Identifier: Apache-2.0
//
// LiveLeaf: a part of the table of live executions, for 64 neighbouring ids. A bit for each id says
// whether it is live, and an array has the executions. In an array that is too small for all 64
// they lie side by side in order of id, so that the bits below an id give its place:
//
//     bits       ...0001'1010           1, 3 and 4 are live
//     items      [ 1 | 3 | 4 |   ]      3 is at place 1: one bit is set below its own
//
// In an array of 64 each id has its own place, so that in a dense leaf nothing is counted or moved.
// It owns no execution.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/block_cache.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace pv2 {

struct Execution;

/// Owned by one LiveTable. An id is given by its number in the leaf, below kIds.
class LiveLeaf {
 public:
  static constexpr unsigned kIds = 64;

  LiveLeaf() = default;
  LiveLeaf(LiveLeaf&& other) noexcept
      : bits_(std::exchange(other.bits_, 0)),
        items_(std::exchange(other.items_, nullptr)),
        capacity_(std::exchange(other.capacity_, 0)),
        count_(std::exchange(other.count_, 0)) {}
  LiveLeaf& operator=(LiveLeaf&& other) noexcept {
    std::swap(bits_, other.bits_);
    std::swap(items_, other.items_);
    std::swap(capacity_, other.capacity_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~LiveLeaf() {
    if (items_ != nullptr) give_block(items_, capacity_ * sizeof(Execution*));
  }

  /// False: it is live already.
  bool add(unsigned number, Execution* execution) {
    if (is_live(number)) return false;
    if (count_ == capacity_) move_to(std::max(kLeast, 2 * capacity_));
    const unsigned place = place_of(number);
    if (capacity_ != kIds) {
      std::copy_backward(items_ + place, items_ + count_, items_ + count_ + 1);
    }
    items_[place] = execution;
    bits_ |= bit(number);
    ++count_;
    return true;
  }
  /// False: it was not live.
  bool remove(unsigned number) {
    if (!is_live(number)) return false;
    const unsigned place = place_of(number);
    if (capacity_ != kIds) std::copy(items_ + place + 1, items_ + count_, items_ + place);
    bits_ &= ~bit(number);
    --count_;
    // A quarter and not a half, so that a leaf whose number goes up and down by one does not move.
    if (count_ == capacity_ / 4 && capacity_ > kLeast) move_to(capacity_ / 2);
    return true;
  }
  [[nodiscard]] Execution* find(unsigned number) const noexcept {
    return is_live(number) ? items_[place_of(number)] : nullptr;
  }
  /// The first live one from `number` on; kIds: there is none.
  [[nodiscard]] unsigned next(unsigned number) const noexcept {
    if (number >= kIds) return kIds;
    return static_cast<unsigned>(std::countr_zero(bits_ & ~(bit(number) - 1)));
  }
  [[nodiscard]] unsigned size() const noexcept { return count_; }

 private:
  static constexpr unsigned kLeast = 4;

  static std::uint64_t bit(unsigned number) noexcept { return std::uint64_t{1} << number; }
  // Without the processor's instruction for it, which a baseline x86-64 lacks, std::popcount() is a
  // call of a library.
  static unsigned count_ones(std::uint64_t bits) noexcept {
    bits -= (bits >> 1) & 0x5555'5555'5555'5555;
    bits = (bits & 0x3333'3333'3333'3333) + ((bits >> 2) & 0x3333'3333'3333'3333);
    bits = (bits + (bits >> 4)) & 0x0F0F'0F0F'0F0F'0F0F;
    return static_cast<unsigned>((bits * 0x0101'0101'0101'0101) >> 56);
  }
  [[nodiscard]] bool is_live(unsigned number) const noexcept {
    PV2_ASSERT(number < kIds, "a leaf has places for 64 ids");
    return (bits_ & bit(number)) != 0;
  }
  // Where it is, or is to be.
  [[nodiscard]] unsigned place_of(unsigned number) const noexcept {
    if (capacity_ == kIds) return number;
    const std::uint64_t below = bits_ & (bit(number) - 1);
    if (below == bits_) return count_;  // it is new, and ids are issued in order
    return below == 0 ? 0 : count_ones(below);
  }

  void move_to(unsigned capacity) {
    PV2_ASSERT(count_ <= capacity && capacity <= kIds, "an array has room for what is live");
    auto** const items = static_cast<Execution**>(take_block(capacity * sizeof(Execution*)));
    unsigned before = 0;  // how many there are below `number`
    for (unsigned number = next(0); number < kIds; number = next(number + 1), ++before) {
      items[capacity == kIds ? number : before] = items_[capacity_ == kIds ? number : before];
    }
    PV2_ASSERT(before == count_, "there is a bit for each that is counted");
    if (items_ != nullptr) give_block(items_, capacity_ * sizeof(Execution*));
    items_ = items;
    capacity_ = capacity;
  }

  std::uint64_t bits_ = 0;
  Execution** items_ = nullptr;
  unsigned capacity_ = 0;  // 0, 4, 8, 16, 32 or 64
  unsigned count_ = 0;     // how many bits are set
};

}  // namespace pv2
