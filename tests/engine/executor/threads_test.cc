// SPDX-License-Identifier: Apache-2.0
//
// The engine under real workers, a real committer and real pool threads: for the sanitizers first
// of all, and for what only races can show. Thousands of procedures with trees, failures, retries,
// waits answered from other threads, locks and duplicates; stopped in the middle, and opened again.
// Nothing here measures time. (Rows 32, 62, 64, 65, 88, 110, X1.)

#include <pv2/store/noop_procedure_store.h>

#include <atomic>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "support/engine_world.h"

namespace pv2::testing::threads_test {
namespace {

using namespace std::chrono_literals;

// Something outside the engine that answers questions from a thread of its own, until it is
// closed.
class Service {
 public:
  Service() : thread_([this] { answer_all(); }) {}
  ~Service() {
    {
      const std::scoped_lock lock(questions_mutex_);
      closed_ = true;
    }
    arrived_.notify_one();
    thread_.join();
  }
  void ask(Completion<std::string> completion) {
    {
      const std::scoped_lock lock(questions_mutex_);
      questions_.push_back(std::move(completion));
    }
    arrived_.notify_one();
  }

 private:
  void answer_all() {
    for (;;) {
      std::vector<Completion<std::string>> questions;
      {
        std::unique_lock lock(questions_mutex_);
        arrived_.wait(lock, [this] { return closed_ || !questions_.empty(); });
        if (questions_.empty()) return;
        questions.swap(questions_);
      }
      for (const auto& completion : questions) completion("answered");
    }
  }

  std::mutex questions_mutex_;
  std::condition_variable arrived_;
  std::vector<Completion<std::string>> questions_;
  bool closed_ = false;
  std::thread thread_;  // last: it uses the members above
};

constexpr std::size_t kTables = 4;

// The kinds of work that are mixed below; a submission picks one by number.
constexpr const char* kKinds[] = {
    "plain",   "parent",     "failing parent", "retrying", "asking",   "early",      "offloading",
    "patient", "exclusive0", "exclusive1",     "shared0",  "by step2", "grandparent"};
bool succeeds(std::string_view kind) { return kind != "failing parent"; }

// A world of work for threads: everything it holds outlives the executors.
struct BusyWorld {
  World world;
  Service service;
  std::atomic<int> inside[kTables] = {};  // how many hold the table exclusively
  std::atomic<int> overlaps = 0;

  BusyWorld() {
    auto& scripts = world.scripts;
    scripts["plain"] = {.steps = 3};
    scripts["leaf"] = {.steps = 2};
    scripts["parent"] = {.children = {"leaf", "leaf", "asking"}};
    scripts["grandparent"] = {.children = {"parent", "parent"}};
    scripts["bad leaf"] = {.run = [](JobRun& run) {
      return run.step == 2 ? std::optional(Say::fail("bad")) : std::nullopt;
    }};
    scripts["failing parent"] = {.children = {"leaf", "bad leaf", "asking", "bad leaf", "leaf"}};
    scripts["retrying"] = {.run = [](JobRun& run) {
      return run.step == 2 && run.ctx.attempt() < 4 ? std::optional(Say::retry("again"))
                                                    : std::nullopt;
    }};
    scripts["asking"] = {.run = [this](JobRun& run) -> std::optional<Outcome> {
      if (run.step != 2) return std::nullopt;
      const auto* value = run.ctx.await<std::string>([this](auto c) { service.ask(std::move(c)); });
      if (value == nullptr) return Say::wait();
      return std::nullopt;
    }};
    scripts["early"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
      const auto* value = run.ctx.await<int>([](const auto& completion) { completion(7); });
      return value == nullptr ? std::optional(Say::fail("it was there")) : std::nullopt;
    }};
    scripts["offloading"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
      const auto* one = run.ctx.offload([] { return 1; });
      const auto* two = run.ctx.offload([]() -> Status { throw std::runtime_error("thrown"); });
      if (one == nullptr || two == nullptr) return Say::wait();
      return two->ok() ? std::optional(Say::fail("what is thrown arrives")) : std::nullopt;
    }};
    scripts["patient"] = {.run = [this](JobRun& run) -> std::optional<Outcome> {
      if (run.step != 2 || run.ctx.timed_out()) return std::nullopt;
      const auto* value = run.ctx.await<std::string>([this](auto c) { service.ask(std::move(c)); });
      return value == nullptr ? std::optional(Say::wait_for(1us)) : std::nullopt;
    }};
    for (std::size_t table = 0; table < kTables; ++table) {
      const std::string name = std::to_string(table);
      scripts["exclusive" + name] = {.run = [this, table](JobRun&) { return work_on(table); },
                                     .locks = lock_on(table, LockMode::kExclusive)};
      scripts["shared" + name] = {.run = [this, table](JobRun&) -> std::optional<Outcome> {
                                    if (inside[table] != 0) ++overlaps;
                                    return std::nullopt;
                                  },
                                  .locks = lock_on(table, LockMode::kShared)};
      scripts["by step" + name] = {
          .run = [this, table](JobRun&) { return work_on(table); },
          .locks = lock_on(table, LockMode::kExclusive).scope(LockScope::kStep)};
    }
  }

