// SPDX-License-Identifier: Apache-2.0
//
// Scripted jobs: state machines whose steps a test writes as lambdas, and the World that they act
// on. A job's only argument is its name; World::scripts says under that name what the job does, so
// it does the same after a restart. Every effect is noted in the journal, which, like the world,
// outlives any crash of the engine. Not an example of how to write procedures: for that, see
// tests/engine/executor/life_of_a_procedure_test.cc. A name without a script fails the step.

#pragma once

#include <pv2/engine/procedure_executor.h>
#include <pv2/engine/procedure_registry.h>
#include <pv2/engine/state_machine_procedure.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pv2/base/mutex.h"

namespace pv2::testing {

using Entries = std::vector<std::string>;

/// What happened in the world, in order. Thread-safe.
class Journal {
 public:
  void note(std::string entry) {
    MutexLock lock(entries_mutex_);
    entries_.push_back(std::move(entry));
  }
  [[nodiscard]] Entries entries() const {
    MutexLock lock(entries_mutex_);
    return entries_;
  }
  [[nodiscard]] std::size_t count(std::string_view entry) const {
    MutexLock lock(entries_mutex_);
    return static_cast<std::size_t>(std::count(entries_.begin(), entries_.end(), entry));
  }
  void clear() {
    MutexLock lock(entries_mutex_);
    entries_.clear();
  }

 private:
  mutable Mutex entries_mutex_;
  Entries entries_ PV2_GUARDED_BY(entries_mutex_);
};

/// The outcomes of a step, for code outside a procedure.
struct Say final : Procedure {
  using Procedure::again;
  using Procedure::done;
  using Procedure::fail;
  using Procedure::failed;
  using Procedure::retry;
  using Procedure::undone;
  using Procedure::unsure;
  using Procedure::wait;
  using Procedure::wait_for;
  static Outcome next(std::uint32_t step) {
    return {.kind = Outcome::Kind::kNext, .next_step = step};
  }
  static Outcome fail(std::string why) {
    return fail(Status(StatusCode::kFailedPrecondition, std::move(why)));
  }
  static Outcome retry(std::string why) {
    return retry(Status(StatusCode::kUnavailable, std::move(why)));
  }
  Outcome execute(StepContext&) override { return undone(); }
};

/// What a script answers when the step is to be done, or undone, as usual.
inline std::optional<Outcome> usual() { return std::nullopt; }

class World;

/// One run of one step of a job, as its script sees it. `note` is the job's only state field.
struct JobRun {
  World& world;
  StepContext& ctx;
  const std::string& name;
  std::string& note;
  std::uint32_t step;

  [[nodiscard]] std::string label() const { return name + "." + std::to_string(step); }
  void effect() const;       ///< Notes "do name.step" in the journal.
  void undo_effect() const;  ///< Notes "undo name.step".
  void spawn(const std::string& child) const;
  /// Ends this step: has the effect, then goes to the next step, or ends after the last one.
  [[nodiscard]] Outcome advance() const;
};

/// What the job of one name does. By default a step has its effect and goes on, and its undo is
/// noted the same way. `run` and `undo` replace that; by returning nullopt they leave a step to the
/// default.
struct JobScript {
  std::uint32_t steps = 3;
  std::vector<std::string> children{};  ///< Spawned by step 2.
  std::function<std::optional<Outcome>(JobRun&)> run{};
  std::function<std::optional<Outcome>(JobRun&)> undo{};
  LockSet locks{};
  Priority priority = Priority::kNormal;
};

/// One step, which waits for `event`.
inline JobScript waits_for(const Event& event) {
  return {.steps = 1, .run = [&event](JobRun& run) -> std::optional<Outcome> {
            if (run.ctx.await(event)) return usual();
            return Say::wait();
          }};
}

/// What outlives the engine: the journal, the scripts, and services that answer later. The scripts
/// are filled before the executor runs; the rest is thread-safe.
class World {
 public:
  Journal journal;
  std::map<std::string, JobScript> scripts;

