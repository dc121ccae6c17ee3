// SPDX-License-Identifier: Apache-2.0
//
// Whom a worker wakes for the procedures that it queues: nobody for those that it takes itself,
// because it polls next; another worker if it goes on with other procedures, or does something that
// may take long before it polls. And how many it takes itself.

#include <pv2/scheduler/master_procedure_scheduler.h>
#include <pv2/store/memory_procedure_store.h>
#include <pv2/store/noop_procedure_store.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/engine_world.h"

namespace pv2::testing::who_wakes_test {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<ProcedureStore> threaded() {
  return memory(std::make_shared<MemoryDisk>(), {.mode = MemoryStoreOptions::Mode::kThread});
}

LockSet lock(const std::string& name) {
  return std::move(LockSet().table("shop", name, LockMode::kExclusive));
}

// Counts the calls that may wake a worker for each procedure that they queue, and notes what
// workers take for themselves.
class WatchedScheduler final : public MasterProcedureScheduler {
 public:
  explicit WatchedScheduler(const Clock& clock) : MasterProcedureScheduler(clock) {}
  std::size_t settle(EntryList&& batch, SchedulerCaller caller) override {
    if (caller.own == 0) calls_of_anybody_.fetch_add(1);
    note_seat(caller.seat);
    note_own(caller.own);
    return MasterProcedureScheduler::settle(std::move(batch), caller);
  }
  std::size_t poll(std::span<SchedulerEntry*> run, std::chrono::milliseconds patience,
                   SchedulerCaller caller) override {
    note_own(caller.own);
    note_seat(caller.seat);
    return MasterProcedureScheduler::poll(run, patience, caller);
  }
  void wake_for_ready() override {
    wakes_after_all_.fetch_add(1);
    MasterProcedureScheduler::wake_for_ready();
  }
  [[nodiscard]] std::uint64_t calls_of_anybody() const { return calls_of_anybody_.load(); }
  [[nodiscard]] std::uint64_t wakes_after_all() const { return wakes_after_all_.load(); }
  [[nodiscard]] std::size_t most_own() const { return most_own_.load(); }
  /// The seats of all calls, a bit for each.
  [[nodiscard]] std::uint64_t seats() const { return seats_.load(); }

 private:
  void note_seat(std::size_t seat) { seats_.fetch_or(std::uint64_t{1} << seat); }
  void note_own(std::size_t own) {
    std::size_t most = most_own_.load();
    while (most < own && !most_own_.compare_exchange_weak(most, own)) {
    }
  }

  std::atomic<std::size_t> most_own_{0};
  std::atomic<std::uint64_t> seats_{0};
  std::atomic<std::uint64_t> calls_of_anybody_{0};
  std::atomic<std::uint64_t> wakes_after_all_{0};
};

// An executor that has not started.
struct WatchedWorkers {
  World world;
  const std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  const WatchedScheduler* scheduler = nullptr;
  std::unique_ptr<ProcedureExecutor> executor;
  std::vector<ProcedureId> ids;

  explicit WatchedWorkers(std::unique_ptr<ProcedureStore> store, unsigned count = 2,
                          unsigned reserved = 0) {
    auto watched = std::make_unique<WatchedScheduler>(*clock);
    scheduler = watched.get();
    ExecutorOptions options;
    options.store = std::move(store);
    add_job_types(options.registry, world);
    options.workers = count;
    options.reserved_workers = reserved;
    options.log = {};
    options.scheduler = std::move(watched);
    options.clock = clock;
    auto opened = ProcedureExecutor::open(std::move(options));
    REQUIRE(opened.status().to_string() == "OK");
    executor = *std::move(opened);
  }
  void submit(const std::string& name) { ids.push_back(executor->submit(Job(world, name))->id); }
  // Runs what was submitted to its end. Returns how often another thread queued a procedure, or a
  // worker that does not poll next.
  std::uint64_t run() {
    const std::uint64_t before = scheduler->calls_of_anybody();
    executor->start();
    for (const ProcedureId id : ids) CHECK(executor->wait(id)->status.ok());
    return scheduler->calls_of_anybody() - before;
  }
};

}  // namespace

// A worker that is held up may lose records to the other one, so some calls are allowed.
TEST_CASE("procedures that want one lock follow each other, and wake no worker for each of them") {
  constexpr std::uint64_t kMany = 300;
  const bool keeps_records = GENERATE(false, true);
  const bool are_long = GENERATE(false, true);  // steps after which a worker ends its run
  WatchedWorkers workers(keeps_records ? threaded() : noop());
  workers.world.scripts["a"] = {.steps = 2,
                                .run = [&](JobRun&) -> std::optional<Outcome> {
                                  if (are_long) workers.clock->advance(1ms);
                                  return std::nullopt;
                                },
                                .locks = lock("one")};
  for (std::uint64_t i = 0; i < kMany; ++i) workers.submit("a");
  CHECK(workers.run() < kMany);
}

