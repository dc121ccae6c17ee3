// SPDX-License-Identifier: Apache-2.0
//
// Between two sections of a work on a tree other things happen: records are published, orders are
// given, a domain around it fails, members leave.

#include <algorithm>
#include <climits>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <thread>
#include <utility>

#include "model/looks.h"
#include "support/job_story.h"
#include "support/repair_orders.h"
#include "support/rows_in_store.h"
#include "support/wrapped_store.h"
#include "watch/state_audit.h"

namespace pv2::testing::between_sections_test {
namespace {

// Children of one parent: a work that visits them takes three sections.
constexpr int kMany = 1500;

/// None of its steps has an undo.
struct FreeKind : JobKind {
  static constexpr std::string_view kType = "test.FreeJob";
  static constexpr auto kSteps =
      steps(step(JobStep::kOne, "ONE", kNoUndo), step(JobStep::kTwo, "TWO", kNoUndo));
};
using FreeJob = ScriptedJob<FreeKind>;

/// Calls `call` once, before the next batch is made durable.
class HookedStore final : public WrappedStore {
 public:
  HookedStore(std::unique_ptr<ProcedureStore> inner, std::function<void()>& call)
      : WrappedStore(std::move(inner)), call_(call) {}
  bool pump() override {
    if (call_) std::exchange(call_, {})();
    return WrappedStore::pump();
  }

 private:
  std::function<void()>& call_;
};

struct Machine {
  std::function<void()> before_batch;  // outlives the store
  EngineWorld engine;

  void open(std::uint32_t max_attempts = 0) {
    engine.max_live_procedures = 10'000;
    engine.retry.max_attempts = max_attempts;
    ExecutorOptions options = engine.options();
    options.registry.add<FreeJob>(engine.world);
    options.store = std::make_unique<HookedStore>(std::move(options.store), before_batch);
    engine.open(std::move(options));
  }
  void say_go(ProcedureId id) {
    engine.executor().async().signal(id, "go", {}, [](const Status&) {});
  }
};

/// Works on a tree pause after a few looks.
struct ShortSections {
  ShortSections() { Looks::pauses_at = 8; }
  ~ShortSections() { Looks::pauses_at = kSectionPauses; }
};

constexpr auto kReported = [] {
  SpawnOptions options;
  options.on_failure = OnFailure::kReport;
  return options;
};

std::optional<Outcome> when_told(JobRun& run, Outcome then) {
  if (run.ctx.signal("go") == nullptr) return Say::wait();
  return then;
}

void spawn_many(JobRun& run) {
  for (int i = 0; i < kMany; ++i) run.ctx.spawn(FreeJob(run.world, "k"));
}

JobScript spawns_one_that_fails_and_many() {
  return {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
            run.spawn("fails");
            spawn_many(run);
            return usual();
          }};
}

}  // namespace

TEST_CASE("the rows of a member that left early are deleted before those of its parent") {
  const bool crashes = GENERATE(true, false);
  Machine machine;
  EngineWorld& engine = machine.engine;
  auto& scripts = engine.world.scripts;
  scripts["r"] = {.steps = 3, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step == 1) run.ctx.spawn(Job(run.world, "h"), kReported());
                    if (run.step == 2 && run.ctx.signal("go") == nullptr) return Say::wait();
                    return usual();
                  }};
  scripts["h"] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step == 1) run.spawn("p");
                    if (run.step == 2) return Say::fail("no");
                    return usual();
                  }};
  scripts["p"] = {.steps = 3, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step <= 2) run.ctx.spawn(FreeJob(run.world, "k"));
                    return usual();
                  }};
  scripts["k"] = {.steps = 1};
  machine.open();
  const ProcedureId root = engine.submit("r");
  engine.run();

  if (crashes) {
    engine.faults().crash_before(engine.faults().commits() + 1, FaultStore::AfterCrash::kFail);
  }
  machine.open();
  engine.run();

  CHECK_FALSE(engine.describe(root).quarantined);
  machine.say_go(root);
  engine.run();
  CHECK(engine.result(root).status.ok());
}

