// SPDX-License-Identifier: Apache-2.0
//
// Work under the state mutex is counted in executions looked at, not timed: over a whole story the
// count grows no faster than n log n, and no critical section has more than kSectionLooksMax,
// however large the tree is.

#include "model/looks.h"

#include <pv2/engine/executor_options.h>
#include <pv2/engine/inspection.h>
#include <pv2/engine/operator_console.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/engine/state_machine_procedure.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

#include "pv2/testing/step_executor.h"
#include "support/catch.h"
#include "support/engine_world.h"

namespace pv2::testing::looks_test {
namespace {

enum class PartStep : std::uint32_t { kBegin = 1, kJoin = 2 };

/// What all parts of a story have in common.
struct Story {
  bool deepest_fails = false;
  bool parents_fail = false;  ///< Each parent that sees a failed child.
  bool reports = false;       ///< Failures of children are only reported.
  bool concurrently = false;  ///< Children are undone concurrently.
  bool root_fails = false;    ///< When its children have ended.
  bool leaves_wait = false;   ///< For a signal that never comes.
  bool leaves_undoable = true;
  bool leaves_final = false;  ///< Leaves have a point of no return.
  bool undo_waits = false;    ///< For a signal that never comes.
  bool undo_fails = false;
  bool one_gives_up = false;  ///< The first leaf, at its only attempt.
  std::size_t begun = 0;
  std::size_t undone = 0;
};

enum class Shape : std::uint64_t { kLevel = 1, kWide = 2, kLoop = 3, kLeaf = 4, kPairs = 5 };

/// A leaf that waits before its point of no return.
class Final final : public StateMachineProcedure<PartStep> {
 public:
  static constexpr std::string_view kType = "looks.Final";
  static constexpr auto kSteps = steps(step(PartStep::kBegin, "BEGIN", kUndoable),
                                       step(PartStep::kJoin, "JOIN", kPointOfNoReturn));
  explicit Final(Story& /*story*/) {}
  void fields(auto& /*f*/) {}
  Flow execute_from_state(PartStep step, StepContext& ctx) override {
    if (step == PartStep::kJoin) return done();
    return ctx.signal("go") == nullptr ? wait() : next(PartStep::kJoin);
  }
  Flow rollback_state(PartStep, StepContext&) override { return undone(); }
};

/// A leaf that has nothing to undo.
class Plain final : public StateMachineProcedure<PartStep> {
 public:
  static constexpr std::string_view kType = "looks.Plain";
  static constexpr auto kSteps = steps(step(PartStep::kBegin, "BEGIN", kNoUndo));
  explicit Plain(Story& story) : story_(story) {}
  void fields(auto& /*f*/) {}
  Flow execute_from_state(PartStep, StepContext&) override {
    ++story_.begun;
    return done();
  }
  Flow rollback_state(PartStep, StepContext&) override { return undone(); }

 private:
  Story& story_;
};

/// A part of a tree: a chain of `size` levels, such a chain with a leaf more on each level, a
/// parent of `size` leaves, one that spawns a leaf in each of `size` visits, or a leaf.
class Part final : public StateMachineProcedure<PartStep> {
 public:
  static constexpr std::string_view kType = "looks.Part";
  static constexpr auto kSteps =
      steps(step(PartStep::kBegin, "BEGIN", kUndoable), step(PartStep::kJoin, "JOIN", kUndoable));
  explicit Part(Story& story, Shape shape = Shape::kLeaf, std::uint64_t size = 0)
      : story_(story), shape_(static_cast<std::uint64_t>(shape)), size_(size) {}
  void fields(auto& f) {
    f.arg(1, "shape", shape_);
    f.arg(2, "size", size_);
    f(3, "rounds", rounds_);
  }
  Flow execute_from_state(PartStep step, StepContext& ctx) override {
    ++story_.begun;
    if (step == PartStep::kJoin) return join(ctx);
    switch (static_cast<Shape>(shape_)) {
      case Shape::kLevel:
        if (size_ == 0) return story_.deepest_fails ? failed() : done();
        ctx.spawn(Part(story_, Shape::kLevel, size_ - 1), options());
        return next(PartStep::kJoin);
      case Shape::kPairs:
        if (size_ == 0) return story_.deepest_fails ? failed() : done();
        ctx.spawn(Part(story_, Shape::kPairs, size_ - 1), options());
        ctx.spawn(Part(story_), options());
        return next(PartStep::kJoin);
      case Shape::kWide:
        for (std::uint64_t i = 0; i < size_; ++i) {
          if (story_.leaves_final) {
            ctx.spawn(Final(story_), options());
          } else {
            ctx.spawn(Part(story_), options());
          }
        }
        return next(PartStep::kJoin);
      case Shape::kLoop:
        if (rounds_ == size_) return story_.root_fails ? failed() : done();
        ++rounds_;
        if (ctx.children().size() > 1) return failed();
        if (story_.leaves_undoable) {
          ctx.spawn(Part(story_), options());
        } else {
          ctx.spawn(Plain(story_), options());
        }
        return again();
      case Shape::kLeaf:
        if (story_.one_gives_up && ctx.id().value == 2) return unlucky();
        if (story_.leaves_wait && ctx.signal("go") == nullptr) return wait();
        return done();
    }
    return failed();
  }
  Flow rollback_state(PartStep, StepContext& ctx) override {
    if (story_.undo_waits && ctx.signal("go") == nullptr) return wait();
    if (story_.undo_fails) return failed();
    ++story_.undone;
    return undone();
  }

