// SPDX-License-Identifier: Apache-2.0
//
// BoundedPicker: decides which of up to 256 slots is served next. The first filled slot goes first,
// but a slot that was passed over too often in a row gets one turn. It knows neither what a slot is
// nor what is in it; FairQueue uses it for priorities and the MasterProcedureScheduler for classes.

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace pv2 {

/// Guarded by its scheduler's mutex.
class BoundedPicker {
 public:
  static constexpr std::size_t kSlots = 256;

  /// A slot waits for at most `bound` turns of earlier slots, plus one turn for each overdue slot
  /// before it; 0 means strict order.
  explicit BoundedPicker(std::uint32_t bound) : bound_(bound) {}

  [[nodiscard]] bool empty() const noexcept { return filled_ == 0; }

  /// The first filled slot. Must not be called when empty().
  [[nodiscard]] std::size_t first() const noexcept { return first_; }

  void fill(std::size_t slot) noexcept {
    if (is_filled(slot)) return;
    words_[slot / 64] |= bit(slot);
    ++filled_;
    first_ = std::min(first_, slot);
  }

  void drain(std::size_t slot) noexcept {
    passed_over_[slot] = 0;
    if (!is_filled(slot)) return;
    words_[slot / 64] &= ~bit(slot);
    --filled_;
    if (slot == first_) first_ = next_filled(slot + 1);
  }

  /// The slot before `end` whose turn it is, or `end` or more if there is none. Changes nothing.
  [[nodiscard]] std::size_t peek(std::size_t end = kSlots) const noexcept {
    if (!has_rivals()) return first_;
    for (std::size_t slot = next_filled(first_ + 1); slot < end; slot = next_filled(slot + 1)) {
      if (passed_over_[slot] >= bound_) return slot;
    }
    return first_;
  }

  /// Notes that `slot` has had a turn and that the filled slots behind it were passed over.
  void served(std::size_t slot) noexcept {
    passed_over_[slot] = 0;
    if (!has_rivals()) return;
    for (std::size_t later = next_filled(slot + 1); later < kSlots;
         later = next_filled(later + 1)) {
      ++passed_over_[later];
    }
  }

 private:
  // Whether a later slot could be overdue. Usually only one slot is filled, and then nothing is
  // counted.
  [[nodiscard]] bool has_rivals() const noexcept { return filled_ > 1 && bound_ != 0; }
  [[nodiscard]] bool is_filled(std::size_t slot) const noexcept {
    return (words_[slot / 64] & bit(slot)) != 0;
  }
  static constexpr std::uint64_t bit(std::size_t slot) noexcept { return 1ULL << (slot % 64); }

  [[nodiscard]] std::size_t next_filled(std::size_t from) const noexcept {
    for (std::size_t word = from / 64; word < words_.size(); ++word) {
      const std::uint64_t rest =
          word == from / 64 ? words_[word] & (~0ULL << (from % 64)) : words_[word];
      if (rest != 0) return word * 64 + static_cast<std::size_t>(std::countr_zero(rest));
    }
    return kSlots;
  }

  const std::uint32_t bound_;
  std::uint32_t filled_ = 0;
  std::size_t first_ = kSlots;  // the first filled slot
  std::array<std::uint64_t, kSlots / 64> words_{};
  std::array<std::uint32_t, kSlots> passed_over_{};
};

}  // namespace pv2
