// SPDX-License-Identifier: Apache-2.0
//
// What watches the engine on the host's behalf: the report of a step that is stuck, listeners, and
// chores. (Row 61 in terms of our workers: we report, and add no thread.)

#include <atomic>
#include <future>
#include <latch>
#include <map>
#include <numeric>
#include <optional>

#include "support/engine_world.h"

namespace pv2::testing::watching_test {
namespace {

using namespace std::chrono_literals;

// An executor with threads, under the test's clock.
struct ThreadedWorld {
  EngineWorld engine;
  Mutex seen_mutex;
  std::vector<std::string> log PV2_GUARDED_BY(seen_mutex);
  std::unique_ptr<ProcedureExecutor> executor;

  ExecutorOptions options() {
    ExecutorOptions options = engine.options();
    options.workers = 2;
    options.store = memory(engine.disk, {.mode = MemoryStoreOptions::Mode::kThread});
    options.log = [this](LogLevel, std::string_view line) {
      MutexLock lock(seen_mutex);
      log.emplace_back(line);
    };
    return options;
  }
  ProcedureExecutor& open(ExecutorOptions options) {
    auto opened = ProcedureExecutor::open(std::move(options));
    REQUIRE(opened.status().to_string() == "OK");
    executor = *std::move(opened);
    executor->start();
    return *executor;
  }
  bool logged(const std::string& part) {
    MutexLock lock(seen_mutex);
    return std::any_of(log.begin(), log.end(), [&](const std::string& line) {
      return line.find(part) != std::string::npos;
    });
  }
};

bool logged(const EngineWorld& engine, const std::string& part) {
  return std::any_of(engine.log_lines.begin(), engine.log_lines.end(),
                     [&](const auto& line) { return line.find(part) != std::string::npos; });
}

std::string in_words(const ProcedureNews& news) {
  static const char* const kKinds[] = {"added", "finished", "parked", "quarantined"};
  return std::string(kKinds[static_cast<int>(news.kind)]) + " " + std::to_string(news.id.value) +
         " " + std::string(to_string(news.state)) +
         (news.error.ok() ? "" : " " + std::string(news.error.message()));
}

}  // namespace

TEST_CASE("a step that runs too long is reported once, with its name and for how long") {
  ThreadedWorld world;
  std::promise<void> runs;
  std::latch may_end(1);
  world.engine.world.scripts["slow"] = {.steps = 2,
                                        .run = [&](JobRun& run) -> std::optional<Outcome> {
                                          if (run.step != 2) return std::nullopt;
                                          runs.set_value();
                                          may_end.wait();
                                          return std::nullopt;
                                        }};
  std::promise<RunningProcedure> stuck;
  std::atomic<int> reports = 0;
  auto options = world.options();
  options.stuck_after = 10s;
  options.on_stuck = [&](const RunningProcedure& running) {
    if (++reports == 1) stuck.set_value(running);
  };
  ProcedureExecutor& executor = world.open(std::move(options));
  const ProcedureId id = executor.submit(Job(world.engine.world, "slow"))->id;
  runs.get_future().wait();

  world.engine.clock->advance(9s);
  const auto running = executor.inspect().running();
  REQUIRE(running.size() == 1);
  CHECK(running[0].id == id);
  CHECK(running[0].step_name == "TWO");
  CHECK(running[0].age == 9s);
  world.engine.clock->advance(1s);
  const RunningProcedure reported = stuck.get_future().get();
  CHECK(reported.id == id);
  CHECK(reported.type == "test.Job");
  CHECK(reported.step_name == "TWO");
  CHECK(reported.age == 10s);
  CHECK_FALSE(reported.undo);
  CHECK(world.logged("step TWO of procedure 1 (test.Job) has been running for 10.0 s"));
  for (int i = 0; i < 5; ++i) world.engine.clock->advance(1h);
  may_end.count_down();
  CHECK(executor.wait(id).ok());
  executor.stop();
  CHECK(reports == 1);
  CHECK(executor.inspect().running().empty());
}

TEST_CASE("a wall clock that jumps does not make a step stuck") {
  ThreadedWorld world;
  std::promise<void> runs;
  std::latch may_end(1);
  world.engine.world.scripts["slow"] = {.steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
                                          runs.set_value();
                                          may_end.wait();
                                          return std::nullopt;
                                        }};
  std::atomic<int> reports = 0;
  auto options = world.options();
  options.on_stuck = [&](const RunningProcedure&) { ++reports; };
  ProcedureExecutor& executor = world.open(std::move(options));
  const ProcedureId id = executor.submit(Job(world.engine.world, "slow"))->id;
  runs.get_future().wait();
  world.engine.clock->jump_wall(24h);
  world.engine.clock->advance(1s);
  may_end.count_down();
  CHECK(executor.wait(id).ok());
  executor.stop();
  CHECK(reports == 0);
}