 private:
  static Flow failed() { return fail(Status(StatusCode::kFailedPrecondition, "it was to fail")); }
  static Flow unlucky() { return retry(Status(StatusCode::kUnavailable, "it has no luck")); }
  [[nodiscard]] SpawnOptions options() const {
    SpawnOptions options;
    if (story_.reports) options.on_failure = OnFailure::kReport;
    if (story_.concurrently) options.undo_order = UndoOrder::kConcurrent;
    return options;
  }
  Flow join(StepContext& ctx) {
    bool bad = false;
    for (const ChildOutcome& child : ctx.children()) {
      bad = bad || child.state != ProcedureState::kSuccess;
    }
    const bool is_top = ctx.id() == ctx.root_id();
    if ((bad && story_.parents_fail) || (is_top && story_.root_fails)) return failed();
    return done();
  }

  Story& story_;
  std::uint64_t shape_;
  std::uint64_t size_;
  std::uint64_t rounds_ = 0;
};

/// One machine that plays a story.
struct Machine {
  explicit Machine(Story told, std::size_t live = 1'000'000) : story(told), most_live(live) {}
  Story story;
  std::size_t most_live;
  StepExecutor steps{[this](ProcedureRegistry& types) {
                       types.add<Part>(story).add<Plain>(story).add<Final>(story);
                     },
                     [this](ExecutorOptions& options) {
                       options.max_signals = 1'000'000;
                       options.max_live_procedures = most_live;
                       options.retry.max_attempts = story.one_gives_up ? 1 : 0;
                     }};

