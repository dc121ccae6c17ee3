// SPDX-License-Identifier: Apache-2.0
//
// Callbacks on the engine's own threads (CallbackThread::kEngine): on which thread they run, what
// they may do there, and that they neither nest nor get lost.

#include <pv2/store/noop_procedure_store.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "pv2/store/leveldb_procedure_store.h"
#include "support/catch.h"
#include "support/engine_world.h"
#include "support/temporary_directory.h"

namespace pv2::testing::callback_thread_test {
namespace {

enum class Store { kNoop, kMemory, kLevelDb };

struct Ground {
  World world;
  TemporaryDirectory directory;
  std::unique_ptr<ProcedureExecutor> executor;

  Ground(Store store, unsigned workers) {
    ExecutorOptions options;
    switch (store) {
      case Store::kNoop:
        options.store = noop();
        break;
      case Store::kMemory:
        options.store = memory(std::make_shared<MemoryDisk>(),
                               {.mode = workers == 0 ? MemoryStoreOptions::Mode::kPump
                                                     : MemoryStoreOptions::Mode::kThread});
        break;
      case Store::kLevelDb:
        options.store = leveldb(directory.path("store"));
        break;
    }
    world.scripts["job"] = {};
    world.scripts["held"] = {.run = [](JobRun&) { return Say::wait_for(std::chrono::hours(1)); }};
    add_job_types(options.registry, world);
    options.workers = workers;
    options.log = {};
    executor = open_executor(std::move(options));
    executor->start();
  }
  [[nodiscard]] AsyncExecutor async() { return executor->async(CallbackThread::kEngine); }
};

// Runs jobs one after the other, each from the callbacks of the one before.
struct Chain {
  Ground& ground;
  const int length;
  std::latch ended{1};
  std::atomic<int> answers = 0;
  std::atomic<int> inside = 0;
  std::atomic<int> failures = 0;
  std::atomic<bool> nested = false;
  std::atomic<bool> blocked = false;
  std::atomic<int> acknowledged = 0;
  int ran = 0;

  // The last callback may still run when its news is there: it ends before this does.
  ~Chain() { ground.executor.reset(); }

