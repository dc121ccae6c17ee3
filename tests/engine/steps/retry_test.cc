// SPDX-License-Identifier: Apache-2.0
//
// A retry runs the same step again from its last durable image, after a durable back-off that
// grows. An attempt that failed leaves nothing behind. (Rows 4, 22, 23; X2, X3.)

#include <algorithm>
#include <set>

#include "support/engine_world.h"

namespace pv2::testing::retry_test {
namespace {

using namespace std::chrono_literals;

JobScript fails_in(std::uint32_t step, std::uint32_t attempts) {
  return {.run = [step, attempts](JobRun& run) -> std::optional<Outcome> {
    if (run.step != step) return std::nullopt;
    run.world.journal.note("attempt " + std::to_string(run.ctx.attempt()));
    return run.ctx.attempt() <= attempts ? std::optional(Say::retry("not yet")) : std::nullopt;
  }};
}

JobScript undo_fails(std::uint32_t step, std::uint32_t attempts) {
  return {.run =
              [](JobRun& run) {
                return run.step == 3 ? std::optional(Say::fail("the cause")) : std::nullopt;
              },
          .undo = [step, attempts](JobRun& run) -> std::optional<Outcome> {
            if (run.step != step) return std::nullopt;
            run.world.journal.note("undo attempt " + std::to_string(run.ctx.attempt()));
            return run.ctx.attempt() <= attempts ? std::optional(Say::retry("cannot yet"))
                                                 : std::nullopt;
          }};
}

}  // namespace

TEST_CASE(
    "a back-off doubles up to its cap, with some jitter, and starts again with the next step") {
  EngineWorld engine;
  engine.retry = {.base = 1s, .cap = 5s, .jitter_percent = 10};
  engine.world.scripts["a"] = fails_in(2, 5);
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();

  std::uint32_t attempt = 1;
  for (const Duration delay : {1s, 2s, 4s, 5s, 5s}) {
    INFO("after attempt " << attempt);
    CHECK(engine.describe(id).attempt == attempt + 1);
    CHECK(engine.describe(id).error.message() == "not yet");
    engine.advance(delay - 1us);
    CHECK(engine.world.journal.count("attempt " + std::to_string(attempt + 1)) == 0);
    engine.advance(delay / 10 + 1us);
    CHECK(engine.world.journal.count("attempt " + std::to_string(attempt + 1)) == 1);
    ++attempt;
  }
  CHECK(engine.result(id).status.ok());
}

TEST_CASE(
    "an attempt that failed leaves nothing: fields, children, rows and questions are forgotten") {
  EngineWorld engine;
  const bool throws = GENERATE(false, true);
  engine.world.scripts["a"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 2 || run.ctx.attempt() > 1) {
      CHECK(run.note.empty());
      CHECK(*run.ctx.get_row("row") == std::nullopt);
      return std::nullopt;
    }
    run.note = "changed";
    run.ctx.put_row("row", "changed");
    CHECK(*run.ctx.get_row("row") == "changed");
    run.ctx.offload([] { return 1; });
    return Say::retry("no");
  }};
  engine.world.scripts["thrower"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
                                       if (run.step != 2) return std::nullopt;
                                       run.note = "changed";
                                       run.ctx.put_row("row", "changed");
                                       run.spawn("a");
                                       throw std::runtime_error("half way");
                                     },
                                     .undo = [](JobRun& run) -> std::optional<Outcome> {
                                       CHECK(run.note.empty());
                                       return std::nullopt;
                                     }};
  engine.open();
  const ProcedureId id = engine.submit(throws ? "thrower" : "a");
  engine.run_to_the_end();

  CHECK(engine.result(id).status.ok() == !throws);
  CHECK(engine.disk->get(Space::kHost, "row") == std::nullopt);
  if (throws) {
    CHECK_THAT(engine.result(id).status.to_string(), ContainsSubstring("half way"));
    CHECK(engine.journal() == Entries{"do thrower.1", "undo thrower.2", "undo thrower.1"});
  }
}