  ProcedureId submit(Shape shape, std::uint64_t size) {
    const auto id = steps.submit(Part(story, shape, size));
    REQUIRE(id.status().to_string() == "OK");
    return *id;
  }
  [[nodiscard]] SectionLooks looks() const { return SectionLooks::of(*executor()); }
  [[nodiscard]] ProcedureExecutor* executor() const {
    return &const_cast<StepExecutor&>(steps).executor();
  }
};

/// The looks of a whole story.
SectionLooks played(Story story, Shape shape, std::uint64_t size) {
  Machine machine(story);
  SectionLooks::reset(machine.steps.executor());
  const ProcedureId id = machine.submit(shape, size);
  machine.steps.run();
  CHECK(machine.steps.executor().inspect().live_procedures() == 0);
  CHECK(machine.steps.result(id).ok());
  return machine.looks();
}

/// From n = 256 to 4n, n log n grows to five times as much.
void check_growth(const std::function<SectionLooks(std::uint64_t)>& play) {
  const SectionLooks one = play(256);
  const SectionLooks two = play(512);
  const SectionLooks four = play(1024);
  INFO("total: " << one.total << ", " << two.total << ", " << four.total);
  INFO("most in a section: " << one.most << ", " << two.most << ", " << four.most);
  CHECK(static_cast<double>(four.total) <= 5.0 * static_cast<double>(one.total) + 1000);
  CHECK(static_cast<double>(two.total) <= 2.3 * static_cast<double>(one.total) + 500);
}

void check_sections(const SectionLooks& looks) {
  INFO("most in a section: " << looks.most);
  CHECK(looks.most <= kSectionLooksMax);
}

}  // namespace

TEST_CASE("a chain of levels is looked at in proportion to its length") {
  check_growth([](std::uint64_t n) { return played({}, Shape::kLevel, n); });
}

TEST_CASE("a chain of reported failures is looked at in proportion to its length") {
  const bool all_fail = GENERATE(false, true);
  check_growth([&](std::uint64_t n) {
    return played({.deepest_fails = true, .parents_fail = all_fail, .reports = true}, Shape::kLevel,
                  n);
  });
}

TEST_CASE("a chain of levels is undone with looks in proportion to its length") {
  Story story{.deepest_fails = true};
  story.concurrently = GENERATE(false, true);
  check_growth([&](std::uint64_t n) { return played(story, Shape::kLevel, n); });
  check_sections(played(story, Shape::kLevel, 3000));
}

TEST_CASE("thousands of concurrent undos begin in sections of bounded looks") {
  // The leaves are undone when the root has undone the step at which it failed.
  const auto undone = [](std::uint64_t n) {
    Machine machine({.concurrently = true, .root_fails = true, .leaves_wait = true});
    const ProcedureId root = machine.submit(Shape::kWide, n);
    machine.steps.run();
    SectionLooks::reset(machine.steps.executor());
    for (std::uint64_t i = 1; i <= n; ++i) {
      REQUIRE(machine.steps.executor().signal({root.value + i}, "go").ok());
    }
    machine.steps.run();
    CHECK(machine.story.undone == n + 2);
    return machine.looks();
  };
  check_growth(undone);
  check_sections(undone(3000));
}

TEST_CASE("levels of concurrently undone children are undone with looks in proportion to them") {
  const Story story{.deepest_fails = true, .concurrently = true};
  check_growth([&](std::uint64_t n) { return played(story, Shape::kPairs, n); });
  check_sections(played(story, Shape::kPairs, 3000));
}

TEST_CASE("a chain of domains that fails at its root is undone with looks in proportion to it") {
  const Story story{.reports = true, .root_fails = true};
  check_growth([&](std::uint64_t n) { return played(story, Shape::kLevel, n); });
  check_sections(played(story, Shape::kLevel, 3000));
}

TEST_CASE("a root that spawns in a loop looks at each child a bounded number of times") {
  check_growth([](std::uint64_t n) { return played({}, Shape::kLoop, n); });
}

TEST_CASE("the end of a large tree, and its undoing, are made in sections of bounded looks") {
  Story story;
  story.root_fails = GENERATE(false, true);
  check_growth([&](std::uint64_t n) { return played(story, Shape::kWide, n); });
  check_sections(played(story, Shape::kLoop, 3000));
}

TEST_CASE("the failure of a large tree that waits is noted in sections of bounded looks") {
  const auto stopped = [](std::uint64_t n) {
    Machine machine({.leaves_wait = true});
    const ProcedureId root = machine.submit(Shape::kWide, n);
    machine.steps.run();
    CHECK(machine.steps.executor().inspect().live_procedures() == n + 1);
    SectionLooks::reset(machine.steps.executor());
    REQUIRE(machine.steps.executor().abort(root).ok());
    machine.steps.run();
    CHECK(machine.steps.executor().inspect().live_procedures() == 0);
    return machine.looks();
  };
  check_growth(stopped);
  check_sections(stopped(3000));
}

TEST_CASE("an order to a large tree that is not parked is refused without a look at its members") {
  const auto refused = [](std::uint64_t n) {
    Machine machine({.leaves_wait = true});
    const ProcedureId root = machine.submit(Shape::kWide, n);
    machine.steps.run();
    ProcedureExecutor& executor = machine.steps.executor();
    SectionLooks::reset(executor);
    const RepairNote note{.who = "me", .why = "to see"};
    for (const ProcedureId id : {root, ProcedureId{root.value + n}}) {
      CHECK(executor.operate().retry_now(id, note).code() == StatusCode::kFailedPrecondition);
      CHECK(executor.operate().skip_step(id, note).code() == StatusCode::kFailedPrecondition);
      CHECK(executor.operate().bypass(id, note).code() == StatusCode::kFailedPrecondition);
      for (const RepairVerb verb :
           {RepairVerb::kRetryNow, RepairVerb::kSkipStep, RepairVerb::kBypass}) {
        CHECK(executor.operate().preview(id, verb).status().code() ==
              StatusCode::kFailedPrecondition);
      }
    }
    return machine.looks();
  };
  CHECK(refused(1024).total <= refused(256).total);
}

TEST_CASE("a preview of an order to a large tree is made in sections of bounded looks") {
  const auto shown = [](std::uint64_t n) {
    Machine machine({.leaves_wait = true});
    const ProcedureId root = machine.submit(Shape::kWide, n);
    machine.steps.run();
    SectionLooks::reset(machine.steps.executor());
    const auto lines =
        machine.steps.executor().operate().preview({root.value + n}, RepairVerb::kFailAndRollBack);
    REQUIRE(lines.ok());
    CHECK(lines->size() == n + 2);  // one for each leaf, for the root, and for the end
    return machine.looks();
  };
  check_growth(shown);
  check_sections(shown(3000));
}

TEST_CASE("a large tree that is parked is bypassed in sections of bounded looks") {
  // It parks in its undo, or beyond the point of no return of its leaves.
  Story story{.root_fails = true};
  (GENERATE(false, true) ? story.leaves_final : story.undo_fails) = true;
  const auto bypassed = [&](std::uint64_t n) {
    Machine machine(story);
    const ProcedureId root = machine.submit(Shape::kWide, n);
    machine.steps.run();
    ProcedureExecutor& executor = machine.steps.executor();
    if (story.leaves_final) {
      for (std::uint64_t i = 1; i <= n; ++i) {
        REQUIRE(executor.signal({root.value + i}, "go").ok());
      }
      machine.steps.run();
    }
    REQUIRE(executor.inspect().describe(root)->state == ProcedureState::kFailed);
    REQUIRE(executor.inspect().live_procedures() == n + 1);
    SectionLooks::reset(executor);
    const RepairNote note{.who = "me", .why = "to see"};
    REQUIRE(executor.operate().preview(root, RepairVerb::kBypass).status().to_string() == "OK");
    REQUIRE(executor.operate().bypass(root, note).to_string() == "OK");
    machine.steps.run();
    CHECK(executor.inspect().live_procedures() == 0);
    return machine.looks();
  };
  check_growth(bypassed);
  check_sections(bypassed(3000));
}

TEST_CASE("a large tree of which a member gave up is bypassed in sections of bounded looks") {
  const auto bypassed = [](std::uint64_t n) {
    Machine machine({.leaves_wait = true, .one_gives_up = true});
    const ProcedureId root = machine.submit(Shape::kWide, n);
    machine.steps.run();
    ProcedureExecutor& executor = machine.steps.executor();
    REQUIRE(executor.inspect().describe({root.value + 1})->parked);
    SectionLooks::reset(executor);
    REQUIRE(executor.operate().preview(root, RepairVerb::kBypass).status().to_string() == "OK");
    REQUIRE(executor.operate().bypass(root, {.who = "me", .why = "to see"}).to_string() == "OK");
    machine.steps.run();
    CHECK(executor.inspect().live_procedures() == 0);
    return machine.looks();
  };
  check_growth(bypassed);
  check_sections(bypassed(3000));
}

TEST_CASE("a preview is refused if its tree is aborted while the preview is made") {
  Machine machine({.leaves_wait = true});
  const ProcedureId root = machine.submit(Shape::kWide, 2000);
  machine.steps.run();
  ProcedureExecutor& executor = machine.steps.executor();
  std::size_t pauses = 0;
  const bool ends = GENERATE(false, true);
  SectionLooks::at_each_pause(executor, [&] {
    if (++pauses != 2) return;
    REQUIRE(executor.abort(root).ok());
    if (ends) machine.steps.run();
  });
  const auto lines = executor.operate().preview(root, RepairVerb::kFailAndRollBack);
  CHECK(pauses >= 2);
  CHECK(lines.status().code() == StatusCode::kFailedPrecondition);
  machine.steps.run();
  CHECK(executor.inspect().live_procedures() == 0);
}

TEST_CASE("an abort knows without a look at the members whether one of them cannot be undone") {
  const auto aborted = [](std::uint64_t n, bool one_passes) {
    Machine machine({.leaves_final = true});
    const ProcedureId root = machine.submit(Shape::kWide, n);
    machine.steps.run();
    ProcedureExecutor& executor = machine.steps.executor();
    const ProcedureId last{root.value + n};
    if (one_passes) REQUIRE(executor.signal(last, "go").ok());
    machine.steps.run();
    SectionLooks::reset(executor);
    Status answer = executor.abort(root);
    CHECK(answer.ok() != one_passes);
    const SectionLooks looks = machine.looks();
    if (one_passes) {
      CHECK_THAT(std::string(answer.message()), ContainsSubstring("passed its point of no return"));
      return looks;
    }
    machine.steps.run();
    CHECK(executor.inspect().live_procedures() == 0);
    return looks;
  };
  for (const bool one_passes : {false, true}) {
    check_sections(aborted(3000, one_passes));
    CHECK(aborted(1024, one_passes).most <= 2 * kSectionPauses);
  }
  CHECK(aborted(4096, true).total <= aborted(1024, true).total);
}

TEST_CASE("a restart looks at each signal to a tree that failed a bounded number of times") {
  const auto restarted = [](std::uint64_t n) {
    Machine machine({.leaves_wait = true, .undo_waits = true});
    const ProcedureId root = machine.submit(Shape::kWide, 2);
    machine.steps.run();
    for (std::uint64_t i = 0; i < n; ++i) {
      REQUIRE(machine.steps.executor().signal(root, "other").ok());
    }
    REQUIRE(machine.steps.executor().abort(root).ok());
    machine.steps.run();
    CHECK(machine.steps.executor().inspect().live_procedures() == 3);
    machine.steps.crash();
    return machine.looks();
  };
  check_growth(restarted);
}

TEST_CASE("a step that takes all its signals looks at each a bounded number of times") {
  const auto drained = [](std::uint64_t n) {
    EngineWorld engine;
    engine.world.scripts["a"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
      if (run.step != 1) return usual();
      if (run.ctx.signal("go") == nullptr) return Say::wait();
      while (run.ctx.signal("one of many") != nullptr) {
      }
      return usual();
    }};
    engine.open();
    const ProcedureId id = engine.submit("a");
    engine.run();
    for (std::uint64_t i = 1; i < n / 2; ++i) {
      REQUIRE(engine.executor().signal(id, "another").ok());
      REQUIRE(engine.executor().signal(id, "one of many").ok());
    }
    SectionLooks::reset(engine.executor());
    REQUIRE(engine.executor().signal(id, "go").ok());
    engine.run();
    CHECK(engine.result(id).status.ok());
    return SectionLooks::of(engine.executor());
  };
  check_growth(drained);
}

