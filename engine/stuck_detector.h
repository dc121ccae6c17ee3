// SPDX-License-Identifier: Apache-2.0
//
// StuckDetector: reports steps, and offloaded work without a sign of life, that run longer than
// they should, once each. It looks at what the workers say they are doing (RunningSteps) and at
// what runs on the pool (Offloads) when the timers fire; it stops nobody and measures nothing in
// the workers' path.

#pragma once

#include <string>
#include <vector>

#include "engine_core.h"
#include "timed_work.h"

namespace pv2 {

/// What runs now. Thread-safe.
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
  // A step of one worker, as the looks so far have bounded its age.
  struct Seen {
    std::uint64_t number = 0;
    SteadyTime not_before;  ///< When it was not running yet.
    SteadyTime at_latest;   ///< When it was running for the first time that we looked.
    bool reported = false;
  };

  void look_at_work(SteadyTime now);
  void report(RunningProcedure running);

  EngineCore& core_;
  std::vector<Seen> seen_;  // by worker
  SteadyTime last_look_;
};

}  // namespace pv2
