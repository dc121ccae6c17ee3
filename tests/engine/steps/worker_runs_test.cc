// SPDX-License-Identifier: Apache-2.0
//
// Procedures that a worker has polled and not begun, up to 64. None of them begins a step after the
// engine was stopped, the store failed, or their tree failed or was aborted; none runs before work
// of a higher class; and an idle worker takes them over. A procedure that goes back to the queue is
// not lost, keeps its place and its locks, and is no longer in flight.

#include <pv2/scheduler/master_procedure_scheduler.h>
#include <pv2/store/noop_procedure_store.h>

#include <atomic>
#include <barrier>
#include <latch>
#include <mutex>
#include <span>
#include <thread>

#include "model/looks.h"
#include "support/engine_world.h"

namespace pv2::testing::worker_runs_test {
namespace {

using namespace std::chrono_literals;

constexpr int kRun = 40;  // fewer than a worker takes at once

std::unique_ptr<ProcedureStore> threaded(std::shared_ptr<MemoryDisk> disk) {
  return memory(std::move(disk), {.mode = MemoryStoreOptions::Mode::kThread});
}

ExecutorOptions with_workers(World& world, std::unique_ptr<ProcedureStore> store,
                             unsigned workers = 1) {
  ExecutorOptions options;
  options.store = std::move(store);
  add_job_types(options.registry, world);
  options.workers = workers;
  options.log = {};
  return options;
}

std::unique_ptr<ProcedureExecutor> started(ExecutorOptions options) {
  auto opened = ProcedureExecutor::open(std::move(options));
  REQUIRE(opened.status().to_string() == "OK");
  (*opened)->start();
  return *std::move(opened);
}

// Counts the steps of "one of many" that begin; the first of them waits for `first_may_end`.
struct Crowd {
  std::atomic<int> begun = 0;
  std::latch first_runs{1};
  std::latch first_may_end{1};

  std::optional<Outcome> run() {
    if (begun.fetch_add(1) != 0) return std::nullopt;
    first_runs.count_down();
    first_may_end.wait();
    return std::nullopt;
  }
  void script(World& world) {
    world.scripts["one of many"] = {.steps = 1, .run = [this](JobRun&) { return run(); }};
  }
};

// One worker, which has polled kRun procedures and runs the first of them.
struct BusyWorker {
  World world;
  Crowd crowd;
  std::latch gate_runs{1};
  std::latch gate{1};
  std::unique_ptr<ProcedureExecutor> executor;
  std::vector<ProcedureId> ids;