TEST_CASE("no step of an aborted tree begins while its members are being stopped") {
  Machine machine({.leaves_wait = true});
  const ProcedureId root = machine.submit(Shape::kWide, 2000);
  machine.steps.run();
  ProcedureExecutor& executor = machine.steps.executor();
  const std::size_t begun = machine.story.begun;
  std::size_t pauses = 0;
  SectionLooks::at_each_pause(executor, [&] {
    const ProcedureId leaf{root.value + 1 + (pauses * 397) % 2000};
    static_cast<void>(executor.signal(leaf, "go"));
    ++pauses;
  });

  REQUIRE(executor.abort(root).ok());
  machine.steps.run();

  CHECK(pauses >= 3);
  CHECK(machine.story.begun == begun);
  CHECK(machine.story.undone == 2001);  // the interrupted step of each leaf, and the root's first
  CHECK(executor.inspect().live_procedures() == 0);
  CHECK(machine.steps.result(root)->status.code() == StatusCode::kAborted);
}

TEST_CASE("while a large tree leaves, its root has ended for every verb and its members are gone") {
  Machine machine({.leaves_wait = true});
  const ProcedureId root = machine.submit(Shape::kWide, 2000);
  machine.steps.run();
  ProcedureExecutor& executor = machine.steps.executor();
  REQUIRE(executor.abort(root).ok());
  std::size_t pauses = 0;
  SectionLooks::at_each_pause(executor, [&] {
    if (executor.inspect().describe(root).ok()) return;  // it is still being undone
    ++pauses;
    CHECK(executor.inspect().list().empty());
    CHECK(executor.inspect().describe({root.value + 7}).status().code() == StatusCode::kNotFound);
    CHECK(executor.abort(root).code() == StatusCode::kFailedPrecondition);
    CHECK_FALSE(executor.signal({root.value + 1}, "go").ok());
    CHECK(executor.inspect().explain(root).ok());
    CHECK_FALSE(executor.operate().bypass(root, {.who = "me", .why = "to see"}).ok());
  });
  machine.steps.run();
  CHECK(pauses >= 3);
  CHECK(executor.inspect().live_procedures() == 0);
  CHECK(executor.acknowledge(root).ok());
}

