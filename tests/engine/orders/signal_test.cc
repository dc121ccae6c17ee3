// SPDX-License-Identifier: Apache-2.0
//
// Durable signals are kept in their order until a step consumes them. A run that was not recorded
// consumes none, and none is lost between a step's look and its wait. (X16's durable events;
// failures F4, F5, F27.)

#include <pv2/store/noop_procedure_store.h>

#include <thread>

#include "model/looks.h"
#include "records/row_keys.h"
#include "support/engine_world.h"
#include "support/job_story.h"
#include "support/rows_in_store.h"

namespace pv2::testing::signal_test {
namespace {

using namespace std::chrono_literals;

// Step 2 takes a signal "go" and writes down its payload.
JobScript taking_one() {
  return {.run = [](JobRun& run) {
    if (run.step != 2) return usual();
    const std::string* const got = run.ctx.signal("go");
    if (got == nullptr) return std::optional(Say::wait());
    run.note = *got;
    run.world.journal.note("got " + *got);
    return usual();
  }};
}

}  // namespace

TEST_CASE("a signal wakes the step that waits for it, and is consumed with its record") {
  EngineWorld engine;
  engine.world.scripts["a"] = taking_one();
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.executor().signal(id, "other", "no").ok());
  engine.run();
  CHECK(engine.world.journal.count("got go") == 0);
  CHECK(engine.executor().signal(id, "go", "left").ok());
  CHECK(rows_in_store(engine, RowKind::kInbox) == 2);
  engine.executor().run_until_idle(1);

  CHECK(engine.world.journal.count("got left") == 1);
  CHECK(rows_in_store(engine, RowKind::kInbox) == 1);  // "other", which nobody asked for
  engine.run();
  CHECK(engine.result(id).status.ok());
  CHECK(rows_in_store(engine, RowKind::kInbox) == 0);
}

TEST_CASE("a signal that comes before the step asks is kept, over a crash too") {
  EngineWorld engine;
  const bool crash = GENERATE(false, true);
  engine.world.scripts["a"] = taking_one();
  engine.open();
  const ProcedureId id = engine.submit("a");
  CHECK(engine.executor().signal(id, "go", "early").ok());
  if (crash) engine.crash_and_open();
  engine.run();

  CHECK(engine.result(id).status.ok());
  CHECK(engine.world.journal.count("got early") == 1);
}