TEST_CASE("an effect key stays the same over retries and restarts, and every visit has its own") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
                                 run.world.journal.note(run.ctx.effect_key());
                                 if (run.step == 1 && run.ctx.attempt() <= 2)
                                   return Say::retry("again");
                                 if (run.step == 2 && run.note.size() < 2) {
                                   run.note += "x";
                                   return Say::again();
                                 }
                                 return run.step == 3 ? std::optional(Say::fail("back"))
                                                      : std::nullopt;
                               },
                               .undo = [](JobRun& run) -> std::optional<Outcome> {
                                 run.world.journal.note(run.ctx.effect_key());
                                 if (run.step == 1 && run.ctx.attempt() == 1)
                                   return Say::retry("again");
                                 return std::nullopt;
                               }};
  engine.open();
  engine.submit("a");
  engine.run();
  engine.crash_and_open();
  engine.run_to_the_end();

  std::map<std::string, int> times;
  for (const std::string& entry : engine.journal()) {
    if (entry.starts_with("p")) ++times[entry];
  }
  std::multiset<int> counts;
  for (const auto& [key, count] : times) counts.insert(count);
  // Step 1 runs three times, step 2 in three visits, step 3 once; then steps 3 and 2 are undone in
  // one attempt each, and step 1 in two.
  CHECK(counts == std::multiset<int>{1, 1, 1, 1, 1, 1, 2, 3});
}

TEST_CASE(
    "every visit of a step is undone under its own effect key, which a crash does not change") {
  EngineWorld engine;
  Entries keys;
  engine.world.scripts["a"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 3) return Say::fail("back");
                                 if (run.step == 1 || run.note == "twice") return std::nullopt;
                                 run.note = "twice";
                                 return Say::next(1);
                               },
                               .undo = [&keys](JobRun& run) -> std::optional<Outcome> {
                                 keys.push_back(run.ctx.effect_key());
                                 return run.ctx.attempt() == 1 ? std::optional(Say::retry("later"))
                                                               : std::nullopt;
                               }};
  engine.open();
  engine.submit("a");
  for (int i = 0; i < 8; ++i) {  // forward
    engine.executor().run_until_idle(1);
    if (!keys.empty()) break;
  }
  // In every life one undo, or one attempt at it, is recorded; the record after it is lost.
  for (int life = 0; life < 20 && engine.executor().inspect().live_procedures() != 0; ++life) {
    engine.faults().crash_before(engine.faults().commits() + 2, FaultStore::AfterCrash::kFail);
    engine.advance(10min);
    engine.advance(10min);
    engine.open();
  }

  CHECK(engine.executor().inspect().live_procedures() == 0);
  CHECK(keys.size() > 10);  // five undos are retried, and some records were lost
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  CHECK(keys.size() == 5);  // the undos of steps 3, 2, 1, 2, 1
  CHECK(std::set<std::string>(keys.begin(), keys.end()).size() == 5);
}

TEST_CASE("an undo that fails retries the same step, skips nothing, and keeps the cause") {
  EngineWorld engine;  // behaviour.md, row 4, X2
  engine.world.scripts["a"] = undo_fails(2, 2);
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run_to_the_end();

  CHECK(engine.journal() == Entries{"do a.1", "do a.2", "undo a.3", "undo attempt 1",
                                    "undo attempt 2", "undo attempt 3", "undo a.2", "undo a.1"});
  CHECK(engine.result(id).status.message() == "the cause");
}

TEST_CASE("the back-off of an undo ends at the same time with a restart as without one") {
  EngineWorld engine;
  engine.retry = {.base = 10s, .cap = 10s, .jitter_percent = 0};
  engine.world.scripts["a"] = undo_fails(2, 1);
  engine.open();
  engine.submit("a");
  engine.run();
  engine.advance(6s);
  engine.crash_and_open();
  engine.run();
  engine.advance(4s - 1us);
  CHECK(engine.world.journal.count("undo attempt 2") == 0);
  engine.advance(1us);
  CHECK(engine.world.journal.count("undo attempt 2") == 1);
  CHECK(engine.executor().inspect().live_procedures() == 0);
}