TEST_CASE("listeners hear what becomes durable of roots and children, in that order") {
  EngineWorld engine;
  engine.world.scripts["parent"] = {.steps = 2, .children = {"child"}};
  engine.world.scripts["child"] = {.steps = 1};
  engine.world.scripts["fails"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 2) return Say::fail("out of stock");
    return std::nullopt;
  }};
  engine.open();
  std::vector<std::string> heard;
  Subscription news =
      *engine.executor().listen([&](const ProcedureNews& one) { heard.push_back(in_words(one)); });
  engine.submit("parent");
  engine.run();
  engine.submit("fails");
  engine.run();

  CHECK(heard == Entries{"added 1 RUNNABLE", "added 2 RUNNABLE", "finished 2 SUCCESS",
                         "finished 1 SUCCESS", "added 3 RUNNABLE",
                         "finished 3 ROLLEDBACK out of stock"});
  news = {};
  engine.submit("child");
  engine.run();
  CHECK(heard.size() == 6);
}

TEST_CASE("listeners hear of the end of a final child whose tree has failed before") {
  const bool fails_first = GENERATE(true, false);
  EngineWorld engine;
  engine.world.scripts["r"] = {.steps = 2, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step != 1) return usual();
                                 if (fails_first) run.spawn("fails");
                                 run.ctx.spawn(FinalJob(run.world, "ends"));
                                 if (!fails_first) run.spawn("fails");
                                 return usual();
                               }};
  engine.world.scripts["ends"] = {.steps = 1};
  engine.world.scripts["fails"] = {.steps = 1,
                                   .run = [](JobRun&) { return std::optional(Say::fail("no")); }};
  engine.open();
  std::map<ProcedureId, int> ends;
  const auto news = engine.executor().listen([&](const ProcedureNews& one) {
    if (one.kind == ProcedureNews::Kind::kAdded) ends.emplace(one.id, 0);
    if (one.kind == ProcedureNews::Kind::kFinished) ++ends[one.id];
  });
  engine.submit("r");
  engine.run();

  REQUIRE(ends.size() == 3);
  for (const auto& [id, count] : ends) CHECK(count == 1);
}

TEST_CASE("a listener hears of a procedure that is parked") {
  EngineWorld engine;
  engine.world.scripts["stuck"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
                                     if (run.step == 2) return Say::fail("no");
                                     return std::nullopt;
                                   },
                                   .undo = [](JobRun&) { return Say::fail("cannot"); }};
  engine.open();
  std::vector<ProcedureNews> heard;
  const auto news =
      engine.executor().listen([&](const ProcedureNews& one) { heard.push_back(one); });
  const ProcedureId id = engine.submit("stuck");
  engine.run();

  REQUIRE(heard.size() == 2);
  CHECK(heard[1].kind == ProcedureNews::Kind::kParked);
  CHECK(heard[1].id == id);
  CHECK_THAT(heard[1].error.to_string(), ContainsSubstring("cannot"));
}