TEST_CASE("signals of one name come in their order, one per call, also over crashes") {
  EngineWorld engine;
  const bool crash = GENERATE(false, true);
  engine.world.scripts["a"] = {.run = [](JobRun& run) {
    if (run.step != 2) return usual();
    const std::string* const first = run.ctx.signal("go");
    const std::string* const second = run.ctx.signal("go");
    const std::string* const stop = run.ctx.signal("stop");
    if (stop != nullptr) return usual();
    if (first == nullptr || second == nullptr) return std::optional(Say::wait());
    run.world.journal.note("got " + *first + *second);
    return std::optional(Say::again());
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  for (const char* payload : {"1", "2", "3", "4", "5"}) {
    REQUIRE(engine.executor().signal(id, "go", payload).ok());
    if (crash) engine.crash_and_open();
    engine.run();
  }
  REQUIRE(engine.executor().signal(id, "stop").ok());
  engine.run();

  CHECK(engine.world.journal.count("got 12") == 1);
  CHECK(engine.world.journal.count("got 34") == 1);
  CHECK(engine.result(id).status.ok());
  CHECK(rows_in_store(engine, RowKind::kInbox) == 0);
}

TEST_CASE("a step that fails for now, or is lost in a crash, gets the same signal again") {
  EngineWorld engine;
  const bool crash = GENERATE(false, true);
  engine.world.scripts["a"] = {.run = [crash](JobRun& run) {
    if (run.step != 2) return usual();
    const std::string* const got = run.ctx.signal("go");
    if (got == nullptr) return std::optional(Say::wait());
    run.world.journal.note("got " + *got);
    if (!crash && run.ctx.attempt() < 3) return std::optional(Say::retry("not now"));
    return usual();
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  REQUIRE(engine.executor().signal(id, "go", "1").ok());
  REQUIRE(engine.executor().signal(id, "go", "2").ok());
  if (crash) {
    engine.faults().crash_before(engine.faults().commits() + 1, FaultStore::AfterCrash::kFail);
    engine.run();
    CHECK(engine.world.journal.count("got 1") == 1);
    engine.open();
  }
  engine.run_to_the_end();

  CHECK(engine.world.journal.count("got 1") == (crash ? 2 : 3));
  CHECK(engine.world.journal.count("got 2") == 0);
  CHECK(engine.result(id).status.ok());
}

TEST_CASE("a signal ends no back-off and no wait for children") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun& run) {
    if (run.step != 2) return usual();
    run.world.journal.note("run " + std::to_string(run.ctx.attempt()));
    const std::string* const got = run.ctx.signal("go");
    return got == nullptr ? std::optional(Say::retry("not yet")) : usual();
  }};
  engine.world.scripts["p"] = {.children = {"c"}};
  engine.world.scripts["c"] = {.steps = 1, .run = [](JobRun& run) {
                                 return run.ctx.timed_out() ? usual()
                                                            : std::optional(Say::wait_for(1h));
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  const ProcedureId parent = engine.submit("p");
  engine.run();
  REQUIRE(engine.executor().signal(id, "go").ok());
  REQUIRE(engine.executor().signal(parent, "go").ok());
  engine.run();
  CHECK(engine.world.journal.count("run 2") == 0);
  CHECK(engine.describe(parent).state == ProcedureState::kWaiting);
  engine.run_to_the_end();

  CHECK(engine.world.journal.count("run 1") == 1);
  CHECK(engine.world.journal.count("run 2") == 1);
  CHECK(engine.result(id).status.ok());
  CHECK(engine.result(parent).status.ok());
  CHECK(rows_in_store(engine, RowKind::kInbox) == 0);
}

TEST_CASE(
    "a wait names signals, completions and a deadline at once, and whichever comes first ends it") {
  EngineWorld engine;
  const auto what = GENERATE(0, 1, 2);
  const bool crash = GENERATE(false, true);
  engine.world.scripts["a"] = {.run = [](JobRun& run) {
    if (run.step != 2) return usual();
    const auto* answer = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
    const std::string* const got = run.ctx.signal("go");
    if (answer == nullptr && got == nullptr && !run.ctx.timed_out()) {
      return std::optional(Say::wait_for(1h));
    }
    run.world.journal.note(answer != nullptr ? "answer" : got != nullptr ? "signal" : "deadline");
    return usual();
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.advance(30min);
  if (crash) engine.crash_and_open();
  engine.run();
  if (what == 0) CHECK(engine.executor().signal(id, "go").ok());
  if (what == 1) {
    while (engine.world.answer_one("yes")) engine.run();
  }
  if (what == 2) engine.advance(30min);
  engine.run();

  const char* const words[] = {"signal", "answer", "deadline"};
  CHECK(engine.world.journal.count(words[what]) == 1);
  CHECK(engine.result(id).status.ok());
}

TEST_CASE("a step that begins to wait for a signal in a timed wait gets it after a crash at once") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun& run) {
    if (run.step != 2) return usual();
    // It first waits for an answer or the deadline; when it has the answer, for a signal too.
    const auto* answer = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
    if (answer == nullptr && run.note != "at 2 asked") {
      return std::optional(Say::wait_for(1h));
    }
    run.note = "at 2 asked";
    const std::string* const got = run.ctx.signal("go");
    return got == nullptr ? std::optional(Say::wait_for(1h)) : usual();
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  REQUIRE(engine.world.answer_one("yes"));
  engine.run();
  CHECK(engine.executor().signal(id, "go").ok());
  engine.crash_and_open();
  engine.run();
  CHECK(engine.result(id).status.ok());
}

TEST_CASE("a signal that is published while its procedure is in flight is not lost") {
  EngineWorld engine;  // F4, F5
  engine.world.scripts["a"] = taking_one();
  engine.world.scripts["a"].locks = LockSet().table("shop", "orders", LockMode::kExclusive);
  if (GENERATE(false, true)) engine.world.scripts["a"].locks.scope(LockScope::kStep);
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.executor().run_until_idle(1);
  // The step finds no signal and waits. The signal is committed before the record of that wait,
  // which has a record because a field changes.
  Status answer(StatusCode::kInternal, "not answered");
  engine.world.scripts["a"].run = [&](JobRun& run) {
    if (run.step != 2) return usual();
    const std::string* const got = run.ctx.signal("go");
    if (got != nullptr) return usual();
    run.note = "waits";
    engine.executor().async().signal(run.ctx.id(), "go", {},
                                     [&](const Status& status) { answer = status; });
    return std::optional(Say::wait());
  };
  engine.run();

  CHECK(answer.ok());
  CHECK(engine.result(id).status.ok());
}

TEST_CASE("a signal to a succeeded member that is being undone is kept over a crash") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"good", "bad"}};
  engine.world.scripts["good"] = {
      .undo =
          [](JobRun& run) {
            const std::string* const got = run.ctx.signal("undo");
            if (got == nullptr) return std::optional(Say::wait());
            run.world.journal.note("got " + *got);
            return usual();
          },
  };
  engine.world.scripts["bad"] = {.steps = 5, .run = [](JobRun& run) {
                                   return run.step == 5 ? std::optional(Say::fail("no")) : usual();
                                 }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId good = engine.executor().inspect().list()[1].id;
  REQUIRE(engine.describe(good).state == ProcedureState::kFailed);
  REQUIRE(engine.executor().signal(good, "undo", "1").ok());
  engine.crash_and_open();
  for (const char* payload : {"2", "3"}) {
    REQUIRE(engine.executor().signal(good, "undo", payload).ok());
    engine.run();
  }

  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
  for (const char* got : {"got 1", "got 2", "got 3"}) CHECK(engine.world.journal.count(got) == 1);
  CHECK(rows_in_store(engine, RowKind::kInbox) == 0);
}

TEST_CASE("a signal that is durable after a success and an abort is kept for the undo") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"good", "slow"}};
  engine.world.scripts["good"] = {
      .steps = 1,
      .undo =
          [](JobRun& run) {
            const std::string* const got = run.ctx.signal("undo");
            if (got == nullptr) return std::optional(Say::wait());
            run.world.journal.note("got " + *got);
            return usual();
          },
  };
  engine.world.scripts["slow"] = {.run = [](JobRun&) { return std::optional(Say::wait_for(1h)); }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.executor().run_until_idle(2);
  REQUIRE(engine.executor().inspect().list().size() == 3);
  const ProcedureId good = engine.executor().inspect().list()[1].id;
  engine.faults().hold_commit(engine.faults().commits() + 1);
  engine.run();  // the success of "good" is on its way
  engine.executor().async().abort(root, {}, [](const Status&) {});
  engine.executor().async().signal(good, "undo", "1", [](const Status&) {});
  engine.faults().release();
  engine.store().pump();
  engine.crash_and_open();
  engine.run();

  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
  CHECK(engine.world.journal.count("got 1") >= 1);
  CHECK(rows_in_store(engine, RowKind::kInbox) == 0);
}

