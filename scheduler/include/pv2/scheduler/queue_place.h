// SPDX-License-Identifier: Apache-2.0
//
// QueuePlace: where one entry stands in the scheduler, and what keeps it there, as data that can be
// shown. It says what was so at one moment and changes nothing.

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
  /// When ready: so many stand before it in the queue of its entity (counted up to kAheadMax).
  std::size_t ahead = 0;
  /// So many entries could run now, over all queues, this one included.
  std::size_t runnable = 0;
  /// Whom it waits for: holders, those ahead in a line, those with the places of a limited key, and
  /// whoever was reported to have to do something. A limit of 0 is one without `awaited`.
  std::vector<WaitLink> blockers;
  /// At least so many more are not listed.
  std::size_t more = 0;

  /// Counting goes no further: who stands behind a hundred others knows enough.
  static constexpr std::size_t kAheadMax = 100;
};

}  // namespace pv2
