// SPDX-License-Identifier: Apache-2.0
//
// Locks that are held per step: how many records they cost when no other procedure wants them, and
// which procedure comes next when one does. The rules are in docs/scheduling.md.

#include <string>
#include <vector>

#include "support/engine_world.h"
#include "watch/state_audit.h"

namespace pv2::testing::step_scope_test {
namespace {

using namespace std::chrono_literals;

LockSet per_step(LockMode mode = LockMode::kExclusive) {
  return LockSet().table("shop", "orders", mode).scope(LockScope::kStep);
}

// Waits in its second step, with its locks, for the signal "go".
JobScript waits_for_go() {
  return {.steps = 2,
          .run = [](JobRun& run) -> std::optional<Outcome> {
            if (run.step == 2 && run.ctx.signal("go") == nullptr) return Say::wait();
            return std::nullopt;
          },
          .locks = LockSet().table("shop", "orders", LockMode::kExclusive)};
}

// Signals the two children of `root`, one after the other, and checks how the tree ended.
void let_children_go(EngineWorld& engine, ProcedureId root) {
  for (std::uint64_t child : {1, 2}) {
    engine.executor().async().signal({root.value + child}, "go", {}, [](const Status&) {});
    engine.run();
  }
  CHECK(engine.result(root).status.ok());
  CHECK(engine.executor().inspect().locks().empty());
}

}  // namespace

TEST_CASE(
    "an N-step machine with locks per step makes N + 1 records when no other waits for them") {
  EngineWorld engine;
  const auto steps = GENERATE(1U, 2U, 5U);
  engine.world.scripts["a"] = {.steps = steps, .locks = per_step()};
  engine.open();
  const std::size_t before = engine.faults().commits();
  engine.submit("a");
  engine.run_to_the_end();

  CHECK(engine.faults().commits() - before == steps + 1);
  CHECK(engine.executor().inspect().locks().empty());
}

TEST_CASE("readers that hold a lock per step do not make each other give way") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 3, .locks = per_step(LockMode::kShared)};
  engine.world.scripts["b"] = {.steps = 3, .locks = per_step(LockMode::kShared)};
  engine.open();
  const std::size_t before = engine.faults().commits();
  engine.submit("a");
  engine.submit("b");
  engine.run_to_the_end();

  CHECK(engine.faults().commits() - before == 2 * (3 + 1));
}

TEST_CASE("two machines with locks per step take turns, one grant record for each turn") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 3, .locks = per_step()};
  engine.world.scripts["b"] = {.steps = 3, .locks = per_step()};
  engine.open();
  const std::size_t before = engine.faults().commits();
  engine.submit("a");
  engine.submit("b");
  engine.run_to_the_end();

  CHECK(engine.journal() == Entries{"do a.1", "do b.1", "do a.2", "do b.2", "do a.3", "do b.3"});
  // One grant record for each turn that was waited for: b's three, and a's second and third.
  CHECK(engine.faults().commits() - before == 2 * (3 + 1) + 5);
}

TEST_CASE("a step that waits gives back the locks that it holds per step") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 2,
                               .run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step != 1) return std::nullopt;
                                 const auto* answer = run.ctx.await<std::string>(
                                     [&](auto completion) { run.world.ask(completion); });
                                 if (answer == nullptr) return Say::wait();
                                 return std::nullopt;
                               },
                               .locks = per_step()};
  engine.open();
  engine.submit("a");
  engine.run();

  CHECK(engine.executor().inspect().locks().empty());
  engine.world.answer_one("go on");
  engine.run_to_the_end();
  CHECK(engine.journal() == Entries{"do a.1", "do a.2"});
}

TEST_CASE("a lock granted in the record of the step before is held again after a crash") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 3, .locks = per_step()};
  engine.world.scripts["b"] = {.steps = 1, .locks = per_step()};
  engine.open();
  const ProcedureId a = engine.submit("a");
  engine.executor().run_until_idle(1);
  engine.crash_and_open();

  CHECK(engine.describe(a).holds_locks);
  engine.submit("b");
  engine.run_to_the_end();
  CHECK(engine.journal().front() == "do a.1");
  CHECK(engine.journal().back() == "do a.3");
}

