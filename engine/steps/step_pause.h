// SPDX-License-Identifier: Apache-2.0
//
// StepPause: the runs after which the same step runs again: it waits, or it backs off. Attempts are
// counted here, and here a step that has used them up is given up or parked.

#pragma once

#include <cstdint>

#include "steps/step_effects.h"
#include "steps/step_record.h"

namespace pv2 {

/// Owned by the worker that runs the step.
class StepPause {
 public:
  StepPause(const StepFrame& frame, StepEffects& effects, StepRecord& record)
      : frame_(frame), effects_(effects), record_(record) {}

  /// User code answered wait().
  void wait_for(const Outcome& outcome);
  /// User code answered retry(), or the step lacks something that may be there later; `error` says
  /// what, and OK says nothing. Uses up an attempt.
  void back_off(const Status& error, bool unsure);
  /// The engine cannot provide now what the step asks for. Uses up no attempt; when it can be
  /// provided before the delay has passed, the procedure is woken.
  void back_off_unused(const Status& error);
  /// User code threw while the object was made, so nothing of the step has run. Uses up no attempt
  /// at the step, but the attempts to make the object are bounded too.
  void back_off_without_object(const Status& error);

 private:
  [[nodiscard]] bool set_deadline(Duration timeout);
  [[nodiscard]] bool wait_needs_record(bool has_timeout, bool new_deadline) const;
  [[nodiscard]] std::uint32_t max_attempts() const;

  const StepFrame& frame_;
  StepEffects& effects_;
  StepRecord& record_;
};

}  // namespace pv2
