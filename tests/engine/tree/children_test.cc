// SPDX-License-Identifier: Apache-2.0
//
// Children begin when their parent's step is durable. The parent goes on when all have ended, sees
// how they ended, and covers them with its locks. (Rows 2, 11, 15, 16, 35, 48, 97, 98, 102, 123;
// X11 does not apply: a step that spawns cannot wait for time, next() waits for its children.)

#include "support/engine_world.h"

namespace pv2::testing::children_test {
namespace {

using namespace std::chrono_literals;

}  // namespace

TEST_CASE("children in the middle and in the last step all run, and get the next ids") {
  EngineWorld engine;  // behaviour.md, rows 2, 11, 15
  engine.world.scripts["a"] = {.steps = 2, .run = [](JobRun& run) {
                                 run.spawn("leaf " + std::to_string(run.step));
                                 return usual();
                               }};
  engine.world.scripts["leaf 1"] = engine.world.scripts["leaf 2"] = {.steps = 1};
  engine.open();
  const ProcedureId root = engine.submit("a");
  engine.executor().run_until_idle(1);
  REQUIRE(engine.executor().inspect().list().size() == 2);
  CHECK(engine.executor().inspect().list()[1].id.value == root.value + 1);
  CHECK(engine.executor().inspect().list()[1].parent == root);
  CHECK(engine.executor().inspect().list()[1].root == root);
  engine.run();

  CHECK(engine.journal() == Entries{"do a.1", "do leaf 1.1", "do a.2", "do leaf 2.1"});
  CHECK(engine.result(root).result == "a done");
}

TEST_CASE("a child is neither listed nor run before its parent's record is durable") {
  EngineWorld engine;  // behaviour.md, row 123
  engine.world.scripts["p"] = {.children = {"c"}};
  engine.world.scripts["c"] = {.steps = 1};
  engine.open();
  engine.faults().hold_commit(engine.faults().commits() + 3);
  engine.submit("p");
  engine.run();
  CHECK(engine.world.journal.count("do p.2") == 1);
  CHECK(engine.executor().inspect().list().size() == 1);
  CHECK(engine.world.journal.count("do c.1") == 0);
  engine.faults().release();
  engine.run();
  CHECK(engine.world.journal.count("do c.1") == 1);
}

TEST_CASE("a step sees how the children of the last spawning step ended, after a restart too") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.steps = 4, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 1) {
                                   run.spawn("x");
                                   run.spawn("y");
                                 }
                                 if (run.step == 2 || run.step == 3) {
                                   std::string all;
                                   for (const ChildOutcome& child : run.ctx.children()) {
                                     CHECK(child.type == Job::kType);
                                     CHECK(child.state == ProcedureState::kSuccess);
                                     CHECK(child.error.ok());
                                     all += std::string(child.result) + ";";
                                   }
                                   run.world.journal.note(run.label() + " saw " + all);
                                   if (run.step == 2) run.spawn("z");
                                 }
                                 return usual();
                               }};
  for (const char* child : {"x", "y", "z"}) engine.world.scripts[child] = {.steps = 1};
  const bool restart = GENERATE(false, true);
  engine.open();
  engine.submit("p");
  while (engine.executor().inspect().live_procedures() != 0) {
    engine.executor().run_until_idle(1);
    if (restart) engine.crash_and_open();
  }
  CHECK(engine.world.journal.count("p.2 saw x done;y done;") >= 1);
  CHECK(engine.world.journal.count("p.3 saw z done;") >= 1);
}

TEST_CASE("a parent that repeats its spawning step waits for each round of children") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 run.note += "x";
                                 if (run.note.size() > 3) return usual();
                                 run.world.journal.note("round " + run.note);
                                 run.spawn("c");
                                 run.spawn("c");
                                 return Say::again();
                               }};
  engine.world.scripts["c"] = {.steps = 1};
  engine.open();
  engine.submit("p");
  engine.run();
  CHECK(engine.journal() == Entries{"round x", "do c.1", "do c.1", "round xx", "do c.1", "do c.1",
                                    "round xxx", "do c.1", "do c.1", "do p.1"});
}

TEST_CASE("a thousand children join, and their owner is their parent's") {
  EngineWorld engine;
  engine.max_live_procedures = 5000;
  engine.world.scripts["p"] = {.children = std::vector<std::string>(1000, "c")};
  engine.world.scripts["c"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("p", {.owner = "alice"});
  engine.executor().run_until_idle(2);
  REQUIRE(engine.executor().inspect().live_procedures() == 1001);
  for (const ProcedureInfo& info : engine.executor().inspect().list()) CHECK(info.owner == "alice");
  engine.run();
  CHECK(engine.result(id).status.ok());
  CHECK(engine.world.journal.count("do c.1") == 1000);
}

TEST_CASE("only a root can be waited for and acknowledged") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"c"}};
  engine.world.scripts["c"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
    return value == nullptr ? std::optional(Say::wait()) : usual();
  }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId child{root.value + 1};
  CHECK(engine.executor().wait(child).status().code() == StatusCode::kInvalidArgument);
  CHECK(engine.executor().acknowledge(child).code() == StatusCode::kFailedPrecondition);
  while (engine.world.answer_one("go")) engine.run();
  CHECK(engine.executor().wait(child).status().code() == StatusCode::kExpired);
}

