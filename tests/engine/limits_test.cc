// SPDX-License-Identifier: Apache-2.0
//
// Limits: how many procedures may hold a key, or be of a type, at once. What the lock table does
// with them is tested with the scheduler; here it is their being set, durable and shown.

#include "support/engine_world.h"

namespace pv2::testing {
namespace {

using namespace std::chrono_literals;

const ResourceKey kRack{ResourceClass::kHostFirst, "rack 7"};

// Three jobs on one rack that each need an hour for their second step.
void script_slow_jobs(World& world) {
  for (const char* name : {"a", "b", "c"}) {
    world.scripts[name] = {.run = [](JobRun& run) -> std::optional<Outcome> {
                             if (run.step != 2 || run.ctx.timed_out()) return std::nullopt;
                             return Say::wait_for(1h);
                           },
                           .locks = LockSet().key(kRack, LockMode::kShared)};
  }
}

LockInfo lock_on(EngineWorld& engine, const ResourceKey& key) {
  for (LockInfo& info : engine.executor().locks()) {
    if (info.key == key) return info;
  }
  return {};
}

}  // namespace

TEST_CASE("at most so many procedures hold a limited key, and the others follow in order") {
  EngineWorld engine;
  script_slow_jobs(engine.world);
  engine.open();
  REQUIRE(engine.executor().set_limit(kRack, 2).ok());
  for (const char* name : {"a", "b", "c"}) engine.submit(name);
  engine.run();

  CHECK(engine.journal() == Entries{"do a.1", "do b.1"});
  const LockInfo rack = lock_on(engine, kRack);
  CHECK(rack.limit == 2U);
  CHECK(rack.holders.size() == 2);
  REQUIRE(rack.waiters.size() == 1);
  CHECK(rack.waiters.front().type == "test.Job");

  engine.run_to_the_end();
  CHECK(engine.world.journal.count("do c.3") == 1);
}

TEST_CASE("a limit that is raised lets those in who wait, one that ends all of them") {
  EngineWorld engine;
  script_slow_jobs(engine.world);
  engine.open();
  REQUIRE(engine.executor().set_limit(kRack, 0).ok());
  for (const char* name : {"a", "b", "c"}) engine.submit(name);
  engine.run();
  CHECK(engine.journal().empty());
  CHECK(engine.executor().deadlocks().empty());

  REQUIRE(engine.executor().set_limit(kRack, 1).ok());
  engine.run();
  CHECK(engine.journal() == Entries{"do a.1"});

  REQUIRE(engine.executor().set_limit(kRack, {}).ok());
  engine.run();
  CHECK(engine.journal() == Entries{"do a.1", "do b.1", "do c.1"});
}

TEST_CASE("a limit is in force again after a crash, and its end too") {
  EngineWorld engine;
  script_slow_jobs(engine.world);
  engine.open();
  REQUIRE(engine.executor().set_limit(kRack, 1).ok());
  engine.submit("a");
  engine.run();
  engine.crash_and_open();
  engine.submit("b");
  engine.run();
  CHECK(engine.world.journal.count("do b.1") == 0);

  REQUIRE(engine.executor().set_limit(kRack, {}).ok());
  engine.crash_and_open();
  engine.run();
  CHECK(engine.world.journal.count("do b.1") == 1);
}

TEST_CASE("a limit on a type counts the procedures that were submitted since it was set") {
  EngineWorld engine;
  script_slow_jobs(engine.world);
  engine.open();
  CHECK(engine.executor().set_type_limit("no.SuchType", 1).code() == StatusCode::kInvalidArgument);
  REQUIRE(engine.executor().set_type_limit("test.Job", 1).ok());
  engine.submit("a");
  engine.submit("b");
  engine.submit<FinalJob>("c");
  engine.run();
  CHECK(engine.journal() == Entries{"do a.1", "do c.1"});

  engine.crash_and_open();
  engine.run();
  CHECK(engine.world.journal.count("do b.1") == 0);
  engine.run_to_the_end();
  CHECK(engine.world.journal.count("do b.3") == 1);
}

TEST_CASE("a tree takes one place of a limit, whatever its children touch") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"q", "q"},
                               .locks = LockSet().key(kRack, LockMode::kShared)};
  engine.world.scripts["q"] = {.steps = 1, .locks = LockSet().key(kRack, LockMode::kShared)};
  engine.open();
  REQUIRE(engine.executor().set_limit(kRack, 1).ok());
  REQUIRE(engine.executor().set_type_limit("test.Job", 1).ok());
  engine.submit("p");
  engine.run_to_the_end();

  CHECK(engine.world.journal.count("do q.1") == 2);
}

TEST_CASE("reserved workers have to leave one for other work") {
  EngineWorld engine;
  auto options = engine.options();
  options.workers = 2;
  options.reserved_workers = 2;

  CHECK(ProcedureExecutor::open(std::move(options)).status().code() ==
        StatusCode::kInvalidArgument);
}

}  // namespace pv2::testing
