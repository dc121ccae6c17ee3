// SPDX-License-Identifier: Apache-2.0
//
// The life of an executor. It is opened, started, and stopped at any moment, twice, or not at all,
// and refuses what cannot work. (Rows 7, 67, 121 and item 6 of the engine's promises: failure of
// the ground.)

#include <pv2/store/noop_procedure_store.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "support/engine_world.h"
#include "support/in_child.h"

namespace pv2::testing::lifecycle_test {
namespace {

using namespace std::chrono_literals;

struct Wrong final : Procedure {
  static constexpr std::string_view kType = "test.Wrong";
  void fields(auto& f) { f(1, "a", a), f(1, "b", b); }
  Outcome execute(StepContext&) override { return done(); }
  int a = 0;
  int b = 0;
};

struct Quick final : Procedure {
  static constexpr std::string_view kType = "test.Quick";
  void fields(auto& /*f*/) {}
  Outcome execute(StepContext&) override { return done("quick"); }
};

// Its constructor throws if `broken`, as after a deployment that cannot make it.
struct Fragile final : Procedure {
  static constexpr std::string_view kType = "test.Fragile";
  explicit Fragile(const bool& broken) {
    if (broken) throw std::runtime_error("its dependency is missing");
  }
  void fields(auto& /*f*/) {}
  Outcome execute(StepContext&) override { return done("made after all"); }
};

// Throws in the place that the test names.
enum class Place { kNowhere, kConstructor, kFields, kLocks, kPriority, kExecute, kRollback };
struct Thrower final : Procedure {
  static constexpr std::string_view kType = "test.Thrower";
  explicit Thrower(Place& place) : place_(place) { throw_at(Place::kConstructor); }
  void fields(auto& f) {
    throw_at(Place::kFields);
    f.arg(1, "unused", unused_);
  }
  LockSet locks() const override {
    throw_at(Place::kLocks);
    return {};
  }
  Priority priority() const override {
    throw_at(Place::kPriority);
    return Priority::kNormal;
  }
  Outcome execute(StepContext&) override {
    throw_at(Place::kExecute);
    if (place_ == Place::kRollback) return fail(Status(StatusCode::kAborted, "undo it"));
    return done();
  }
  Outcome rollback(StepContext&) override {
    throw_at(Place::kRollback);
    return undone();
  }
  void throw_at(Place place) const {
    if (place_ == place) throw std::runtime_error("thrown by the test");
  }
  Place& place_;
  std::uint64_t unused_ = 0;
};

std::unique_ptr<ProcedureExecutor> open_with_threads(World& world,
                                                     std::unique_ptr<ProcedureStore> store) {
  ExecutorOptions options;
  options.store = std::move(store);
  options.registry.add<Quick>();
  add_job_types(options.registry, world);
  options.log = {};
  auto opened = ProcedureExecutor::open(std::move(options));
  REQUIRE(opened.status().to_string() == "OK");
  return *std::move(opened);
}

std::unique_ptr<ProcedureStore> threaded(std::shared_ptr<MemoryDisk> disk) {
  return memory(std::move(disk), {.mode = MemoryStoreOptions::Mode::kThread});
}

}  // namespace

TEST_CASE("a step that runs its own engine, which has no threads, loses no procedure") {
  EngineWorld engine;
  std::size_t ran_within = 0;
  engine.world.scripts["runs others"] = {.run = [&](JobRun&) -> std::optional<Outcome> {
    ran_within += engine.executor().run_until_idle(2);
    return std::nullopt;
  }};
  engine.world.scripts["other"] = {.steps = 3};
  engine.open();
  std::vector<ProcedureId> ids;
  for (int i = 0; i < 200; ++i) ids.push_back(engine.submit(i % 4 == 1 ? "runs others" : "other"));

  engine.run();

  CHECK(ran_within != 0);
  for (const ProcedureId id : ids) CHECK(engine.result(id).state == ProcedureState::kSuccess);
}

TEST_CASE("an empty store opens, stops and opens again") {
  EngineWorld engine;  // behaviour.md, row 7
  engine.open();
  engine.run();
  engine.open();
  CHECK(engine.executor().inspect().list().empty());
  CHECK(engine.executor().health().ok());
}

TEST_CASE(
    "options that cannot work are refused by open, in words, and nothing on disk is changed") {
  const auto disk = std::make_shared<MemoryDisk>();
  ExecutorOptions options;
  CHECK_THAT(ProcedureExecutor::open(std::move(options)).status().to_string(),
             ContainsSubstring("store is missing"));

  options = {};
  options.store = memory(disk);
  options.registry.add<Wrong>();
  CHECK_THAT(ProcedureExecutor::open(std::move(options)).status().to_string(),
             ContainsSubstring("test.Wrong"));

  options = {};
  options.store = memory(disk);
  options.registry.add<Quick>().add<Quick>();
  CHECK_THAT(ProcedureExecutor::open(std::move(options)).status().to_string(),
             ContainsSubstring("test.Quick"));
  CHECK(disk->rows() == 0);
}

TEST_CASE(
    "a type that was not registered is refused when it is submitted, and when it is spawned") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    run.ctx.spawn(Quick());
    return std::nullopt;
  }};
  engine.open();
  const auto refused = engine.executor().submit(Quick());
  CHECK(refused.status().code() == StatusCode::kInvalidArgument);
  CHECK_THAT(refused.status().to_string(), ContainsSubstring("test.Quick"));

  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK_THAT(engine.result(id).status.to_string(), ContainsSubstring("test.Quick"));
}

