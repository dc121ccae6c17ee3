// SPDX-License-Identifier: Apache-2.0
//
// StepPause: ends the runs after which the same step runs again, because it waits or backs off. It
// counts the attempts, and gives up or parks a step that has used them up.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/status.h>

#include <cstdint>

#include "pv2/engine/outcome.h"

namespace pv2 {

class StepRecord;
struct StepEffects;
struct StepFrame;

/// Owned by the worker that runs the step.
class StepPause {
 public:
  StepPause(const StepFrame& frame, StepEffects& effects, StepRecord& record)
      : frame_(frame), effects_(effects), record_(record) {}

  /// User code answered wait().
  void wait_for(const Outcome& outcome);
  /// User code answered retry(), or the step lacks something that may be available later; `error`
  /// names it, or is OK. Uses up an attempt.
  void back_off(const Status& error, bool unsure);
  /// The engine cannot provide now what the step asks for. Uses up no attempt. The procedure is
  /// woken early if the engine can provide it before the delay has passed.
  void back_off_unused(const Status& error);
  /// User code threw while the object was made, so no part of the step has run. Uses up no attempt
  /// at the step; the attempts to make the object have a bound of their own.
  void back_off_without_object(const Status& error);

 private:
  [[nodiscard]] bool nothing_can_wake() const;
  [[nodiscard]] static bool may_still_come(const AwaitSlot& slot);
  [[nodiscard]] bool set_deadline(Duration timeout);
  [[nodiscard]] bool wait_needs_record(bool has_timeout, bool new_deadline) const;
  [[nodiscard]] std::uint32_t max_attempts() const;

  const StepFrame& frame_;
  StepEffects& effects_;
  StepRecord& record_;
};

}  // namespace pv2