TEST_CASE("an order that ends a tree while a lock is kept for its offloaded work ends it once") {
  Machine machine;
  EngineWorld& engine = machine.engine;
  auto& scripts = engine.world.scripts;
  bool began = false;
  ProcedureId root;
  scripts["r"] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step == 1) run.spawn("m");
                    return usual();
                  }};
  scripts["m"] = {.steps = 2, .run = [&](JobRun& run) -> std::optional<Outcome> {
                    if (began) return Say::retry("later");
                    static_cast<void>(run.ctx.signal("go"));
                    run.ctx.offload([&] {
                      if (std::exchange(began, true)) return;
                      machine.say_go({root.value + 1});
                      engine.run();  // it gives up
                      engine.executor().operate().order(root, RepairVerb::kBypass, kNote,
                                                        [](const Status&) {});
                      engine.run();
                    });
                    return Say::wait();
                  }};
  scripts["m"].locks = LockSet().table("shop", "t", LockMode::kExclusive).scope(LockScope::kVisit);
  machine.open(1);
  engine.executor().async().submit(
      Job(engine.world, "r"), {},
      [&](const Result<Submitted>& submitted) { root = submitted->id; });
  engine.run();
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 0);
  CHECK(engine.result(root).bypassed);
}

// Bypasses a tree of which one member gave up, while a domain in it fails: from the offloaded work
// of a member, or at the n-th pause between sections. Returns the number of pauses.
int bypass_beside_a_failure(std::optional<int> at_pause) {
  Machine machine;
  EngineWorld& engine = machine.engine;
  auto& scripts = engine.world.scripts;
  ProcedureId root;
  std::optional<Status> answer;
  std::size_t undone = 0;  // when the order was answered
  const auto bypass = [&] {
    engine.executor().operate().order(root, RepairVerb::kBypass, kNote, [&](const Status& status) {
      answer = status;
      undone = engine.world.journal.count("undo works.1");
    });
  };
  scripts["r"] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step == 1) {
                      run.spawn("gives up");
                      run.ctx.spawn(Job(run.world, "d"), kReported());
                    }
                    return usual();
                  }};
  scripts["gives up"] = {
      .steps = 1, .run = [](JobRun&) -> std::optional<Outcome> { return Say::retry("later"); }};
  scripts["d"] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step == 1) {
                      run.spawn("fails");
                      run.spawn("works");
                      spawn_many(run);
                    }
                    return usual();
                  }};
  scripts["fails"] = {.steps = 1,
                      .run = [](JobRun& run) { return when_told(run, Say::fail("no")); }};
  scripts["works"] = {.steps = 2, .run = [&](JobRun& run) -> std::optional<Outcome> {
                        if (run.step == 1 || at_pause) return usual();
                        const auto* const ended = run.ctx.offload([&] {
                          machine.say_go({root.value + 3});
                          engine.run();
                          bypass();
                          engine.run();
                        });
                        return ended == nullptr ? std::optional(Say::wait()) : usual();
                      }};
  scripts["k"] = {.steps = 1};
  machine.open(1);
  engine.executor().async().submit(
      Job(engine.world, "r"), {},
      [&](const Result<Submitted>& submitted) { root = submitted->id; });
  engine.run();
  engine.run();
  int pauses = 0;
  if (at_pause) {
    machine.say_go({root.value + 3});
    SectionLooks::at_each_pause(engine.executor(), [&] {
      if (pauses++ == *at_pause) bypass();
    });
    engine.run();
    SectionLooks::at_each_pause(engine.executor(), {});
    if (!answer) bypass();
    engine.run();
  }
  REQUIRE(answer.has_value());
  CHECK(answer->to_string() == "OK");
  CHECK(engine.world.journal.count("undo works.1") == undone);
  CHECK(engine.executor().inspect().live_procedures() == 0);
  CHECK(engine.result(root).bypassed);
  return pauses;
}