TEST_CASE("a listener that throws is logged and harms neither the others nor the engine") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  engine.open();
  int heard = 0;
  const auto first =
      engine.executor().listen([](const ProcedureNews&) { throw std::runtime_error("deaf"); });
  const auto second = engine.executor().listen([&](const ProcedureNews&) { ++heard; });
  const auto third = engine.executor().listen([](const ProcedureNews&) { throw 7; });
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.result(id).status.ok());
  CHECK(heard == 2);
  CHECK(logged(engine, "a listener, told of procedure 1, threw: deaf"));
}

TEST_CASE("a listener may end its own subscription, and call the executor, while it runs") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  engine.open();
  int heard = 0;
  Subscription self;
  self = *engine.executor().listen([&](const ProcedureNews& news) {
    ++heard;
    (void)engine.executor().inspect().list();
    (void)engine.executor().inspect().explain(news.id);
    self = {};
    if (heard == 1) {
      engine.executor().async().submit(Job(engine.world, "a"), {}, [](const Result<Submitted>&) {});
    }
  });
  engine.submit("a");
  engine.run();
  CHECK(heard == 1);
  CHECK(engine.result({2}).status.ok());
}

TEST_CASE("a host thread that ends a subscription waits for the call that is under way") {
  ThreadedWorld world;
  world.engine.world.scripts["a"] = {.steps = 1};
  ProcedureExecutor& executor = world.open(world.options());
  std::promise<void> entered;
  std::latch may_leave(1);
  std::atomic<bool> left = false;
  std::atomic<bool> first = true;
  Subscription news = *executor.listen([&](const ProcedureNews&) {
    if (!first.exchange(false)) return;
    entered.set_value();
    may_leave.wait();
    left = true;
  });
  const ProcedureId id = executor.submit(Job(world.engine.world, "a"))->id;
  entered.get_future().wait();
  std::thread remover([&] {
    news = {};
    CHECK(left);
  });
  may_leave.count_down();
  remover.join();
  CHECK(executor.wait(id).ok());
}

TEST_CASE("a listener that hangs keeps neither callbacks nor offloaded work from a thread") {
  ThreadedWorld world;
  world.engine.world.scripts["quick"] = {.steps = 1};
  world.engine.world.scripts["offloads"] = {
      .steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
        const auto* value = run.ctx.offload([] { return 1; });
        return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
      }};
  auto options = world.options();
  options.pool_threads = 1;
  ProcedureExecutor& executor = world.open(std::move(options));
  std::latch hangs(1);
  std::latch may_end(1);
  std::atomic<int> heard = 0;
  const auto news = executor.listen([&](const ProcedureNews&) {
    if (heard++ != 0) return;
    hangs.count_down();
    may_end.wait();
  });
  const auto quick = executor.submit(Job(world.engine.world, "quick"));
  hangs.wait();
  CHECK(executor.wait(quick->id).ok());

  const auto offloads = executor.submit(Job(world.engine.world, "offloads"));
  std::latch called(1);
  executor.async().wait(offloads->id, [&](const Result<ProcedureResult>&) { called.count_down(); });
  called.wait();  // hangs if it waits behind the listener
  CHECK(heard == 1);
  may_end.count_down();
  executor.stop();
  CHECK(heard == 4);  // two were added, two have finished
}

