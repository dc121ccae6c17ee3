// SPDX-License-Identifier: Apache-2.0
//
// The wall clock jumps, forward and back, at every point of a wait, with and without wakes and
// restarts. Within a run every duration is measured by the monotonic clock; over a restart a wait
// lasts the smaller of what the wall clock says and what was left of it when its record was made.

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "steps/backoff.h"
#include "support/engine_world.h"

namespace pv2::testing::clock_jump_test {
namespace {

using namespace std::chrono_literals;

// Waits an hour for eight answers. If `records`, each run changes a field and so makes a record.
JobScript waits_an_hour(bool records, bool in_undo) {
  const auto wait = [records](JobRun& run) -> std::optional<Outcome> {
    if (run.ctx.timed_out()) {
      run.world.journal.note("late");
      return std::nullopt;
    }
    if (records) run.note += "x";
    for (int i = 0; i < 8; ++i) {
      run.ctx.await<std::string>([&](auto completion) { run.world.ask(completion); });
    }
    return Say::wait_for(1h);
  };
  if (!in_undo) return {.steps = 1, .run = wait};
  return {.run = [](JobRun&) { return std::optional(Say::fail("to be undone")); }, .undo = wait};
}

bool has_ended(EngineWorld& engine) { return engine.world.journal.count("late") != 0; }

// Moves the clock on by minutes until the wait has ended, at most `most`. Returns how many.
int minutes_to_the_end(EngineWorld& engine, int most) {
  int minutes = 0;
  for (; minutes < most && engine.world.journal.count("late") == 0; ++minutes) engine.advance(1min);
  return minutes;
}

}  // namespace

TEST_CASE("a timed wait keeps its length wherever the wall clock jumps") {
  const auto jump = GENERATE(Duration(-24h), Duration(-2h), Duration(2h), Duration(24h));
  const int at = GENERATE(0, 1, 2, 5);  // tens of minutes before the jump
  const bool wakes = GENERATE(false, true);
  const bool records = GENERATE(false, true);
  const bool in_undo = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["a"] = waits_an_hour(records, in_undo);
  engine.open();
  engine.submit("a");
  engine.run();

  for (int i = 0; i < 6; ++i) {
    if (i == at) engine.clock->jump_wall(jump);
    if (wakes) engine.world.answer_one("an answer");
    engine.run();
    if (i == 5) {
      engine.advance(10min - 1us);
      CHECK_FALSE(has_ended(engine));
      engine.advance(1us);
    } else {
      engine.advance(10min);
      CHECK_FALSE(has_ended(engine));
    }
  }
  CHECK(engine.world.journal.count("late") == 1);
  CHECK(engine.executor().inspect().live_procedures() == 0);
}

TEST_CASE("a timed wait that is over is not waited again after a jump and a restart") {
  const bool in_undo = GENERATE(false, true);
  EngineWorld engine;
  bool is_over = false;
  int runs = 0;
  const auto wait = [&](JobRun& run) -> std::optional<Outcome> {
    ++runs;
    is_over = is_over || run.ctx.timed_out();
    if (!is_over) return Say::wait_for(1h);
    const auto* answer = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
    return answer == nullptr ? std::optional(Say::wait()) : usual();
  };
  engine.world.scripts["a"] = {.steps = 1, .run = wait};
  if (in_undo) {
    engine.world.scripts["a"] = {
        .run = [](JobRun&) { return std::optional(Say::fail("to be undone")); }, .undo = wait};
  }
  engine.open();
  engine.submit("a");
  engine.run();
  engine.advance(1h);
  REQUIRE(is_over);
  engine.clock->jump_wall(-3h);
  runs = 0;
  engine.crash_and_open();
  engine.run();

  CHECK(runs == 1);
}

TEST_CASE("a wall clock that is set back and repeated restarts keep no wait alive") {
  const int at = GENERATE(0, 1, 3, 5);
  const bool records = GENERATE(false, true);
  const bool in_undo = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["a"] = waits_an_hour(records, in_undo);
  engine.open();
  engine.submit("a");
  engine.run();

  int minutes = 0;
  for (int life = 0; life < 60 && engine.world.journal.count("late") == 0; ++life) {
    minutes += minutes_to_the_end(engine, 10);
    if (life == at) engine.clock->jump_wall(-24h);
    engine.crash_and_open();
    engine.run();
  }
  CHECK(minutes >= 60);  // the wait never ends early
  // The jump hides only the time that passed since the last record before it.
  CHECK(minutes <= 60 + (records ? 10 : 10 * (at + 1)));
}

TEST_CASE("a wall clock that is ahead ends no wait over a restart if a record followed the jump") {
  EngineWorld engine;
  engine.world.scripts["a"] = waits_an_hour(false, false);
  engine.open();
  engine.submit("a");
  engine.run();
  engine.clock->jump_wall(24h);
  engine.advance(10min);
  engine.world.answer_one("a wake, at which the deadline is recorded by the new clock");
  engine.run();
  engine.crash_and_open();
  engine.run();
  CHECK(minutes_to_the_end(engine, 100) == 50);
}

TEST_CASE("a jump of the wall clock moves no back-off and no delayed start") {
  const auto jump = GENERATE(Duration(-24h), Duration(24h));
  const bool by_time = GENERATE(false, true);
  EngineWorld engine;
  engine.retry = {.base = 10min, .cap = 10min, .jitter_percent = 0};
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.ctx.attempt() == 1) return Say::retry("not yet");
                                 return std::nullopt;
                               }};
  engine.world.scripts["later"] = {.steps = 1};
  engine.open();
  engine.submit("a");
  SubmitOptions put_off;
  by_time ? void(put_off.start_at = engine.clock->wall_now() + 10min) : void(put_off.delay = 10min);
  engine.submit("later", put_off);
  engine.run();
  engine.clock->jump_wall(jump);
  engine.run();
  engine.advance(10min - 1us);
  CHECK(engine.journal().empty());
  engine.advance(1us);
  CHECK(engine.world.journal.count("do a.1") == 1);
  CHECK(engine.world.journal.count("do later.1") == 1);
}