TEST_CASE("each worker has a seat of its own, but none if its records share a sync with others") {
  const bool keeps_records = GENERATE(false, true);
  const unsigned reserved = GENERATE(0U, 1U);  // the first worker, which takes top work only
  const unsigned others = 3 - reserved;
  WatchedWorkers workers(keeps_records ? threaded() : noop(), 3, reserved);
  std::barrier all_run(others);
  std::latch others_are_busy(others);
  std::latch top_has_run(1);
  workers.world.scripts["a"] = {.steps = 2, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                  all_run.arrive_and_wait();
                                  if (run.step == 1) {
                                    others_are_busy.count_down();
                                    top_has_run.wait();
                                  }
                                  return std::nullopt;
                                }};
  workers.world.scripts["top"] = {.steps = 2, .locks = LockSet().meta(LockMode::kExclusive)};
  for (unsigned i = 0; i < others; ++i) workers.submit("a");
  workers.executor->start();
  others_are_busy.wait();
  if (reserved != 0) CHECK(workers.executor->execute(Job(workers.world, "top"))->status.ok());
  top_has_run.count_down();
  workers.run();
  constexpr std::uint64_t kNobody = 1;
  const std::uint64_t seats = keeps_records ? 0 : reserved == 0 ? 0b1110 : 0b1100;
  CHECK(workers.scheduler->seats() == (kNobody | seats));
}

TEST_CASE("what a worker queues while it goes on with another procedure is for other workers") {
  WatchedWorkers workers(noop(), 1);
  workers.world.scripts["long"] = {.steps = 3, .locks = lock("other")};
  workers.world.scripts["a"] = {.steps = 1, .locks = lock("one")};
  workers.submit("long");
  workers.submit("a");
  workers.submit("a");
  // The first "a" ends in the round after which "long" goes on; then the second one has the lock.
  CHECK(workers.run() != 0);
}

TEST_CASE("a worker that calls a crowd before it polls wakes another one after all") {
  const int callbacks = GENERATE(0, 1, 2000);  // none, one, a crowd
  WatchedWorkers workers(noop(), 1);
  workers.world.scripts["a"] = {.steps = 1, .locks = lock("one")};
  workers.submit("a");
  std::atomic<int> called = 0;
  for (int i = 0; i < callbacks; ++i) {
    workers.executor->async(CallbackThread::kEngine)
        .wait(workers.ids.front(), [&](const Result<ProcedureResult>&) { ++called; });
  }
  workers.ids.clear();
  workers.submit("a");  // only this one is waited for
  CHECK(workers.run() == 0);
  CHECK(called == callbacks);
  CHECK(workers.scheduler->wakes_after_all() == (callbacks == 2000 ? 1 : 0));
}

// Each callback of the first run submits two procedures, and so causes two callbacks more, which
// are called after the new procedures were queued.
TEST_CASE("a worker that calls more callbacks than a run has procedures wakes another one first") {
  const int procedures = GENERATE(30, 40);
  WatchedWorkers workers(noop(), 1);
  workers.world.scripts["a"] = {.steps = 1};
  const AsyncExecutor async = workers.executor->async(CallbackThread::kEngine);
  std::latch ended(2 * procedures);
  const auto wait_for_end = [&](const Result<Submitted>& second) {
    async.wait(second->id, [&](const Result<ProcedureResult>&) { ended.count_down(); });
  };
  for (int i = 0; i < procedures; ++i) {
    const ProcedureId id = workers.executor->submit(Job(workers.world, "a"))->id;
    async.wait(id, [&](const Result<ProcedureResult>&) {
      for (int more = 0; more < 2; ++more) {
        async.submit(Job(workers.world, "a"), {}, wait_for_end);
      }
    });
  }
  workers.executor->start();
  ended.wait();
  CHECK(workers.scheduler->wakes_after_all() == (procedures == 40 ? 1 : 0));
}

// Records of one run share a sync, so a worker keeps as many procedures as it runs in the time that
// a second sync would take. Without records other workers get their share.
TEST_CASE("a worker takes for itself as many procedures as are not worth another sync") {
  struct Case {
    bool keeps_records;
    Duration step_takes;
    std::size_t own_least;
    std::size_t own_most;
  };
  const Case as = GENERATE(Case{true, 0us, 64, 64}, Case{true, 10us, 1, 64}, Case{true, 1ms, 1, 1},
                           Case{false, 0us, 1, 1});
  WatchedWorkers workers(as.keeps_records ? threaded() : noop());
  workers.world.scripts["a"] = {.steps = 3, .run = [&](JobRun&) -> std::optional<Outcome> {
                                  workers.clock->advance(as.step_takes);
                                  return std::nullopt;
                                }};
  for (int i = 0; i < 200; ++i) workers.submit("a");
  (void)workers.run();
  const std::size_t own = workers.scheduler->most_own();
  CHECK(own >= as.own_least);
  CHECK(own <= as.own_most);
}

}  // namespace pv2::testing::who_wakes_test