  void begin(ExecutorOptions options) {
    crowd.script(world);
    world.scripts["gate"] = {.steps = 1, .run = [this](JobRun&) -> std::optional<Outcome> {
                               gate_runs.count_down();
                               gate.wait();
                               return std::nullopt;
                             }};
    executor = started(std::move(options));
    REQUIRE(executor->submit(Job(world, "gate")).ok());
    gate_runs.wait();
    for (int i = 0; i < kRun; ++i) {
      ids.push_back(executor->submit(Job(world, "one of many"))->id);
    }
    gate.count_down();
    crowd.first_runs.wait();
  }
};

LockSet table(const std::string& name) {
  return std::move(LockSet().table("shop", name, LockMode::kExclusive));
}
LockSet meta() { return std::move(LockSet().meta(LockMode::kExclusive)); }

std::ptrdiff_t place_of(const Entries& journal, const std::string& entry) {
  return std::find(journal.begin(), journal.end(), entry) - journal.begin();
}

// Its step submits "meta", which is durable when the step ends.
JobScript submits_meta(EngineWorld& engine) {
  return {.steps = 1,
          .run = [&engine](JobRun&) -> std::optional<Outcome> {
            engine.executor().async().submit(Job(engine.world, "meta"), {},
                                             [](const Result<Submitted>&) {});
            while (engine.store().pump()) {
            }
            return std::nullopt;
          },
          .locks = table("first")};
}

// Its workers sleep until they are woken, and not for a second.
class PatientScheduler final : public MasterProcedureScheduler {
 public:
  using MasterProcedureScheduler::MasterProcedureScheduler;
  std::size_t poll(std::span<SchedulerEntry*> run, std::chrono::milliseconds patience,
                   SchedulerCaller caller) override {
    return MasterProcedureScheduler::poll(run, patience < 1s ? patience : 24h, caller);
  }
};

}  // namespace

TEST_CASE("a stop waits for the step that runs and for none that its worker has only polled") {
  const bool keeps_records = GENERATE(true, false);
  CAPTURE(keeps_records);
  const auto disk = std::make_shared<MemoryDisk>();
  BusyWorker busy;
  busy.begin(with_workers(busy.world, keeps_records ? threaded(disk) : noop()));

  CHECK(busy.executor->stop(0ms).code() == StatusCode::kDeadlineExceeded);
  busy.crowd.first_may_end.count_down();
  busy.executor->stop();

  CHECK(busy.crowd.begun == 1);
  busy.executor.reset();
  if (!keeps_records) return;
  const auto again = started(with_workers(busy.world, threaded(disk)));
  for (const ProcedureId id : busy.ids) CHECK(again->wait(id)->status.ok());
  CHECK(busy.crowd.begun == kRun);  // the first was recorded
}

TEST_CASE("no step begins after the host was told that the store has failed") {
  const auto disk = std::make_shared<MemoryDisk>();
  BusyWorker busy;
  std::latch told(1);
  auto faults = std::make_unique<FaultStore>(threaded(disk));
  FaultStore& store = *faults;
  ExecutorOptions options = with_workers(busy.world, std::move(faults));
  options.on_store_failure = [&](const Status&) { told.count_down(); };
  busy.begin(std::move(options));

  store.fail_commit(store.commits() + 1, Status(StatusCode::kIoError, "the disk is gone"));
  CHECK_FALSE(busy.executor->submit(Job(busy.world, "gate")).ok());
  told.wait();
  busy.crowd.first_may_end.count_down();
  busy.executor->stop();

  CHECK(busy.crowd.begun == 1);
  busy.executor.reset();
  const auto again = started(with_workers(busy.world, threaded(disk)));
  for (const ProcedureId id : busy.ids) CHECK(again->wait(id)->status.ok());
}

TEST_CASE("no step of a tree begins after its abort was answered") {
  const bool keeps_records = GENERATE(true, false);
  const unsigned workers = GENERATE(1U, 2U);
  CAPTURE(keeps_records, workers);
  World world;
  Crowd crowd;
  crowd.script(world);
  world.scripts["parent"] = {.children = std::vector<std::string>(kRun, "one of many")};
  std::latch others_run(workers - 1);
  std::latch others_may_end(1);
  world.scripts["other"] = {.steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
                              others_run.count_down();
                              others_may_end.wait();
                              return std::nullopt;
                            }};
  const auto executor = started(with_workers(
      world, keeps_records ? threaded(std::make_shared<MemoryDisk>()) : noop(), workers));
  // All workers but one are kept busy, so that none of them takes over the run of that one.
  for (unsigned i = 1; i < workers; ++i) REQUIRE(executor->submit(Job(world, "other")).ok());
  others_run.wait();
  const ProcedureId root = executor->submit(Job(world, "parent"))->id;
  crowd.first_runs.wait();

  CHECK(executor->abort(root).ok());
  crowd.first_may_end.count_down();

  CHECK(executor->wait(root)->status.code() == StatusCode::kAborted);
  CHECK(crowd.begun == 1);
  CHECK(world.journal.count("undo one of many.1") == 1);
  CHECK(executor->inspect().locks().empty());
  others_may_end.count_down();
}

TEST_CASE(
    "an abort takes members that have not begun out of a run, and leaves the others in it alone") {
  EngineWorld engine;
  ProcedureId root;
  std::vector<Status> answers;
  engine.world.scripts["parent"] = {.children = {"aborts", "child", "child", "child"}};
  engine.world.scripts["child"] = {.steps = 1};
  engine.world.scripts["aborts"] = {.steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
                                      engine.executor().async().abort(
                                          root, {}, [&](const Status& s) { answers.push_back(s); });
                                      while (engine.store().pump()) {
                                      }
                                      return std::nullopt;
                                    }};
  engine.world.scripts["bystander"] = {.steps = 2};
  engine.open();
  root = engine.submit("parent");
  engine.executor().run_until_idle(2);  // the children are queued, in front
  std::vector<ProcedureId> bystanders;
  for (int i = 0; i < 10; ++i) bystanders.push_back(engine.submit("bystander"));

  engine.run();

  CHECK(answers == std::vector<Status>{Status()});
  CHECK(engine.world.journal.count("do child.1") == 0);
  CHECK(engine.world.journal.count("undo child.1") == 0);
  CHECK(engine.result(root).status.code() == StatusCode::kAborted);
  for (const ProcedureId id : bystanders) CHECK(engine.result(id).status.ok());
}

