// SPDX-License-Identifier: Apache-2.0
//
// Waiting: for an answer, for the pool, for a deadline, for a turn. A procedure that waits costs no
// thread and keeps its locks; an answer is never lost and never reaches the wrong wait.
// (Rows 5, 24-28, 64; X4, X12.)

#include <latch>
#include <optional>
#include <thread>
#include <utility>

#include "support/engine_world.h"

namespace pv2::testing::wait_test {
namespace {

using namespace std::chrono_literals;

const std::string* ask(JobRun& run) {
  return run.ctx.await<std::string>([&](auto completion) { run.world.ask(completion); });
}

// A script whose step `step` asks, and waits as `waiting` says.
JobScript asks_in(std::uint32_t step, Outcome waiting) {
  return {.run = [step, waiting](JobRun& run) -> std::optional<Outcome> {
    if (run.step != step) return std::nullopt;
    run.world.journal.note(run.ctx.timed_out() ? "run late" : "run");
    if (run.ctx.timed_out()) return std::nullopt;
    const std::string* const value = ask(run);
    if (value == nullptr) return waiting;
    run.note = *value;
    run.world.journal.note("heard " + *value);
    return std::nullopt;
  }};
}

}  // namespace

TEST_CASE(
    "an answer reaches the step that waits, whether it comes before, during or after the wait") {
  EngineWorld engine;
  engine.world.scripts["before"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    const auto* value = run.ctx.await<int>([](const auto& completion) { completion(1); });
    return value != nullptr && *value == 1 ? std::nullopt : std::optional(Say::fail("not there"));
  }};
  engine.world.scripts["during"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (ask(run) != nullptr) return std::nullopt;
    run.world.answer_one("while the step still runs");
    return Say::wait();
  }};
  engine.world.scripts["after"] = asks_in(2, Say::wait());
  engine.open();
  const ProcedureId before = engine.submit("before");
  const ProcedureId during = engine.submit("during");
  engine.run();
  const ProcedureId after = engine.submit("after");
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 1);
  engine.world.answer_one("later");
  engine.run();

  for (const ProcedureId id : {before, during, after}) CHECK(engine.result(id).status.ok());
}

TEST_CASE("an answer that comes while the record of the wait is on its way is not lost") {
  EngineWorld engine;  // X4's kind
  engine.world.scripts["a"] = asks_in(1, Say::wait_for(1h));
  engine.open();
  engine.faults().hold_commit(engine.faults().commits() +
                              2);  // the insert passes, the wait is held
  engine.submit("a");
  engine.run();
  REQUIRE(engine.faults().held() == 1);
  engine.world.answer_one("early");
  engine.run();
  CHECK(engine.world.journal.count("heard early") == 0);
  engine.faults().release();
  engine.run();

  CHECK(engine.world.journal.count("heard early") == 1);
  CHECK(engine.executor().inspect().live_procedures() == 0);
}

TEST_CASE("a deadline that passes while its own record is on its way is not lost either") {
  EngineWorld engine;  // X4
  engine.world.scripts["a"] = asks_in(1, Say::wait_for(10s));
  engine.open();
  engine.faults().hold_commit(engine.faults().commits() + 2);
  engine.submit("a");
  engine.run();
  engine.advance(1h);
  CHECK(engine.world.journal.count("run late") == 0);
  engine.faults().release();
  engine.run();

  CHECK(engine.world.journal.count("run late") == 1);
  CHECK(engine.world.journal.count("run") == 1);
}

TEST_CASE("the answer or the deadline that comes first ends a wait, and the other is dropped") {
  EngineWorld engine;
  engine.world.scripts["a"] = asks_in(2, Say::wait_for(10s));
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();

  SECTION("the answer") {
    engine.world.answer_one("in time");
    engine.advance(1h);
    CHECK(engine.world.journal.count("heard in time") == 1);
    CHECK(engine.world.journal.count("run late") == 0);
  }
  SECTION("the deadline") {
    engine.advance(10s - 1us);
    CHECK(engine.world.journal.count("run late") == 0);
    engine.advance(1us);
    CHECK(engine.world.journal.count("run late") == 1);
    engine.world.answer_one("too late");
    engine.run();
    CHECK(engine.world.journal.count("heard too late") == 0);
  }
  CHECK(engine.result(id).status.ok());
  CHECK(engine.world.journal.count("do a.3") == 1);
}

