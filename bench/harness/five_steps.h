// SPDX-License-Identifier: Apache-2.0
//
// FiveSteps: the procedure with which everything is measured. Five steps, each of which can be
// undone and changes the state; 100 bytes of state; an exclusive lock on a table of its own. The
// steps do nothing for the user, or run a calibrated loop.

#pragma once

#include <pv2/engine/async_executor.h>
#include <pv2/engine/state_machine_procedure.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace pv2::bench {

inline constexpr int kStepsPerProcedure = 5;
inline constexpr std::size_t kStateBytes = 100;

/// What a step does for its user. Const methods may be called concurrently.
class UserWork {
 public:
  /// No work.
  UserWork() = default;
  /// Keeps a processor busy for `duration`, as measured when this is constructed.
  explicit UserWork(std::chrono::nanoseconds duration);

  void operator()() const noexcept { spin(turns_); }

 private:
  static void spin(std::uint64_t turns) noexcept;

  std::uint64_t turns_ = 0;
};

/// 100 bytes that do not compress, different for each `seed`.
[[nodiscard]] std::string state_bytes(std::uint64_t seed);

/// An exclusive lock on the table of this number.
[[nodiscard]] LockSet own_table(std::uint64_t number);

enum class Stage { kFirst = 1, kSecond = 2, kThird = 3, kFourth = 4, kFifth = 5 };

/// Threads: as Procedure.
class FiveSteps final : public StateMachineProcedure<Stage> {
 public:
  static constexpr std::string_view kType = "bench.FiveSteps";
  static constexpr auto kSteps =
      steps(step(Stage::kFirst, "FIRST", kUndoable), step(Stage::kSecond, "SECOND", kUndoable),
            step(Stage::kThird, "THIRD", kUndoable), step(Stage::kFourth, "FOURTH", kUndoable),
            step(Stage::kFifth, "FIFTH", kUndoable));

  explicit FiveSteps(const UserWork& work) : work_(&work) {}
  /// One on the table `table`, which no other procedure uses.
  FiveSteps(const UserWork& work, std::uint64_t table)
      : work_(&work), table_(table), state_(state_bytes(table)) {}

  void fields(auto& f) {
    f.arg(1, "table", table_);
    f(2, "state", state_);
  }
  [[nodiscard]] LockSet locks() const override { return own_table(table_); }
  Flow execute_from_state(Stage stage, StepContext& ctx) override;

 private:
  const UserWork* work_;
  std::uint64_t table_ = 0;
  std::string state_;
};

/// Submits the FiveSteps of this number under a nonce of its own: for ClosedLoad, with `work`
/// bound.
void submit_five_steps(const UserWork& work, AsyncExecutor executor, std::uint64_t number,
                       SubmitCallback done);
/// As submit_five_steps(), and its result is forgotten when it was told.
void execute_five_steps(const UserWork& work, AsyncExecutor executor, std::uint64_t number,
                        ResultCallback done);

}  // namespace pv2::bench
