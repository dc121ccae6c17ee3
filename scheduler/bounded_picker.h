// SPDX-License-Identifier: Apache-2.0
//
// BoundedPicker: which of up to 256 slots is served next. The first slot that has something goes
// first, but a slot that was passed over too often in a row gets one turn. It knows neither what a
// slot is nor what is in it; FairQueue uses it for priorities and the MasterProcedureScheduler for
// classes.

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace pv2 {

/// Guarded by its scheduler's mutex.
class BoundedPicker {
 public:
  static constexpr std::size_t kSlots = 256;

  /// A slot waits for at most `bound` turns of earlier ones, plus one for each slot between that is
  /// overdue too; 0 means strict order.
  explicit BoundedPicker(std::uint32_t bound) : bound_(bound) {}

  [[nodiscard]] bool empty() const noexcept {
    return (words_[0] | words_[1] | words_[2] | words_[3]) == 0;
  }

  void fill(std::size_t slot) noexcept { words_[slot / 64] |= bit(slot); }

  void drain(std::size_t slot) noexcept {
    words_[slot / 64] &= ~bit(slot);
    passed_over_[slot] = 0;
  }

  /// The slot before `end` whose turn it is; changes nothing. `end` or beyond if there is none.
  [[nodiscard]] std::size_t peek(std::size_t end = kSlots) const noexcept {
    const std::size_t first = next_filled(0);
    if (bound_ == 0) return first;
    for (std::size_t slot = next_filled(first + 1); slot < end; slot = next_filled(slot + 1)) {
      if (passed_over_[slot] >= bound_) return slot;
    }
    return first;
  }

  /// Notes that `slot` has had a turn, and who was passed over.
  void served(std::size_t slot) noexcept {
    passed_over_[slot] = 0;
    if (bound_ == 0) return;
    for (std::size_t later = next_filled(slot + 1); later < kSlots;
         later = next_filled(later + 1)) {
      ++passed_over_[later];
    }
  }

 private:
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
  std::array<std::uint64_t, kSlots / 64> words_{};
  std::array<std::uint32_t, kSlots> passed_over_{};
};

}  // namespace pv2
