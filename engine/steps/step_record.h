// SPDX-License-Identifier: Apache-2.0
//
// StepRecord: the record that one run of a step makes. Its verbs say what becomes of the procedure
// with that record; each leaves the Transition complete. write() turns it into rows.

#pragma once

#include <cstdint>
#include <string>

#include "steps/step_effects.h"
#include "steps/step_frame.h"

namespace pv2 {

/// Owned by the worker that runs the step.
class StepRecord {
 public:
  StepRecord(const StepFrame& frame, StepEffects& effects) : frame_(frame), effects_(effects) {}

  /// The procedure is in `state`, and keeps its locks or gives them back as that state requires.
  void become(ProcedureState state);
  /// The step runs again after a delay, as attempt `attempt`; the delay grows with `failures`, the
  /// failures in a row.
  void sleep_before(std::uint32_t attempt, std::uint32_t failures);
  /// The step has failed for good: its tree is undone.
  void fail(Status error);
  /// The undo cannot go on: it is parked until an operator acts.
  void park(Status error);
  /// park() for an undo, else fail().
  void fail_or_park(Status error);
  /// A step that goes forward has used up its attempts, `after` says which: the procedure stays at
  /// it, with its locks, until an operator acts. The rest of its tree goes on.
  void give_up(const std::string& after);
  /// A failed attempt leaves no trace but its record: forgets everything else that the run did.
  void forget_effects();
  /// Ends the object and the values that it awaited. Both are user code, so they end on a worker.
  void release_object();
  /// Encodes the fields of the object, to be recorded. Calls user code.
  Status encode_image();

  /// Adds the rows of the record, and all that takes effect with it, to the batch.
  void write();

 private:
  [[nodiscard]] bool gives_locks_back(ProcedureState state) const;
  void date_end();
  void consume_signals();

  const StepFrame& frame_;
  StepEffects& effects_;
};

}  // namespace pv2