  static LockSet lock_on(std::size_t table, LockMode mode) {
    return LockSet().table("busy", std::to_string(table), mode);
  }
  std::optional<Outcome> work_on(std::size_t table) {
    if (inside[table].fetch_add(1) != 0) ++overlaps;
    inside[table].fetch_sub(1);
    return std::nullopt;
  }

  std::unique_ptr<ProcedureExecutor> open(std::unique_ptr<ProcedureStore> store, unsigned workers,
                                          unsigned reserved = 0) {
    ExecutorOptions options;
    options.store = std::move(store);
    add_job_types(options.registry, world);
    options.workers = workers;
    options.reserved_workers = reserved;
    options.pool_threads = 2;
    options.retry = {.base = 20us, .cap = 100us};
    options.log = {};
    auto executor = open_executor(std::move(options));
    executor->start();
    return executor;
  }
};

// What clients saw, over several executors. Thread-safe.
struct Clients {
  std::mutex seen_mutex;
  std::map<std::uint64_t, ProcedureId> ids;
  std::map<std::uint64_t, ProcedureResult> results;
  std::vector<std::string> troubles;

  void submitted(std::uint64_t key, const Result<Submitted>& answer) {
    const std::scoped_lock lock(seen_mutex);
    if (!answer.ok()) {
      if (answer.status().code() != StatusCode::kStopping) {
        troubles.push_back(answer.status().to_string());
      }
      return;
    }
    const auto [at, first] = ids.emplace(key, answer->id);
    if (at->second != answer->id) troubles.push_back("two ids for nonce " + std::to_string(key));
  }
  void ended(std::uint64_t key, const Result<ProcedureResult>& answer) {
    const std::scoped_lock lock(seen_mutex);
    if (!answer.ok()) {
      if (answer.status().code() != StatusCode::kStopping) {
        troubles.push_back(answer.status().to_string());
      }
      return;
    }
    const auto [at, first] = results.emplace(key, *answer);
    if (at->second.result != answer->result) troubles.push_back("two results");
  }
};

const char* kind_of(std::uint64_t key) { return kKinds[key % std::size(kKinds)]; }

}  // namespace

