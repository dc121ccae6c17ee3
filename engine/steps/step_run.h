// SPDX-License-Identifier: Apache-2.0
//
// StepRun: one run of one step, or of its undoing, from the object to the rows of its record:
//
//     user code (StepContext) -> Outcome, StepEffects -> StepDecision -> Transition -> StepCommit
//
// User code is called through one guard, outside every lock. No other thread sees anything of the
// run until the commit is published. If the record cannot be made (a field throws, or the batch
// exceeds the limits of the store) the step fails instead.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "steps/step_decision.h"
#include "steps/step_effects.h"
#include "steps/step_frame.h"
#include "steps/step_pause.h"
#include "steps/step_record.h"

namespace pv2 {

/// Owned by the worker that runs it.
class StepRun {
 public:
  StepRun(EngineCore& core, Execution& execution, StepCommit& commit, Random& random,
          std::string& scratch, WallTime now, WakeTarget& wake_target);
  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;

  /// Runs or undoes the step, and fills the commit. An error (kCorruption) means that the fields in
  /// the last record cannot be read: the commit is not filled, and the caller quarantines the tree.
  /// Every other failure is in the commit.
  Status run();
  /// The step that runs or is undone.
  [[nodiscard]] std::uint32_t step() const noexcept { return frame_.step; }
  [[nodiscard]] bool is_undo() const noexcept { return frame_.undo; }

 private:
  friend class StepContext;

  [[nodiscard]] Status make_object();
  [[nodiscard]] Outcome call_user_code();
  [[nodiscard]] std::size_t room_to_leave() const;
  [[nodiscard]] Status why_too_large() const;

  const StepFrame frame_;
  WakeTarget& wake_target_;
  StepEffects effects_{frame_};
  StepRecord record_{frame_, effects_};
  StepPause pause_{frame_, effects_, record_};
  StepDecision decision_{frame_, effects_, record_, pause_};
};

}  // namespace pv2
