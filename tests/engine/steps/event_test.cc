// SPDX-License-Identifier: Apache-2.0
//
// Events in memory: any number of procedures wait for one event, one procedure waits for several
// events and a deadline, and no wake is lost. (Rows 64 and 65; F4 and F5 of the known failures.)

#include <atomic>
#include <thread>

#include "support/engine_world.h"
#include "support/one_failure.h"
#include "support/own_malloc.h"

namespace pv2::testing::event_test {
namespace {

using namespace std::chrono_literals;

JobScript waits_for(const Event& event) {
  return {.steps = 1, .run = [event](JobRun& run) -> std::optional<Outcome> {
            run.world.journal.note("look " + run.name);
            return run.ctx.await(event) ? std::nullopt : std::optional(Say::wait());
          }};
}

}  // namespace

TEST_CASE("an event that is set lets its waiters go on in their order, and later waiters at once") {
  EngineWorld engine;
  Event online("catalogue online");
  for (const char* name : {"a", "b", "c", "d"}) engine.world.scripts[name] = waits_for(online);
  engine.open();
  for (const char* name : {"a", "b", "c"}) engine.submit(name);
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 3);
  engine.world.journal.clear();
  online.set();
  CHECK(online.is_set());
  engine.run();
  CHECK(engine.journal() == Entries{"look a", "do a.1", "look b", "do b.1", "look c", "do c.1"});

  engine.submit("d");
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 0);
  online.reset();
  engine.submit("a");
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 1);
}

TEST_CASE("a procedure that waited when an event was set goes on, even if it was reset meanwhile") {
  EngineWorld engine;
  Event event;
  engine.world.scripts["a"] = waits_for(event);
  engine.open();
  engine.submit("a");
  engine.run();
  event.set();
  event.reset();
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 0);
}

TEST_CASE("an event that was moved from is still the event, and a step may await it") {
  EngineWorld engine;
  Event event("catalogue online");
  Event moved = std::move(event);
  Event assigned;
  assigned = std::move(moved);
  engine.world.scripts["a"] = waits_for(event);  // NOLINT(bugprone-use-after-move): is promised
  engine.open();
  engine.submit("a");
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 1);
  CHECK(event.name() == "catalogue online");

  moved.set();  // NOLINT(bugprone-use-after-move)
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 0);
  CHECK(assigned.is_set());
}

TEST_CASE("an event that is set while the step still runs is not lost") {
  EngineWorld engine;
  Event event;
  engine.world.scripts["a"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 const bool set = run.ctx.await(event);
                                 event.set();
                                 return set ? std::nullopt : std::optional(Say::wait());
                               }};
  engine.open();
  engine.submit("a");
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 0);
}

TEST_CASE("one wait is ended by either of two events, by a value, or by its deadline") {
  EngineWorld engine;
  Event meta("meta");
  Event drained("drained");
  engine.world.scripts["a"] = {
      .steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
        if (run.ctx.timed_out()) {
          run.world.journal.note("late");
          return std::nullopt;
        }
        const bool first = run.ctx.await(meta);
        const bool second = run.ctx.await(drained);
        const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
        if (!first && !second && value == nullptr) return Say::wait_for(1h);
        run.world.journal.note(std::string(first ? "meta" : second ? "drained" : *value));
        return std::nullopt;
      }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  const Explanation why = *engine.executor().inspect().explain(id);
  REQUIRE(why.procedures[0].reasons.size() == 3);
  CHECK(why.procedures[0].reasons[0].kind == WaitReason::Kind::kEvent);
  CHECK(why.procedures[0].reasons[0].name == "meta");
  CHECK_THAT(to_string(why), ContainsSubstring("awaits the event 'drained'"));

  std::string expected;
  SECTION("the second event") {
    drained.set();
    expected = "drained";
  }
  SECTION("the value") {
    engine.world.answer_one("value");
    expected = "value";
  }
  SECTION("the deadline") {
    engine.advance(1h);
    expected = "late";
  }
  engine.run();
  CHECK(engine.world.journal.count(expected) == 1);
  meta.set();
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 0);
}

TEST_CASE("after a restart the step runs again and looks at the event again") {
  EngineWorld engine;
  Event event;
  engine.world.scripts["a"] = waits_for(event);
  engine.open();
  engine.submit("a");
  engine.run();
  const bool set = GENERATE(false, true);
  if (set) event.set();
  engine.crash_and_open();
  engine.run();
  CHECK(engine.world.journal.count("look a") == 2);
  CHECK(engine.executor().inspect().live_procedures() == (set ? 0U : 1U));
  event.set();
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 0);
}

TEST_CASE("a step that awaits another event than before fails, and the error says so") {
  EngineWorld engine;
  Event one;
  Event two;
  engine.world.scripts["a"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 const bool again = run.world.journal.count("first") != 0;
                                 run.world.journal.note("first");
                                 (void)run.ctx.await(again ? two : one);
                                 return Say::wait();
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  one.set();
  engine.run();
  CHECK_THAT(engine.result(id).status.to_string(), ContainsSubstring("the same things"));
}

TEST_CASE("an event outlives the executor and its waiters, and the other way round") {
  Event event;
  EngineWorld engine;
  {
    Event gone;
    engine.world.scripts["a"] = waits_for(event);
    engine.world.scripts["b"] = waits_for(gone);
  }
  engine.open();
  engine.submit("a");
  engine.submit("b");
  engine.run();
  engine.world.scripts.clear();
  engine.close();
  event.set();
  CHECK(event.is_set());
}

TEST_CASE("500 rounds of waiting and setting over four threads lose no wake") {
  World world;
  std::vector<Event> events(4);
  for (std::size_t i = 0; i < events.size(); ++i) {
    world.scripts["w" + std::to_string(i)] = waits_for(events[i]);
  }
  ExecutorOptions options;
  options.store =
      memory(std::make_shared<MemoryDisk>(), {.mode = MemoryStoreOptions::Mode::kThread});
  add_job_types(options.registry, world);
  options.log = {};
  const auto executor = *ProcedureExecutor::open(std::move(options));
  executor->start();
  std::atomic<int> ended = 0;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < events.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 125; ++round) {
        const auto id = executor->submit(Job(world, "w" + std::to_string(i)))->id;
        events[i].set();  // before, while, or after it begins to wait
        if (executor->wait(id).ok()) ++ended;
        events[i].reset();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(ended == 500);
}

#if !PV2_HAS_OWN_MALLOC
TEST_CASE("an event that found no memory to be awaited is awaited by the next run") {
  const int blocks = GENERATE(0, 1, 2);
  EngineWorld engine;
  Event event;
  int runs = 0;
  engine.world.scripts["a"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 if (++runs != 1) {
                                   return run.ctx.await(event) ? usual()
                                                               : std::optional(Say::wait());
                                 }
                                 const OneFailure failure(blocks);
                                 try {
                                   (void)run.ctx.await(event);
                                 } catch (const std::bad_alloc&) {
                                   OneFailure::end();
                                 }
                                 OneFailure::end();
                                 return Say::wait_for(1min);
                               }};
  engine.open();
  engine.submit("a");
  engine.run();
  engine.advance(1min);
  CHECK(runs == 2);
  CHECK(engine.executor().inspect().live_procedures() == 1);

  event.set();
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 0);
}
#endif

}  // namespace pv2::testing::event_test
