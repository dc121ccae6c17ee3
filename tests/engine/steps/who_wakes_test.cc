// SPDX-License-Identifier: Apache-2.0
//
// Whom a worker wakes for the procedures that it queues: nobody for the one that it takes itself,
// because it polls next; another worker if it goes on with other procedures, or calls code of the
// host before it polls.

#include <pv2/scheduler/master_procedure_scheduler.h>
#include <pv2/store/memory_procedure_store.h>
#include <pv2/store/noop_procedure_store.h>

#include <atomic>
#include <chrono>
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

// Counts the calls that may wake a worker for each procedure that they queue.
class WatchedScheduler final : public MasterProcedureScheduler {
 public:
  explicit WatchedScheduler(const Clock& clock) : MasterProcedureScheduler(clock) {}
  void settle(EntryList&& batch, Caller caller) override {
    if (caller == Caller::kAnybody) calls_of_anybody_.fetch_add(1);
    MasterProcedureScheduler::settle(std::move(batch), caller);
  }
  void wake_for_ready() override {
    wakes_after_all_.fetch_add(1);
    MasterProcedureScheduler::wake_for_ready();
  }
  [[nodiscard]] std::uint64_t calls_of_anybody() const { return calls_of_anybody_.load(); }
  [[nodiscard]] std::uint64_t wakes_after_all() const { return wakes_after_all_.load(); }

 private:
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

  explicit WatchedWorkers(std::unique_ptr<ProcedureStore> store, unsigned count = 2) {
    auto watched = std::make_unique<WatchedScheduler>(*clock);
    scheduler = watched.get();
    ExecutorOptions options;
    options.store = std::move(store);
    add_job_types(options.registry, world);
    options.workers = count;
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

TEST_CASE("a worker that calls callbacks before it polls wakes another one after all") {
  const int callbacks = GENERATE(0, 1, 2000);  // none, one, a crowd
  WatchedWorkers workers(noop(), 1);
  workers.world.scripts["a"] = {.steps = 1, .locks = lock("one")};
  workers.submit("a");
  workers.submit("a");
  std::atomic<int> called = 0;
  for (int i = 0; i < callbacks; ++i) {
    workers.executor->async(CallbackThread::kEngine)
        .wait(workers.ids.front(), [&](const Result<ProcedureResult>&) { ++called; });
  }
  CHECK(workers.run() == 0);
  CHECK(called == callbacks);
  CHECK(workers.scheduler->wakes_after_all() == (callbacks != 0 ? 1 : 0));
}

}  // namespace pv2::testing::who_wakes_test