TEST_CASE(
    "a signal that is durable together with a wait that gives its locks back ends that wait") {
  EngineWorld engine;
  engine.world.scripts["a"] = taking_one();
  engine.world.scripts["a"].locks =
      LockSet().table("shop", "orders", LockMode::kExclusive).scope(LockScope::kStep);
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.executor().run_until_idle(1);
  engine.faults().hold_commit(engine.faults().commits() + 1);
  engine.run();  // it waits, and its record is held
  engine.executor().async().signal(id, "go", "early", [](const Status&) {});
  REQUIRE(engine.faults().held() == 2);
  engine.faults().release();
  engine.run();

  CHECK(engine.world.journal.count("got early") == 1);
  CHECK(engine.result(id).status.ok());
}

TEST_CASE("an undo may wait for a signal, and consumes it") {
  EngineWorld engine;
  const bool crash = GENERATE(false, true);
  engine.world.scripts["a"] = {
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .undo =
          [](JobRun& run) {
            if (run.step != 2) return usual();
            const std::string* const got = run.ctx.signal("undo");
            return got == nullptr ? std::optional(Say::wait()) : usual();
          }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  if (crash) engine.crash_and_open();
  CHECK(engine.executor().signal(id, "undo").ok());
  engine.run();

  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.world.journal.count("undo a.1") == 1);
  CHECK(rows_in_store(engine, RowKind::kInbox) == 0);
}

