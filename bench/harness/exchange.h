// SPDX-License-Identifier: Apache-2.0
//
// Exchanges: how many messages went there and back in a window, and how long they took. Counted by
// the one thread that asks; begun and taken by another.

#pragma once

#include <cstdint>
#include <utility>

#include "harness/machine.h"
#include "harness/samples.h"

namespace pv2::bench {

struct Exchanges {
  std::uint64_t count = 0;
  Samples latencies;  ///< Of one in 16 messages.
};

/// Owned by the thread that asks.
class ExchangeMeter {
 public:
  void begin() { so_far_ = {}; }
  [[nodiscard]] Exchanges take() { return std::exchange(so_far_, {}); }

  /// A message that was sent at `sent` is back.
  void count(BenchClock::time_point sent) {
    if (++so_far_.count % 16 != 0) return;
    const std::chrono::duration<double, std::micro> took = BenchClock::now() - sent;
    so_far_.latencies.add(took.count());
  }

 private:
  Exchanges so_far_;
};

}  // namespace pv2::bench
