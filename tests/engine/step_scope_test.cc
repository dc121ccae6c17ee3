// SPDX-License-Identifier: Apache-2.0
//
// Locks that are held per step: what they cost in records when nobody else wants them, and who
// comes next when somebody does. The rules are in docs/scheduling.md.

#include "support/engine_world.h"

namespace pv2::testing {
namespace {

LockSet per_step(LockMode mode = LockMode::kExclusive) {
  return LockSet().table("shop", "orders", mode).scope(LockScope::kStep);
}

}  // namespace

TEST_CASE("an N-step machine with locks per step makes N + 1 records when nobody waits for them") {
  EngineWorld engine;
  const auto steps = GENERATE(1U, 2U, 5U);
  engine.world.scripts["a"] = {.steps = steps, .locks = per_step()};
  engine.open();
  const std::size_t before = engine.faults().commits();
  engine.submit("a");
  engine.run_to_the_end();

  CHECK(engine.faults().commits() - before == steps + 1);
  CHECK(engine.executor().locks().empty());
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
  // b's three turns and a's second and third were waited for.
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

  CHECK(engine.executor().locks().empty());
  engine.world.answer_one("go on");
  engine.run_to_the_end();
  CHECK(engine.journal() == Entries{"do a.1", "do a.2"});
}

TEST_CASE("a lock that rides on the record of the step before is held again after a crash") {
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

}  // namespace pv2::testing