TEST_CASE(
    "a signal to a child reaches it, and signals that it never takes are deleted with the tree") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"c"}};
  engine.world.scripts["c"] = taking_one();
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId child{root.value + 1};
  CHECK(engine.executor().signal(child, "go", "down").ok());
  CHECK(engine.executor().signal(child, "never asked for").ok());
  engine.crash_and_open();
  engine.run();

  CHECK(engine.world.journal.count("got down") == 1);
  CHECK(engine.result(root).status.ok());
  CHECK(rows_in_store(engine, RowKind::kInbox) == 0);
  CHECK(engine.executor().acknowledge(root).ok());
}

TEST_CASE("a signal to a procedure that has ended or never existed is refused and leaves nothing") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  engine.world.scripts["p"] = {.children = {"a", "w"}};
  engine.world.scripts["w"] = taking_one();
  engine.open();
  const ProcedureId ended = engine.submit("a");
  const ProcedureId parent = engine.submit("p");
  engine.run();
  const ProcedureId ended_child{parent.value + 1};
  ProcedureExecutor& executor = engine.executor();

  CHECK(executor.signal(ended, "go").code() == StatusCode::kFailedPrecondition);
  CHECK(executor.signal(ended_child, "go").code() == StatusCode::kFailedPrecondition);
  CHECK(executor.signal(ProcedureId{999}, "go").code() == StatusCode::kNotFound);
  REQUIRE(executor.acknowledge(ended).ok());
  CHECK(executor.signal(ended, "go").code() == StatusCode::kExpired);
  CHECK(executor.signal(parent, "").code() == StatusCode::kInvalidArgument);
  CHECK(executor.signal(parent, std::string(257, 'x')).code() == StatusCode::kInvalidArgument);
  CHECK(rows_in_store(engine, RowKind::kInbox) == 0);
}