TEST_CASE("a procedure that is submitted before start runs after it") {
  World world;
  const auto executor = open_with_threads(world, threaded(std::make_shared<MemoryDisk>()));
  const auto submitted = executor->submit(Quick());
  REQUIRE(submitted.ok());
  CHECK(executor->wait(submitted->id, std::chrono::milliseconds(0)).status().code() ==
        StatusCode::kDeadlineExceeded);
  executor->start();
  CHECK(executor->wait(submitted->id)->result == "quick");
}

TEST_CASE("an executor that was never started can be destroyed, and stopped") {
  World world;
  const auto disk = std::make_shared<MemoryDisk>();
  const bool stop = GENERATE(false, true);
  auto executor = open_with_threads(world, threaded(disk));
  REQUIRE(executor->submit(Quick()).ok());
  if (stop) executor->stop();
  executor.reset();
  executor = open_with_threads(world, threaded(disk));
  CHECK(executor->inspect().live_procedures() == 1);
}

TEST_CASE("stop answers all waiting callers, refuses new calls, and can be repeated") {
  World world;
  world.scripts["asks"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
    return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
  }};
  const auto executor = open_with_threads(world, threaded(std::make_shared<MemoryDisk>()));
  executor->start();
  const auto ended = executor->submit(Quick());
  REQUIRE(executor->wait(ended->id).ok());
  const auto waiting = executor->submit(Job(world, "asks"));
  REQUIRE(waiting.ok());
  std::vector<std::thread> waiters;
  std::atomic<int> told_to_go = 0;
  for (int i = 0; i < 3; ++i) {
    waiters.emplace_back([&] {
      const auto answer = executor->wait(waiting->id);
      if (answer.status().code() == StatusCode::kStopping) ++told_to_go;
    });
  }
  std::latch called(1);
  StatusCode async_code = StatusCode::kOk;
  executor->async().wait(waiting->id, [&](const Result<ProcedureResult>& answer) {
    async_code = answer.status().code();
    called.count_down();
  });

  executor->stop();
  for (std::thread& waiter : waiters) waiter.join();
  called.wait();
  CHECK(told_to_go == 3);
  CHECK(async_code == StatusCode::kStopping);

  executor->stop();
  CHECK(executor->submit(Quick()).status().code() == StatusCode::kStopping);
  CHECK(executor->wait(waiting->id).status().code() == StatusCode::kStopping);
  CHECK(executor->wait(ended->id)->result == "quick");
  CHECK(executor->acknowledge(ended->id).code() == StatusCode::kStopping);
  CHECK(executor->inspect().live_procedures() == 1);
  CHECK(executor->health().ok());
}

