// SPDX-License-Identifier: Apache-2.0
//
// StepRecord: the record that one run of a step makes. Its verbs say what becomes of the procedure
// with that record; each leaves the Transition complete. write() turns it into rows.

#pragma once

#include <pv2/base/procedure_state.h>
#include <pv2/base/status.h>

#include <cstdint>
#include <string>

namespace pv2 {

struct StepEffects;
struct StepFrame;

/// Owned by the worker that runs the step.
class StepRecord {
 public:
  StepRecord(const StepFrame& frame, StepEffects& effects) : frame_(frame), effects_(effects) {}

  /// Moves the procedure to `state`; it keeps or gives back its locks as that state requires.
  void become(ProcedureState state);
  /// Has the step run again after a delay, as attempt `attempt`. The delay grows with `failures`,
  /// the number of failures in a row.
  void sleep_before(std::uint32_t attempt, std::uint32_t failures);
  /// Fails the step for good: its tree is undone.
  void fail(Status error);
  /// Parks the undo until an operator acts. `unsure`: this attempt may have had its effect.
  void park(Status error, bool unsure = false);
  /// park() for an undo, else fail().
  void fail_or_park(Status error);
  /// A forward step has used up its attempts; `after` says which. The procedure stays at that step
  /// until an operator acts, and keeps its locks unless their scope is visit and it has no work
  /// outstanding. The rest of its tree goes on.
  void give_up(const std::string& after);
  /// Forgets everything that the run did: the record of a failed attempt has no effects.
  void forget_effects();
  /// Destroys the object and the values that it awaited. Both run user code, so a worker does it.
  /// The work of the visit runs on.
  void release_object();
  /// Encodes the fields of the object for the record. Calls user code.
  Status encode_image();

  /// Adds the rows of the record, and of all that takes effect with it, to the batch.
  void write();

 private:
  // The run ends without an effect: release_object(), and the work of this visit is told to stop,
  // because no step takes its values any more. Otherwise the next attempt would wait for it.
  void give_up_run();
  [[nodiscard]] bool gives_locks_back(ProcedureState state) const;
  void date_end();
  [[nodiscard]] bool is_large() const;
  void consume_signals();

  const StepFrame& frame_;
  StepEffects& effects_;
};

}  // namespace pv2