TEST_CASE(
    "an undo that keeps failing parks its tree with its locks, in plain sight, over restarts") {
  EngineWorld engine;  // X3
  engine.retry.undo_attempts = 3;
  engine.world.scripts["p"] = {.children = {"a", "bad"}};
  engine.world.scripts["a"] = undo_fails(2, 1000);
  engine.world.scripts["a"].run = {};
  engine.world.scripts["a"].locks = LockSet().table("shop", "orders", LockMode::kExclusive);
  engine.world.scripts["bad"] = {.steps = 5, .run = [](JobRun& run) {
                                   return run.step == 5 ? std::optional(Say::fail("the cause"))
                                                        : std::nullopt;
                                 }};
  engine.world.scripts["other"] = {};
  engine.open();
  const ProcedureId root = engine.submit("p");
  for (int i = 0; i < 50; ++i) engine.advance(10min);
  REQUIRE(engine.executor().inspect().live_procedures() == 3);
  const auto before = in_words(engine.executor().inspect().list());

  for (int life = 0; life < 3; ++life) {
    const auto listed = engine.executor().inspect().list();
    CHECK(listed[0].parked);
    CHECK(listed[1].parked);
    CHECK_FALSE(listed[2].parked);  // it was undone
    CHECK_THAT(listed[0].error.to_string(), ContainsSubstring("the cause; "));
    CHECK_THAT(listed[0].error.to_string(), ContainsSubstring("procedure 2 is parked: "));
    CHECK(listed[1].holds_locks);
    CHECK_THAT(listed[1].error.to_string(), ContainsSubstring("cannot undo step TWO"));
    CHECK_THAT(listed[1].error.to_string(), ContainsSubstring("cannot yet"));
    CHECK_FALSE(engine.executor().inspect().locks().empty());
    CHECK(in_words(listed) == before);
    CHECK(engine.world.journal.count("undo attempt 3") == 1);
    CHECK(engine.world.journal.count("undo attempt 4") == 0);
    CHECK(engine.world.journal.count("undo a.1") == 0);
    CHECK(engine.executor().wait(root, 0ms).status().code() == StatusCode::kDeadlineExceeded);
    const ProcedureId other = engine.submit("other");
    engine.run();
    CHECK(engine.result(other).status.ok());
    life % 2 == 0 ? engine.crash_and_open() : engine.open();
    engine.advance(1h);
  }
}

TEST_CASE("an undo that answers anything but undone, retry or wait parks its tree") {
  EngineWorld engine;
  const int answer = GENERATE(0, 1, 2, 3);
  engine.world.scripts["child"] = {};
  engine.world.scripts["a"] = {.run =
                                   [](JobRun& run) {
                                     return run.step == 3 ? std::optional(Say::fail("the cause"))
                                                          : std::nullopt;
                                   },
                               .undo = [answer](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step != 2) return std::nullopt;
                                 if (answer == 0) return Say::fail("cannot ever");
                                 if (answer == 1) return Say::next(1);
                                 if (answer == 2) return Say::again();
                                 run.spawn("child");
                                 return std::nullopt;
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.describe(id).parked);
  CHECK_THAT(engine.describe(id).error.to_string(), ContainsSubstring("TWO"));
  CHECK(engine.world.journal.count("undo a.1") == 0);
}

TEST_CASE("a long error is cut, not refused") {
  EngineWorld engine;
  engine.world.scripts["a"] = {
      .run = [](JobRun&) { return std::optional(Say::fail(std::string(100'000, 'x'))); }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.result(id).status.message().size() < 4096);
}

}  // namespace pv2::testing::retry_test