TEST_CASE("a tree of which a member gave up is bypassed at once while a domain in it fails") {
  bypass_beside_a_failure(std::nullopt);
  const int pauses = bypass_beside_a_failure(INT_MAX);
  REQUIRE(pauses > 3);
  for (int at = 0; at < pauses; ++at) {
    INFO("at pause " << at);
    bypass_beside_a_failure(at);
  }
}

TEST_CASE("no member of a large tree that has failed begins a step while the others are stopped") {
  Machine machine;
  EngineWorld& engine = machine.engine;
  auto& scripts = engine.world.scripts;
  scripts["large"] = spawns_one_that_fails_and_many();
  scripts["fails"] = {.run = [](JobRun&) { return Say::fail("no"); }};
  scripts["k"] = {.steps = 1};
  machine.open();
  const ProcedureId large = engine.submit("large");
  std::optional<std::size_t> begun;
  SectionLooks::at_each_pause(engine.executor(), [&] {
    if (begun) return;
    begun = engine.world.journal.count("do k.1");
    engine.executor().run_until_idle(4);
  });
  engine.run();
  SectionLooks::at_each_pause(engine.executor(), {});

  CHECK(engine.result(large).state == ProcedureState::kRolledBack);
  REQUIRE(begun);
  CHECK(*begun < kMany);
  CHECK(engine.world.journal.count("do k.1") == *begun);
}

TEST_CASE("a preview goes on when the member that it has reached leaves the tree") {
  const ShortSections pauses;
  Machine machine;
  EngineWorld& engine = machine.engine;
  auto& scripts = engine.world.scripts;
  scripts["r"] = {.steps = 3, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step == 3) return when_told(run, Say::done("all left"));
                    for (int i = 0; i < 50; ++i) run.ctx.spawn(FreeJob(run.world, "k"));
                    return usual();
                  }};
  scripts["k"] = {.steps = 1};
  machine.open();
  const ProcedureId root = engine.submit("r");
  engine.executor().run_until_idle(1);
  REQUIRE(engine.executor().inspect().live_procedures() == 51);
  bool paused = false;
  SectionLooks::at_each_pause(engine.executor(), [&] {
    if (!std::exchange(paused, true)) engine.run();
  });
  const auto lines = engine.executor().operate().preview(root, RepairVerb::kFailAndRollBack);
  SectionLooks::at_each_pause(engine.executor(), {});

  REQUIRE(paused);
  CHECK(engine.executor().inspect().live_procedures() == 51);  // the first 50 children have left
  CHECK(lines.ok());
  machine.say_go(root);
  engine.run();
  CHECK(engine.result(root).status.ok());
}

TEST_CASE("a preview goes on in a tree of which some members have left because it has ended") {
  const ShortSections pauses;
  Machine machine;
  EngineWorld& engine = machine.engine;
  engine.world.scripts["r"] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 1) {
                                   for (int i = 0; i < 50; ++i) run.spawn("k");
                                 }
                                 return usual();
                               }};
  engine.world.scripts["k"] = {.steps = 1};
  machine.open();
  const ProcedureId root = engine.submit("r");
  engine.executor().run_until_idle(1);

  std::binary_semaphore preview_paused(0), preview_may_go_on(0), preview_ended(0);
  bool has_paused = false, has_met = false;
  const auto runs_engine = std::this_thread::get_id();
  SectionLooks::at_each_pause(engine.executor(), [&] {
    if (std::this_thread::get_id() != runs_engine) {
      if (std::exchange(has_paused, true)) return;
      preview_paused.release();
      preview_may_go_on.acquire();
    } else if (engine.world.journal.count("do r.2") == 1 && !std::exchange(has_met, true)) {
      preview_may_go_on.release();
      preview_ended.acquire();
    }
  });
  std::thread other([&] {
    (void)engine.executor().operate().preview(root, RepairVerb::kFailAndRollBack);
    preview_ended.release();
  });
  preview_paused.acquire();
  engine.run();
  other.join();
  SectionLooks::at_each_pause(engine.executor(), {});

  CHECK(has_met);
  CHECK(engine.result(root).status.ok());
}

