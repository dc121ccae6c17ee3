// SPDX-License-Identifier: Apache-2.0
//
// Task: the procedure of the mixed workload. It does what its TaskSpec says, reports every run to
// the TaskWorld, and carries a chain of what it has done in its fields, so that a lost or wrong
// field is noticed at the next step. Attempts that do not count leave marks that must not survive.

#pragma once

#include <pv2/engine/procedure_registry.h>
#include <pv2/engine/state_machine_procedure.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "simulation/task_world.h"

namespace pv2::testing {

enum class TaskStep : std::uint32_t { kOne = 1, kTwo, kThree, kFour, kFive };

// The table of a task that has no point of no return.
consteval auto steps_of(StepKind first, StepKind second, StepKind others) {
  return steps(step(TaskStep::kOne, "ONE", first), step(TaskStep::kTwo, "TWO", second),
               step(TaskStep::kThree, "THREE", others), step(TaskStep::kFour, "FOUR", others),
               step(TaskStep::kFive, "FIVE", others));
}

template <TaskSpec::Kind kKind>
struct TaskTraits;
template <>
struct TaskTraits<TaskSpec::Kind::kUndoable> {
  static constexpr std::string_view kType = "sim.Task";
  static constexpr auto kSteps = steps_of(kUndoable, kUndoable, kUndoable);
};
template <>
struct TaskTraits<TaskSpec::Kind::kFinal> : TaskTraits<TaskSpec::Kind::kUndoable> {
  static constexpr std::string_view kType = "sim.FinalTask";
};
template <>
struct TaskTraits<TaskSpec::Kind::kCommitting> {
  static constexpr std::string_view kType = "sim.CommittingTask";
  static constexpr auto kSteps =
      steps(step(TaskStep::kOne, "ONE", kUndoable), step(TaskStep::kTwo, "CHECK", kNoUndo),
            step(TaskStep::kThree, "COMMIT", kPointOfNoReturn),
            step(TaskStep::kFour, "FOUR", kNoUndo), step(TaskStep::kFive, "FIVE", kNoUndo));
};

template <>
struct TaskTraits<TaskSpec::Kind::kPlain> {
  static constexpr std::string_view kType = "sim.PlainTask";
  static constexpr auto kSteps = steps_of(kNoUndo, kNoUndo, kNoUndo);
};
template <>
struct TaskTraits<TaskSpec::Kind::kLate> {
  static constexpr std::string_view kType = "sim.LateTask";
  static constexpr auto kSteps = steps_of(kNoUndo, kUndoable, kNoUndo);
};

template <TaskSpec::Kind kKind>
class Task final : public StateMachineProcedure<TaskStep> {
 public:
  static constexpr std::string_view kType = TaskTraits<kKind>::kType;
  static constexpr auto kSteps = TaskTraits<kKind>::kSteps;
  static constexpr bool kFinalOnSuccess = kKind == TaskSpec::Kind::kFinal;

  /// Called by the engine before it reads a record.
  explicit Task(TaskWorld& world) : world_(world), spec_(0) { world.object_is_made(); }
  Task(TaskWorld& world, std::uint64_t spec) : world_(world), spec_(spec) {}
  void fields(auto& f) {
    f.arg(1, "spec", spec_);
    f(2, "chain", chain_);
    f(3, "rounds", rounds_);
  }
  LockSet locks() const override { return spec().locks; }
  Priority priority() const override { return spec().priority; }

  Flow execute_from_state(TaskStep step, StepContext& ctx) override;
  Flow rollback_state(TaskStep step, StepContext& ctx) override;

 private:
  const TaskSpec& spec() const { return world_.plan().task(spec_); }
  bool is_beyond(const StepContext& ctx);
  Flow go_on(TaskStep step, TaskMember& member, StepContext& ctx);
  Flow spoil(StepContext& ctx, Flow flow);
  /// Each of these fails in one of two ways.
  Flow fail_for_now(const StepSpec& does, StepContext& ctx);
  Flow fail_for_good(StepContext& ctx);
  void spawn_children(StepContext& ctx);
  void check_children(StepContext& ctx);
  /// The answer to a question of this visit, or nullptr while there is none.
  const std::string* ask(StepContext& ctx);

  TaskWorld& world_;
  std::uint64_t spec_;
  std::uint64_t chain_ = 0;
  std::uint64_t rounds_ = 0;
};

void add_task_types(ProcedureRegistry& types, TaskWorld& world);

/// Calls use(task) with a task of the kind that the spec has.
template <class Use>
void with_task(TaskWorld& world, std::size_t spec, Use&& use) {
  switch (world.plan().tasks[spec].kind) {
    case TaskSpec::Kind::kUndoable:
      return use(Task<TaskSpec::Kind::kUndoable>(world, spec));
    case TaskSpec::Kind::kFinal:
      return use(Task<TaskSpec::Kind::kFinal>(world, spec));
    case TaskSpec::Kind::kCommitting:
      return use(Task<TaskSpec::Kind::kCommitting>(world, spec));
    case TaskSpec::Kind::kPlain:
      return use(Task<TaskSpec::Kind::kPlain>(world, spec));
    case TaskSpec::Kind::kLate:
      return use(Task<TaskSpec::Kind::kLate>(world, spec));
  }
}

}  // namespace pv2::testing
