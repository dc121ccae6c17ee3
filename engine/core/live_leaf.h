// SPDX-License-Identifier: Apache-2.0
//
// LiveLeaf: a part of the table of live executions, for 64 neighbouring ids. A bit for each id says
// whether it is live. A leaf with one execution points to it. A leaf with more points to an array.
// In an array that is too small for all 64 they lie side by side in order of id, so that the bits
// below an id give its place:
//
//     bits       ...0001'1010           1, 3 and 4 are live
//     items      [ 1 | 3 | 4 |   ]      3 is at place 1: one bit is set below its own
//
// In an array of 64 each id has its own place, so that in a dense leaf nothing is counted or moved.
// It owns no execution. What needs memory either succeeds or changes nothing; to remove needs none.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/block_cache.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace pv2 {

struct Execution;

/// Owned by one LiveTable. An id is given by its number in the leaf, below kIds.
class LiveLeaf {
 public:
  static constexpr unsigned kIds = 64;

  LiveLeaf() = default;
  LiveLeaf(LiveLeaf&& other) noexcept
      : bits_(std::exchange(other.bits_, 0)), place_(std::exchange(other.place_, {})) {}
  LiveLeaf& operator=(LiveLeaf&& other) noexcept {
    std::swap(bits_, other.bits_);
    std::swap(place_, other.place_);
    return *this;
  }
  ~LiveLeaf() {
    if (has_array()) free_array();
  }

  /// False: it is live already. Throws std::bad_alloc, though never in an empty leaf.
  bool add(unsigned number, Execution* execution) {
    if (is_live(number)) return false;
    if (is_empty()) {
      place_.only = execution;
    } else {
      make_room();
      insert(number, execution);
    }
    bits_ |= bit(number);
    return true;
  }
  /// False: it was not live.
  bool remove(unsigned number) noexcept {
    if (!is_live(number)) return false;
    if (has_array()) take_out(number);
    bits_ &= ~bit(number);
    if (has_array()) shrink();
    return true;
  }
  [[nodiscard]] Execution* find(unsigned number) const noexcept {
    if (!is_live(number)) return nullptr;
    return has_array() ? array().items()[place_of(number)] : place_.only;
  }
  /// The first live one from `number` on; kIds: there is none.
  [[nodiscard]] unsigned next(unsigned number) const noexcept {
    if (number >= kIds) return kIds;
    return static_cast<unsigned>(std::countr_zero(bits_ & ~(bit(number) - 1)));
  }
  [[nodiscard]] bool is_empty() const noexcept { return bits_ == 0; }
  /// How many it has room for.
  [[nodiscard]] unsigned capacity() const noexcept { return has_array() ? array().capacity : 1; }

 private:
  // The items follow it. With these 8 bytes an array is as large as blocks of memory are.
  struct Array {
    std::uint32_t capacity;  // 2, 4, 8, 16, 32 or 64
    std::uint32_t count;     // how many bits are set

    [[nodiscard]] Execution** items() noexcept { return reinterpret_cast<Execution**>(this + 1); }
    static std::size_t bytes_of(std::uint32_t capacity) noexcept {
      return sizeof(Array) + capacity * sizeof(Execution*);  // NOLINT(bugprone-sizeof-expression)
    }
  };
  static_assert(sizeof(Array) % alignof(Execution*) == 0);
  union Place {
    Execution* only = nullptr;  // if one bit is set
    Array* array;               // if more are
  };
  static constexpr std::uint32_t kLeast = 2;

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
  [[nodiscard]] bool has_array() const noexcept { return (bits_ & (bits_ - 1)) != 0; }
  [[nodiscard]] Array& array() const noexcept { return *place_.array; }
  // Where it is in the array, or is to be.
  [[nodiscard]] unsigned place_of(unsigned number) const noexcept {
    if (array().capacity == kIds) return number;
    const std::uint64_t below = bits_ & (bit(number) - 1);
    if (below == bits_) return array().count;  // it is new, and ids are issued in order
    return below == 0 ? 0 : count_ones(below);
  }

  static Array& new_array(std::uint32_t capacity) {
    return *new (take_block(Array::bytes_of(capacity))) Array{capacity, 0};
  }
  void free_array() noexcept { give_block(place_.array, Array::bytes_of(array().capacity)); }
  // For one more.
  void make_room() {
    if (!has_array()) {
      Array& to = new_array(kLeast);
      to.items()[to.count++] = place_.only;
      place_.array = &to;
    } else if (array().count == array().capacity) {
      move_to(new_array(2 * array().capacity));
    }
  }
  // Its bit is not set yet. There may be one bit, and an array already.
  void insert(unsigned number, Execution* execution) noexcept {
    Execution** const items = array().items();
    const unsigned place = place_of(number);
    if (array().capacity != kIds) {
      std::copy_backward(items + place, items + array().count, items + array().count + 1);
    }
    items[place] = execution;
    ++array().count;
  }
  // Its bit is still set. If one other is left, no array is.
  void take_out(unsigned number) noexcept {
    if (array().count == 2) {
      const unsigned first = next(0);
      Execution* const other = find(first == number ? next(first + 1) : first);
      free_array();
      place_.only = other;
      return;
    }
    Execution** const items = array().items();
    const unsigned place = place_of(number);
    if (array().capacity != kIds)
      std::copy(items + place + 1, items + array().count, items + place);
    --array().count;
  }
  // At a quarter and not at a half, so that a leaf whose number goes up and down by one does not
  // move. Without memory for a smaller array it keeps the larger one until the next is removed.
  void shrink() noexcept {
    if (array().count > array().capacity / 4) return;
    try {
      move_to(new_array(array().capacity / 2));
    } catch (const std::bad_alloc&) {
      return;
    }
  }
  void move_to(Array& to) noexcept {
    PV2_ASSERT(array().count <= to.capacity && to.capacity <= kIds,
               "an array has room for what is live");
    for (unsigned number = next(0); number < kIds; number = next(number + 1), ++to.count) {
      const unsigned from = array().capacity == kIds ? number : to.count;
      to.items()[to.capacity == kIds ? number : to.count] = array().items()[from];
    }
    PV2_ASSERT(to.count == array().count, "there is a bit for each that is counted");
    free_array();
    place_.array = &to;
  }

  std::uint64_t bits_ = 0;
  Place place_;
};

}  // namespace pv2
