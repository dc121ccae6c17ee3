// SPDX-License-Identifier: Apache-2.0
//
// The process dies before every write, so everything runs exactly twice and each restart makes one
// record more. The tests count the effects and the restarts, and check the end of each story. (Rows
// 9, 12, 13, 15 to 18, 36, 39.)

#include "support/engine_world.h"

namespace pv2::testing::crash_before_every_write_test {
namespace {

using namespace std::chrono_literals;

std::optional<Outcome> fails(JobRun& /*run*/) { return Say::fail("as it was told"); }

std::size_t count_beginning(const EngineWorld& engine, std::string_view beginning) {
  const Entries journal = engine.journal();
  return static_cast<std::size_t>(
      std::count_if(journal.begin(), journal.end(),
                    [&](const std::string& entry) { return entry.starts_with(beginning); }));
}

// Lets the process die before every write. Each life makes the record that the previous life lost,
// runs on, and dies before its next write. Returns the number of restarts until everything had
// ended.
std::size_t run_dying_before_every_write(EngineWorld& engine) {
  std::size_t restarts = 0;
  engine.faults().crash_before(engine.faults().commits() + 1, FaultStore::AfterCrash::kFail);
  engine.run();
  while (true) {
    engine.open();
    if (engine.executor().inspect().live_procedures() == 0) return restarts;
    REQUIRE(++restarts < 100);
    engine.faults().crash_before(engine.faults().commits() + 2, FaultStore::AfterCrash::kFail);
    engine.run();
    if (engine.executor().health().ok()) engine.run_to_the_end();  // nothing was left to lose
  }
}

}  // namespace

TEST_CASE("three levels killed at every write advance by one record with each restart") {
  EngineWorld engine;  // behaviour.md, row 9
  engine.world.scripts["a"] = {.steps = 2, .children = {"b"}};
  engine.world.scripts["b"] = {.steps = 2, .children = {"c"}};
  engine.world.scripts["c"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("a");
  const std::size_t restarts = run_dying_before_every_write(engine);

  CHECK(engine.result(id).status.ok());
  CHECK(count_beginning(engine, "do ") == 2 * 5);
  // a.1, a.2, b.1, b.2, c.1 and the end of a; open() writes the end of b, which needs no step.
  CHECK(restarts == 6);
}

TEST_CASE("the sum that the steps add up is the same with a crash in each step") {
  EngineWorld engine;  // behaviour.md, row 12
  const bool crash = GENERATE(false, true);
  engine.world.scripts["a"] = {.steps = 5, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 run.note += std::to_string(run.step * 2);
                                 return run.step == 5 ? std::optional(Say::done(run.note))
                                                      : usual();
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  if (crash) {
    CHECK(run_dying_before_every_write(engine) == 5);
  } else {
    engine.run();
  }
  CHECK(engine.result(id).result == "246810");
}

TEST_CASE(
    "a child of the last step runs before its parent ends, also if crashes run each step twice") {
  EngineWorld engine;  // behaviour.md, rows 15, 16
  const bool crash = GENERATE(false, true);
  engine.world.scripts["a"] = {.steps = 2, .children = {"b"}};
  engine.world.scripts["b"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("a");
  crash ? void(run_dying_before_every_write(engine)) : engine.run();

  CHECK(engine.result(id).status.ok());
  CHECK(count_beginning(engine, "do ") == (crash ? 6 : 3));
  CHECK(count_beginning(engine, "undo ") == 0);
}

TEST_CASE(
    "a failing child of the last step undoes the whole tree, also if crashes run each step twice") {
  EngineWorld engine;  // behaviour.md, rows 17, 18, 13
  const bool crash = GENERATE(false, true);
  engine.world.scripts["a"] = {.steps = 2, .children = {"b"}};
  engine.world.scripts["b"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 run.effect();
                                 return Say::fail("the child's own words");
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  crash ? void(run_dying_before_every_write(engine)) : engine.run();

  CHECK(engine.result(id).status.message() == "the child's own words");
  CHECK(count_beginning(engine, "do ") == (crash ? 6 : 3));
  CHECK(count_beginning(engine, "undo ") == (crash ? 6 : 3));
  engine.crash_and_open();
  CHECK(engine.result(id).status.message() == "the child's own words");
}

TEST_CASE(
    "a tree that is killed at every write needs one restart per record that follows another") {
  EngineWorld engine;  // behaviour.md, rows 36, 39
  const bool failing = GENERATE(false, true);
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun& run) {
                                 run.spawn("b");
                                 return usual();
                               }};
  engine.world.scripts["b"] = {.steps = 1};
  if (failing) engine.world.scripts["b"].run = fails;
  engine.open();
  const ProcedureId id = engine.submit("a");
  const std::size_t restarts = run_dying_before_every_write(engine);

  CHECK(engine.result(id).status.ok() == !failing);
  // a.1 and b.1; then the end of a, or the undo of b.1 and that of a.1, which is the end.
  CHECK(restarts == (failing ? 4 : 3));
}

}  // namespace pv2::testing::crash_before_every_write_test
