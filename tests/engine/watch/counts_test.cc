// SPDX-License-Identifier: Apache-2.0
//
// The counters of a run: a procedure counts once when it is durable, and once when its tree has
// ended. (Rows 56 to 60.)

#include "support/engine_world.h"

namespace pv2::testing::counts_test {
namespace {

// "type: submitted, succeeded, undone".
Entries counted(const ProcedureExecutor& executor) {
  Entries entries;
  for (const TypeCounts& counts : executor.inspect().counts()) {
    entries.push_back(counts.type + ": " + std::to_string(counts.submitted) + ", " +
                      std::to_string(counts.succeeded) + ", " + std::to_string(counts.undone));
  }
  return entries;
}

}  // namespace

TEST_CASE("a procedure is counted once when it is durable and once when it has ended") {
  EngineWorld engine;  // behaviour.md, row 56
  engine.world.scripts["a"] = {};
  ProcedureExecutor& executor = engine.open();
  CHECK(counted(executor).empty());
  engine.faults().hold_commit(engine.faults().commits() + 1);
  executor.async().submit(Job(engine.world, "a"), {.nonce = {1, 1}}, [](const auto&) {});
  engine.run();
  CHECK(counted(executor).empty());
  engine.faults().release();
  executor.run_until_idle(1);
  CHECK(counted(executor) == Entries{"test.Job: 1, 0, 0"});
  engine.run();
  CHECK(counted(executor) == Entries{"test.Job: 1, 1, 0"});

  engine.submit("a", {.nonce = {1, 1}});  // a duplicate does not count
  engine.run();
  CHECK(counted(executor) == Entries{"test.Job: 1, 1, 0"});
}

TEST_CASE("a procedure that fails is counted when it is undone, however often an undo was tried") {
  EngineWorld engine;  // behaviour.md, row 57
  engine.world.scripts["a"] = {
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .undo =
          [](JobRun& run) {
            return run.ctx.attempt() == 1 ? std::optional(Say::retry("not yet")) : usual();
          }};
  ProcedureExecutor& executor = engine.open();
  engine.submit("a");
  engine.run();
  CHECK(counted(executor) == Entries{"test.Job: 1, 0, 0"});
  engine.run_to_the_end();
  CHECK(counted(executor) == Entries{"test.Job: 1, 0, 1"});
}

TEST_CASE("giving way, waiting and retrying are not counted") {
  EngineWorld engine;  // behaviour.md, rows 58, 59
  const bool fails = GENERATE(false, true);
  engine.world.scripts["a"] = {.run = [fails](JobRun& run) -> std::optional<Outcome> {
    run.note += "x";
    if (run.step == 1 && run.note.size() < 5) return Say::again();
    if (run.step == 2 && run.ctx.attempt() < 3) return Say::retry("not yet");
    if (run.step == 3 && !run.ctx.timed_out()) return Say::wait_for(std::chrono::seconds(1));
    return run.step == 3 && fails ? std::optional(Say::fail("no")) : usual();
  }};
  ProcedureExecutor& executor = engine.open();
  engine.submit("a");
  engine.run_to_the_end();
  CHECK(counted(executor) == Entries{fails ? "test.Job: 1, 0, 1" : "test.Job: 1, 1, 0"});
}

TEST_CASE("a tree whose third of ten children fails counts eleven submitted and eleven undone") {
  EngineWorld engine;  // behaviour.md, row 60
  engine.world.scripts["p"] = {.children = std::vector<std::string>(10, "c")};
  engine.world.scripts["p"].children[2] = "bad";
  engine.world.scripts["c"] = {.steps = 2};
  engine.world.scripts["bad"] = {.steps = 2, .run = [](JobRun& run) {
                                   return run.step == 2 ? std::optional(Say::fail("no")) : usual();
                                 }};
  ProcedureExecutor& executor = engine.open();
  engine.submit("p");
  engine.run();
  CHECK(counted(executor) == Entries{"test.Job: 11, 0, 11"});
}

TEST_CASE("a loaded procedure is counted at its end, each type by itself") {
  EngineWorld engine;
  engine.world.scripts["a"] = {};
  engine.world.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) run.ctx.spawn(FinalJob(run.world, "a"));
    return usual();
  }};
  engine.open();
  engine.submit("p");
  engine.executor().run_until_idle(2);
  ProcedureExecutor& executor = engine.crash_and_open();
  engine.submit("a");
  engine.run();
  CHECK(counted(executor) == Entries{"test.Job: 1, 2, 0", "test.FinalJob: 0, 1, 0"});
}

}  // namespace pv2::testing::counts_test