TEST_CASE(
    "callbacks that hang keep neither offloaded work nor chores nor listeners from a thread") {
  const unsigned threads = GENERATE(1U, 3U);
  CAPTURE(threads);
  ThreadedWorld world;
  world.engine.world.scripts["quick"] = {.steps = 1};
  world.engine.world.scripts["offloads"] = {
      .steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
        const auto* value = run.ctx.offload([] { return 1; });
        return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
      }};
  auto options = world.options();
  options.pool_threads = threads;
  ProcedureExecutor& executor = world.open(std::move(options));
  std::latch hang(threads);  // one for each thread
  std::latch may_end(1);
  std::latch heard(2);
  int finished = 0;  // used by the one thread that tells news
  for (unsigned i = 0; i < threads; ++i) {
    executor.async().submit(Job(world.engine.world, "quick"), {}, [&](const Result<Submitted>&) {
      hang.count_down();
      may_end.wait();
    });
  }
  hang.wait();

  const auto news = executor.listen([&](const ProcedureNews& one) {
    // The quick procedures may be among them.
    if (one.kind == ProcedureNews::Kind::kFinished && ++finished <= 2) heard.count_down();
  });
  std::latch ran(1);
  Chore chore = *executor.add_chore("once", 1s, [&] { ran.count_down(); });
  const auto first = executor.submit(Job(world.engine.world, "offloads"));
  const auto second = executor.submit(Job(world.engine.world, "offloads"));
  CHECK(executor.wait(first->id)->status.ok());  // hangs if the callbacks have all threads
  CHECK(executor.wait(second->id)->status.ok());
  heard.wait();
  world.engine.clock->advance(1s);
  ran.wait();
  chore = {};
  may_end.count_down();
  executor.stop();  // the callbacks that hung use variables of this scope
}

TEST_CASE("a host without threads tells listeners a batch at a time, between other tasks") {
  EngineWorld engine;
  engine.world.scripts["quick"] = {.steps = 1};
  engine.open();
  int heard = 0;
  std::optional<int> heard_before_callback;
  const auto news = engine.executor().listen([&](const ProcedureNews&) { ++heard; });
  for (int i = 0; i < 500; ++i) {
    engine.executor().async().submit(Job(engine.world, "quick"), {}, [&](const Result<Submitted>&) {
      if (!heard_before_callback) heard_before_callback = heard;
    });
  }
  while (engine.store().pump()) {
  }
  engine.run();
  CHECK(heard == 1000);
  CHECK(heard_before_callback <= 64);
}

TEST_CASE("news beyond the queue of a slow listener is counted and not kept") {
  EngineWorld engine;
  constexpr std::size_t kMissed = 100;
  constexpr std::size_t kMany = ProcedureNews::kWaitingMax + kMissed;
  engine.max_live_procedures = 2 * kMany;
  engine.world.scripts["quick"] = {.steps = 1};
  engine.open();
  std::size_t heard = 0;
  std::vector<std::uint64_t> missed;
  const auto news = engine.executor().listen([&](const ProcedureNews& one) {
    ++heard;
    if (one.missed != 0) missed.push_back(one.missed);
  });
  for (std::size_t i = 0; i < kMany; ++i) {
    engine.executor().async().submit(Job(engine.world, "quick"), {},
                                     [](const Result<Submitted>&) {});
  }
  while (engine.store().pump()) {  // as much happens as can before a listener is told
  }
  engine.run();
  engine.submit("quick");  // what was missed last is told with the next news
  engine.run();
  REQUIRE(missed.size() >= 1);
  CHECK(missed.front() >= kMissed);
  const std::uint64_t all_missed = std::accumulate(missed.begin(), missed.end(), std::uint64_t{0});
  CHECK(heard + all_missed == 2 * (kMany + 1));
  CHECK(logged(engine, "news were not told to listeners"));
}

TEST_CASE("a chore runs period after period on the pool, also after it threw, until it is ended") {
  EngineWorld engine;
  engine.open();
  const std::size_t commits = engine.faults().commits();
  int runs = 0;
  Chore chore = *engine.executor().add_chore("sweeper", 10s, [&] {
    if (++runs == 2) throw std::runtime_error("broom broke");
  });
  engine.advance(9s);
  CHECK(runs == 0);
  engine.advance(1s);
  CHECK(runs == 1);
  engine.advance(10s);
  CHECK(runs == 2);
  CHECK(logged(engine, "chore 'sweeper' threw: broom broke"));
  engine.advance(1h);  // late by 359 periods: once is enough
  CHECK(runs == 3);
  chore = {};
  engine.advance(1h);
  CHECK(runs == 3);
  CHECK(engine.faults().commits() == commits);  // a chore is not stored
}

