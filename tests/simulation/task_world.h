// SPDX-License-Identifier: Apache-2.0
//
// TaskWorld: what outlives every crash of a simulated run: the effects of the tasks, and everything
// that was ever seen of them. Each run of a step or of an undo is reported to it before and after,
// and it knows what must never be seen. What it finds it keeps until somebody asks.

#pragma once

#include <pv2/engine/procedure_executor.h>
#include <pv2/engine/step_context.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pv2/testing/findings.h"
#include "simulation/story_signals.h"
#include "simulation/task_spec.h"
#include "simulation/turn.h"

namespace pv2::testing {

/// What is known of one procedure, in all lives.
struct TaskMember {
  std::size_t spec = 0;
  std::uint64_t parent = 0;
  bool undoing = false;
  std::uint64_t visit = 0;                         ///< The newest one seen.
  std::map<std::uint64_t, std::uint64_t> chain;    ///< The chain field after each visit.
  std::map<std::uint64_t, std::size_t> advanced;   ///< Visit -> the life in which it last ended.
  std::map<std::uint32_t, bool> effects;           ///< Step -> whether its effect is there.
  std::map<std::uint32_t, std::size_t> undone_in;  ///< Step -> the life in which it was undone.
  std::set<std::uint32_t> ended;                   ///< Steps that came to their end.
  std::map<std::string, std::uint32_t> attempts;   ///< Effect key -> the highest attempt.
  std::map<std::uint64_t, WallTime> wait_begun;    ///< Visit -> its first run.
  bool finished = false;                           ///< Its last step came to its end.
};

/// Owned by one thread.
class TaskWorld {
 public:
  explicit TaskWorld(TaskPlan plan) : plan_(std::move(plan)), signals_(found_, plan_.max_signals) {}

  [[nodiscard]] const TaskPlan& plan() const noexcept { return plan_; }
  void begin_life(ProcedureExecutor& executor) {
    executor_ = &executor;
    ++life_;
    signals_.begin_life(executor);
  }
  void set_clock(const Clock* clock) { clock_ = clock; }

  /// What others may do in the middle of a step.
  std::function<void()> meanwhile;

  // What the tasks report.
  TaskMember& step_begins(std::size_t spec, StepContext& ctx, std::uint64_t chain);
  void step_ends(TaskMember& member, StepContext& ctx, std::uint64_t chain);
  TaskMember& undo_begins(std::size_t spec, StepContext& ctx);
  void undo_ends(TaskMember& member, StepContext& ctx);
  void expect(bool holds, const StepContext& ctx, std::string_view words);
  /// Whether `patience` has passed since this visit first ran.
  [[nodiscard]] bool was_patient(TaskMember& member, StepContext& ctx, Duration patience);

  /// To be called after every move: whether the wall clock has jumped.
  void look_at_clock();

  /// Something outside that answers when the simulation says so.
  void ask(Completion<std::string> completion, std::string answer) {
    asked_.emplace_back(std::move(completion), std::move(answer));
  }
  [[nodiscard]] std::size_t asked() const noexcept { return asked_.size() + signals_.due(); }
  void answer(std::size_t which);

  [[nodiscard]] StorySignals& signals() noexcept { return signals_; }
  /// The procedure that runs a task; 0 when it was never seen to run.
  [[nodiscard]] ProcedureId id_of(std::size_t spec) const;

  /// What was found wrong since the last time.
  void take_findings(Findings& findings);
  [[nodiscard]] const std::map<std::uint64_t, TaskMember>& members() const noexcept {
    return members_;
  }

 private:
  TaskMember& member(std::size_t spec, StepContext& ctx);
  void check_locks(const TaskSpec& spec, const StepContext& ctx);
  void check_attempt(TaskMember& member, const StepContext& ctx);
  [[nodiscard]] bool undoable(const TaskSpec& spec, std::uint32_t step) const;
  [[nodiscard]] Duration wall_offset() const;

  const TaskPlan plan_;
  ProcedureExecutor* executor_ = nullptr;
  const Clock* clock_ = nullptr;
  std::optional<Duration> offset_;  // of wall and monotonic time at the beginning
  bool wall_jumped_ = false;
  std::size_t life_ = 0;
  std::map<std::uint64_t, TaskMember> members_;
  std::map<std::size_t, std::uint64_t> id_of_spec_;
  std::vector<std::pair<Completion<std::string>, std::string>> asked_;
  Findings found_;
  StorySignals signals_;
};

}  // namespace pv2::testing