TEST_CASE("an answer for a wait that is over does not end the next wait") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 1 && run.ctx.timed_out()) return std::nullopt;
    if (run.step == 3) return std::nullopt;
    run.world.journal.note("run " + run.label());
    const auto* value = ask(run);
    if (value == nullptr) return run.step == 1 ? Say::wait_for(1s) : Say::wait();
    run.world.journal.note(run.label() + " heard " + *value);
    return std::nullopt;
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.advance(2s);
  REQUIRE(engine.world.asked() == 2);
  engine.world.answer_one("for step 1");
  engine.run();
  CHECK(engine.world.journal.count("run a.2") == 1);
  engine.world.answer_one("for step 2");
  engine.run();

  CHECK(engine.world.journal.count("a.2 heard for step 2") == 1);
  CHECK(engine.result(id).status.ok());
}

TEST_CASE("a wake does not move the deadline of a wait") {
  EngineWorld engine;
  const bool undo = GENERATE(false, true);
  const auto waits_for_two = [](JobRun& run) -> std::optional<Outcome> {
    if (run.ctx.timed_out()) {
      run.world.journal.note("late");
      return std::nullopt;
    }
    const auto* one = ask(run);
    const auto* two = ask(run);
    return one == nullptr || two == nullptr ? std::optional(Say::wait_for(10s)) : std::nullopt;
  };
  if (undo) {
    engine.world.scripts["a"] = {
        .run = [](JobRun&) { return std::optional(Say::fail("to be undone")); },
        .undo = waits_for_two};
  } else {
    engine.world.scripts["a"] = {.steps = 1, .run = waits_for_two};
  }
  engine.open();
  engine.submit("a");
  engine.run();
  engine.advance(6s);
  engine.world.answer_one("the first of two");
  engine.run();
  CHECK(engine.world.journal.count("late") == 0);
  engine.advance(4s);

  CHECK(engine.world.journal.count("late") == 1);
  CHECK(engine.executor().inspect().live_procedures() == 0);
}

TEST_CASE("after a restart a waiting step asks again at once, and keeps its deadline") {
  EngineWorld engine;
  const bool undo = GENERATE(false, true);
  const auto script = asks_in(1, Say::wait_for(10s));
  if (undo) {
    engine.world.scripts["a"] = {
        .run = [](JobRun&) { return std::optional(Say::fail("to be undone")); },
        .undo = script.run};
  } else {
    engine.world.scripts["a"] = script;
  }
  engine.open();
  engine.submit("a");
  engine.run();
  REQUIRE(engine.world.asked() == 1);
  engine.advance(6s);
  engine.crash_and_open();
  engine.run();
  CHECK(engine.world.journal.count("run") == 2);
  REQUIRE(engine.world.asked() == 2);

  SECTION("the old answer goes nowhere, the new one arrives") {
    engine.world.answer_one("from the old life");
    engine.run();
    CHECK(engine.world.journal.count("heard from the old life") == 0);
    engine.world.answer_one("from the new life");
    engine.run();
    CHECK(engine.world.journal.count("heard from the new life") == 1);
  }
  SECTION("the deadline passes when it would have") {
    engine.advance(4s - 1us);
    CHECK(engine.world.journal.count("run late") == 0);
    engine.advance(1us);
    CHECK(engine.world.journal.count("run late") == 1);
  }
  engine.run_to_the_end();
}

TEST_CASE("a wait without a deadline ends the one before that had one, after a restart too") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (ask(run) == nullptr) return Say::wait_for(10s);
                                 if (ask(run) == nullptr) return Say::wait();
                                 return std::nullopt;
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.describe(id).state == ProcedureState::kWaitingTimeout);
  engine.world.answer_one("the first");
  engine.run();
  CHECK(engine.describe(id).state == ProcedureState::kRunnable);

  engine.crash_and_open();

  CHECK(engine.describe(id).state == ProcedureState::kRunnable);
  engine.run();
  engine.world.answer_one("from the old life");
  engine.world.answer_one("the first again");
  engine.run();
  engine.world.answer_one("the second");
  engine.run_to_the_end();
}

TEST_CASE("a jump of the wall clock makes no wait longer, and ends none early within one run") {
  EngineWorld engine;
  const auto jump = GENERATE(Duration(-24h), Duration(24h));
  const bool restart = GENERATE(false, true);
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (!run.ctx.timed_out()) return Say::wait_for(10s);
                                 return std::nullopt;
                               }};
  engine.open();
  engine.submit("a");
  engine.run();
  engine.clock->jump_wall(jump);
  if (restart) engine.crash_and_open();
  engine.run();
  // Only a restart has to believe the wall clock.
  CHECK(engine.executor().inspect().live_procedures() == (restart && jump > 0s ? 0 : 1));
  engine.advance(10s);
  CHECK(engine.executor().inspect().live_procedures() == 0);
}