TEST_CASE("children do not hold the locks that their parent gives back while it waits for them") {
  const LockScope scope = GENERATE(LockScope::kStep, LockScope::kVisit);
  const bool crash = GENERATE(false, true);
  EngineWorld engine;
  auto& scripts = engine.world.scripts;
  scripts["p"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step == 2) run.spawn("c");
                    if (run.step == 2) run.spawn("c");
                    return std::nullopt;
                  },
                  .locks = LockSet().table("shop", "orders", LockMode::kExclusive).scope(scope)};
  scripts["c"] = waits_for_go();
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  if (crash) engine.crash_and_open();
  engine.run();
  CHECK(StateAudit::of(engine.executor()) == std::vector<std::string>());
  CHECK(engine.world.journal.count("do c.1") == 1);
  for (const LockInfo& lock : engine.executor().inspect().locks()) CHECK(lock.holders.size() == 1);
  let_children_go(engine, root);
}

TEST_CASE("a child may ask exclusively for what its parent shares but gives back to wait for it") {
  const LockScope scope = GENERATE(LockScope::kStep, LockScope::kVisit);
  EngineWorld engine;
  auto& scripts = engine.world.scripts;
  scripts["p"] = {.children = {"c"}, .locks = per_step(LockMode::kShared).scope(scope)};
  scripts["c"] = {.steps = 1, .locks = per_step()};
  scripts["c"].locks.scope(LockScope::kOperation);
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run_to_the_end();

  CHECK(engine.result(root).status.to_string() == "OK");
  CHECK(engine.world.journal.count("do c.1") == 1);
}

TEST_CASE(
    "a parent whose offloaded work runs when it spawns keeps its locks until its children end") {
  const bool crash = GENERATE(false, true);
  EngineWorld engine;
  auto& scripts = engine.world.scripts;
  bool works = true;
  scripts["p"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
                    if (run.step != 2) return std::nullopt;
                    run.ctx.offload([&] {
                      engine.run();  // the children take the locks while it works
                      CHECK(engine.world.journal.count("do c.1") == 2);
                      works = false;
                    });
                    run.spawn("c");
                    run.spawn("c");
                    return std::nullopt;
                  },
                  .locks = per_step()};
  scripts["c"] = waits_for_go();
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  CHECK_FALSE(works);
  if (crash) engine.crash_and_open();
  engine.run();
  const auto holds = [&](std::uint64_t child) {
    return engine.describe({root.value + child}).holds_locks;
  };
  CHECK((holds(0) && holds(1) && holds(2)));
  CHECK_FALSE(engine.describe(root).quarantined);
  let_children_go(engine, root);
}

TEST_CASE("a step that waits gives its locks back in its record, so a restart finds no conflict") {
  EngineWorld engine;
  engine.world.scripts["first"] = {
      .steps = 1,
      .run = [](JobRun& run) -> std::optional<Outcome> {
        const auto* answer = run.ctx.await<std::string>(
            [&](Completion<std::string> completion) { run.world.ask(std::move(completion)); });
        if (answer == nullptr) return Say::wait();
        return std::nullopt;
      },
      .locks = per_step()};
  engine.world.scripts["second"] = {
      .steps = 1,
      .run = [](JobRun&) -> std::optional<Outcome> { return Say::wait_for(1h); },
      .locks = LockSet().table("shop", "orders", LockMode::kExclusive)};
  engine.open();
  const ProcedureId first = engine.submit("first");
  const ProcedureId second = engine.submit("second");
  engine.run();
  REQUIRE(engine.describe(second).holds_locks);
  CHECK_FALSE(engine.describe(first).holds_locks);

  engine.crash_and_open();

  CHECK_FALSE(engine.describe(first).quarantined);
  CHECK_FALSE(engine.describe(second).quarantined);
  CHECK(engine.describe(second).holds_locks);
}

}  // namespace pv2::testing::step_scope_test