TEST_CASE("rows of members that left early are deleted before the end of their tree") {
  Machine machine;
  EngineWorld& engine = machine.engine;
  auto& scripts = engine.world.scripts;
  scripts["r"] = {.steps = 3, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step == 1) spawn_many(run);
                    if (run.step == 2) run.spawn("last");
                    if (run.step == 3) return when_told(run, Say::done("all left"));
                    return usual();
                  }};
  scripts["k"] = {.steps = 1};
  scripts["last"] = {.steps = 1};
  machine.open();
  const ProcedureId root = engine.submit("r");
  engine.run();
  CHECK(rows_in_store(engine, RowKind::kHeader) < kMany);
  machine.say_go(root);
  engine.run();
  REQUIRE(engine.result(root).status.ok());

  std::optional<Status> answer;
  engine.executor().async().acknowledge(root, [&](const Status& status) { answer = status; });
  engine.run();
  REQUIRE(answer);
  CHECK(answer->to_string() == "OK");
  CHECK(rows_in_store(engine, RowKind::kHeader) == 0);
}

TEST_CASE("rows of members that left early are deleted when the engine stops") {
  Machine machine;
  EngineWorld& engine = machine.engine;
  auto& scripts = engine.world.scripts;
  scripts["r"] = {.steps = 3, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step == 1) run.ctx.spawn(FreeJob(run.world, "k"));
                    if (run.step == 2) run.spawn("last");
                    if (run.step == 3) return when_told(run, Say::done("all left"));
                    return usual();
                  }};
  scripts["k"] = scripts["last"] = {.steps = 1};
  machine.open();
  const ProcedureId root = engine.submit("r");
  engine.run();
  REQUIRE(engine.executor().inspect().live_procedures() == 2);
  const auto row_of_k = procedure_key({root.value + 1}, RowKind::kHeader);
  CHECK(engine.disk->get(Space::kProcedure, row_of_k).has_value());

  engine.close();

  CHECK_FALSE(engine.disk->get(Space::kProcedure, row_of_k).has_value());
}

TEST_CASE("a small tree that fails is undone between the sections of a large tree that fails") {
  Machine machine;
  EngineWorld& engine = machine.engine;
  auto& scripts = engine.world.scripts;
  scripts["large"] = spawns_one_that_fails_and_many();
  scripts["small"] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                        if (run.step == 1) run.spawn("fails");
                        return usual();
                      }};
  scripts["fails"] = {.steps = 1,
                      .run = [](JobRun& run) { return when_told(run, Say::fail("no")); }};
  scripts["k"] = {.steps = 1};
  machine.open();
  const ProcedureId large = engine.submit("large");
  engine.run();
  const ProcedureId small = engine.submit("small");
  engine.run();
  machine.say_go({large.value + 1});
  machine.say_go({small.value + 1});
  int pauses = 0;
  int until_planned = 0;
  SectionLooks::at_each_pause(engine.executor(), [&] {
    ++pauses;
    const auto info = engine.executor().inspect().describe(small);
    if (info.ok() && info->state != ProcedureState::kFailed) ++until_planned;
  });
  engine.run();
  SectionLooks::at_each_pause(engine.executor(), {});
  CHECK(engine.result(large).state == ProcedureState::kRolledBack);
  CHECK(engine.result(small).state == ProcedureState::kRolledBack);
  INFO(until_planned << " of " << pauses << " pauses");
  CHECK(pauses > 6);
  CHECK(until_planned <= 2);
}

