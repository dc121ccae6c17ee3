// SPDX-License-Identifier: Apache-2.0
//
// Gathering: whether the committer should wait a moment before it writes what is queued.
//
// Two groups of procedures may take turns: while the records of one are being synced, the other
// runs its steps, and so each group has every second sync. Nothing brings them together, though all
// of their records would fit into one sync, and the steps take a fraction of it. So when the
// committer has published a small unit, and other requests are queued already, it waits for those
// that follow from that unit: as many as it had, or a fourth of a sync. If that gains nothing,
// because the steps take longer, it stops trying for a while.
//
// With one group the queue is empty after each unit, and nothing is waited for.

#pragma once

#include <chrono>
#include <cstddef>

namespace pv2 {

/// Owned by the thread that writes.
class Gathering {
 public:
  /// How long to wait at most.
  static constexpr std::chrono::microseconds kPatience{25};

  /// A unit of `requests` was published.
  void published(std::size_t requests) noexcept { last_ = requests; }

  /// How many requests to wait for, now that `queued` are there; `queued` or less: for none.
  [[nodiscard]] std::size_t wanted(std::size_t queued) noexcept {
    if (queued == 0 || last_ == 0 || last_ > kSmall) return 0;
    if (pause_ != 0) {
      --pause_;
      return 0;
    }
    return queued + (3 * last_ + 3) / 4;  // the last step of a procedure is followed by nothing
  }
  /// Whether a wait has gained something: most of what was wanted came in time.
  void waited(bool gained) noexcept {
    if (gained) {
      next_pause_ = 1;
      return;
    }
    pause_ = next_pause_;
    if (next_pause_ < kPauseMost) next_pause_ *= 2;
  }

 private:
  // Larger units take longer to publish and to run than a sync that is saved.
  static constexpr std::size_t kSmall = 32;
  static constexpr unsigned kPauseMost = 64;  // units

  std::size_t last_ = 0;
  unsigned pause_ = 0;
  unsigned next_pause_ = 1;
};

}  // namespace pv2