TEST_CASE("stop answers waiting callers before the running steps have ended") {
  World world;
  std::latch told(2);
  std::latch runs(1);
  world.scripts["long"] = {.steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
                             runs.count_down();
                             told.wait();  // hangs if the callers are told only after it
                             return std::nullopt;
                           }};
  const auto executor = open_with_threads(world, threaded(std::make_shared<MemoryDisk>()));
  executor->start();
  const auto submitted = executor->submit(Job(world, "long"));
  REQUIRE(submitted.ok());
  runs.wait();
  StatusCode async_code = StatusCode::kOk;
  executor->async().wait(submitted->id, [&](const Result<ProcedureResult>& answer) {
    async_code = answer.status().code();
    told.count_down();
  });
  StatusCode code = StatusCode::kOk;
  std::thread waiter([&] {
    code = executor->wait(submitted->id).status().code();
    told.count_down();
  });

  executor->stop();
  waiter.join();
  CHECK(code == StatusCode::kStopping);
  CHECK(async_code == StatusCode::kStopping);
}

TEST_CASE("a stop with a deadline says what still runs, goes on, and may be called again") {
  World world;
  std::latch runs(2);
  std::latch let_step_end(1);
  std::latch let_work_end(1);
  std::atomic<bool> ended = false;
  world.scripts["long step"] = {.steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
                                  runs.count_down();
                                  let_step_end.wait();
                                  return std::nullopt;
                                }};
  world.scripts["long work"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                  const auto* value = run.ctx.offload([&] {
                                    runs.count_down();
                                    let_work_end.wait();
                                    ended = true;
                                  });
                                  return value == nullptr ? std::optional(Say::wait())
                                                          : std::nullopt;
                                }};
  auto executor = open_with_threads(world, threaded(std::make_shared<MemoryDisk>()));
  executor->start();
  const auto submitted = executor->submit(Job(world, "long step"));
  REQUIRE(submitted.ok());
  REQUIRE(executor->submit(Job(world, "long work")).ok());
  runs.wait();

  for (int i = 0; i < 2; ++i) {
    const Status late = executor->stop(0ms);
    CHECK(late.code() == StatusCode::kDeadlineExceeded);
    CHECK_THAT(late.to_string(),
               ContainsSubstring("step ONE of procedure " + std::to_string(submitted->id.value) +
                                 " (test.Job) has been running for"));
    CHECK_THAT(late.to_string(), ContainsSubstring("1 piece of offloaded work"));
  }
  CHECK(executor->submit(Quick()).status().code() == StatusCode::kStopping);

  const int how = GENERATE(0, 1, 2);
  CAPTURE(how);
  std::thread stopper([&] {  // each way waits for the step and the work
    if (how == 0) CHECK(executor->stop(std::chrono::milliseconds::max()).ok());
    if (how == 1) executor->stop();
    if (how == 2) executor.reset();
    CHECK(ended);
  });
  let_step_end.count_down();
  let_work_end.count_down();
  stopper.join();
  if (executor) CHECK(executor->stop(0ms).ok());
}