TEST_CASE("thousands of procedures from several threads all end as they should") {
  const bool durable = GENERATE(true, false);
  const unsigned workers = GENERATE(1U, 2U, 4U);
  CAPTURE(durable, workers);
  BusyWorld busy;
  Clients clients;
  auto executor = busy.open(
      durable ? memory(std::make_shared<MemoryDisk>(), {.mode = MemoryStoreOptions::Mode::kThread})
              : noop(),
      workers);

  constexpr std::uint64_t kKeys = 2000;
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {  // every key is submitted by two of the three
      for (std::uint64_t key = 1; key <= kKeys; ++key) {
        if (key % 3 == thread) continue;
        const auto answer =
            executor->submit(Job(busy.world, kind_of(key)), {.nonce = {1, key}, .owner = "t"});
        clients.submitted(key, answer);
        if (answer.ok()) clients.ended(key, executor->wait(answer->id));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  CHECK(clients.troubles.empty());
  CHECK(clients.ids.size() == kKeys);
  REQUIRE(clients.results.size() == kKeys);
  for (const auto& [key, result] : clients.results) {
    INFO(kind_of(key));
    CHECK(result.status.ok() == succeeds(kind_of(key)));
  }
  CHECK(busy.overlaps == 0);
  CHECK(executor->inspect().live_procedures() == 0);
  CHECK(executor->inspect().locks().empty());
}

TEST_CASE("all work ends on executors that are stopped under load and opened again") {
  const unsigned workers = GENERATE(1U, 3U);
  BusyWorld busy;
  Clients clients;
  const auto disk = std::make_shared<MemoryDisk>();
  constexpr std::uint64_t kKeys = 1000;
  for (std::uint64_t until : {1, 100, 501, 0}) {  // the results before the stop; 0: all of them
    CAPTURE(until);
    auto executor = busy.open(memory(disk, {.mode = MemoryStoreOptions::Mode::kThread}), workers);
    std::latch enough(static_cast<std::ptrdiff_t>(until == 0 ? kKeys : until));
    std::atomic<std::ptrdiff_t> left = static_cast<std::ptrdiff_t>(until == 0 ? kKeys : until);
    for (std::uint64_t key = 1; key <= kKeys; ++key) {
      executor->async().submit(Job(busy.world, kind_of(key)), {.nonce = {1, key}},
                               [&, key, running = executor.get()](Result<Submitted> answer) {
                                 clients.submitted(key, answer);
                                 if (!answer.ok()) return;
                                 running->async().wait(answer->id,
                                                       [&, key](Result<ProcedureResult> result) {
                                                         clients.ended(key, result);
                                                         if (result.ok() && left.fetch_sub(1) > 0)
                                                           enough.count_down();
                                                       });
                               });
    }
    enough.wait();
    if (until % 2 == 0) executor->stop();
    executor.reset();  // stops it, unless stop() was called
  }

  CHECK(clients.troubles.empty());
  REQUIRE(clients.results.size() == kKeys);
  for (const auto& [key, result] : clients.results) {
    INFO(kind_of(key));
    CHECK(result.status.ok() == succeeds(kind_of(key)));
  }
  CHECK(busy.overlaps == 0);
  CHECK(disk->rows() - disk->rows(Space::kEngine, "schema:") ==
        1 + 3 * kKeys);  // the watermark; result, date and nonce of each
}

TEST_CASE("if the store fails under load every caller is answered, and all work goes on later") {
  BusyWorld busy;
  Clients clients;
  const auto disk = std::make_shared<MemoryDisk>();
  constexpr std::uint64_t kKeys = 600;
  for (const std::size_t commits : {2, 7, 90, 1500, 0}) {
    CAPTURE(commits);
    auto faults =
        std::make_unique<FaultStore>(memory(disk, {.mode = MemoryStoreOptions::Mode::kThread}));
    if (commits != 0)
      faults->fail_commit(commits, Status(StatusCode::kIoError, "the disk is gone"));
    auto executor = busy.open(std::move(faults), 3);
    std::latch answered(static_cast<std::ptrdiff_t>(kKeys));
    std::atomic<std::size_t> told = 0;
    for (std::uint64_t key = 1; key <= kKeys; ++key) {
      executor->async().submit(Job(busy.world, kind_of(key)), {.nonce = {1, key}},
                               [&, key, running = executor.get()](Result<Submitted> answer) {
                                 if (!answer.ok()) {
                                   answered.count_down();
                                   return;
                                 }
                                 clients.submitted(key, answer);
                                 running->async().wait(answer->id,
                                                       [&, key](Result<ProcedureResult> result) {
                                                         if (result.ok()) {
                                                           clients.ended(key, result);
                                                           ++told;
                                                         }
                                                         answered.count_down();
                                                       });
                               });
    }
    answered.wait();
    CHECK(executor->health().ok() == (commits == 0));
    if (commits == 0) CHECK(told == kKeys);
  }
  CHECK(clients.troubles.empty());
  CHECK(clients.results.size() == kKeys);
}

TEST_CASE("answers that come while an executor is destroyed, and after that, do no harm") {
  BusyWorld busy;
  std::vector<Completion<std::string>> late;
  std::mutex late_mutex;
  std::latch asked(64);
  busy.world.scripts["late"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
    const auto* value = run.ctx.await<std::string>([&](auto completion) {
      const std::scoped_lock lock(late_mutex);
      late.push_back(std::move(completion));
      if (late.size() <= 64) asked.count_down();
    });
    return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
  }};
  auto executor = busy.open(memory(), 2);
  // An executor whose store nobody pumps can be destroyed, too.
  executor.reset();
  const auto disk = std::make_shared<MemoryDisk>();
  executor = busy.open(memory(disk, {.mode = MemoryStoreOptions::Mode::kThread}), 2);
  for (int i = 0; i < 64; ++i) {
    executor->async().submit(Job(busy.world, "late"), {}, [](Result<Submitted>) {});
  }
  asked.wait();

  std::vector<Completion<std::string>> taken;
  {
    const std::scoped_lock lock(late_mutex);
    taken = late;
  }
  std::thread answering([&taken] {
    for (const auto& completion : taken) completion("late");
  });
  executor.reset();
  answering.join();
  for (const auto& completion : taken) completion("too late");

  // The late jobs wait again in the next life. Nobody answers them, and the executor still ends.
  executor = busy.open(memory(disk, {.mode = MemoryStoreOptions::Mode::kThread}), 2);
  executor.reset();
}

TEST_CASE("a listing, a description and the locks can be read while everything runs") {
  BusyWorld busy;
  auto executor = busy.open(
      memory(std::make_shared<MemoryDisk>(), {.mode = MemoryStoreOptions::Mode::kThread}), 2);
  constexpr int kJobs = 300;
  std::latch ended(kJobs);
  std::atomic<bool> over = false;
  std::thread reader([&] {
    while (!over) {
      for (const ProcedureInfo& info : executor->inspect().list()) {
        const auto again = executor->inspect().describe(info.id);
        if (again.ok() && again->type != info.type) std::abort();
      }
      (void)executor->inspect().locks();
      (void)executor->inspect().live_procedures();
    }
  });
  for (std::uint64_t key = 0; key < kJobs; ++key) {
    executor->async().submit(Job(busy.world, kind_of(key)), {}, [&](Result<Submitted> answer) {
      executor->async().wait(answer->id,
                             [&](const Result<ProcedureResult>&) { ended.count_down(); });
    });
  }
  ended.wait();
  over = true;
  reader.join();
  CHECK(executor->inspect().live_procedures() == 0);
}

TEST_CASE("a reserved worker runs urgent work while ordinary work blocks all the others") {
  // A step that blocks is a fault of the host's; here it stands for any ordinary work that takes
  // all workers that it can get.
  std::latch urgent_ran(1);
  BusyWorld busy;
  busy.world.scripts["ordinary"] = {.steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
                                      urgent_ran.wait();
                                      return std::nullopt;
                                    }};
  busy.world.scripts["urgent"] = {.steps = 1,
                                  .run = [&](JobRun&) -> std::optional<Outcome> {
                                    urgent_ran.count_down();
                                    return std::nullopt;
                                  },
                                  .locks = LockSet().meta(LockMode::kExclusive)};
  auto executor = busy.open(noop(), 3, 1);
  std::vector<ProcedureId> ordinary;
  for (int i = 0; i < 100; ++i) {
    const auto submitted = executor->submit(Job(busy.world, "ordinary"));
    REQUIRE(submitted.ok());
    ordinary.push_back(submitted->id);
  }

  const auto urgent = executor->submit(Job(busy.world, "urgent"));

  REQUIRE(urgent.ok());
  CHECK(executor->wait(urgent->id)->status.ok());  // hangs if no worker is kept for it
  for (const ProcedureId id : ordinary) CHECK(executor->wait(id)->status.ok());
}

