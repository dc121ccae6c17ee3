// SPDX-License-Identifier: Apache-2.0
//
// ShortRuns: how many workers are in a run that is expected to end soon. The estimate may be wrong:
// whoever has waited for such a run in vain says so, and then those that were in one count no more
// until their next run.

#pragma once

#include <atomic>
#include <cstdint>

namespace pv2 {

/// Thread-safe. What a thread has written before leave() or any() the other one sees after it.
class ShortRuns {
 public:
  /// Names the runs that began between two calls of forget().
  using Epoch = std::uint32_t;

  /// A run begins. What it returns is for leave().
  [[nodiscard]] Epoch enter() noexcept { return epoch_of(word_.fetch_add(1)); }
  /// The run has ended.
  void leave(Epoch entered) noexcept {
    std::uint64_t word = word_.load();
    while (epoch_of(word) == entered && !word_.compare_exchange_weak(word, word - 1)) {
    }
  }
  /// None of the runs that have begun is short.
  void forget() noexcept {
    std::uint64_t word = word_.load();
    while (!word_.compare_exchange_weak(word, (word | kCount) + 1)) {
    }
  }
  [[nodiscard]] bool any() const noexcept { return (word_.load() & kCount) != 0; }

 private:
  static constexpr std::uint64_t kCount = 0xffff'ffff;
  static Epoch epoch_of(std::uint64_t word) noexcept { return static_cast<Epoch>(word >> 32); }

  std::atomic<std::uint64_t> word_{0};  // the epoch, then 32 bits for the count
};

}  // namespace pv2