TEST_CASE(
    "the state audit finds nothing while a large tree ends because its last step is skipped") {
  Machine machine;
  EngineWorld& engine = machine.engine;
  auto& scripts = engine.world.scripts;
  scripts["r"] = {.steps = 5, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step == 1) {
                      spawn_many(run);
                      run.ctx.spawn(Job(run.world, "d"), kReported());
                    }
                    return run.step == 5 ? std::optional(Say::fail("no")) : usual();
                  }};
  scripts["d"] = {.steps = 1};
  scripts["k"] = {.steps = 1};
  machine.open();
  const ProcedureId root = engine.submit<CommittingJob>("r");
  engine.run();
  REQUIRE(engine.describe(root).parked);

  int pauses = 0;
  SectionLooks::at_each_pause(engine.executor(), [&] {
    ++pauses;
    CHECK(StateAudit::of(engine.executor()) == std::vector<std::string>());
  });
  CHECK(engine.executor().operate().skip_step(root, kNote).ok());
  engine.run();
  SectionLooks::at_each_pause(engine.executor(), {});
  CHECK(pauses > 0);
  CHECK(engine.result(root).status.ok());
}

TEST_CASE("an abort and an order that ends the same large tree end it once") {
  Machine machine;
  EngineWorld& engine = machine.engine;
  auto& scripts = engine.world.scripts;
  scripts["r"] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step == 1) {
                      run.spawn("m");
                      spawn_many(run);
                    }
                    return usual();
                  }};
  scripts["m"] = {.steps = 1,
                  .run = [](JobRun&) -> std::optional<Outcome> { return Say::retry("later"); }};
  scripts["k"] = {.steps = 1,
                  .run = [](JobRun& run) { return when_told(run, Say::done("all left")); }};
  machine.open(1);
  const ProcedureId root = engine.submit("r");
  engine.run();
  engine.executor().async().abort(root, {.reason = "x"}, [](const Status&) {});
  engine.executor().operate().order(root, RepairVerb::kBypass, kNote, [](const Status&) {});
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 0);
  CHECK_FALSE(engine.result(root).status.ok());
}

TEST_CASE(
    "an abort is put off, not refused, while members that could not be undone leave the tree") {
  Machine machine;
  EngineWorld& engine = machine.engine;
  auto& scripts = engine.world.scripts;
  scripts["r"] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step == 1) run.ctx.spawn(Job(run.world, "d"), kReported());
                    if (run.step == 2) return when_told(run, Say::done("all left"));
                    return usual();
                  }};
  scripts["d"] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step == 2) return Say::fail("no");
                    for (int i = 0; i < kMany; ++i) run.ctx.spawn(CommittingJob(run.world, "k"));
                    return usual();
                  }};
  scripts["k"] = {.steps = 4};
  machine.open();
  const ProcedureId root = engine.submit("r");
  engine.run();
  const ProcedureId parked{root.value + 1};
  REQUIRE(engine.describe(parked).parked);
  CHECK(engine.executor().abort(root).code() == StatusCode::kFailedPrecondition);

  std::vector<StatusCode> answers;
  SectionLooks::at_each_pause(engine.executor(), [&] {
    engine.executor().async().abort(
        root, {}, [&](const Status& status) { answers.push_back(status.code()); });
  });
  engine.executor().operate().order(parked, RepairVerb::kBypass, kNote, [](const Status&) {});
  engine.run();
  SectionLooks::at_each_pause(engine.executor(), {});
  REQUIRE_FALSE(answers.empty());
  for (const StatusCode code : answers) CHECK(code == StatusCode::kUnavailable);
  CHECK(engine.executor().inspect().live_procedures() == 2);  // the root still sees its child's end
  CHECK(engine.executor().abort(root).ok());
  engine.run();
  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
}