TEST_CASE("a slow step holds up no other procedure while another worker is idle") {
  const bool keeps_records = GENERATE(false, true);
  const std::size_t place = GENERATE(range<std::size_t>(0, 100));  // of the slow one in the queue
  std::latch all_queued(1);
  std::latch others_ended(1);
  BusyWorld busy;
  busy.world.scripts["gate"] = {.steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
                                  all_queued.wait();
                                  return std::nullopt;
                                }};
  busy.world.scripts["quick"] = {.steps = 2};
  busy.world.scripts["slow"] = {.steps = 2, .run = [&](JobRun&) -> std::optional<Outcome> {
                                  others_ended.wait();
                                  return std::nullopt;
                                }};
  const auto disk = std::make_shared<MemoryDisk>();
  auto executor = busy.open(
      keeps_records ? memory(disk, {.mode = MemoryStoreOptions::Mode::kThread}) : noop(), 2);
  for (int i = 0; i < 2; ++i) REQUIRE(executor->submit(Job(busy.world, "gate")).ok());
  ProcedureId slow;
  std::vector<ProcedureId> quick;
  for (std::size_t i = 0; i < 100; ++i) {
    const auto submitted = executor->submit(Job(busy.world, i == place ? "slow" : "quick"));
    REQUIRE(submitted.ok());
    if (i == place) {
      slow = submitted->id;
    } else {
      quick.push_back(submitted->id);
    }
  }

  all_queued.count_down();
  for (const ProcedureId id : quick) CHECK(executor->wait(id)->status.ok());  // or hangs
  others_ended.count_down();
  CHECK(executor->wait(slow)->status.ok());
}

