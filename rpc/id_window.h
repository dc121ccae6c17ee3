// SPDX-License-Identifier: Apache-2.0
//
// IdWindow: which call ids of one connection have been seen, so that a call that the network
// repeats runs once. Clients count up from 1; a bit per id is kept for the newest kWindow ids, as
// IPsec does against replay (RFC 6479). An id that is older than that counts as seen.

#pragma once

#include <bitset>
#include <cstdint>

namespace pv2 {

/// Owned by one thread.
class IdWindow {
 public:
  /// Twice the largest number of calls in flight: ids that are not answered lie closely together.
  static constexpr std::uint64_t kWindow = 4096;

  /// True once for each id, and never for one that lies kWindow below the highest.
  [[nodiscard]] bool is_new(std::uint64_t id) noexcept {
    if (id > highest_) {
      forget_up_to(id);
      highest_ = id;
    } else if (highest_ - id >= kWindow) {
      return false;
    }
    if (seen_[id % kWindow]) return false;
    seen_.set(id % kWindow);
    return true;
  }

 private:
  // The places of the ids above `highest_` up to `id` still say what older ids were.
  void forget_up_to(std::uint64_t id) noexcept {
    if (id - highest_ >= kWindow) {
      seen_.reset();
      return;
    }
    // Counted, because the highest id there is has no successor.
    for (std::uint64_t left = id - highest_; left > 0; --left) {
      seen_.reset((highest_ + left) % kWindow);
    }
  }

  std::bitset<kWindow> seen_;
  std::uint64_t highest_ = 0;
};

}  // namespace pv2
