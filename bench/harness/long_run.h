// SPDX-License-Identifier: Apache-2.0
//
// LongRun: 500 steps, to see what a step costs when submitting, answering and acknowledging hardly
// count. Otherwise like FiveSteps, but its steps have nothing to undo, because a list of 500 undo
// entries would dominate the figure.

#pragma once

#include <pv2/engine/async_executor.h>
#include <pv2/engine/state_machine_procedure.h>

#include <cstdint>
#include <string>

#include "harness/five_steps.h"

namespace pv2::bench {

inline constexpr std::uint32_t kStepsPerLongRun = 500;

enum class Leg { kLeft = 1, kRight = 2 };

/// Threads: as Procedure.
class LongRun final : public StateMachineProcedure<Leg> {
 public:
  static constexpr std::string_view kType = "bench.LongRun";
  static constexpr auto kSteps =
      steps(step(Leg::kLeft, "LEFT", kNoUndo), step(Leg::kRight, "RIGHT", kNoUndo));

  LongRun() = default;
  explicit LongRun(std::uint64_t table) : table_(table), state_(state_bytes(table)) {}

  void fields(auto& f) {
    f.arg(1, "table", table_);
    f(2, "state", state_);
    f(3, "done", done_);
  }
  [[nodiscard]] LockSet locks() const override { return own_table(table_); }
  Flow execute_from_state(Leg leg, StepContext& /*ctx*/) override {
    if (++done_ == kStepsPerLongRun) return done();
    return next(leg == Leg::kLeft ? Leg::kRight : Leg::kLeft);
  }

 private:
  std::uint64_t table_ = 0;
  std::string state_;
  std::uint32_t done_ = 0;
};

/// Submits the LongRun of this number under a nonce of its own: for ClosedLoad.
inline void submit_long_run(AsyncExecutor executor, std::uint64_t number, SubmitCallback done) {
  executor.submit(LongRun(number), {.nonce = {1, number}}, std::move(done));
}

}  // namespace pv2::bench