TEST_CASE("a worker publishes the commits that are left to it before it runs a step") {
  constexpr std::ptrdiff_t kMany = 1000;  // many more than the committer itself publishes
  std::latch all_known(kMany);
  BusyWorld busy;
  busy.world.scripts["waits"] = {.steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
                                   all_known.wait();  // hangs if a caller is told after it
                                   return std::nullopt;
                                 }};
  auto owned = memory(std::make_shared<MemoryDisk>(), {.mode = MemoryStoreOptions::Mode::kPump});
  ProcedureStore& store = *owned;
  auto executor = busy.open(std::move(owned), 1);
  for (std::ptrdiff_t i = 0; i < kMany; ++i) {
    executor->async().submit(Job(busy.world, "waits"), {}, [&](const Result<Submitted>& submitted) {
      if (submitted.ok()) all_known.count_down();
    });
  }

  while (store.pump()) {  // as the committer, which leaves long lists to a worker
  }

  all_known.wait();
  while (executor->inspect().live_procedures() != 0) {
    if (!store.pump()) std::this_thread::yield();
  }
}

TEST_CASE("offloaded work that hangs holds up neither callbacks nor the end of a deadlock") {
  std::latch hang(2);
  std::latch mended(1);
  std::latch told(1);
  std::latch called(3);
  std::atomic_flag heard;
  World world;
  world.scripts["hangs"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                              const auto* value = run.ctx.offload([&] {
                                hang.count_down();
                                mended.wait();
                              });
                              return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
                            }};
  const auto lock = [](const char* table) {
    return LockSet().table("shop", table, LockMode::kExclusive);
  };
  world.scripts["older"] = {.children = {"older child"}, .locks = lock("orders")};
  world.scripts["older child"] = {.steps = 1, .locks = lock("goods")};
  world.scripts["younger"] = {.children = {"younger child"}, .locks = lock("goods")};
  world.scripts["younger child"] = {.steps = 1, .locks = lock("orders")};
  world.scripts["quick"] = {.steps = 1};
  const auto disk = std::make_shared<MemoryDisk>();
  auto faults =
      std::make_unique<FaultStore>(memory(disk, {.mode = MemoryStoreOptions::Mode::kThread}));
  FaultStore& store = *faults;
  ExecutorOptions options;
  options.store = std::move(faults);
  add_job_types(options.registry, world);
  options.pool_threads = 2;
  options.log = {};
  options.on_store_failure = [&](const Status&) { told.count_down(); };
  auto executor = *ProcedureExecutor::open(std::move(options));
  executor->start();
  for (int i = 0; i < 5; ++i) REQUIRE(executor->submit(Job(world, "hangs")).ok());
  hang.wait();

  SECTION("the host hears that the store has failed") {
    store.fail_commit(store.commits() + 1, Status(StatusCode::kIoError, "the disk is gone"));
    CHECK_FALSE(executor->submit(Job(world, "quick")).ok());
    told.wait();  // hangs if it is queued behind that work
  }
  SECTION("a deadlock is ended") {
    // With two workers the trees may miss each other, and then both succeed.
    const auto older = executor->submit(Job(world, "older"));
    const auto younger = executor->submit(Job(world, "younger"));
    CHECK(executor->wait(older->id)->status.ok());
    const auto result = executor->wait(younger->id);
    if (!result->status.ok()) CHECK(result->status.code() == StatusCode::kDeadlock);
  }
  SECTION("callbacks and listeners are called") {
    const auto news_heard = executor->listen([&](const ProcedureNews& news) {
      if (news.kind == ProcedureNews::Kind::kFinished && !heard.test_and_set()) called.count_down();
    });
    executor->async().submit(Job(world, "quick"), {}, [&](const Result<Submitted>& submitted) {
      called.count_down();
      executor->async().wait(submitted->id,
                             [&](const Result<ProcedureResult>&) { called.count_down(); });
    });
    called.wait();
  }
  mended.count_down();
}

