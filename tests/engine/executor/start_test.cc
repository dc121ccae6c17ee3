// SPDX-License-Identifier: Apache-2.0
//
// Delayed starts: durable, without locks until their time has come, and without an extra record.

#include "support/engine_world.h"

namespace pv2::testing::start_test {
namespace {

using namespace std::chrono_literals;

const auto kOrders = LockSet().table("shop", "orders", LockMode::kExclusive);

JobScript notes_time(LockSet locks = {}) {
  return {.steps = 2,
          .run = [](JobRun& run) -> std::optional<Outcome> {
            if (run.ctx.timed_out()) run.world.journal.note("timed out");
            return std::nullopt;
          },
          .locks = std::move(locks)};
}

}  // namespace

TEST_CASE(
    "a procedure with a delay takes its first step when that has passed, and makes N + 1 records") {
  EngineWorld engine;
  engine.world.scripts["a"] = notes_time();
  engine.open();
  const std::size_t before = engine.faults().commits();
  const ProcedureId id = engine.submit("a", {.delay = 10s});
  engine.run();
  CHECK(engine.describe(id).state == ProcedureState::kWaitingTimeout);
  CHECK(engine.executor().inspect().explain(id)->procedures[0].reasons[0].kind ==
        WaitReason::Kind::kTimer);
  engine.advance(10s - 1us);
  CHECK(engine.journal().empty());
  engine.advance(1us);
  CHECK(engine.journal() == Entries{"do a.1", "do a.2"});
  CHECK(engine.faults().commits() - before == 3);
  CHECK(engine.result(id).status.ok());
}

TEST_CASE("a start at a time waits for that time, and one in the past comes at once") {
  EngineWorld engine;
  engine.world.scripts["a"] = notes_time();
  engine.open();
  const WallTime now = engine.clock->wall_now();
  engine.submit("a", {.start_at = now + 1h});
  engine.submit("a", {.start_at = now - 1h});
  engine.submit("a", {.delay = 0s});
  engine.run();
  CHECK(engine.world.journal.count("do a.2") == 2);
  engine.advance(1h);
  CHECK(engine.world.journal.count("do a.2") == 3);

  const auto both =
      engine.executor().submit(Job(engine.world, "a"), {.delay = 1s, .start_at = now + 1h});
  CHECK(both.status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("after a restart a procedure waits for the rest of its delay, whatever the clock did") {
  EngineWorld engine;
  engine.world.scripts["a"] = notes_time();
  engine.open();
  engine.submit("a", {.delay = 10s});
  engine.run();
  engine.clock->advance(4s);
  SECTION("the clock is right") {
    engine.crash_and_open();
    engine.advance(6s - 1us);
    CHECK(engine.journal().empty());
    engine.advance(1us);
  }
  SECTION("the clock was set back by a year: the delay is at most what it was") {
    engine.clock->jump_wall(-24h * 365);
    engine.crash_and_open();
    engine.advance(10s - 1us);
    CHECK(engine.journal().empty());
    engine.advance(1us);
  }
  SECTION("the delay passes while the executor is down") {
    engine.clock->advance(1h);
    engine.crash_and_open();
    engine.run();
  }
  CHECK(engine.journal() == Entries{"do a.1", "do a.2"});
}

TEST_CASE("a delayed procedure holds no lock before its start, and then queues like any other") {
  EngineWorld engine;
  engine.world.scripts["later"] = notes_time(kOrders);
  engine.world.scripts["now"] = {.steps = 1, .locks = kOrders};
  engine.open();
  const ProcedureId later = engine.submit("later", {.delay = 10s});
  const ProcedureId now = engine.submit("now");
  engine.run();
  CHECK(engine.result(now).status.ok());
  CHECK(engine.executor().inspect().locks().empty());
  const bool crash = GENERATE(false, true);
  if (crash) engine.crash_and_open();
  engine.advance(10s);
  CHECK(engine.result(later).status.ok());
  CHECK(engine.executor().inspect().locks().empty());
}

TEST_CASE("a start that is ordered before its time has not timed out, and later waits may") {
  EngineWorld engine;
  engine.world.scripts["a"] = notes_time();
  const auto notes = engine.world.scripts["a"].run;
  engine.world.scripts["a"].run = [notes](JobRun& run) -> std::optional<Outcome> {
    notes(run);
    return run.step == 2 && !run.ctx.timed_out() ? std::optional(Say::wait_for(1h)) : std::nullopt;
  };
  engine.open();
  const ProcedureId id = engine.submit("a", {.delay = 10h});
  engine.run();
  REQUIRE(engine.executor().operate().retry_now(id, {.who = "anna", .why = "now"}).ok());
  if (GENERATE(false, true)) engine.crash_and_open();
  engine.run();
  CHECK(engine.journal() == Entries{"do a.1"});
  SECTION("its wait ends when its time has come") { engine.advance(1h); }
  SECTION("its wait ends by order") {
    REQUIRE(engine.executor().operate().retry_now(id, {.who = "anna", .why = "now"}).ok());
    engine.run();
  }
  CHECK(engine.journal() == Entries{"do a.1", "timed out", "do a.2"});
  CHECK(engine.result(id).status.ok());
}

TEST_CASE("a delayed procedure can be aborted, and none of its steps runs") {
  EngineWorld engine;
  engine.world.scripts["a"] = notes_time();
  engine.open();
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}, .delay = 1h});
  engine.run();
  const auto again = engine.executor().submit(Job(engine.world, "a"), {.nonce = {1, 1}});
  REQUIRE(again.ok());
  CHECK(again->id == id);
  CHECK(again->replayed);
  engine.executor().async().abort(id, {}, [](const Status&) {});
  engine.run();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.journal().empty());
}

}  // namespace pv2::testing::start_test