TEST_CASE(
    "a stop from another thread waits for the host thread's step, keeps its record and begins "
    "none") {
  EngineWorld engine;
  Status late;
  StatusCode told = StatusCode::kOk;
  std::thread stopper;
  engine.world.scripts["a"] = {.steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
                                 std::thread([&] { late = engine.executor().stop(0ms); }).join();
                                 stopper = std::thread([&] { engine.executor().stop(); });
                                 return std::nullopt;
                               }};
  engine.world.scripts["b"] = {.steps = 1};
  engine.open();
  const ProcedureId a = engine.submit("a");
  const ProcedureId b = engine.submit("b");
  engine.executor().async().wait(
      b, [&](const Result<ProcedureResult>& result) { told = result.status().code(); });
  CHECK(engine.executor().run_until_idle() == 1);
  stopper.join();

  CHECK(late.code() == StatusCode::kDeadlineExceeded);
  CHECK_THAT(late.to_string(),
             ContainsSubstring("step ONE of procedure " + std::to_string(a.value)));
  CHECK(told == StatusCode::kStopping);
  CHECK(engine.executor().stop(0ms).ok());
  CHECK(engine.executor().run_until_idle() == 0);
  CHECK(engine.log_lines.empty());
  engine.open();
  CHECK(engine.result(a).result == "a done");
  CHECK(engine.world.journal.count("do a.1") == 1);
  CHECK(engine.result(b).result == "b done");
}

TEST_CASE("a stop that waits logs now and then, by the executor's clock, what it waits for") {
  World world;
  std::latch runs(1);
  std::latch let_step_end(1);
  std::atomic<bool> logged = false;
  world.scripts["long"] = {.steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
                             runs.count_down();
                             let_step_end.wait();
                             return std::nullopt;
                           }};
  const auto clock = std::make_shared<ManualClock>();
  ExecutorOptions options;
  options.store = threaded(std::make_shared<MemoryDisk>());
  add_job_types(options.registry, world);
  options.clock = clock;
  options.log = [&](LogLevel level, std::string_view line) {
    if (level == LogLevel::kWarning && line.find("has not stopped yet: step ONE") != line.npos) {
      logged = true;
    }
  };
  auto executor = *ProcedureExecutor::open(std::move(options));
  executor->start();
  REQUIRE(executor->submit(Job(world, "long")).ok());
  runs.wait();
  std::thread stopper([&] { executor->stop(); });
  while (!logged) clock->advance(1s);
  let_step_end.count_down();
  stopper.join();
}

TEST_CASE("an asynchronous verb after stop is answered too") {
  World world;
  const bool threads = GENERATE(true, false);
  EngineWorld engine;
  std::unique_ptr<ProcedureExecutor> threaded_executor;
  ProcedureExecutor* executor = nullptr;
  if (threads) {
    threaded_executor = open_with_threads(world, threaded(std::make_shared<MemoryDisk>()));
    threaded_executor->start();
    executor = threaded_executor.get();
  } else {
    executor = &engine.open();
  }
  executor->stop();
  std::latch answered(3);
  StatusCode submitted = StatusCode::kOk;
  StatusCode waited = StatusCode::kOk;
  StatusCode acknowledged = StatusCode::kOk;
  engine.world.scripts["a"] = {};
  world.scripts["a"] = {};
  executor->async().submit(Job(threads ? world : engine.world, "a"), {},
                           [&](const Result<Submitted>& answer) {
                             submitted = answer.status().code();
                             answered.count_down();
                           });
  executor->async().wait(ProcedureId{77}, [&](const Result<ProcedureResult>& answer) {
    waited = answer.status().code();
    answered.count_down();
  });
  executor->async().acknowledge(ProcedureId{77}, [&](const Status& answer) {
    acknowledged = answer.code();
    answered.count_down();
  });

  REQUIRE(answered.try_wait());  // no pool is left that could answer later
  CHECK(submitted == StatusCode::kStopping);
  CHECK(waited == StatusCode::kNotFound);
  CHECK(acknowledged == StatusCode::kStopping);
}