TEST_CASE("a timeout of zero or less runs the step again") {
  EngineWorld engine;
  const auto timeout = GENERATE(Duration(0), Duration(-1h));
  engine.world.scripts["a"] = {.steps = 1, .run = [timeout](JobRun& run) {
                                 return run.ctx.timed_out() ? std::nullopt
                                                            : std::optional(Say::wait_for(timeout));
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.result(id).status.ok());
}

TEST_CASE("a step may wait for one deadline after the other, and each passes once") {
  EngineWorld engine;  // behaviour.md, rows 24-26
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.ctx.timed_out()) run.note += "x";
                                 run.world.journal.note("note " + run.note);
                                 if (run.note.size() == 3) return Say::fail("enough");
                                 return Say::wait_for(1s);
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  for (int i = 0; i < 3; ++i) {
    CHECK(engine.executor().inspect().live_procedures() == 1);
    engine.advance(1s);
  }
  CHECK(engine.result(id).status.message() == "enough");
  CHECK(engine.world.journal.count("note ") == 1);
  CHECK(engine.world.journal.count("note xx") == 1);
}

TEST_CASE("a wait for nothing is an error") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun&) { return std::optional(Say::wait()); }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK_THAT(engine.result(id).status.to_string(), ContainsSubstring("awaits nothing"));
}

TEST_CASE("a wait for what has all arrived is an error") {
  EngineWorld engine;
  Event open("the shop is open");
  engine.world.scripts["later"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    (void)ask(run);
    return Say::wait();
  }};
  engine.world.scripts["at once"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    (void)run.ctx.await<int>([](const auto& completion) { completion(1); });
    return Say::wait();
  }};
  engine.world.scripts["event"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
    (void)run.ctx.await(open);
    return Say::wait();
  }};
  engine.world.scripts["work"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    (void)run.ctx.offload([] {});
    return Say::wait();
  }};
  const std::string name = GENERATE(as<std::string>(), "later", "at once", "event", "work");
  engine.open();
  open.set();
  const ProcedureId id = engine.submit(name);
  engine.run();
  if (name == "later") {
    CHECK(engine.executor().inspect().live_procedures() == 1);
    engine.world.answer_one("no help");
    engine.run();
  }

  const Status why = engine.result(id).status;
  CHECK(why.code() == StatusCode::kInternal);
  CHECK_THAT(why.to_string(), ContainsSubstring("step ONE answered wait() but has got everything"));
}

TEST_CASE("a wait for what nobody can complete is an error") {
  EngineWorld engine;
  engine.world.scripts["dropped"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    (void)run.ctx.await<int>([](const auto& /*completion*/) {});
    return Say::wait();
  }};
  engine.world.scripts["never begun"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    try {
      (void)run.ctx.await<int>([](const auto& /*completion*/) { throw std::runtime_error("no"); });
    } catch (const std::runtime_error&) {  // NOLINT(bugprone-empty-catch): as a careless step does
    }
    return Say::wait();
  }};
  engine.world.scripts["dropped event"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    (void)run.ctx.await<Event>([](const auto& /*completion*/) {});
    return Say::wait();
  }};
  const std::string name = GENERATE(as<std::string>(), "dropped", "never begun", "dropped event");
  engine.open();
  const ProcedureId id = engine.submit(name);
  engine.run();

  const Status why = engine.result(id).status;
  CHECK(why.code() == StatusCode::kInternal);
  CHECK_THAT(why.to_string(), ContainsSubstring("awaits what nobody can complete any more"));
}

TEST_CASE("a step whose deadline has passed is told so again after the engine had no room for it") {
  EngineWorld engine;
  engine.max_live_procedures = 4;
  Event other;
  int timed_out = 0;
  engine.world.scripts["c"] = {.steps = 1};
  engine.world.scripts["other"] = waits_for(other);
  engine.world.scripts["a"].run = [&](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 1) return usual();
    if (!run.ctx.timed_out()) return Say::wait_for(24h);
    ++timed_out;
    for (int i = 0; i < 3; ++i) run.spawn("c");
    return Say::next(2);
  };
  engine.open();
  engine.submit("other");
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.advance(24h);
  CHECK(timed_out == 1);

  engine.advance(10min);
  CHECK(timed_out == 2);
  engine.advance(10min);  // a second back-off in a row
  CHECK(timed_out == 3);
  other.set();
  engine.run();
  engine.advance(10min);
  CHECK(timed_out == 4);
  CHECK(engine.result(id).status.ok());
}