TEST_CASE("when a member has failed, polled members of its tree do not begin") {
  EngineWorld engine;
  std::vector<std::string> children(80, "child");  // more than one run
  children.front() = "runs others";
  children.back() = "fails";
  engine.world.scripts["parent"] = {.children = children};
  engine.world.scripts["child"] = {.steps = 1};
  engine.world.scripts["fails"] = {.run = [](JobRun&) { return Say::fail("bad"); }};
  std::size_t begun_before = 0;
  engine.world.scripts["runs others"] = {.steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
                                           engine.executor().run_until_idle(16);
                                           begun_before = engine.world.journal.count("do child.1");
                                           return std::nullopt;
                                         }};
  engine.open();
  const ProcedureId root = engine.submit("parent");
  engine.run();

  CHECK(engine.result(root).status.message() == "bad");
  CHECK(begun_before == 15);
  CHECK(engine.world.journal.count("do child.1") == begun_before);
  CHECK(engine.world.journal.count("undo child.1") == begun_before);
}

TEST_CASE("when a member of a large tree has failed, polled members do not begin meanwhile") {
  World world;
  std::vector<std::string> children(3000, "child");  // stopped in several sections
  for (std::size_t i = 150; i < children.size(); i += 150) children[i] = "fails";
  std::atomic<int> begun = 0;
  std::latch first_may_end(1);
  world.scripts["parent"] = {.children = children};
  world.scripts["child"] = {.steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
                              if (begun.fetch_add(1) == 0) first_may_end.wait();
                              return std::nullopt;
                            }};
  world.scripts["fails"] = {.run = [](JobRun&) { return Say::fail("bad"); }};
  auto opened = ProcedureExecutor::open(with_workers(world, noop(), 2));
  REQUIRE(opened.status().to_string() == "OK");
  ProcedureExecutor& executor = **opened;
  int begun_before = -1;
  // The other worker publishes the failure and stops the tree. One worker is in the first child,
  // with other children in its run.
  SectionLooks::at_each_pause(executor, [&] {
    if (begun_before >= 0) return;
    begun_before = begun;
    first_may_end.count_down();
    while (!executor.inspect().running().empty()) std::this_thread::yield();
  });
  executor.start();
  const ProcedureId root = executor.submit(Job(world, "parent"))->id;

  CHECK(executor.wait(root)->status.message() == "bad");
  executor.stop();
  CHECK(begun_before > 0);
  CHECK(begun == begun_before);
}

TEST_CASE("an undo that a worker has polled is kept when another tree fails meanwhile") {
  EngineWorld engine;
  ProcedureId other;
  engine.world.scripts["parent"] = {
      .children = {"left", "fails"}, .undo = [&](JobRun&) -> std::optional<Outcome> {
        engine.executor().async().abort(other, {}, [](const Status&) {});
        engine.executor().run_until_idle(1);
        return std::nullopt;
      }};
  engine.world.scripts["left"] = {.steps = 2};
  engine.world.scripts["fails"] = {.run = [](JobRun&) { return Say::fail("bad"); }};
  engine.world.scripts["waits"] = {.children = {"left", "left", "asks"}};
  engine.world.scripts["asks"] = {
      .steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
        const auto* value =
            run.ctx.await<std::string>([&](auto c) { engine.world.ask(std::move(c)); });
        return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
      }};
  engine.open();
  other = engine.submit("waits");
  engine.run();
  std::vector<ProcedureId> failing;
  for (int i = 0; i < 5; ++i) failing.push_back(engine.submit("parent"));
  engine.run();

  for (const ProcedureId id : failing) CHECK(engine.result(id).status.message() == "bad");
  CHECK(engine.result(other).status.code() == StatusCode::kAborted);
  CHECK(engine.world.journal.count("undo parent.1") == 5);
}