TEST_CASE("a blocking verb on a thread of the executor is refused and does not hang") {
  World world;
  ProcedureExecutor* running = nullptr;
  std::atomic<int> refused = 0;
  std::atomic<int> others = 0;
  const auto block = [&] {
    const StatusCode codes[] = {running->submit(Quick()).status().code(),
                                running->wait(ProcedureId{1}).status().code(),
                                running->acknowledge(ProcedureId{1}).code()};
    for (const StatusCode code : codes) {
      ++(code == StatusCode::kFailedPrecondition ? refused : others);
    }
  };
  world.scripts["blocks"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                               block();
                               const auto* value = run.ctx.offload([&] {
                                 block();
                                 return 1;
                               });
                               return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
                             }};
  const auto executor = open_with_threads(world, threaded(std::make_shared<MemoryDisk>()));
  running = executor.get();
  executor->start();
  std::latch called(1);
  executor->async().submit(Job(world, "blocks"), {}, [&](const Result<Submitted>& submitted) {
    executor->async().wait(submitted->id, [&](const Result<ProcedureResult>&) {
      block();
      called.count_down();
    });
  });
  called.wait();

  CHECK(refused >= 9);  // in a step, on the pool and in a callback
  CHECK(others == 0);
}

TEST_CASE("an executor that is destroyed on a thread of its own ends the process with a message") {
  const auto [text, aborted] = in_child([] {
    EngineWorld engine;
    engine.world.scripts["a"] = {.steps = 1};
    engine.open();
    engine.executor().async().submit(Job(engine.world, "a"), {},
                                     [&](const Result<Submitted>&) { engine.close(); });
    engine.run();
  });

  CHECK(aborted);
  CHECK_THAT(text, ContainsSubstring("destroyed on a thread of its own"));
}

TEST_CASE("a step that runs another engine is still a thread of its own engine") {
  EngineWorld outer;
  EngineWorld inner;
  StatusCode within = StatusCode::kOk;
  StatusCode after = StatusCode::kOk;
  inner.world.scripts["inner"] = {
      .steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
        within = outer.executor().submit(Job(outer.world, "other")).status().code();
        return std::nullopt;
      }};
  outer.world.scripts["other"] = {.steps = 1};
  outer.world.scripts["outer"] = {
      .steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
        inner.run();
        after = outer.executor().submit(Job(outer.world, "other")).status().code();
        return std::nullopt;
      }};
  inner.open();
  outer.open();
  inner.submit("inner");
  outer.submit("outer");
  outer.run();

  CHECK(within == StatusCode::kFailedPrecondition);
  CHECK(after == StatusCode::kFailedPrecondition);
  CHECK(outer.executor().submit(Job(outer.world, "other")).ok());
}

TEST_CASE("a second start changes nothing") {
  World world;
  std::mutex seen_mutex;
  std::set<std::thread::id> seen;
  world.scripts["notes its thread"] = {.run = [&](JobRun&) -> std::optional<Outcome> {
    const std::scoped_lock lock(seen_mutex);
    seen.insert(std::this_thread::get_id());
    return std::nullopt;
  }};
  ExecutorOptions options;
  options.store = threaded(std::make_shared<MemoryDisk>());
  add_job_types(options.registry, world);
  options.workers = 1;
  options.log = {};
  auto executor = *ProcedureExecutor::open(std::move(options));
  executor->start();
  executor->start();
  std::latch ended(200);
  for (int i = 0; i < 200; ++i) {
    executor->async().submit(
        Job(world, "notes its thread"), {}, [&](const Result<Submitted>& submitted) {
          executor->async().wait(submitted->id,
                                 [&](const Result<ProcedureResult>&) { ended.count_down(); });
        });
  }
  ended.wait();
  CHECK(seen.size() == 1);
  executor->stop();
  executor->start();  // a start after the stop changes nothing either
}

TEST_CASE("a submission whose user code throws is refused with the reason") {
  Place place = Place::kNowhere;
  EngineWorld engine;
  ExecutorOptions options = engine.options();
  options.registry.add<Thrower>(place);
  engine.open(std::move(options));
  for (const Place where : {Place::kFields, Place::kLocks, Place::kPriority}) {
    Thrower thrower(place);
    place = where;
    const auto refused = engine.executor().submit(std::move(thrower));
    place = Place::kNowhere;
    CHECK(refused.status().code() == StatusCode::kInternal);
    CHECK_THAT(refused.status().to_string(), ContainsSubstring("thrown by the test"));
    CHECK_THAT(refused.status().to_string(), ContainsSubstring("test.Thrower"));
  }
  CHECK(engine.executor().inspect().live_procedures() == 0);
}