TEST_CASE("a crash after the end of a large tree leaves nothing behind") {
  Machine machine({.leaves_wait = true});
  const ProcedureId root = machine.submit(Shape::kWide, 2000);
  machine.steps.run();
  REQUIRE(machine.steps.executor().abort(root).ok());
  machine.steps.run();
  machine.steps.crash();
  CHECK(machine.steps.executor().inspect().live_procedures() == 0);
  machine.steps.run();
  CHECK(machine.steps.executor().acknowledge(root).ok());
}

TEST_CASE(
    "children that have ended and have nothing to undo leave when the next ones are spawned") {
  const bool restarts = GENERATE(false, true);
  Machine machine({.leaves_undoable = false});
  machine.submit(Shape::kLoop, 300);
  std::size_t most = 0;
  while (machine.steps.step()) {
    most = std::max(most, machine.steps.executor().inspect().live_procedures());
    if (restarts && machine.story.begun % 50 == 0) machine.steps.crash();
  }
  CHECK(most <= 3);
  CHECK(machine.steps.executor().inspect().live_procedures() == 0);
}

TEST_CASE("children that can be undone stay until their tree has ended") {
  Machine machine({.root_fails = true});
  machine.submit(Shape::kLoop, 50);
  machine.steps.run();
  CHECK(machine.story.undone == 51);  // one step of each leaf, and the root's first
}