TEST_CASE("under endless urgent work the least urgent work still runs, with real workers") {
  std::atomic<bool> least_ran{false};
  BusyWorld busy;
  busy.world.scripts["endless"] = {.steps = 1,
                                   .run = [&](JobRun&) -> std::optional<Outcome> {
                                     if (least_ran) return std::nullopt;
                                     return Say::again();
                                   },
                                   .priority = Priority::kMeta};
  busy.world.scripts["least"] = {.steps = 1,
                                 .run = [&](JobRun&) -> std::optional<Outcome> {
                                   least_ran = true;
                                   return std::nullopt;
                                 },
                                 .priority = Priority::kLow};
  auto executor = busy.open(noop(), 2);
  std::vector<ProcedureId> ids;
  for (const char* name : {"endless", "endless", "endless", "endless", "least"}) {
    const auto submitted = executor->submit(Job(busy.world, name));
    REQUIRE(submitted.ok());
    ids.push_back(submitted->id);
  }
  for (const ProcedureId id : ids) CHECK(executor->wait(id)->status.ok());
}

TEST_CASE("delayed procedures may be submitted while the executor is being started") {
  World world;
  world.scripts["a"] = {.steps = 1};
  for (int life = 0; life < 50; ++life) {
    ExecutorOptions options;
    options.store =
        memory(std::make_shared<MemoryDisk>(), {.mode = MemoryStoreOptions::Mode::kThread});
    add_job_types(options.registry, world);
    options.log = {};
    auto executor = *ProcedureExecutor::open(std::move(options));
    // The committer arms the timer during start(). Each deadline is earlier than the one before.
    std::latch ended(8);
    for (int i = 0; i < 8; ++i) {
      executor->async().submit(
          Job(world, "a"), {.delay = 20us - 2us * i}, [&](const Result<Submitted>& submitted) {
            executor->async().wait(submitted->id,
                                   [&](const Result<ProcedureResult>&) { ended.count_down(); });
          });
    }
    executor->start();
    ended.wait();
  }
}

TEST_CASE("any number of deadlines that pass at once are all met") {
  EngineWorld engine;
  engine.max_live_procedures = 10'000;
  engine.world.scripts["a"] = {.steps = 1};
  engine.open();
  constexpr std::size_t kJobs = 3000;
  for (std::size_t i = 0; i < kJobs; ++i) {
    engine.executor().async().submit(Job(engine.world, "a"), {.delay = 1h},
                                     [](const Result<Submitted>&) {});
  }
  engine.run();
  engine.advance(1h);
  CHECK(engine.world.journal.count("do a.1") == kJobs);
}