TEST_CASE("a wait for an answer and for an event goes on while one of the two may come") {
  EngineWorld engine;
  Event open("the shop is open");
  engine.world.scripts["a"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 1) return usual();
    (void)run.ctx.await<int>([](const auto& /*completion*/) {});
    return run.ctx.await(open) ? usual() : std::optional(Say::wait());
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 1);
  open.set();
  engine.run();
  CHECK(engine.result(id).status.ok());
}

TEST_CASE("what could not be started is started again by the next run of its step") {
  EngineWorld engine;
  int starts = 0;
  engine.world.scripts["a"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 1) return usual();
    try {
      const int* const value = run.ctx.await<int>([&](const auto& completion) {
        if (++starts < 3) throw std::runtime_error("the line is busy");
        completion(7);
      });
      if (value != nullptr) return usual();
    } catch (const std::runtime_error&) {  // NOLINT(bugprone-empty-catch): it tries again
    }
    return Say::wait_for(1s);
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  for (int i = 0; i < 3; ++i) {
    engine.run();
    engine.advance(1s);
  }
  engine.run();
  CHECK(starts == 3);
  CHECK(engine.result(id).status.ok());
}

TEST_CASE("a wait for what has all arrived is an error, also while work of an earlier step runs") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 1) {
      (void)run.ctx.offload([&] {  // step 2 runs meanwhile; the end of this wakes no later step
        engine.run();
        engine.world.answer_one("no help");
        engine.run();
      });
      return std::nullopt;
    }
    (void)ask(run);
    return Say::wait();
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();

  CHECK_THAT(engine.result(id).status.to_string(), ContainsSubstring("has got everything"));
}

TEST_CASE("a step that waits for one of two answers, or for a signal, is woken by the other one") {
  EngineWorld engine;
  engine.world.scripts["two"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 1) return std::nullopt;
    const std::string* const first = ask(run);
    const std::string* const second = ask(run);
    return first != nullptr && second != nullptr ? std::nullopt : std::optional(Say::wait());
  }};
  engine.world.scripts["signal"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 1) return std::nullopt;
    const bool answered = ask(run) != nullptr;
    return run.ctx.signal("go") != nullptr && answered ? std::nullopt : std::optional(Say::wait());
  }};
  engine.open();
  const std::string name = GENERATE(as<std::string>(), "two", "signal");
  const ProcedureId id = engine.submit(name);
  engine.run();
  engine.world.answer_one("first");
  engine.run();
  REQUIRE(engine.executor().inspect().live_procedures() == 1);
  name == "two" ? void(engine.world.answer_one("second"))
                : void(engine.executor().signal(id, "go", ""));
  engine.run();

  CHECK(engine.result(id).status.ok());
}

TEST_CASE(
    "a step whose work ends while the executor stops may wait, and runs again in the next run") {
  EngineWorld engine;
  std::latch runs(1);
  std::latch work_may_end(1);
  std::latch step_may_end(1);
  engine.world.scripts["a"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 const auto* value = run.ctx.offload([&] { work_may_end.wait(); });
                                 if (!runs.try_wait()) runs.count_down();
                                 step_may_end.wait();
                                 return value == nullptr ? std::optional(Say::wait())
                                                         : std::nullopt;
                               }};
  auto executor = open_with_threads(engine, nullptr);
  const ProcedureId id = executor->submit(Job(engine.world, "a"))->id;
  runs.wait();
  std::thread stopper([&] { executor->stop(); });
  const auto reasons = [&] { return executor->inspect().explain(id)->procedures[0].reasons; };
  while (reasons()[0].kind != WaitReason::Kind::kStopped) std::this_thread::yield();
  work_may_end.count_down();
  while (reasons().size() != 1) std::this_thread::yield();  // until the work has ended
  step_may_end.count_down();
  stopper.join();

  executor.reset();
  engine.open();
  engine.run();
  CHECK(engine.result(id).status.to_string() == "OK");
}

