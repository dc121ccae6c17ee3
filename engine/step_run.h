// SPDX-License-Identifier: Apache-2.0
//
// StepRun: one run of one step, from the object to the record. It calls the user's code through one
// guard, outside every lock, and turns its answer into a StepCommit. Nothing that it decides is
// visible to anybody else until that is published; if the record cannot be made (a field that
// throws, a batch beyond the limits) the step fails instead.

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine_core.h"

namespace pv2 {

/// Owned by the worker that runs it.
class StepRun {
 public:
  StepRun(EngineCore& core, Execution& execution, StepCommit& commit, Random& random,
          const std::shared_ptr<WakeTarget>& wake_target);
  ~StepRun();
  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;

  /// Runs the step (or undoes one) and fills the commit. False: the fields in its record cannot be
  /// read; `error()` says why, and the tree is to be quarantined. (If it was user code that threw
  /// while the object was made, the commit says that it is tried again.)
  bool run();
  [[nodiscard]] const Status& error() const noexcept { return error_; }
  /// The step that it runs or undoes, and when it began.
  [[nodiscard]] std::uint32_t step() const noexcept { return step_; }
  [[nodiscard]] bool is_undo() const noexcept { return undo_; }
  [[nodiscard]] WallTime now() const noexcept { return now_; }

 private:
  friend class StepContext;

  bool make_object();
  Outcome call_user_code();
  void decide(Outcome outcome);
  void decide_forward(Outcome& outcome);
  void decide_undo(Outcome& outcome);
  void become(ProcedureState state);
  [[nodiscard]] bool gives_way(ProcedureState state) const;
  void advance_to(std::uint32_t step);
  void wait_for(const Outcome& outcome);
  void back_off(const Outcome& outcome);
  void cannot_advance();
  /// The next run is attempt `attempt`; the delay before it grows with `failures` in a row.
  void sleep_before(std::uint32_t attempt, std::uint32_t failures);
  void cannot_make_object();
  void fail(Status error);
  void park(Status error);
  void park_forward(const std::string& after);
  [[nodiscard]] std::uint32_t max_attempts() const;
  void forget_effects();
  /// False, and the step will fail, if the row is bound to a key that this procedure does not hold.
  bool may_write_row(std::string_view row);
  /// The same if the row is too large, or the rows of this step are together.
  bool row_fits(std::string_view row, std::string_view value);
  bool encode_image();
  void date_end();
  void encode_record();
  void consume_signals();
  bool adopt_children();
  [[nodiscard]] Status no_room(std::size_t others) const;
  void abandon_children();
  bool adopt_roots();
  void abandon_roots();
  void release_object();
  [[nodiscard]] Status too_large(std::string_view what, std::size_t bytes) const;
  [[nodiscard]] std::string step_name() const;
  [[nodiscard]] PlaceOfWork place_of_work(std::size_t index) const;
  [[nodiscard]] bool has_work() const;
  void stop_work_of_attempt(Outcome::Kind answer);

  EngineCore& core_;
  Execution& execution_;
  StepCommit& commit_;
  Random& random_;
  const std::shared_ptr<WakeTarget>& wake_target_;
  WallTime now_;
  std::uint32_t step_;
  bool undo_;
  Status error_;
  struct Spawned {
    const ProcedureType* type;
    std::unique_ptr<Procedure> object;
    SpawnOptions options;
  };
  std::vector<Spawned> spawned_;
  struct Submitting {
    std::string type;
    std::unique_ptr<Procedure> object;
    SubmitOptions options;
  };
  std::vector<Submitting> submitted_;
  bool covers_children_ = true;  // by its locks: it keeps them until they have ended
  bool has_room_ = true;         // for the children, below max_live_procedures
  bool may_find_room_ = false;   // when others have ended
  Status refused_;               // why the step fails whatever it answers
  RowBatch rows_;                // the host's rows, as far as this run changed them
  std::unique_ptr<InboxUse> inbox_use_;
};

/// The error as it is recorded: cut at 2 KiB, as it travels in every later record of its procedure.
[[nodiscard]] Status bounded(Status error);

/// Sets up an execution for a new object: fields encoded (in `scratch` first), locks and priority
/// asked. Calls user code.
Status describe_new(Procedure& object, Execution& execution, std::string& scratch);

/// A new object as of the last record of `execution`, whose type is known. Calls user code.
/// kCorruption: the fields in the record cannot be read. Any other failure: user code threw, and
/// may not the next time.
Result<std::unique_ptr<Procedure>> object_of(const Execution& execution);

/// The delay before attempt `attempt` + 1: base * 2^(attempt - 1), at most cap, plus jitter.
[[nodiscard]] Duration backoff_delay(const RetryPolicy& policy, std::uint32_t attempt,
                                     Random& random);

}  // namespace pv2