TEST_CASE("an abort is put off, not refused, while a domain with a member that commits fails") {
  Machine machine;
  EngineWorld& engine = machine.engine;
  auto& scripts = engine.world.scripts;
  scripts["r"] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step == 1) run.ctx.spawn(Job(run.world, "h"), kReported());
                    return usual();
                  }};
  scripts["h"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                    run.spawn("fails");
                    spawn_many(run);
                    run.ctx.spawn(CommittingJob(run.world, "commits"));
                    return usual();
                  }};
  scripts["fails"] = {.steps = 1,
                      .run = [](JobRun& run) { return when_told(run, Say::fail("no")); }};
  scripts["k"] = {.steps = 1};
  scripts["commits"] = {.steps = 5, .run = [](JobRun& run) -> std::optional<Outcome> {
                          return run.step == 3 ? std::optional(Say::wait_for(std::chrono::hours(1)))
                                               : usual();
                        }};
  machine.open();
  const ProcedureId root = engine.submit("r");
  engine.run();
  CHECK(engine.executor().abort(root).code() == StatusCode::kFailedPrecondition);

  std::vector<StatusCode> answers;
  SectionLooks::at_each_pause(engine.executor(), [&] {
    if (!answers.empty() && answers.back() == StatusCode::kOk) return;
    engine.executor().async().abort(
        root, {}, [&](const Status& status) { answers.push_back(status.code()); });
  });
  machine.say_go({root.value + 2});
  engine.run();
  SectionLooks::at_each_pause(engine.executor(), {});
  CHECK(std::count(answers.begin(), answers.end(), StatusCode::kUnavailable) > 0);
  CHECK(std::count(answers.begin(), answers.end(), StatusCode::kFailedPrecondition) == 0);
  CHECK(engine.executor().inspect().live_procedures() == 0);
}

TEST_CASE("an undo that ends while a wider domain is being stopped begins no other undo") {
  Machine machine;
  EngineWorld& engine = machine.engine;
  auto& scripts = engine.world.scripts;
  scripts["r"] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step == 1) {
                      run.ctx.spawn(Job(run.world, "i"), kReported());
                      run.ctx.spawn(FreeJob(run.world, "x"));
                    }
                    return usual();
                  }};
  scripts["i"] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step == 2) return when_told(run, Say::fail("no"));
                    run.spawn("m");
                    spawn_many(run);
                    run.ctx.spawn(Job(run.world, "j"), kReported());
                    return usual();
                  }};
  scripts["k"] = {.steps = 1};
  scripts["j"] = {.steps = 1};
  scripts["m"] = {.steps = 1};
  scripts["x"] = {.steps = 1,
                  .run = [](JobRun& run) { return when_told(run, Say::fail("x")); },
                  .priority = Priority::kHigh};
  machine.open();
  const ProcedureId root = engine.submit("r");
  engine.run();
  machine.say_go({root.value + 1});
  for (int i = 0; i < 50 && engine.world.journal.count("undo i.2") == 0; ++i) {
    engine.executor().run_until_idle(1);
  }
  machine.say_go({root.value + 2});
  engine.store().pump();
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 0);
  CHECK(engine.world.journal.count("undo m.1") == 1);
  CHECK(engine.world.journal.count("undo r.1") == 1);
}

TEST_CASE("an order to go on in a domain obeys the failure of a wider domain meanwhile") {
  Machine machine;
  EngineWorld& engine = machine.engine;
  auto& scripts = engine.world.scripts;
  scripts["r"] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step == 1) {
                      run.ctx.spawn(FreeJob(run.world, "x"));
                      spawn_many(run);
                      run.ctx.spawn(CommittingJob(run.world, "d"), kReported());
                    }
                    return usual();
                  }};
  scripts["d"] = {.steps = 4, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step == 4) return Say::fail("no");
                    return usual();
                  }};
  scripts["k"] = {.steps = 1,
                  .run = [](JobRun& run) { return when_told(run, Say::done("all left")); }};
  scripts["x"] = {.steps = 1, .run = [](JobRun& run) { return when_told(run, Say::fail("x")); }};
  machine.open();
  const ProcedureId root = engine.submit("r");
  engine.run();
  machine.say_go({root.value + 1});
  engine.store().pump();
  machine.before_batch = [&] {
    engine.executor().operate().order({root.value + 2 + kMany}, RepairVerb::kRetryNow, kNote,
                                      [](const Status&) {});
  };
  engine.run();
  CHECK(engine.describe(root).parked);  // its child is beyond its point of no return
}

}  // namespace pv2::testing::between_sections_test