TEST_CASE("children count towards max_live_procedures, and wait for room") {
  Machine machine({.leaves_wait = true}, 10);
  const ProcedureId first = machine.submit(Shape::kWide, 6);
  const ProcedureId second = machine.submit(Shape::kWide, 6);
  machine.steps.run();
  CHECK(machine.steps.executor().inspect().live_procedures() == 8);
  const auto waits = machine.steps.describe(second);
  CHECK(waits->error.code() == StatusCode::kResourceExhausted);
  CHECK_THAT(std::string(waits->error.message()), ContainsSubstring("max_live_procedures"));

  machine.story.leaves_wait = false;
  for (const ProcedureInfo& info : machine.steps.executor().inspect().list()) {
    if (info.parent == first) REQUIRE(machine.steps.executor().signal(info.id, "go").ok());
  }
  REQUIRE(machine.steps.run_to_the_end().ok());
  CHECK(machine.steps.result(first)->status.ok());
  CHECK(machine.steps.result(second)->status.ok());
}

TEST_CASE("a step whose children find no room fails in the end, and at once if they never can") {
  const std::uint64_t children = GENERATE(9, 10);
  Machine machine({.leaves_wait = true}, 10);
  const ProcedureId first = machine.submit(Shape::kWide, 6);
  machine.steps.run();
  const ProcedureId second = machine.submit(Shape::kWide, children);
  machine.steps.run();
  CHECK(machine.steps.result(second).ok() == (children == 10));
  for (int i = 0; i < 20; ++i) {
    machine.steps.advance(std::chrono::minutes(20));
    machine.steps.run();
  }
  const auto result = machine.steps.result(second);
  REQUIRE(result.ok());
  CHECK(result->status.code() == StatusCode::kResourceExhausted);
  CHECK(machine.steps.executor().abort(first).ok());
}

}  // namespace pv2::testing::looks_test
