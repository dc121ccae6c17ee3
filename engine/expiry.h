// SPDX-License-Identifier: Apache-2.0
//
// Expiry: acknowledges, in the host's place, the results that have been kept long enough. A crash
// before such an acknowledgement is durable leaves the result to the next run, which finds it too
// old again.

#pragma once

#include "results.h"
#include "timed_work.h"

namespace pv2 {

/// Fired by one thread at a time.
class Expiry final : public TimedWork {
 public:
  Expiry(EngineCore& core, Results& results) : core_(core), results_(results) {}

  [[nodiscard]] std::optional<SteadyTime> next_due() override PV2_EXCLUDES(core_.state_mutex);
  std::size_t fire(SteadyTime now) override PV2_EXCLUDES(core_.state_mutex);

 private:
  /// One that failed (the disk could not be read) is tried again, after a pause.
  void acknowledged(ProcedureId id, const Status& status) PV2_EXCLUDES(core_.state_mutex);

  EngineCore& core_;
  Results& results_;
  SteadyTime not_before_ PV2_GUARDED_BY(core_.state_mutex) = SteadyTime::min();
};

}  // namespace pv2