TEST_CASE("offloaded work that has left its value but not ended may still wake its step") {
  EngineWorld engine;
  std::latch has_value(1);
  std::latch may_end(1);
  struct Callable {
    std::latch* has_value = nullptr;
    std::latch* may_end = nullptr;
    Callable(std::latch& has_value, std::latch& may_end)
        : has_value(&has_value), may_end(&may_end) {}
    Callable(Callable&& other) noexcept
        : has_value(std::exchange(other.has_value, nullptr)), may_end(other.may_end) {}
    Callable& operator=(Callable&&) = delete;
    ~Callable() {
      if (has_value == nullptr) return;
      has_value->count_down();
      may_end->wait();
    }
    void operator()() const {}
  };
  std::optional<Callable> callable(std::in_place, has_value, may_end);
  engine.world.scripts["a"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 run.world.journal.note("run");
                                 (void)ask(run);
                                 (void)run.ctx.offload(*std::move(callable));
                                 if (run.world.journal.count("run") == 3) return std::nullopt;
                                 return Say::wait();
                               }};
  const auto executor = open_with_threads(engine, nullptr);
  const ProcedureId id = executor->submit(Job(engine.world, "a"))->id;
  has_value.wait();
  engine.world.answer_one("everything has arrived");
  const auto reasons = [&] { return executor->inspect().explain(id)->procedures[0].reasons; };
  while (engine.world.journal.count("run") < 2 || reasons().size() != 1) std::this_thread::yield();

  CHECK(reasons()[0].kind == WaitReason::Kind::kOffload);
  may_end.count_down();
  CHECK(executor->wait(id)->status.to_string() == "OK");
}

TEST_CASE("a step that asks for other things when it runs again fails, and the error says so") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.world.asked() == 0) {
      ask(run);
      run.ctx.offload([] { return 1; });
    } else {
      run.ctx.await<int>([](const auto&) {});
    }
    return Say::wait();
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK_THAT(engine.result(id).status.to_string(), ContainsSubstring("same order"));
}

TEST_CASE("a wait adds nothing to undo, and a step that waited is undone once") {
  EngineWorld engine;  // X12
  engine.world.scripts["p"] = {.children = {"waits", "fails"}};
  engine.world.scripts["waits"] = asks_in(2, Say::wait());
  engine.world.scripts["fails"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 2) return std::nullopt;
    const auto* value = ask(run);
    return value == nullptr ? Say::wait() : Say::fail("answered with " + *value);
  }};
  engine.open();
  const ProcedureId id = engine.submit("p");
  engine.run();
  REQUIRE(engine.world.asked() == 2);
  // The oldest question is answered first: "waits" goes on, then "fails" is answered and fails.
  engine.world.answer_one("1");
  engine.run();
  while (engine.world.answer_one("2")) engine.run();

  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.world.journal.count("undo waits.1") == 1);
  CHECK(engine.world.journal.count("undo waits.2") == 1);
  CHECK(engine.world.journal.count("undo fails.2") == 1);
}

TEST_CASE(
    "a waiting procedure keeps its locks: others wait for the same key, and run with another") {
  EngineWorld engine;  // behaviour.md, row 27
  const auto table = [](const char* name) {
    return LockSet().table("shop", name, LockMode::kExclusive);
  };
  engine.world.scripts["holder"] = asks_in(2, Say::wait());
  engine.world.scripts["holder"].locks = table("orders");
  engine.world.scripts["same"] = {.locks = table("orders")};
  engine.world.scripts["other"] = {.locks = table("parcels")};
  engine.open();
  const ProcedureId holder = engine.submit("holder");
  engine.run();
  const ProcedureId same = engine.submit("same");
  const ProcedureId other = engine.submit("other");
  engine.run();

  CHECK(engine.executor().inspect().describe(other).status().code() ==
        StatusCode::kNotFound);  // it ended
  CHECK(engine.world.journal.count("do same.1") == 0);
  CHECK(engine.describe(holder).holds_locks);
  CHECK_FALSE(engine.describe(same).holds_locks);
  const auto locks = engine.executor().inspect().locks();
  const auto orders = std::find_if(locks.begin(), locks.end(), [](const LockInfo& lock) {
    return lock.key.name == table_key_name("shop", "orders");
  });
  REQUIRE(orders != locks.end());
  REQUIRE(orders->holders.size() == 1);
  CHECK(orders->holders[0].id == holder);
  REQUIRE(orders->waiters.size() == 1);
  CHECK(orders->waiters[0].id == same);

  engine.world.answer_one("go on");
  engine.run();
  CHECK(engine.result(same).status.ok());
}

