// SPDX-License-Identifier: Apache-2.0
//
// StepDecision: the one place where an Outcome, the answer of user code, decides what becomes of
// the procedure. StepRecord and StepPause carry the decision out. An answer that makes no sense
// fails the step, or parks the undo.

#pragma once

#include <pv2/base/status.h>

#include <cstdint>
#include <string>

#include "pv2/engine/outcome.h"

namespace pv2 {

class StepPause;
class StepRecord;
struct StepEffects;
struct StepFrame;

/// Owned by the worker that runs the step.
class StepDecision {
 public:
  StepDecision(const StepFrame& frame, StepEffects& effects, StepRecord& record, StepPause& pause)
      : frame_(frame), effects_(effects), record_(record), pause_(pause) {}

  /// Completes the Transition. Calls user code (fields of the object and of new procedures).
  void decide(Outcome outcome);
  /// The outcome of a run that threw, or whose exception user code caught; `why` is the exception.
  [[nodiscard]] Outcome as_if_thrown(const Status& why) const;

 private:
  void stop_work_of_wait(Outcome::Kind answer);
  void decide_forward(Outcome& outcome);
  [[nodiscard]] Status why_no_wait(const Outcome& outcome) const;
  void go_to(std::uint32_t step);
  void finish(std::string result);
  void advance_to(std::uint32_t step);
  [[nodiscard]] Status note_undo(std::uint32_t step_after);
  void cannot_advance(const Status& error);
  void decide_undo(Outcome& outcome);
  [[nodiscard]] Status why_no_undo() const;
  void undone();
  [[nodiscard]] bool keeps_locks_after(const Turn& turn) const;
  void end_turns();
  void retry_undo(const Outcome& outcome);

  const StepFrame& frame_;
  StepEffects& effects_;
  StepRecord& record_;
  StepPause& pause_;
};

}  // namespace pv2
