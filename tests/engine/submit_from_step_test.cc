// SPDX-License-Identifier: Apache-2.0
//
// A step that submits an independent procedure: it exists exactly if the step's record does, has a
// life of its own, and, with a nonce, is submitted once however often the step runs.

#include "job_story.h"
#include "support/engine_world.h"

namespace pv2::testing {
namespace {

using namespace std::chrono_literals;

// Submits a job called "other" in step 2.
JobScript submits(SubmitOptions options = {}) {
  return {.run = [options](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 2) run.ctx.submit(Job(run.world, "other"), options);
    return std::nullopt;
  }};
}

}  // namespace

TEST_CASE("what a step submits is in its own record, and starts when that is durable") {
  EngineWorld engine;
  engine.world.scripts["a"] = submits();
  engine.world.scripts["other"] = {.steps = 2};
  engine.open();
  const std::size_t before = engine.faults().commits();
  const ProcedureId id = engine.submit("a", {.owner = "alice"});
  engine.faults().hold_commit(engine.faults().commits() + 2);  // step 1 passes, step 2 waits
  engine.run();
  CHECK(engine.executor().list().size() == 1);
  CHECK(engine.world.journal.count("do other.1") == 0);
  engine.faults().release();
  engine.executor().run_until_idle(1);
  const auto other = engine.executor().describe({id.value + 1});
  if (other.ok()) CHECK(other->owner == "alice");
  engine.run();
  CHECK(engine.result(id).status.ok());
  CHECK(engine.result({id.value + 1}).result == "other done");
  CHECK(engine.faults().commits() - before == 1 + 3 + 2);  // its insert costs no record
}

TEST_CASE("it lives on when the tree that submitted it is undone") {
  EngineWorld engine;
  engine.world.scripts["a"] = submits();
  const auto run = engine.world.scripts["a"].run;
  engine.world.scripts["a"].run = [run](JobRun& job) -> std::optional<Outcome> {
    if (job.step == 3) return Say::fail("no");
    return run(job);
  };
  engine.world.scripts["other"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.result({id.value + 1}).status.ok());
}

TEST_CASE("a step that fails, retries, throws or waits submits nothing") {
  EngineWorld engine;
  engine.retry = {.base = 1s, .cap = 1s, .jitter_percent = 0};
  const int what = GENERATE(0, 1, 2, 3);
  engine.world.scripts["a"] = {.steps = 1, .run = [what](JobRun& run) -> std::optional<Outcome> {
                                 if (run.ctx.attempt() == 2) return std::nullopt;
                                 run.ctx.submit(Job(run.world, "other"), {.nonce = {7, 7}});
                                 switch (what) {
                                   case 0:
                                     return Say::fail("no");
                                   case 1:
                                     return Say::retry("later");
                                   case 2:
                                     throw std::runtime_error("oops");
                                   default:
                                     return Say::wait_for(1h);
                                 }
                               }};
  engine.world.scripts["other"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.advance(1s);
  CHECK(engine.result(id).status.ok() == (what == 1));
  CHECK(engine.world.journal.count("do other.1") == 0);
  CHECK(engine.executor().live_procedures() == 0);
  const auto free = engine.executor().submit(Job(engine.world, "other"), {.nonce = {7, 7}});
  REQUIRE(free.ok());
  CHECK_FALSE(free->replayed);
}

TEST_CASE("with a nonce it is submitted once, whoever else submits it, before or after") {
  EngineWorld engine;
  engine.world.scripts["a"] = submits({.nonce = {7, 7}});
  engine.world.scripts["b"] = submits({.nonce = {7, 7}});
  engine.world.scripts["other"] = {.steps = 1};
  engine.world.scripts["else"] = {.steps = 1};
  engine.open();
  const ProcedureId a = engine.submit("a");
  const ProcedureId b = engine.submit("b");
  engine.run();
  CHECK(engine.result(a).status.ok());
  CHECK(engine.result(b).status.ok());
  CHECK(engine.world.journal.count("do other.1") == 1);
  const auto again = engine.executor().submit(Job(engine.world, "other"), {.nonce = {7, 7}});
  REQUIRE(again.ok());
  CHECK(again->replayed);

  engine.world.scripts["misuses"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    run.ctx.submit(Job(run.world, "else"), {.nonce = {7, 7}});
    return std::nullopt;
  }};
  const ProcedureId misuse = engine.submit("misuses");
  engine.run();
  CHECK(engine.result(misuse).status.code() == StatusCode::kKeyReused);
  CHECK(engine.world.journal.count("do else.1") == 0);
}

TEST_CASE("a duplicate that joins a submission of a step that is given up is told to try again") {
  EngineWorld engine;
  std::optional<Result<Submitted>> joined;
  engine.store_options.limits = {.batch_operations = 10, .batch_bytes = 1 << 20};
  engine.world.scripts["other"] = {.steps = 1};
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 run.ctx.submit(Job(run.world, "other"), {.nonce = {7, 7}});
                                 for (int i = 0; i < 20; ++i)
                                   run.ctx.put_row("row" + std::to_string(i), "x");  // too many
                                 return std::nullopt;
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.result(id).status.code() == StatusCode::kResourceExhausted);
  CHECK(engine.executor().live_procedures() == 0);
  CHECK(engine.executor().locks().empty());
  const auto free = engine.executor().submit(Job(engine.world, "other"), {.nonce = {7, 7}});
  REQUIRE(free.ok());
  CHECK_FALSE(free->replayed);
}

TEST_CASE("an undo that submits is parked, and an unknown type fails the step") {
  EngineWorld engine;
  engine.world.scripts["other"] = {.steps = 1};
  engine.world.scripts["a"] = {.steps = 2,
                               .run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 2) return Say::fail("no");
                                 return std::nullopt;
                               },
                               .undo = [](JobRun& run) -> std::optional<Outcome> {
                                 run.ctx.submit(Job(run.world, "other"));
                                 return std::nullopt;
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.describe(id).parked);
  CHECK(engine.world.journal.count("do other.1") == 0);
}

TEST_CASE("wherever the process dies, what a step submits is submitted once, whoever does it too") {
  JobPlot plot;
  plot.scripts["a"] = submits({.nonce = {9, 2}});  // the nonce of the second client
  plot.scripts["other"] = {.steps = 2};
  plot.roots = {{"a"}, {"other"}};
  crash_everywhere(plot, {.twice = true, .power_cuts = true});
}

}  // namespace pv2::testing