TEST_CASE("a signal that is durable after the last record is answered as too late, and deleted") {
  EngineWorld engine;
  const bool crash = GENERATE(false, true);
  engine.world.scripts["a"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.faults().hold_commit(engine.faults().commits() + 1);
  engine.run();
  std::optional<Status> answer;
  engine.executor().async().signal(id, "go", {}, [&](const Status& status) { answer = status; });
  engine.faults().release();
  if (crash) {
    engine.store().pump_some(2);
    engine.crash_and_open();
  }
  engine.run();

  if (!crash) CHECK(answer->code() == StatusCode::kFailedPrecondition);
  CHECK(engine.result(id).status.ok());
  CHECK(rows_in_store(engine, RowKind::kInbox) == 0);
}

TEST_CASE("signals that nobody consumes are bounded, in number and bytes, over restarts") {
  EngineWorld engine;
  engine.world.scripts["a"] = taking_one();
  const auto open = [&] {
    ExecutorOptions options = engine.options();
    options.max_signals = 3;
    options.max_signal_bytes = 20;
    engine.open(std::move(options));
  };
  open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  for (const char* name : {"x", "y", "z"}) CHECK(engine.executor().signal(id, name, "12").ok());
  Status refused = engine.executor().signal(id, "go");
  CHECK(refused.code() == StatusCode::kResourceExhausted);
  CHECK_THAT(refused.to_string(), ContainsSubstring("max_signals 3"));
  open();
  CHECK(engine.executor().signal(id, "go").code() == StatusCode::kResourceExhausted);
  CHECK(engine.executor().abort(id).ok());  // not a signal
  engine.run();

  const ProcedureId other = engine.submit("a");
  engine.run();
  CHECK(engine.executor().signal(other, "x", std::string(19, 'x')).ok());
  CHECK(engine.executor().signal(other, "go").code() == StatusCode::kResourceExhausted);
}

TEST_CASE("signals from many threads are each consumed once, by workers that race with them") {
  constexpr int kSignals = 400;
  constexpr int kSenders = 4;
  const bool keeps = GENERATE(false, true);
  World world;
  world.scripts["a"] = {
      .steps = 1, .run = [](JobRun& run) {
        const std::string* const got = run.ctx.signal("go");
        if (got == nullptr) return std::optional(Say::wait());
        run.note += "x";
        run.world.journal.note(*got);
        return run.note.size() == std::size_t{kSignals} ? usual() : std::optional(Say::again());
      }};
  ExecutorOptions options;
  options.store =
      keeps ? memory(std::make_shared<MemoryDisk>(), {.mode = MemoryStoreOptions::Mode::kThread})
            : noop();
  add_job_types(options.registry, world);
  options.workers = 3;
  options.log = {};
  auto executor = *ProcedureExecutor::open(std::move(options));
  executor->start();
  const ProcedureId id = executor->submit(Job(world, "a"))->id;
  std::vector<std::thread> senders;
  for (int sender = 0; sender < kSenders; ++sender) {
    senders.emplace_back([&, sender] {
      for (int i = sender; i < kSignals; i += kSenders) {
        while (!executor->signal(id, "go", std::to_string(i)).ok()) {
        }
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  CHECK(executor->wait(id)->status.ok());

  for (int i = 0; i < kSignals; ++i) CHECK(world.journal.count(std::to_string(i)) == 1);
}

TEST_CASE("crashed anywhere, a signal that was answered is consumed by one record") {
  JobPlot plot;
  plot.scripts["a"] = {.run = [](JobRun& run) {
    if (run.step != 2) return usual();
    const std::string* const got = run.ctx.signal("go");
    if (got == nullptr) return std::optional(Say::wait());
    const auto row = run.ctx.get_row("got");
    REQUIRE(row.ok());
    run.world.journal.note("got " + *got);
    run.ctx.put_row("got", row->value_or("") + *got);
    return *got == "c" ? usual() : std::optional(Say::again());
  }};
  plot.roots = {{.name = "a", .signals = {"a", "b", "c"}}};
  plot.check = [](const auto&, const auto& row) {
    // A client that got no answer sends again, so a signal may come twice. None is lost, and they
    // come in order.
    std::string got = *row("got");
    got.erase(std::unique(got.begin(), got.end()), got.end());
    REQUIRE(got == "abc");
  };

  crash_everywhere(plot, {.twice = true, .power_cuts = true});
}

TEST_CASE("a signal looks only at the wishes, and at the messages of its name") {
  EngineWorld engine;
  constexpr std::size_t kMany = 300;
  engine.world.scripts["a"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 2) return usual();
    const std::string* got = nullptr;
    for (std::size_t i = 0; i < kMany; ++i) {
      got = run.ctx.signal("s" + std::to_string(i));
      if (got != nullptr) break;
    }
    if (got == nullptr) return Say::wait();
    run.world.journal.note("got " + *got);
    return usual();
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  for (std::size_t i = 0; i < kMany; ++i) {
    REQUIRE(engine.executor().signal(id, "unrelated").ok());
    engine.run();
  }
  SectionLooks::reset(engine.executor());
  CHECK(engine.executor().signal(id, "unrelated").ok());
  engine.run();
  CHECK(SectionLooks::of(engine.executor()).total < 2 * kMany);
  CHECK(engine.executor().signal(id, "s299", "the last").ok());
  engine.run();
  CHECK(engine.world.journal.count("got the last") == 1);
  CHECK(engine.result(id).status.ok());
}

TEST_CASE("a signal that comes while a step with many wishes is on its way to the store is seen") {
  EngineWorld engine;
  const std::size_t wishes = GENERATE(1U, 4U, 5U, 50U);
  const std::size_t known = GENERATE(0U, 1U);
  engine.world.scripts["a"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 2) return usual();
    std::size_t found = 0;
    for (std::size_t i = 0; i < wishes; ++i) {
      for (std::size_t j = 0; j <= known; ++j) {
        found += run.ctx.signal("s" + std::to_string(i)) != nullptr ? 1 : 0;
      }
    }
    if (found > known) return usual();
    run.note += "changed";  // so there is a record
    return Say::wait_for(1h);
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.executor().run_until_idle(1);
  const std::string name = "s" + std::to_string(wishes - 1);
  for (std::size_t i = 0; i < known; ++i) REQUIRE(engine.executor().signal(id, name).ok());
  engine.faults().hold_commit(engine.faults().commits() + 1);
  engine.run();
  engine.executor().async().signal(id, name, "", [](const Status&) {});
  engine.executor().async().signal(id, "unrelated", "", [](const Status&) {});
  engine.faults().release();
  engine.run();
  CHECK(engine.result(id).status.ok());
}

}  // namespace pv2::testing::signal_test