  void begin() {
    ground.async().submit(Job(ground.world, "job"), {.nonce = {1, static_cast<unsigned>(ran + 1)}},
                          [this](const Result<Submitted>& submitted) {
                            enter();
                            if (!submitted.ok()) ++failures;
                            ground.async().wait(submitted->id, [this](auto r) { end(r); });
                            leave();
                          });
  }
  void end(const Result<ProcedureResult>& result) {
    enter();
    if (!result->status.ok()) ++failures;
    ground.async().acknowledge(result->id, [this](const Status& status) {
      enter();
      if (status.ok()) ++acknowledged;
      if (acknowledged == length) ended.count_down();
      leave();
    });
    if (++ran < length) begin();
    leave();
  }
  void enter() {
    ++answers;
    if (inside.fetch_add(1) != 0) nested = true;
    // A verb that blocks would wait for this thread.
    const Status refused = ground.executor->acknowledge(ProcedureId{1});
    if (refused.code() != StatusCode::kFailedPrecondition) blocked = true;
  }
  void leave() { inside.fetch_sub(1); }
};

}  // namespace

TEST_CASE("a chain of procedures goes on from callback to callback, on every store") {
  const Store store = GENERATE(Store::kNoop, Store::kMemory, Store::kLevelDb);
  const unsigned workers = GENERATE(1U, 2U);
  Ground ground(store, workers);
  Chain chain{.ground = ground, .length = 300};

  chain.begin();
  chain.ended.wait();

  CHECK(chain.answers == 3 * chain.length);
  CHECK(chain.failures == 0);
  CHECK_FALSE(chain.blocked);
  CHECK(ground.executor->inspect().live_procedures() == 0);
}

TEST_CASE("without workers the thread in run_until_idle() calls the callbacks, one by one") {
  const Store store = GENERATE(Store::kNoop, Store::kMemory);
  Ground ground(store, 0);
  Chain chain{.ground = ground, .length = 300};

  chain.begin();
  ground.executor->run_until_idle();

  CHECK(chain.ended.try_wait());
  CHECK_FALSE(chain.nested);
}

TEST_CASE("an answer that is known at once is given before the verb returns, on its thread") {
  Ground ground(Store::kMemory, 1);
  std::thread::id called_on;
  ground.async().acknowledge(ProcedureId{77}, [&](const Status& status) {
    if (!status.ok()) called_on = std::this_thread::get_id();
  });
  REQUIRE(called_on == std::this_thread::get_id());
}

TEST_CASE("callbacks that cause each other need no more stack than one, and let their thread go") {
  Ground ground(Store::kMemory, GENERATE(0U, 1U));
  std::atomic<bool> enough = false;
  std::latch ended{1};
  int called = 0;
  int depth = 0;
  int deepest = 0;
  std::function<void(Status)> again = [&](const Status&) {
    deepest = std::max(deepest, ++depth);
    ++called;
    const bool goes_on = !enough || called < 100'000;
    if (goes_on) ground.async().acknowledge(ProcedureId{77}, again);
    --depth;
    if (!goes_on) ended.count_down();
  };
  ground.async().acknowledge(ProcedureId{77}, again);
  enough = true;
  ground.executor->run_until_idle();
  ended.wait();
  REQUIRE(deepest == 1);
}

TEST_CASE("a callback may run the engine again that it was called by") {
  TemporaryDirectory directory;
  World world;
  world.scripts["job"] = {};
  ExecutorOptions options;
  options.store = leveldb(directory.path("store"),
                          {.unit_size = {.batch_operations = 4, .batch_bytes = 4 << 20},
                           .committer = LevelDbOptions::Committer::kPump});
  add_job_types(options.registry, world);
  options.workers = 0;
  const auto executor = open_executor(std::move(options));
  executor->start();
  int answered = 0;
  for (int i = 0; i < 20; ++i) {
    executor->async(CallbackThread::kEngine)
        .submit(Job(world, "job"), {}, [&](const Result<Submitted>& submitted) {
          if (submitted.ok()) ++answered;
          executor->run_until_idle(5);
        });
  }
  executor->run_until_idle();
  CHECK(answered == 20);
  CHECK(executor->inspect().live_procedures() == 0);
}

TEST_CASE("a stop may come while a callback on the thread of the store runs the engine") {
  Ground ground(Store::kLevelDb, 0);
  std::latch inside{1};
  std::latch stopping{1};
  ground.world.scripts["slow"] = {.run = [&](JobRun&) -> std::optional<Outcome> {
    inside.count_down();
    stopping.wait();
    return std::nullopt;
  }};
  ground.async().submit(Job(ground.world, "slow"), {},
                        [&](const Result<Submitted>&) { ground.executor->run_until_idle(); });
  inside.wait();
  CHECK(ground.executor->stop(std::chrono::milliseconds(0)).code() ==
        StatusCode::kDeadlineExceeded);
  stopping.count_down();
  ground.executor->stop();
  REQUIRE(ground.executor->submit(Job(ground.world, "job")).status().code() ==
          StatusCode::kStopping);
}

TEST_CASE("a callback may run another engine, whose callbacks come at once") {
  Ground outer(Store::kMemory, 1);
  std::vector<std::string> order;
  outer.async().acknowledge(ProcedureId{77}, [&](const Status&) {
    Ground inner(Store::kNoop, 0);
    Chain chain{.ground = inner, .length = 3};
    chain.begin();
    inner.executor->run_until_idle();
    order.emplace_back(chain.ended.try_wait() ? "inner" : "inner is late");
    outer.async().acknowledge(ProcedureId{78},
                              [&](const Status&) { order.emplace_back("second"); });
    order.emplace_back("first");
  });
  REQUIRE(order == std::vector<std::string>{"inner", "first", "second"});
}

TEST_CASE("what a callback throws is dropped, and the callbacks after it are called") {
  Ground ground(Store::kNoop, 1);
  std::latch called{3};
  for (int i = 0; i < 3; ++i) {
    ground.async().submit(Job(ground.world, "job"), {}, [&](const Result<Submitted>&) {
      called.count_down();
      throw std::runtime_error("of the host");
    });
  }
  called.wait();
  const auto after = ground.executor->submit(Job(ground.world, "job"));
  REQUIRE(ground.executor->wait(after->id)->status.ok());
}

TEST_CASE("all who wait for one result are told, each on the thread that it chose") {
  Ground ground(Store::kMemory, 1);
  const auto submitted = ground.executor->submit(Job(ground.world, "held"));
  std::latch told{40};
  std::atomic<int> failures = 0;
  std::thread waiter([&] {
    if (!ground.executor->wait(submitted->id).ok()) ++failures;
  });
  for (int i = 0; i < 20; ++i) {
    for (const auto thread : {CallbackThread::kPool, CallbackThread::kEngine}) {
      ground.executor->async(thread).wait(submitted->id,
                                          [&, thread](const Result<ProcedureResult>& result) {
                                            if (!result.ok()) ++failures;
                                            told.count_down();
                                            if (thread == CallbackThread::kEngine)
                                              throw std::runtime_error("of the host");
                                          });
    }
  }
  REQUIRE(ground.executor->abort(submitted->id).ok());
  told.wait();
  waiter.join();
  REQUIRE(failures == 0);
}

TEST_CASE("a step that takes long does not keep what is durable from its callers") {
  Ground ground(Store::kMemory, 1);
  constexpr int kMany = 64;
  std::latch begun{1};
  std::latch answered{kMany};
  ground.world.scripts["held"].steps = 1;
  ground.world.scripts["held"].run = [&](JobRun&) -> std::optional<Outcome> {
    begun.count_down();
    answered.wait();
    return std::nullopt;
  };
  const auto held = ground.executor->submit(Job(ground.world, "held"));
  begun.wait();

  for (int i = 0; i < kMany; ++i) {
    ground.async().submit(Job(ground.world, "job"), {},
                          [&](const Result<Submitted>&) { answered.count_down(); });
  }

  REQUIRE(ground.executor->wait(held->id)->status.ok());
}

TEST_CASE("a callback that is withdrawn is destroyed with nothing locked") {
  Ground ground(Store::kMemory, 1);
  const auto submitted = ground.executor->submit(Job(ground.world, "held"));
  const auto other = ground.executor->submit(Job(ground.world, "held"));
  bool destroyed = false;
  const auto callback = [&] {
    const auto asks = [&](int*) { destroyed = ground.executor->health().ok(); };
    return [token = std::shared_ptr<int>(nullptr, asks)](const Result<ProcedureResult>&) {};
  };
  const WaitTicket ticket = ground.async().wait(submitted->id, callback());
  destroyed = false;

  CHECK_FALSE(ground.async().withdraw({.id = other->id, .number = ticket.number}));
  CHECK_FALSE(destroyed);
  CHECK(ground.async().withdraw(ticket));  // would hang
  CHECK(destroyed);
  CHECK_FALSE(ground.async().withdraw(ticket));
}

TEST_CASE("a wait that is withdrawn is not answered, and a stop answers the others") {
  Ground ground(Store::kMemory, 1);
  const auto submitted = ground.executor->submit(Job(ground.world, "held"));
  std::atomic<int> withdrawn = 0;
  std::atomic<int> stopped = 0;
  const WaitTicket ticket = ground.async().wait(submitted->id, [&](const auto&) { ++withdrawn; });
  ground.async().wait(submitted->id, [&](const Result<ProcedureResult>& result) {
    if (result.status().code() == StatusCode::kStopping) ++stopped;
  });

  CHECK(ground.async().withdraw(ticket));
  ground.executor->stop();

  CHECK(withdrawn == 0);
  CHECK(stopped == 1);
}

}  // namespace pv2::testing::callback_thread_test
