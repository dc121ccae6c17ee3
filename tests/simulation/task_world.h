// SPDX-License-Identifier: Apache-2.0
//
// TaskWorld: what outlives every crash of a simulated run: the effects of the tasks, and everything
// that was ever seen of them. Tasks report each run of a step or of an undo before and after it,
// and the world knows what must never be seen. It collects findings until take_findings().

#pragma once

#include <pv2/base/random.h>
#include <pv2/engine/async_executor.h>
#include <pv2/engine/inspection.h>
#include <pv2/engine/operator_console.h>
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
#include "simulation/story_events.h"
#include "simulation/story_signals.h"
#include "simulation/task_spec.h"
#include "simulation/turn.h"

namespace pv2::testing {

/// A moment by the monotonic clock, which no jump of the wall clock moves, and the life it was in.
struct Moment {
  SteadyTime at;
  std::size_t life = 0;
};

/// What is known of one procedure, in all lives.
struct TaskMember {
  std::size_t spec = 0;
  std::uint64_t parent = 0;
  bool undoing = false;
  std::uint64_t visit = 0;                         ///< The newest visit seen.
  std::map<std::uint64_t, std::uint64_t> chain;    ///< The chain field after each visit.
  std::map<std::uint64_t, std::size_t> advanced;   ///< Visit -> the life in which it last ended.
  std::map<std::uint32_t, bool> effects;           ///< Step -> whether its effect is there.
  std::map<std::uint32_t, std::size_t> undone_in;  ///< Step -> the life in which it was undone.
  std::set<std::uint32_t> ended;                   ///< Steps that came to their end.
  std::map<std::string, std::uint32_t> attempts;   ///< Effect key -> the highest attempt.
  std::map<std::uint64_t, Moment> wait_begun;      ///< Visit -> its first run.
  bool finished = false;                           ///< Its last step came to its end.
  bool fresh = false;                              ///< An operator gave it new attempts,
  std::set<std::uint64_t> anew;                    ///< which these visits have begun to use.
  std::set<std::uint64_t> hurried;                 ///< Visits whose wait an operator ended.
  std::set<std::uint32_t> skipped;                 ///< Steps that count as done by an order,
  std::set<std::uint32_t> skipped_undos;           ///< and as undone.
  std::map<std::string, Moment> last_run;          ///< Effect key -> when it last began.
  std::map<std::uint64_t, ProcedureState> ends;    ///< How its children ended, as it was told.
};

/// Owned by one thread.
class TaskWorld {
 public:
  explicit TaskWorld(TaskPlan plan)
      : plan_(std::move(plan)),
        signals_(found_, plan_.max_signals),
        events_(found_),
        throws_(plan_.seed ^ 0xC0'75'70'CULL),
        throws_left_(plan_.throws) {}

  [[nodiscard]] const TaskPlan& plan() const noexcept { return plan_; }
  void begin_life(ProcedureExecutor& executor) {
    executor_ = &executor;
    ++life_;
    stopping_ = false;
    works_.clear();
    signals_.begin_life(executor);
    events_.begin_life();
  }
  void stop_begins() { stopping_ = true; }
  void set_clock(const Clock* clock) { clock_ = clock; }

  /// What other threads may do in the middle of a step.
  std::function<void()> meanwhile;

  /// Called when an object is made from its record. A few times over all lives this throws.
  void object_is_made();

  // Reports of the tasks.
  TaskMember& step_begins(std::size_t spec, StepContext& ctx, std::uint64_t chain);
  void step_ends(TaskMember& member, StepContext& ctx, std::uint64_t chain);
  TaskMember& undo_begins(std::size_t spec, StepContext& ctx);
  void undo_ends(TaskMember& member, StepContext& ctx);
  void expect(bool holds, const StepContext& ctx, std::string_view words);
  /// Work for the pool during which other threads go on. Its value is the effect key.
  [[nodiscard]] std::function<std::string(std::stop_token)> work(std::size_t spec,
                                                                 const StepContext& ctx,
                                                                 bool beside_earlier = false);
  /// Whether `patience` has passed since this visit first ran.
  [[nodiscard]] bool was_patient(TaskMember& member, StepContext& ctx, Duration patience);

  /// A step of a task is about to fail for good.
  void fails(std::size_t spec) { failed_.insert(plan_.domain_of(spec)); }
  /// The tree of a root may be aborted from now on.
  void may_be_aborted(std::size_t root) { aborted_.insert(root); }
  // Reports of orders: their effects may be seen from now on.
  /// The cause of failures in this tree is gone.
  void mend(std::size_t root) { mended_.insert(root); }
  /// The tree, or a part of it, may be ended at any point.
  void cut(std::size_t root) { cut_.insert(root); }
  /// The procedure gets new attempts; its wait ends; its step, or the undo of a step, counts as
  /// done.
  void begins_anew(ProcedureId id);
  void hurry(ProcedureId id);
  void skip_step(ProcedureId id, std::uint32_t step);
  void skip_undo(ProcedureId id, std::uint32_t step);
  /// The tree goes on from its records, so each wait asks again.
  void resumes(std::size_t root);
  /// The procedure and its descendants have ended: none of them runs any more.
  void is_over(ProcedureId id) { over_.insert(id.value); }
  [[nodiscard]] bool was_ended(ProcedureId id) const;
  [[nodiscard]] bool is_mended(std::size_t spec) const {
    return mended_.contains(plan_.task(spec).root);
  }
  [[nodiscard]] bool may_be_cut(std::size_t spec) const {
    return cut_.contains(plan_.task(spec).root);
  }
  [[nodiscard]] bool was_skipped(std::size_t spec) const {
    return skipped_.contains(plan_.task(spec).root);
  }
  /// How the tree of a root may end, given all orders for it.
  [[nodiscard]] TreeFate fate(std::size_t root) const;

  /// A parent is told how the child that runs `spec` has ended.
  void child_seen(std::size_t spec, const StepContext& ctx, const ChildOutcome& child);

  /// To be called after every move: notes whether the wall clock has jumped.
  void look_at_clock();

  /// A question to something outside that answers when the simulation says so.
  void ask(Completion<std::string> completion, std::string answer) {
    asked_.emplace_back(std::move(completion), std::move(answer));
  }
  [[nodiscard]] std::size_t asked() const noexcept {
    return asked_.size() + signals_.due() + events_.due();
  }
  void answer(std::size_t which);

  [[nodiscard]] StorySignals& signals() noexcept { return signals_; }
  [[nodiscard]] StoryEvents& events() noexcept { return events_; }
  /// The procedure that runs a task; 0 when it was never seen to run.
  [[nodiscard]] ProcedureId id_of(std::size_t spec) const;

  /// Moves what was found wrong since the last call to `findings`.
  void take_findings(Findings& findings);
  [[nodiscard]] const std::map<std::uint64_t, TaskMember>& members() const noexcept {
    return members_;
  }
  /// Whether a rollback undoes this step of a task.
  [[nodiscard]] static bool undoable(const TaskSpec& spec, std::uint32_t step);

 private:
  TaskMember& member(std::size_t spec, StepContext& ctx);
  enum class Runs : std::uint8_t { kStep, kUndo };
  void check_may_run(const TaskSpec& spec, const StepContext& ctx, Runs runs);
  void check_back_off(TaskMember& member, const StepContext& ctx);
  void check_attempt(TaskMember& member, const StepContext& ctx);
  void run_work(const std::string& key);
  void check_beside_work(std::size_t spec, const StepContext& ctx, Runs runs);
  /// Check that a procedure that runs has not ended, and that an undo has a cause.
  void check_not_over(const StepContext& ctx);
  void check_has_cause(std::size_t spec, const StepContext& ctx);
  [[nodiscard]] bool may_be_sent_back(const TaskMember& member) const;
  [[nodiscard]] Duration wall_offset() const;
  [[nodiscard]] Moment this_moment() const { return {clock_->steady_now(), life_}; }
  /// Whether `patience` has passed since then, as far as the engine can know.
  [[nodiscard]] bool has_passed(const Moment& since, Duration patience);

  const TaskPlan plan_;
  ProcedureExecutor* executor_ = nullptr;
  const Clock* clock_ = nullptr;
  std::optional<Duration> offset_;  // between wall and monotonic time, at the beginning
  bool wall_jumped_ = false;
  std::size_t life_ = 0;
  bool stopping_ = false;  // this life is being stopped
  /// Work that runs on the pool in this life.
  struct Work {
    std::uint64_t id;
    std::size_t spec;
    bool undo;
    std::uint32_t step;
  };
  std::map<std::string, Work> works_;  // by effect key, plus a number if several may run
  std::uint64_t beside_earlier_ = 0;   // how many pieces had such a number
  std::map<std::uint64_t, TaskMember> members_;
  std::map<std::size_t, std::uint64_t> id_of_spec_;
  std::vector<std::pair<Completion<std::string>, std::string>> asked_;
  Findings found_;
  StorySignals signals_;
  StoryEvents events_;
  Random throws_;
  std::size_t throws_left_;
  std::set<std::size_t> failed_;  // heads of domains
  // Roots about which something was ordered.
  std::set<std::size_t> aborted_;
  std::set<std::size_t> mended_;
  std::set<std::size_t> cut_;
  std::set<std::size_t> skipped_;
  std::set<std::uint64_t> over_;  // ids
};

}  // namespace pv2::testing