TEST_CASE("a meta procedure waits for the step that runs and not for the run of its worker") {
  EngineWorld engine;
  engine.world.scripts["meta"] = {.steps = 1, .locks = meta()};
  engine.world.scripts["first"] = submits_meta(engine);
  Entries expected = {"do first.1", "do meta.1"};
  for (int i = 0; i < kRun; ++i) {
    const std::string name = "t" + std::to_string(i);
    engine.world.scripts[name] = {.steps = 1, .locks = table(name)};
    expected.push_back("do " + name + ".1");
  }
  engine.open();
  engine.submit("first");
  for (int i = 0; i < kRun; ++i) engine.submit("t" + std::to_string(i));

  engine.run();

  CHECK(engine.journal() == expected);  // those that went back kept their order
  CHECK(engine.executor().inspect().live_procedures() == 0);
}

TEST_CASE("a meta procedure that waits for a lock does not wait for the run of its holder") {
  EngineWorld engine;
  LockSet both = meta();
  both.table("shop", "holder", LockMode::kExclusive);
  engine.world.scripts["meta"] = {.steps = 1, .locks = both};
  engine.world.scripts["first"] = submits_meta(engine);
  for (int i = 0; i < kRun; ++i) {
    const std::string name = "t" + std::to_string(i);
    engine.world.scripts[name] = {.steps = 1, .locks = table(name)};
  }
  engine.world.scripts["holder"] = {.steps = 1, .locks = table("holder")};
  engine.open();
  engine.submit("first");
  for (int i = 0; i < kRun; ++i) engine.submit("t" + std::to_string(i));
  engine.submit("holder");

  engine.run();

  const Entries journal = engine.journal();
  CHECK(place_of(journal, "do holder.1") == 1);
  CHECK(place_of(journal, "do meta.1") <= 3);
  CHECK(journal.size() == kRun + 3);
}

TEST_CASE(
    "a procedure that goes back with a lock granted in the queue runs after a durable grant") {
  EngineWorld engine;
  std::size_t grants_seen = 0;
  engine.world.scripts["meta"] = {.steps = 1, .locks = meta()};
  engine.world.scripts["holder"] = {.steps = 1, .locks = table("goods")};
  ProcedureId waiter;
  engine.world.scripts["waiter"] = {.steps = 1,
                                    .run = [&](JobRun&) -> std::optional<Outcome> {
                                      grants_seen += engine.describe(waiter).holds_locks;
                                      return std::nullopt;
                                    },
                                    .locks = table("goods")};
  engine.world.scripts["first"] = submits_meta(engine);
  engine.open();
  engine.submit("holder");
  waiter = engine.submit("waiter");
  engine.executor().run_until_idle(1);  // the waiter was granted its lock, and no record says so
  engine.submit("first");
  engine.submit("first");
  engine.run();
  CHECK(grants_seen == 1);
  CHECK(engine.world.journal.count("do meta.1") == 2);
  CHECK(engine.executor().inspect().live_procedures() == 0);
}

TEST_CASE("an idle reserved worker takes over the top work that another worker has polled") {
  const int place = GENERATE(0, 1, kRun / 2, kRun - 1);  // of the slow step in the run
  const bool keeps_records = GENERATE(true, false);
  CAPTURE(place, keeps_records);
  World world;
  std::latch ordinary_runs(1);
  std::latch reserved_runs(1);
  std::latch ordinary_gate(1);
  std::latch reserved_gate(1);
  std::latch slow_runs(1);
  std::latch slow_may_end(1);
  std::atomic<int> begun = 0;
  const LockSet shared = std::move(LockSet().meta(LockMode::kShared));
  world.scripts["ordinary gate"] = {.steps = 1,
                                    .run = [&](JobRun&) -> std::optional<Outcome> {
                                      ordinary_runs.count_down();
                                      ordinary_gate.wait();
                                      return std::nullopt;
                                    },
                                    .locks = table("gate")};
  world.scripts["reserved gate"] = {.steps = 1,
                                    .run = [&](JobRun&) -> std::optional<Outcome> {
                                      reserved_runs.count_down();
                                      reserved_gate.wait();
                                      return std::nullopt;
                                    },
                                    .locks = shared};
  world.scripts["meta"] = {.steps = 1,
                           .run = [&](JobRun&) -> std::optional<Outcome> {
                             if (begun.fetch_add(1) != place) return std::nullopt;
                             slow_runs.count_down();
                             slow_may_end.wait();
                             return std::nullopt;
                           },
                           .locks = shared};
  ExecutorOptions options =
      with_workers(world, keeps_records ? threaded(std::make_shared<MemoryDisk>()) : noop(), 2);
  std::latch others_ended(kRun - 1);
  std::atomic<int> ended = 0;
  options.reserved_workers = 1;
  const auto executor = started(std::move(options));
  REQUIRE(executor->submit(Job(world, "ordinary gate")).ok());
  ordinary_runs.wait();  // so that only the reserved worker is free for the other one
  REQUIRE(executor->submit(Job(world, "reserved gate")).ok());
  reserved_runs.wait();
  std::vector<ProcedureId> ids;
  for (int i = 0; i < kRun; ++i) ids.push_back(executor->submit(Job(world, "meta"))->id);
  ordinary_gate.count_down();
  slow_runs.wait();
  reserved_gate.count_down();

  for (const ProcedureId id : ids) {
    executor->async().wait(id, [&](const Result<ProcedureResult>& result) {
      if (result.ok() && result->status.ok() && ++ended < kRun) others_ended.count_down();
    });
  }
  others_ended.wait();  // hangs if they wait for the slow step
  slow_may_end.count_down();
  for (const ProcedureId id : ids) CHECK(executor->wait(id)->status.ok());
}

