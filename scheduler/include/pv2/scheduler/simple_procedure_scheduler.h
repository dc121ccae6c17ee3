// SPDX-License-Identifier: Apache-2.0
//
// SimpleProcedureScheduler: one queue in order of arrival, for hosts without entities, classes or
// priorities. Workers that have seats (SchedulerCaller) have one each, and one in common. It locks
// exactly as the MasterProcedureScheduler does; only the order of what can run is simpler.

#pragma once

#include <pv2/base/clock.h>

#include <cstdint>

#include "pv2/scheduler/locking_scheduler.h"

namespace pv2 {

struct SimpleSchedulerOptions {
  /// After this many entries in a row from the front, one from the back is served, so that a
  /// procedure that never stops going on starves no other. 64: less than 2 % of the turns, and a
  /// tree that is under way still mostly ends before a new one begins. 0: strictly the front first.
  std::uint32_t bounded_wait = 64;
};

/// Thread-safe.
class SimpleProcedureScheduler final : public LockingScheduler {
 public:
  explicit SimpleProcedureScheduler(const Clock& clock, SimpleSchedulerOptions options = {});
};

}  // namespace pv2
