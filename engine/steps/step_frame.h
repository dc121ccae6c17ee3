// SPDX-License-Identifier: Apache-2.0
//
// StepFrame: what all parts of one run of a step share: the procedure, which of its steps runs or
// is undone, and the commit that the run fills. It decides nothing.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/engine_core.h"

namespace pv2 {

struct StepInfo;

/// Owned by the worker that runs the step.
struct StepFrame {
  /// Begins, at `began`, a run of the step that `procedure` has to run or to undo.
  StepFrame(EngineCore& engine, Execution& procedure, StepCommit& record, Random& source,
            std::string& buffer, WallTime began);

  EngineCore& core;
  Execution& execution;
  StepCommit& commit;
  Random& random;
  std::string& scratch;      ///< A buffer for encoded fields.
  const WallTime now;        ///< When the run began.
  const std::uint32_t step;  ///< The step that runs or is undone.
  const bool undo;
  /// When the wait passes, or has passed, that the step asked for and that this run goes on with;
  /// kNotDue: there is none. A back-off that the step did not ask for does not end it.
  const SteadyTime own_due;
  const bool timed_out;  ///< That wait had passed when the run began.
  /// An earlier attempt at this step, or at this undo of it, may have had its effect.
  const bool unsure;

  /// The name of the step; its number if the type does not have it.
  [[nodiscard]] std::string name() const;
  /// The table's entry of the step; nullptr if the type does not have it.
  [[nodiscard]] const StepInfo* info() const noexcept;
  /// Whether the procedure has offloaded work that has not ended. Only its own step adds work, so
  /// without work now it has none until the record of this run is published.
  [[nodiscard]] bool has_work() const PV2_EXCLUDES(core.state_mutex);
  /// The place of the work behind the step's await number `index`.
  [[nodiscard]] PlaceOfWork place_of_work(std::size_t index) const;
  /// The error for `what`, whose `bytes` bytes do not fit into one batch of the store.
  [[nodiscard]] Status too_large(std::string_view what, std::size_t bytes) const;
};

}  // namespace pv2