TEST_CASE("a procedure that gives way a hundred times keeps its lock") {
  EngineWorld engine;  // behaviour.md, row 28
  const auto table = LockSet().table("shop", "orders", LockMode::kExclusive);
  engine.world.scripts["yields"] = {.steps = 1,
                                    .run = [](JobRun& run) -> std::optional<Outcome> {
                                      run.note += "x";
                                      if (run.note.size() <= 100) return Say::again();
                                      return std::nullopt;
                                    },
                                    .locks = table};
  engine.world.scripts["other"] = {.steps = 1, .locks = table};
  engine.world.scripts["free"] = {.steps = 1};
  engine.open();
  engine.submit("yields");
  engine.submit("other");
  engine.submit("free");
  engine.run();

  const Entries journal = engine.journal();
  CHECK(journal == Entries{"do free.1", "do yields.1", "do other.1"});
}

TEST_CASE("a lock per step is given back while its procedure waits, and taken again") {
  EngineWorld engine;
  auto locks = LockSet().table("shop", "orders", LockMode::kExclusive);
  locks.scope(LockScope::kStep);
  engine.world.scripts["a"] = asks_in(2, Say::wait_for(1h));
  engine.world.scripts["a"].locks = locks;
  engine.world.scripts["b"] = {.locks = locks};
  engine.open();
  const ProcedureId a = engine.submit("a");
  engine.run();
  const ProcedureId b = engine.submit("b");
  engine.run();
  CHECK(engine.result(b).status.ok());
  engine.world.answer_one("now");
  engine.run();
  CHECK(engine.result(a).status.ok());
  CHECK(engine.executor().inspect().locks().empty());
}

namespace {

// Waits for one answer. One of its members is a field, the other is not.
class Sleeper final : public Procedure {
 public:
  static constexpr std::string_view kType = "test.Sleeper";
  explicit Sleeper(World& world) : world_(world) { ++alive; }
  Sleeper(const Sleeper& other) : Procedure(other), world_(other.world_) { ++alive; }
  ~Sleeper() override { --alive; }
  void fields(auto& f) { f(1, "field", field_); }

  Outcome execute(StepContext& ctx) override {
    const auto* answer =
        ctx.await<std::string>([this](auto completion) { world_.ask(std::move(completion)); });
    if (answer != nullptr) return done(field_ + ", " + (member_.empty() ? "gone" : member_));
    field_ = "kept";
    member_ = "kept too";
    return wait();
  }

  static inline int alive = 0;

 private:
  World& world_;
  std::string field_;
  std::string member_;
};

}  // namespace

TEST_CASE("while a procedure waits its fields are kept and its object is not") {
  World world;
  ExecutorOptions options;
  options.store = memory();
  options.workers = 0;
  options.registry.add<Sleeper>(world);
  auto executor = ProcedureExecutor::open(std::move(options)).value();
  std::optional<ProcedureId> id;
  executor->async().submit(Sleeper(world), {}, [&](const Result<Submitted>& s) { id = s->id; });
  executor->run_until_idle();
  REQUIRE(id.has_value());
  CHECK(executor->inspect().live_procedures() == 1);
  CHECK(Sleeper::alive == 0);

  world.answer_one("now");
  executor->run_until_idle();

  std::string result;
  executor->async().wait(*id, [&](const Result<ProcedureResult>& r) { result = r->result; });
  executor->run_until_idle();
  CHECK(result == "kept, gone");
  CHECK(Sleeper::alive == 0);
}

TEST_CASE("a step that fails at its deadline fails no earlier, and its tree is undone") {
  EngineWorld engine;  // behaviour.md, rows 5, 6
  const bool final_child = GENERATE(true, false);
  engine.world.scripts["child"] = {.steps = 1};
  engine.world.scripts["a"] = {
      .steps = 2, .run = [final_child](JobRun& run) -> std::optional<Outcome> {
        if (run.step == 1) {
          final_child ? run.ctx.spawn(FinalJob(run.world, "child")) : run.spawn("child");
          return std::nullopt;
        }
        if (!run.ctx.timed_out()) return Say::wait_for(5s);
        return Say::fail(Status(StatusCode::kDeadlineExceeded, "nobody came"));
      }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.advance(5s - 1us);
  CHECK(engine.executor().inspect().live_procedures() == 2);
  engine.advance(1us);

  CHECK(engine.result(id).status == Status(StatusCode::kDeadlineExceeded, "nobody came"));
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.world.journal.count("do child.1") == 1);
  CHECK(engine.world.journal.count("undo child.1") == (final_child ? 0 : 1));
  CHECK(engine.world.journal.count("undo a.1") == 1);
  CHECK(engine.world.journal.count("undo a.2") == 1);
}

}  // namespace pv2::testing::wait_test
