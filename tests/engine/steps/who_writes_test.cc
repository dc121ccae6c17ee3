// SPDX-License-Identifier: Apache-2.0
//
// Who writes the records when little is in flight: the worker itself, and a caller of submit() that
// only waits. While either writes, nobody else does; and a step never begins while its worker owes
// a wake to the store's thread.

#include <pv2/store/memory_procedure_store.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "support/catch.h"
#include "support/engine_world.h"
#include "support/wrapped_store.h"

namespace pv2::testing::who_writes_test {
namespace {

// Notes which threads wrote, and whether requests are queued that nobody was told to write.
class WatchedStore final : public WrappedStore {
 public:
  WatchedStore()
      : WrappedStore(
            memory(std::make_shared<MemoryDisk>(), {.mode = MemoryStoreOptions::Mode::kThread})) {}

  CommitAnswer queue_all(CommitList& requests) override {
    const CommitAnswer answer = inner().queue_all(requests);
    owes() = true;
    return answer;
  }
  bool write_queued() override {
    owes() = false;
    if (!inner().write_queued()) return false;
    const std::scoped_lock lock(writers_mutex_);
    writers_.insert(std::this_thread::get_id());
    return true;
  }
  void wake_writer() override {
    owes() = false;
    inner().wake_writer();
  }

  // Whether this thread has queued requests and has told nobody yet.
  static bool& owes() {
    thread_local bool owes = false;
    return owes;
  }
  bool has_written(std::thread::id thread) {
    const std::scoped_lock lock(writers_mutex_);
    return writers_.contains(thread);
  }

 private:
  std::mutex writers_mutex_;
  std::set<std::thread::id> writers_;
};

struct Ground {
  World world;
  WatchedStore* store = nullptr;
  std::atomic<std::thread::id> worker;
  std::atomic<int> steps = 0;
  std::atomic<int> early = 0;  // steps that began while their worker owed a wake
  std::unique_ptr<ProcedureExecutor> executor;

  Ground() {
    world.scripts["five steps"] = {.steps = 5, .run = [this](JobRun&) -> std::optional<Outcome> {
                                     worker = std::this_thread::get_id();
                                     ++steps;
                                     if (WatchedStore::owes()) ++early;
                                     return std::nullopt;
                                   }};
    auto watched = std::make_unique<WatchedStore>();
    store = watched.get();
    ExecutorOptions options;
    options.store = std::move(watched);
    add_job_types(options.registry, world);
    options.workers = 1;
    options.log = {};
    auto opened = ProcedureExecutor::open(std::move(options));
    REQUIRE(opened.status().to_string() == "OK");
    executor = *std::move(opened);
    executor->start();
  }
  void run_one() {
    const auto submitted = executor->submit(Job(world, "five steps"));
    REQUIRE(submitted.ok());
    REQUIRE(executor->wait(submitted->id)->status.ok());
  }
};

TEST_CASE("with one procedure in flight its worker writes the records of its steps") {
  Ground ground;
  // The store's own thread may be awake at first, and then it writes.
  do {
    ground.run_one();
  } while (!ground.store->has_written(ground.worker));
  REQUIRE(ground.early == 0);
}

TEST_CASE("a caller that waits until its submission is durable writes it itself") {
  Ground ground;
  do {
    ground.run_one();
  } while (!ground.store->has_written(std::this_thread::get_id()));
}

TEST_CASE("a caller with a callback leaves the writing to the store") {
  Ground ground;
  std::atomic<int> ended = 0;
  constexpr int kMany = 200;
  for (int i = 0; i < kMany; ++i) {
    ground.executor->async().submit(Job(ground.world, "five steps"), {},
                                    [&](const Result<Submitted>& submitted) {
                                      if (submitted.ok()) ++ended;
                                      ended.notify_all();
                                    });
  }
  for (int seen = ended; seen != kMany; seen = ended) ended.wait(seen);

  REQUIRE_FALSE(ground.store->has_written(std::this_thread::get_id()));
  REQUIRE_FALSE(WatchedStore::owes());
}

TEST_CASE("many callers that write, and the worker, lose no procedure between them") {
  Ground ground;
  std::vector<std::thread> callers;
  std::atomic<int> troubles = 0;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto submitted = ground.executor->submit(Job(ground.world, "five steps"));
        if (!submitted.ok() || !ground.executor->wait(submitted->id)->status.ok()) ++troubles;
        if (i % 2 == 0 && !ground.executor->acknowledge(submitted->id).ok()) ++troubles;
        if (WatchedStore::owes()) ++troubles;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();

  REQUIRE(troubles == 0);
  REQUIRE(ground.early == 0);
  REQUIRE(ground.steps == 4 * 200 * 5);
}

}  // namespace
}  // namespace pv2::testing::who_writes_test
