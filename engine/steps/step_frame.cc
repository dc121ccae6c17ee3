// SPDX-License-Identifier: Apache-2.0
//
// A procedure that has a turn in a rollback undoes the step of that turn. Any other procedure runs
// the step that its record names.

#include "steps/step_frame.h"

#include <fmt/format.h>

#include "core/state_lock.h"
#include "model/check_limits.h"
#include "pv2/engine/procedure_registry.h"
#include "tree/member_step.h"
#include "tree/members_at_work.h"

namespace pv2 {
namespace {

// A back-off and a delayed start also have a deadline, but they are no wait of the step.
bool is_own_wait(const Execution& execution) {
  return execution.record.deadline && execution.record.last_outcome() == Outcome::Kind::kWait;
}

SteadyTime own_due_of(const Execution& execution) {
  return is_own_wait(execution) ? execution.wait.due : execution.rare_of_run->interrupted_due;
}

// After a back-off of the engine the timer of that back-off has fired, and not that of the wait.
bool has_timed_out(const EngineCore& core, const Execution& execution, SteadyTime own_due) {
  if (own_due == kNotDue) return false;
  if (is_own_wait(execution)) return execution.wait.timed_out;
  return own_due <= core.clock.steady_now();
}

}  // namespace

// The first attempt at an undo finds the flag of the step that went forward last.
StepFrame::StepFrame(EngineCore& engine, Execution& procedure, StepCommit& record, Random& source,
                     std::string& buffer, WallTime began)
    : core(engine),
      execution(procedure),
      commit(record),
      random(source),
      scratch(buffer),
      now(began),
      step(procedure.turn_step() != 0 ? procedure.turn_step() : procedure.record.step),
      undo(procedure.turn_step() != 0),
      own_due(own_due_of(procedure)),
      timed_out(has_timed_out(engine, procedure, own_due)),
      unsure(procedure.record.unsure && (!undo || has_begun_undo(procedure))) {}

std::string StepFrame::name() const {
  const StepInfo* const known = info();
  return known != nullptr ? std::string(known->name) : std::to_string(step);
}

const StepInfo* StepFrame::info() const noexcept { return execution.type->find_step(step); }

bool StepFrame::has_work() const {
  if (execution.work() == nullptr) return false;
  StateLock lock(core);
  return pv2::has_work(execution);
}

PlaceOfWork StepFrame::place_of_work(std::size_t index) const {
  return {step, undo, execution.record.visits, index};
}

Status StepFrame::too_large(std::string_view what, std::size_t bytes) const {
  return {StatusCode::kInvalidArgument,
          fmt::format("{} of a {} at step {} has {} bytes; {} takes {} in one batch", what,
                      execution.type->name, name(), bytes, core.store.name(),
                      record_bytes_max(core.store_limits))};
}

}  // namespace pv2