TEST_CASE("a step that throws fails for good, and an undo that throws is tried again") {
  Place place = Place::kExecute;
  EngineWorld engine;  // X3, X15
  ExecutorOptions options = engine.options();
  options.registry.add<Thrower>(place);
  engine.open(std::move(options));
  const Place where = GENERATE(Place::kExecute, Place::kRollback);
  place = Place::kNowhere;
  Thrower thrower(place);
  place = where;
  const auto submitted = engine.executor().submit(std::move(thrower));
  REQUIRE(submitted.ok());
  engine.run();
  if (where == Place::kRollback) {
    CHECK(engine.executor().inspect().live_procedures() == 1);
    place = Place::kNowhere;
    engine.run_to_the_end();
  }

  const ProcedureResult result = engine.result(submitted->id);
  CHECK(result.state == ProcedureState::kRolledBack);
  CHECK_THAT(result.status.to_string(),
             ContainsSubstring(where == Place::kExecute ? "thrown by the test" : "undo it"));
}

TEST_CASE("a callback that throws, and a log that throws, do no harm") {
  EngineWorld engine;
  ExecutorOptions options = engine.options();
  options.log = [](LogLevel, std::string_view) { throw std::runtime_error("no log"); };
  options.on_store_failure = [](const Status&) { throw std::runtime_error("no host"); };
  engine.world.scripts["a"] = {};
  engine.open(std::move(options));
  for (int i = 0; i < 2; ++i) {
    engine.executor().async().submit(Job(engine.world, "a"), {}, [](const Result<Submitted>&) {
      throw std::runtime_error("no callback");
    });
    engine.run();
    for (int waiters = 0; waiters < 2; ++waiters) {
      engine.executor().async().wait(
          {1}, [](const Result<ProcedureResult>&) { throw std::runtime_error("no waiter"); });
    }
    engine.executor().async().run([] { throw std::runtime_error("no work"); });
    engine.faults().fail_commit(engine.faults().commits() + 1, Status(StatusCode::kIoError, "x"));
  }
  CHECK_FALSE(engine.executor().health().ok());
  CHECK(engine.world.journal.count("do a.3") == 1);
}

TEST_CASE(
    "beyond the limit of live procedures submissions are refused, and live procedures go on") {
  EngineWorld engine;
  engine.max_live_procedures = 4;
  engine.world.scripts["p"] = {.children = {"c", "c", "c"}};
  engine.world.scripts["c"] = {.steps = 1};
  engine.open();
  const ProcedureId first = engine.submit("p");
  for (int i = 0; i < 3; ++i) engine.submit("c");
  CHECK(engine.executor().submit(Job(engine.world, "c")).status().code() ==
        StatusCode::kResourceExhausted);
  engine.run_to_the_end();
  CHECK(engine.result(first).status.ok());  // its children found room when the others had ended
  CHECK(engine.executor().submit(Job(engine.world, "c")).ok());
}

TEST_CASE("an executor without threads runs as many steps as it is told") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 5};
  engine.open();
  engine.submit("a");
  CHECK(engine.executor().run_until_idle(2) == 2);
  CHECK(engine.world.journal.count("do a.2") == 1);
  CHECK(engine.world.journal.count("do a.3") == 0);
  CHECK(engine.executor().run_until_idle() == 3);
  CHECK(engine.executor().run_until_idle() == 0);
}

