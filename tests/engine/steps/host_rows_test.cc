// SPDX-License-Identifier: Apache-2.0
//
// Rows of the host become durable together with the record of the step that changed them, or not at
// all. (For prefixes that are bound to lock keys see row_bindings_test.cc.)

#include "support/engine_world.h"

namespace pv2::testing::host_rows_test {
namespace {

std::optional<std::string> row(EngineWorld& engine, std::string_view key) {
  return engine.disk->get(Space::kHost, key);
}

}  // namespace

TEST_CASE("a step reads durable rows and the rows that it wrote itself") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun& run) {
    if (run.step == 1) {
      CHECK(*run.ctx.get_row("k") == std::nullopt);
      run.ctx.put_row("k", "one");
      CHECK(*run.ctx.get_row("k") == "one");
      run.ctx.put_row("k", "two");
      CHECK(*run.ctx.get_row("k") == "two");
    } else if (run.step == 2) {
      CHECK(*run.ctx.get_row("k") == "two");
      run.ctx.erase_row("k");
      CHECK(*run.ctx.get_row("k") == std::nullopt);
      run.ctx.put_row("empty", "");
      CHECK(*run.ctx.get_row("empty") == "");
    }
    return usual();
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.executor().run_until_idle(1);
  CHECK(row(engine, "k") == "two");
  engine.run();
  CHECK(engine.result(id).status.ok());
  CHECK(row(engine, "k") == std::nullopt);
  CHECK(row(engine, "empty") == "");
}

TEST_CASE("rows are durable with their step and never before") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun& run) {
    run.ctx.put_row("step", std::to_string(run.step));
    return usual();
  }};
  engine.open();
  engine.submit("a");
  engine.faults().hold_commit(engine.faults().commits() + 2);
  engine.run();
  CHECK(engine.world.journal.count("do a.2") == 1);
  CHECK(row(engine, "step") == "1");
  engine.faults().release();
  engine.run();
  CHECK(row(engine, "step") == "3");
}

TEST_CASE("the rows that a failed step wrote are dropped, and its undo may write rows") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run =
                                   [](JobRun& run) {
                                     run.ctx.put_row("made by " + run.label(), "x");
                                     return run.step == 3 ? std::optional(Say::fail("no"))
                                                          : usual();
                                   },
                               .undo =
                                   [](JobRun& run) {
                                     run.ctx.erase_row("made by " + run.label());
                                     run.ctx.put_row("undone " + run.label(), "x");
                                     return usual();
                                   }};
  engine.open();
  engine.submit("a");
  engine.run();
  for (const char* step : {"a.1", "a.2", "a.3"}) {
    CHECK(row(engine, std::string("made by ") + step) == std::nullopt);
    CHECK(row(engine, std::string("undone ") + step) == "x");
  }
}

TEST_CASE("a root whose last step writes too much fails, and its record is not taken for an end") {
  EngineWorld engine;
  engine.store_options.limits = {.batch_operations = 64, .batch_bytes = 64 << 10};
  const int rows = GENERATE(62, 63);  // the batch also has the record and its date
  engine.world.scripts["a"] = {.steps = 2, .run = [&](JobRun& run) {
                                 for (int i = 0; run.step == 2 && i < rows; ++i) {
                                   run.ctx.put_row(std::to_string(i), "x");
                                 }
                                 return usual();
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  const ProcedureResult result = engine.result(id);
  CHECK(result.status.ok() == (rows == 62));
  // The header and state rows are updated in place, and moved to the results once.
  CHECK(engine.faults().rows(Space::kProcedure, RowOperation::kPut) == 0);
  CHECK(engine.faults().rows(Space::kEngine, RowOperation::kDelete) == 0);
  REQUIRE(engine.executor().acknowledge(id).ok());
  CHECK(engine.disk->rows(Space::kProcedure) + engine.disk->rows(Space::kResult) == 0);
  CHECK(engine.disk->rows(Space::kEngine, "kept:") == 0);
}

TEST_CASE("a wait writes the rows of its step, forward and in rollback") {
  EngineWorld engine;
  const bool undo = GENERATE(false, true);
  const auto waits = [](JobRun& run) -> std::optional<Outcome> {
    run.ctx.put_row("asked", "yes");
    const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
    return value == nullptr ? std::optional(Say::wait()) : usual();
  };
  if (undo) {
    engine.world.scripts["a"] = {.run = [](JobRun&) { return std::optional(Say::fail("no")); },
                                 .undo = waits};
  } else {
    engine.world.scripts["a"] = {.steps = 1, .run = waits};
  }
  engine.open();
  engine.submit("a");
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 1);
  CHECK(row(engine, "asked") == "yes");
}

TEST_CASE("rows of the host survive their procedure and its acknowledgement") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun& run) {
                                 run.ctx.put_row("kept", "by the host");
                                 return usual();
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  REQUIRE(engine.executor().acknowledge(id).ok());
  engine.crash_and_open();
  CHECK(row(engine, "kept") == "by the host");
  CHECK(engine.disk->rows() - engine.disk->rows(Space::kEngine) == 1);
}

}  // namespace pv2::testing::host_rows_test