  /// Asks a service that answers when the test says so.
  void ask(Completion<std::string> completion) {
    MutexLock lock(asked_mutex_);
    asked_.push_back(std::move(completion));
  }
  /// Answers the oldest question; false when there is none.
  bool answer_one(const std::string& value) {
    std::optional<Completion<std::string>> completion;
    {
      MutexLock lock(asked_mutex_);
      if (asked_.empty()) return false;
      completion = asked_.front();
      asked_.pop_front();
    }
    (*completion)(value);
    return true;
  }
  [[nodiscard]] std::size_t asked() const {
    MutexLock lock(asked_mutex_);
    return asked_.size();
  }

 private:
  mutable Mutex asked_mutex_;
  std::deque<Completion<std::string>> asked_ PV2_GUARDED_BY(asked_mutex_);
};

enum class JobStep : std::uint32_t { kOne = 1, kTwo, kThree, kFour, kFive };

/// Five steps, all of which can be undone.
struct JobKind {
  static constexpr std::string_view kType = "test.Job";
  static constexpr auto kSteps =
      steps(step(JobStep::kOne, "ONE", kUndoable), step(JobStep::kTwo, "TWO", kUndoable),
            step(JobStep::kThree, "THREE", kUndoable), step(JobStep::kFour, "FOUR", kUndoable),
            step(JobStep::kFive, "FIVE", kUndoable));
  static constexpr bool kFinalOnSuccess = false;
};
/// Like JobKind, but not undone once it has succeeded.
struct FinalJobKind : JobKind {
  static constexpr std::string_view kType = "test.FinalJob";
  static constexpr bool kFinalOnSuccess = true;
};
/// Step 2 leaves nothing to undo, step 3 is the point of no return.
struct CommittingJobKind : JobKind {
  static constexpr std::string_view kType = "test.CommittingJob";
  static constexpr auto kSteps =
      steps(step(JobStep::kOne, "ONE", kUndoable), step(JobStep::kTwo, "CHECK", kNoUndo).must_run(),
            step(JobStep::kThree, "COMMIT", kPointOfNoReturn),
            step(JobStep::kFour, "FOUR", kNoUndo), step(JobStep::kFive, "FIVE", kNoUndo));
};

template <class Kind>
class ScriptedJob final : public StateMachineProcedure<JobStep> {
 public:
  static constexpr std::string_view kType = Kind::kType;
  static constexpr auto kSteps = Kind::kSteps;
  static constexpr bool kFinalOnSuccess = Kind::kFinalOnSuccess;

  explicit ScriptedJob(World& world, std::string name = {})
      : world_(world), name_(std::move(name)) {}

  void fields(auto& f) {
    f.arg(1, "name", name_);
    f(2, "note", note_);
  }
  LockSet locks() const override { return script().locks; }
  Priority priority() const override { return script().priority; }

  Flow execute_from_state(JobStep step, StepContext& ctx) override {
    JobRun run{world_, ctx, name_, note_, static_cast<std::uint32_t>(step)};
    if (script().run) {
      if (auto outcome = script().run(run)) return *std::move(outcome);
    }
    if (step == JobStep::kTwo) {
      for (const std::string& child : script().children) run.spawn(child);
    }
    return run.advance();
  }

  Flow rollback_state(JobStep step, StepContext& ctx) override {
    JobRun run{world_, ctx, name_, note_, static_cast<std::uint32_t>(step)};
    if (script().undo) {
      if (auto outcome = script().undo(run)) return *std::move(outcome);
    }
    run.undo_effect();
    return undone();
  }

 private:
  const JobScript& script() const { return world_.scripts.at(name_); }

  World& world_;
  std::string name_;
  std::string note_;
};

using Job = ScriptedJob<JobKind>;
using FinalJob = ScriptedJob<FinalJobKind>;
using CommittingJob = ScriptedJob<CommittingJobKind>;

inline void add_job_types(ProcedureRegistry& registry, World& world) {
  registry.add<Job>(world).add<FinalJob>(world).add<CommittingJob>(world);
}

inline void JobRun::effect() const { world.journal.note("do " + label()); }
inline void JobRun::undo_effect() const { world.journal.note("undo " + label()); }
inline void JobRun::spawn(const std::string& child) const { ctx.spawn(Job(world, child)); }
inline Outcome JobRun::advance() const {
  effect();
  return step < world.scripts.at(name).steps ? Say::next(step + 1) : Say::done(name + " done");
}

}  // namespace pv2::testing
