// SPDX-License-Identifier: Apache-2.0
//
// A machine that has no thread left, or a process that has no descriptor left. open() says so,
// whichever of its threads is missing, and leaves nothing behind. start() cannot fail.

#include "support/all_rows.h"
#include "support/engine_world.h"
#include "support/new_threads_limit.h"
#include "support/no_descriptors.h"

namespace pv2::testing::no_threads_left_test {
TEST_CASE(
    "open() says that no thread is left, whichever is missing, and the store opens afterwards") {
  World world;
  world.scripts["a"] = {.steps = 2};
  const auto disk = std::make_shared<MemoryDisk>();
  const auto open = [&] {
    ExecutorOptions options;
    options.store = memory(disk, {.mode = MemoryStoreOptions::Mode::kThread});
    add_job_types(options.registry, world);
    options.workers = 3;
    options.pool_threads = 2;
    options.log = {};
    return ProcedureExecutor::open(std::move(options));
  };
  std::size_t enough = 0;
  for (;; ++enough) {
    const NewThreadsLimit limit(enough);
    const auto opened = open();
    if (opened.ok()) break;
    CHECK(opened.status().code() == StatusCode::kResourceExhausted);
    CHECK_THAT(opened.status().to_string(), ContainsSubstring("no thread can be started for"));
  }
  // The store's, two of the pool, their stand-in, the listeners', the timers', three workers.
  CHECK(enough == 9);

  auto executor = open().value();
  {
    const NewThreadsLimit none(0);
    executor->start();
  }
  const auto submitted = executor->submit(Job(world, "a"));
  REQUIRE(submitted.ok());
  CHECK(executor->wait(submitted->id)->status.ok());
}

// What recovery wants to write is kept or freed; a sanitizer would see that it is not.
TEST_CASE("an open() that finds no thread left writes nothing, whatever the store has") {
  const bool is_new = GENERATE(false, true);
  const auto load = GENERATE(Load::kBeforeOpenReturns, Load::kInBackground);
  EngineWorld engine;
  engine.world.scripts["c"] = {.steps = 1};
  engine.world.scripts["p"] = {.children = {"c"}};
  if (!is_new) {  // its parents are live, whose children have ended, and it lacks two schemas
    auto options = engine.options();
    options.registry = {};
    options.registry.add<Job>(engine.world);
    engine.open(std::move(options));
    for (int i = 0; i < 5; ++i) engine.submit("p");
    engine.faults().crash_before(engine.faults().commits() + 3, FaultStore::AfterCrash::kFail);
    engine.run();
    engine.close();
  }
  const auto all_rows = [&] {
    std::vector<std::string> rows;
    MemoryProcedureStore store(engine.disk);
    REQUIRE(visit_all(store, [&](const StoredRow& row) {
              rows.push_back(std::string(row.key) + "=" + std::string(row.value));
              return Status();
            }).ok());
    return rows;
  };
  const std::vector<std::string> before = all_rows();
  std::size_t left = 0;
  for (;; ++left) {
    ExecutorOptions options = engine.options();
    options.store = memory(engine.disk, {.mode = MemoryStoreOptions::Mode::kThread});
    options.workers = 2;
    options.load = load;
    const NewThreadsLimit limit(left);
    if (ProcedureExecutor::open(std::move(options)).ok()) break;
    CHECK(all_rows() == before);
  }
  CHECK(left > 5);
}

#ifndef PV2_SANITIZER_NEEDS_DESCRIPTORS
TEST_CASE("open() says that no descriptor is left for its timers, and opens when there is one") {
  const auto open = [disk = std::make_shared<MemoryDisk>()] {
    ExecutorOptions options;
    options.store = memory(disk, {.mode = MemoryStoreOptions::Mode::kThread});
    options.workers = 2;
    options.log = {};
    return ProcedureExecutor::open(std::move(options));
  };
  {
    const NoDescriptors limit;
    const Status status = open().status();
    CHECK(status.code() == StatusCode::kResourceExhausted);
    CHECK_THAT(status.to_string(), ContainsSubstring("the timers of the executor cannot be made"));
    CHECK_THAT(status.to_string(), ContainsSubstring("Too many open files"));
  }

  CHECK(open().ok());
}
#endif

TEST_CASE("an executor that was opened and never started can be stopped") {
  World world;
  ExecutorOptions options;
  options.store = memory();
  add_job_types(options.registry, world);
  options.workers = 2;
  options.log = {};
  auto executor = ProcedureExecutor::open(std::move(options)).value();
  CHECK(executor->stop(std::chrono::milliseconds(60'000)).ok());
}

}  // namespace pv2::testing::no_threads_left_test