TEST_CASE("a wait with a timeout is answered once, whichever comes first") {
  BusyWorld busy;
  auto executor = busy.open(
      memory(std::make_shared<MemoryDisk>(), {.mode = MemoryStoreOptions::Mode::kThread}), 2);
  for (std::uint64_t key = 0; key < 300; ++key) {
    const auto submitted = executor->submit(Job(busy.world, kind_of(key)));
    REQUIRE(submitted.ok());
    const auto early = executor->wait(submitted->id, 0ms);
    if (!early.ok()) CHECK(early.status().code() == StatusCode::kDeadlineExceeded);
    CHECK(executor->wait(submitted->id).ok());
  }
}

TEST_CASE("aborts become durable while workers are in the last step") {
  World world;
  world.scripts["last"] = {.steps = 1};
  ExecutorOptions options;
  options.store =
      memory(std::make_shared<MemoryDisk>(), {.mode = MemoryStoreOptions::Mode::kThread});
  add_job_types(options.registry, world);
  options.workers = 2;
  options.log = {};
  const auto executor = open_executor(std::move(options));
  executor->start();
  const AsyncExecutor async = executor->async(CallbackThread::kEngine);
  constexpr int kJobs = 3'000;
  std::latch ended{kJobs};
  std::latch answered{kJobs};
  for (int i = 0; i < kJobs; ++i) {
    async.submit(Job(world, "last"), {}, [&](const Result<Submitted>& submitted) {
      async.abort(submitted->id, {}, [&](const Status&) { answered.count_down(); });
      async.wait(submitted->id, [&](const Result<ProcedureResult>&) { ended.count_down(); });
    });
  }
  ended.wait();
  answered.wait();
  CHECK(executor->inspect().live_procedures() == 0);
}

TEST_CASE("a batch of submissions all end, and acknowledged they leave nothing but the watermark") {
  World world;  // behaviour.md, rows 62, 88
  world.scripts["plain"] = {.steps = 2};
  world.scripts["tree"] = {.children = {"plain", "plain"}};
  const auto disk = std::make_shared<MemoryDisk>();
  ExecutorOptions options;
  options.store = memory(disk, {.mode = MemoryStoreOptions::Mode::kThread});
  add_job_types(options.registry, world);
  options.log = {};
  auto opened = ProcedureExecutor::open(std::move(options));
  REQUIRE(opened.ok());
  ProcedureExecutor& executor = **opened;
  executor.start();
  std::atomic<int> acknowledged = 0;
  std::vector<std::thread> clients;
  for (std::uint64_t client = 1; client <= 4; ++client) {
    clients.emplace_back([&, client] {
      std::vector<ProcedureId> ids;
      for (std::uint64_t key = 1; key <= 250; ++key) {
        const auto submitted =
            executor.submit(Job(world, key % 5 == 0 ? "tree" : "plain"), {.nonce = {client, key}});
        if (submitted.ok()) ids.push_back(submitted->id);
      }
      for (const ProcedureId id : ids) {
        if (executor.wait(id).ok() && executor.acknowledge(id).ok()) ++acknowledged;
      }
    });
  }
  for (std::thread& client : clients) client.join();

  CHECK(acknowledged == 1000);
  CHECK(executor.inspect().live_procedures() == 0);
  CHECK(disk->rows() - disk->rows(Space::kEngine) == 0);
}

TEST_CASE("an executor ends while another thread is about to tell it that the clock has moved") {
  const auto clock = std::make_shared<ManualClock>();
  std::latch moving(1);
  std::latch ended(1);
  clock->subscribe([&] {  // before the executor, so it is called first
    moving.count_down();
    ended.wait();
  });
  ExecutorOptions options;
  options.store = noop();
  options.clock = clock;
  std::unique_ptr<ProcedureExecutor> executor = ProcedureExecutor::open(std::move(options)).value();
  executor->start();
  std::thread mover([&] { clock->advance(1s); });
  moving.wait();
  executor.reset();
  ended.count_down();
  mover.join();
}

}  // namespace pv2::testing::threads_test
