// SPDX-License-Identifier: Apache-2.0
//
// StuckDetector: reports each step, and each piece of offloaded work without a sign of life, that
// runs longer than ExecutorOptions::stuck_after; once each. When the timers fire it reads what the
// workers are doing (RunningSteps) and what runs on the pool (Offloads). It stops nothing, and
// costs the workers nothing.

#pragma once

#include <string>
#include <vector>

#include "core/engine_core.h"
#include "core/timed_work.h"

namespace pv2 {

/// The steps and the offloaded work that run now. Thread-safe.
[[nodiscard]] std::vector<RunningProcedure> running_procedures(const EngineCore& core);

/// "step PACK of procedure 7 (shop.Ship) has been running for 12.0 s".
[[nodiscard]] std::string in_words(const RunningProcedure& running);

/// Fired by one thread at a time.
class StuckDetector final : public TimedWork {
 public:
  explicit StuckDetector(EngineCore& core);

  [[nodiscard]] std::optional<SteadyTime> next_due() override;
  std::size_t fire(SteadyTime now) override;

 private:
  // The step of one worker, and the bounds that the looks so far have set to its age.
  struct Seen {
    std::uint64_t number = 0;
    SteadyTime not_before;  ///< The last look at which it was not running yet.
    SteadyTime at_latest;   ///< The first look at which it was running.
    bool reported = false;
  };

  void look_at_work(SteadyTime now);
  void report(RunningProcedure running);

  EngineCore& core_;
  std::vector<Seen> seen_;  // by worker
  SteadyTime last_look_;
};

}  // namespace pv2