TEST_CASE(
    "descendants work under their ancestor's lock, and others wait until the root has ended") {
  EngineWorld engine;  // behaviour.md, rows 97, 98, 102, 103
  const auto table = LockSet().table("shop", "orders", LockMode::kExclusive);
  engine.world.scripts["p"] = {.children = {"c"}, .locks = table};
  engine.world.scripts["c"] = {.children = {"g"}, .locks = table};
  engine.world.scripts["g"] = {.steps = 1, .locks = table};
  engine.world.scripts["other"] = {.steps = 1, .locks = table};
  const bool restart = GENERATE(false, true);
  engine.open();
  engine.submit("p");
  engine.submit("other");
  while (engine.executor().inspect().live_procedures() != 0) {
    engine.executor().run_until_idle(1);
    if (restart) engine.crash_and_open();
  }
  const Entries journal = engine.journal();
  CHECK(std::find(journal.begin(), journal.end(), "do other.1") >
        std::find(journal.begin(), journal.end(), "do p.3"));
  CHECK(engine.world.journal.count("do g.1") >= 1);
}

TEST_CASE("a shared holder with the larger id goes on after a restart, and then the writer does") {
  EngineWorld engine;  // behaviour.md, row 112
  const auto lock = [](LockMode mode) { return LockSet().table("shop", "orders", mode); };
  const auto asks = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 1) return usual();
    const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
    return value == nullptr ? std::optional(Say::wait()) : usual();
  };
  engine.world.scripts["reader"] = {.run = asks, .locks = lock(LockMode::kShared)};
  engine.world.scripts["writer"] = {.locks = lock(LockMode::kExclusive)};
  engine.open();
  const ProcedureId first = engine.submit("reader");
  const ProcedureId writer = engine.submit("writer");
  engine.run();
  engine.world.answer_one("first");
  engine.run();
  REQUIRE(engine.result(first).status.ok());
  const ProcedureId second = engine.submit("reader");
  engine.run();
  engine.crash_and_open();
  engine.run();
  while (engine.world.answer_one("go")) engine.run();
  CHECK(engine.result(writer).status.ok());
  CHECK(engine.result(second).status.ok());
}

TEST_CASE("three nested procedures run once each, the outer ones before the inner ones") {
  EngineWorld engine;  // behaviour.md, row 2
  engine.world.scripts["a"] = {.steps = 2, .children = {"b"}};
  engine.world.scripts["b"] = {.steps = 2, .children = {"c"}};
  engine.world.scripts["c"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();

  CHECK(engine.journal() == Entries{"do a.1", "do a.2", "do b.1", "do b.2", "do c.1"});
  CHECK(engine.result(id).result == "a done");
}

TEST_CASE("a tree goes on after a crash between the last child's record and its parent's") {
  EngineWorld engine;  // behaviour.md, row 37
  engine.world.scripts["a"] = {.children = {"b", "b"}};
  engine.world.scripts["b"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.executor().run_until_idle(2);
  engine.faults().crash_after(engine.faults().commits() + 2, FaultStore::AfterCrash::kFail);
  engine.run();
  REQUIRE(engine.world.journal.count("do b.1") == 2);
  REQUIRE(engine.world.journal.count("do a.3") == 0);
  engine.open();
  CHECK(engine.describe(id).state == ProcedureState::kRunnable);
  engine.run();
  CHECK(engine.result(id).status.ok());
  CHECK(engine.world.journal.count("do b.1") == 2);
}

TEST_CASE("whichever of two siblings is recorded first, a crash between them tears nothing") {
  EngineWorld engine;  // behaviour.md, row 48
  const bool failing = GENERATE(false, true);
  engine.world.scripts["p"] = {.children = {"x", "y"}};
  engine.world.scripts["x"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 1) return usual();
    const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
    return value == nullptr ? std::optional(Say::wait()) : usual();
  }};
  engine.world.scripts["y"] = {.steps = 2};
  if (failing)
    engine.world.scripts["y"].run = [](JobRun& run) {
      return run.step == 2 ? std::optional(Say::fail("no")) : usual();
    };
  engine.open();
  const ProcedureId id = engine.submit("p");
  engine.executor().run_until_idle(4);  // the younger is recorded, the older still asks
  engine.crash_and_open();
  engine.run();
  while (engine.world.answer_one("go on")) engine.run();
  CHECK(engine.result(id).status.ok() == !failing);
  for (const std::string& line : engine.log_lines)
    CHECK_THAT(line, !ContainsSubstring("quarantined"));
}

}  // namespace pv2::testing::children_test