TEST_CASE("a chore may end itself, and is silent once the executor has stopped") {
  ThreadedWorld world;
  ProcedureExecutor& executor = world.open(world.options());
  std::atomic<int> runs = 0;
  std::promise<void> ran;
  Chore self;
  std::promise<void> known;
  auto ready = known.get_future().share();
  self = *executor.add_chore("once", 1s, [&, ready] {
    ready.wait();
    ++runs;
    self = {};
    ran.set_value();
  });
  known.set_value();
  std::atomic<int> others = 0;
  const auto other = executor.add_chore("other", 10s, [&] { ++others; });
  world.engine.clock->advance(1s);
  ran.get_future().wait();
  world.engine.clock->advance(1s);
  executor.stop();
  world.engine.clock->advance(1h);
  CHECK(runs == 1);
  CHECK(others == 0);
}

TEST_CASE("a listener and a chore end with their handles, and what they hold is freed then") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  engine.open();
  int calls = 0;
  const auto held = std::make_shared<int>();
  {
    const auto news = engine.executor().listen([&, held](const ProcedureNews&) { ++calls; });
    const auto chore = engine.executor().add_chore("sweeper", 10s, [&, held] { ++calls; });
    engine.submit("a");
    engine.advance(10s);
    CHECK(calls == 3);  // added, finished, and the chore
  }
  CHECK(held.use_count() == 1);
  engine.submit("a");
  engine.advance(1h);
  CHECK(calls == 3);
}

TEST_CASE(
    "a handle that is moved from ends nothing, and one that is assigned to ends its old one") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  engine.open();
  int first = 0;
  int second = 0;
  Subscription kept = *engine.executor().listen([&](const ProcedureNews&) { ++first; });
  {
    Subscription moved_from = std::move(kept);
    kept = std::move(moved_from);
  }
  engine.submit("a");
  engine.run();
  CHECK(first == 2);

  kept = *engine.executor().listen([&](const ProcedureNews&) { ++second; });
  engine.submit("a");
  engine.run();
  CHECK(first == 2);
  CHECK(second == 2);
}

TEST_CASE("a handle may outlive its executor, which frees what the listener and the chore hold") {
  EngineWorld engine;
  engine.open();
  const auto held = std::make_shared<int>();
  Subscription news = *engine.executor().listen([held](const ProcedureNews&) {});
  Chore chore = *engine.executor().add_chore("sweeper", 10s, [held] {});
  engine.close();
  CHECK(held.use_count() == 1);
  int heard = 0;
  engine.open();
  Subscription other = *engine.executor().listen([&](const ProcedureNews&) { ++heard; });
  news = {};  // ends nothing of the next executor, whose first listener has the same number
  chore = {};
  engine.world.scripts["a"] = {.steps = 1};
  engine.submit("a");
  engine.run();
  CHECK(heard == 2);
}

TEST_CASE("a handle may end while its executor is being destroyed") {
  for (int round = 0; round < 50; ++round) {
    ThreadedWorld world;
    world.engine.world.scripts["a"] = {.steps = 1};
    std::latch begin(2);
    std::thread host;
    {
      ProcedureExecutor& executor = world.open(world.options());
      Subscription news = *executor.listen([](const ProcedureNews&) {});
      Chore chore = *executor.add_chore("sweeper", 1ms, [] {});
      CHECK(executor.submit(Job(world.engine.world, "a")).ok());
      host = std::thread([&begin, news = std::move(news), chore = std::move(chore)]() mutable {
        begin.arrive_and_wait();
        news = {};
        chore = {};
      });
    }
    begin.arrive_and_wait();
    world.executor.reset();
    host.join();
  }
}

}  // namespace pv2::testing::watching_test