TEST_CASE("an executor with workers is not run by its host, and says so") {
  World world;
  world.scripts["quick"] = {.steps = 1};
  ExecutorOptions options;
  options.store = noop();
  add_job_types(options.registry, world);
  std::mutex lines_mutex;
  std::vector<std::string> lines;
  options.log = [&](LogLevel level, std::string_view line) {
    const std::scoped_lock lock(lines_mutex);
    if (level == LogLevel::kError) lines.emplace_back(line);
  };
  const auto executor = *ProcedureExecutor::open(std::move(options));
  CHECK(executor->run_until_idle() == 0);
  executor->start();
  CHECK(executor->run_until_idle() == 0);
  CHECK(executor->wait(executor->submit(Job(world, "quick"))->id)->status.ok());
  const std::scoped_lock lock(lines_mutex);
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines.front(), ContainsSubstring("workers = 0"));
}

TEST_CASE("an executor without workers is run by one thread at a time") {
  EngineWorld engine;
  std::size_t ran_beside = 1;
  engine.world.scripts["calls"] = {
      .steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
        std::thread other([&] { ran_beside = engine.executor().run_until_idle(); });
        other.join();
        return std::nullopt;
      }};
  engine.world.scripts["other"] = {.steps = 1};
  engine.open();
  engine.submit("calls");
  for (int i = 0; i < 100; ++i) engine.submit("other");
  engine.run();
  CHECK(ran_beside == 0);
  CHECK(engine.executor().inspect().live_procedures() == 0);
  CHECK(std::any_of(engine.log_lines.begin(), engine.log_lines.end(), [](const auto& line) {
    return line.find("another thread is in it") != std::string::npos;
  }));
}

TEST_CASE("on a store that keeps no records all works, but a result that memory drops is gone") {
  EngineWorld engine;
  engine.max_results_in_memory = 1;
  ExecutorOptions options = engine.options();
  options.store = noop();
  engine.world.scripts["p"] = {.children = {"c"}};
  engine.world.scripts["c"] = {.steps = 1};
  engine.open(std::move(options));
  const auto first = engine.executor().submit(Job(engine.world, "p"), {.nonce = {1, 1}});
  engine.run();
  CHECK(engine.executor().wait(first->id)->result == "p done");
  CHECK(engine.executor().submit(Job(engine.world, "p"), {.nonce = {1, 1}})->id == first->id);
  const auto second = engine.executor().submit(Job(engine.world, "c"));
  engine.run();
  CHECK(engine.executor().wait(second->id)->result == "c done");
  CHECK(engine.executor().wait(first->id).status().code() == StatusCode::kExpired);
}

TEST_CASE("stop() on a thread of the executor does not wait for itself") {
  EngineWorld engine;
  engine.world.scripts["stopper"] = {.steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
                                       engine.executor().stop();
                                       return std::nullopt;
                                     }};
  engine.open();
  const ProcedureId id = engine.submit("stopper");
  engine.run();

  CHECK(engine.result(id).status.ok());
  CHECK(engine.log_lines.size() == 1);
}

TEST_CASE("a procedure that cannot be made after a restart waits for a build that can make it") {
  EngineWorld engine;  // behaviour.md, row 121
  bool broken = false;
  const auto options = [&] {
    ExecutorOptions made = engine.options();
    made.registry.add<Fragile>(broken);
    return made;
  };
  engine.world.scripts["other"] = {.steps = 1};
  engine.open(options());
  const auto submitted = engine.executor().submit(Fragile(broken), {.nonce = {1, 1}});
  REQUIRE(submitted.ok());
  for (int life = 0; life < 2; ++life) {
    engine.close();
    ExecutorOptions next = options();  // registration makes one of each type
    broken = true;
    engine.open(std::move(next));
    const ProcedureId other = engine.submit("other");
    engine.run();
    CHECK(engine.result(other).status.ok());
    CHECK_FALSE(engine.describe(submitted->id).quarantined);
    CHECK_THAT(engine.describe(submitted->id).error.to_string(),
               ContainsSubstring("its dependency is missing"));
    broken = false;
  }
  engine.open(options());
  engine.run_to_the_end();
  CHECK(engine.result(submitted->id).result == "made after all");
}

}  // namespace pv2::testing::lifecycle_test
