// SPDX-License-Identifier: Apache-2.0
//
// QueuePlace: where one entry stands in the scheduler, and what keeps it there, as data that can be
// shown. It describes one moment and changes nothing.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pv2/scheduler/wait_cycle.h"

namespace pv2 {

struct QueuePlace {
  enum class Where : std::uint8_t {
    kOut,      ///< In no queue: parked, or taken by a worker.
    kWaiting,  ///< For locks: `blockers` says for which, and who has them.
    kReady,    ///< Can run, and waits for a worker.
  };

  Where where = Where::kOut;
  /// When ready: how many entries stand before it in its entity's queue (counted up to kAheadMax).
  std::size_t ahead = 0;
  /// How many entries could run now, over all queues, this one included.
  std::size_t runnable = 0;
  /// What it waits for: holders, entries ahead in a line, entries with the places of a limited key,
  /// and the producer of a reported wait. A limit of 0 is a link without `awaited`.
  std::vector<WaitLink> blockers;
  /// How many more, at least, are not listed.
  std::size_t more = 0;

  /// Counting goes no further: behind a hundred others the exact number does not matter.
  static constexpr std::size_t kAheadMax = 100;
};

}  // namespace pv2
