// SPDX-License-Identifier: Apache-2.0
//
// StateMachineProcedure: a procedure whose work is a table of named steps. A derived class declares
// `static constexpr auto kSteps = pv2::steps(...)` next to kType and fields(); the engine keeps the
// current step, so no serialiser can forget it.

#pragma once

#include <cstdint>
#include <type_traits>

#include "pv2/engine/procedure.h"
#include "pv2/engine/step_context.h"
#include "pv2/engine/step_table.h"

namespace pv2 {

/// Base of state machines over `Step`, an enum with explicit, persisted numbers. Threads: as
/// Procedure.
template <class Step>
requires std::is_enum_v<Step>
class StateMachineProcedure : public Procedure {
 public:
  using Flow = Outcome;

  /// Does one step and says what comes next. May run again after a crash, even when it had
  /// finished.
  virtual Flow execute_from_state(Step step, StepContext& ctx) = 0;

  /// Undoes one step that is declared kUndoable and that was started, perhaps only half done.
  virtual Flow rollback_state(Step /*step*/, StepContext& /*ctx*/) { return undone(); }

  Outcome execute(StepContext& ctx) final {
    return execute_from_state(static_cast<Step>(ctx.step()), ctx);
  }
  Outcome rollback(StepContext& ctx) final {
    return rollback_state(static_cast<Step>(ctx.step()), ctx);
  }

 protected:
  /// This step is done; `step` follows, after the children spawned in it have finished.
  [[nodiscard]] static Flow next(Step step) {
    return {.kind = Outcome::Kind::kNext, .next_step = static_cast<std::uint32_t>(step)};
  }
};

}  // namespace pv2