TEST_CASE("explain() says what is left by the monotonic clock") {
  const auto jump = GENERATE(Duration(-24h), Duration(24h));
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (!run.ctx.timed_out()) return Say::wait_for(1h);
                                 return std::nullopt;
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.clock->jump_wall(jump);
  engine.advance(20min);
  const Explanation why = *engine.executor().inspect().explain(id);
  REQUIRE(why.procedures.size() == 1);
  REQUIRE(why.procedures[0].reasons.size() == 1);
  CHECK(why.procedures[0].reasons[0].left == Duration(40min));
}

TEST_CASE("random() draws different numbers in every call and in every later life") {
  EngineWorld engine;
  std::vector<std::uint64_t> drawn;
  engine.world.scripts["a"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 drawn.push_back(run.ctx.random().next());
                                 return std::nullopt;
                               }};
  for (int life = 0; life < 3; ++life) {
    engine.open();
    engine.submit("a");
    engine.run();
    engine.submit("a");
    engine.run();
  }
  CHECK(std::set<std::uint64_t>(drawn.begin(), drawn.end()).size() == 6);

  // A second world with the same story draws the same numbers.
  const std::vector<std::uint64_t> before = std::exchange(drawn, {});
  EngineWorld again;
  again.world.scripts["a"] = engine.world.scripts["a"];
  for (int life = 0; life < 3; ++life) {
    again.open();
    again.submit("a");
    again.run();
    again.submit("a");
    again.run();
  }
  CHECK(drawn == before);
}

TEST_CASE("a back-off whose base is zero is zero at every attempt") {
  EngineWorld engine;
  engine.retry = {.base = Duration(0), .cap = 1h};
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.ctx.attempt() < 100) return Say::retry("again");
                                 return std::nullopt;
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.result(id).status.ok());
  Random random(1);
  CHECK(backoff_delay(engine.retry, UINT32_MAX, random) == Duration(0));
}

}  // namespace pv2::testing::clock_jump_test