TEST_CASE(
    "an idle reserved worker takes the holder that a meta procedure waits for from another run") {
  World world;
  Crowd crowd;
  std::latch gate_runs(1);
  std::latch gate(1);
  world.scripts["gate"] = {.steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
                             gate_runs.count_down();
                             gate.wait();
                             return std::nullopt;
                           }};
  crowd.script(world);
  world.scripts["holder"] = {.steps = 1, .locks = table("holder")};
  world.scripts["table"] = {.steps = 1, .locks = table("other")};
  world.scripts["slow"] = {
      .steps = 1, .run = [&](JobRun&) { return crowd.run(); }, .locks = table("slow")};
  LockSet both = meta();
  both.table("shop", "holder", LockMode::kExclusive);
  world.scripts["meta"] = {.steps = 1, .locks = both};
  ExecutorOptions options = with_workers(world, threaded(std::make_shared<MemoryDisk>()), 2);
  options.reserved_workers = 1;
  const auto executor = started(std::move(options));
  REQUIRE(executor->submit(Job(world, "gate")).ok());
  gate_runs.wait();
  REQUIRE(executor->submit(Job(world, "slow")).ok());
  REQUIRE(executor->submit(Job(world, "table")).ok());
  const ProcedureId holder = executor->submit(Job(world, "holder"))->id;
  gate.count_down();
  crowd.first_runs.wait();

  const ProcedureId urgent = executor->submit(Job(world, "meta"))->id;

  CHECK(executor->wait(urgent)->status.ok());  // hangs if it waits for the slow step
  CHECK(executor->wait(holder)->status.ok());
  crowd.first_may_end.count_down();
}

// Steps that wait for each other, as many as there are workers: each idle worker has to come and
// take one, out of whichever run it waits in. The workers of this test would sleep for ever
// otherwise; in a program they look again after a second.
TEST_CASE("no procedure that waits in a run is forgotten while a worker sleeps") {
  struct Case {
    bool keeps_records;
    unsigned workers;
    int meet;  // as many steps wait for each other
    int others;
  };
  const Case as = GENERATE(Case{true, 3, 3, 0}, Case{true, 4, 3, 2}, Case{true, 16, 8, 8},
                           Case{false, 3, 3, 0}, Case{false, 16, 9, 32});
  CAPTURE(as.keeps_records, as.workers, as.meet);
  World world;
  std::barrier all(as.meet);
  world.scripts["meets"] = {.steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
                              all.arrive_and_wait();
                              return std::nullopt;
                            }};
  world.scripts["other"] = {.steps = 1};
  auto store = as.keeps_records ? threaded(std::make_shared<MemoryDisk>()) : noop();
  ExecutorOptions options = with_workers(world, std::move(store), as.workers);
  options.clock = std::make_shared<SystemClock>();
  options.scheduler = std::make_unique<PatientScheduler>(*options.clock);
  const auto executor = started(std::move(options));
  for (int round = 0; round < 200; ++round) {
    std::latch ended(as.meet + as.others);
    for (int i = 0; i < as.meet + as.others; ++i) {
      executor->async(CallbackThread::kEngine)
          .execute(Job(world, i < as.meet ? "meets" : "other"), {},
                   [&](const Result<ProcedureResult>&) { ended.count_down(); });
    }
    ended.wait();
  }
}

}  // namespace pv2::testing::worker_runs_test
