// SPDX-License-Identifier: Apache-2.0
//
// Limits: how many procedures may hold a key, or be of a type, at once. The scheduler's tests cover
// what the lock table does with them; these tests cover how they are set, kept and shown.

#include "support/engine_world.h"

namespace pv2::testing::limits_test {
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
  for (LockInfo& info : engine.executor().inspect().locks()) {
    if (info.key == key) return info;
  }
  return {};
}

// The host's own keys, `count` of them.
LockSet many(std::size_t count) {
  LockSet locks;
  for (std::size_t i = 0; i < count; ++i) {
    locks.key({ResourceClass::kHostFirst, std::to_string(100'000 + i)}, LockMode::kExclusive);
  }
  return locks;
}

}  // namespace

TEST_CASE(
    "a limited key has at most as many holders as its limit, and the others follow in order") {
  EngineWorld engine;
  script_slow_jobs(engine.world);
  engine.open();
  REQUIRE(engine.executor().operate().set_limit(kRack, 2).ok());
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

TEST_CASE("raising a limit admits procedures that wait, and ending it admits all of them") {
  EngineWorld engine;
  script_slow_jobs(engine.world);
  engine.open();
  REQUIRE(engine.executor().operate().set_limit(kRack, 0).ok());
  for (const char* name : {"a", "b", "c"}) engine.submit(name);
  engine.run();
  CHECK(engine.journal().empty());
  CHECK(engine.executor().inspect().deadlocks().empty());

  REQUIRE(engine.executor().operate().set_limit(kRack, 1).ok());
  engine.run();
  CHECK(engine.journal() == Entries{"do a.1"});

  REQUIRE(engine.executor().operate().set_limit(kRack, {}).ok());
  engine.run();
  CHECK(engine.journal() == Entries{"do a.1", "do b.1", "do c.1"});
}

TEST_CASE("a limit is in force again after a crash, and so is its end") {
  EngineWorld engine;
  script_slow_jobs(engine.world);
  engine.open();
  REQUIRE(engine.executor().operate().set_limit(kRack, 1).ok());
  engine.submit("a");
  engine.run();
  engine.crash_and_open();
  engine.submit("b");
  engine.run();
  CHECK(engine.world.journal.count("do b.1") == 0);

  REQUIRE(engine.executor().operate().set_limit(kRack, {}).ok());
  engine.crash_and_open();
  engine.run();
  CHECK(engine.world.journal.count("do b.1") == 1);
}

TEST_CASE("a limit on a type counts the procedures that were submitted since it was set") {
  EngineWorld engine;
  script_slow_jobs(engine.world);
  engine.open();
  CHECK(engine.executor().operate().set_type_limit("no.SuchType", 1).code() ==
        StatusCode::kInvalidArgument);
  CHECK(engine.executor().operate().set_type_limit("no.SuchType", std::nullopt).ok());
  REQUIRE(engine.executor().operate().set_type_limit("test.Job", 1).ok());
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

TEST_CASE("the place of a type is kept as long as the scope says, also without other locks") {
  EngineWorld engine;
  script_slow_jobs(engine.world);
  for (const char* name : {"a", "b"}) {
    engine.world.scripts[name].locks = LockSet().scope(LockScope::kStep);
  }
  engine.open();
  REQUIRE(engine.executor().operate().set_type_limit("test.Job", 1).ok());
  engine.submit("a");
  engine.submit("b");
  if (GENERATE(false, true)) engine.crash_and_open();
  engine.run();
  // While the second step of one waits for an hour, the other one has the place.
  CHECK(engine.world.journal.count("do b.1") == 1);
}

TEST_CASE("procedures of a limited type that need their locks step by step take turns") {
  EngineWorld engine;
  const LockScope scope = GENERATE(LockScope::kStep, LockScope::kVisit);
  for (const char* name : {"a", "b"}) {
    engine.world.scripts[name] = {.steps = 2, .locks = LockSet().scope(scope)};
  }
  engine.open();
  REQUIRE(engine.executor().operate().set_type_limit("test.Job", 1).ok());
  engine.submit("a");
  engine.submit("b");
  engine.run_to_the_end();

  CHECK(engine.journal() == Entries{"do a.1", "do b.1", "do a.2", "do b.2"});
}

TEST_CASE("a tree takes one place of a limit, whatever its children touch") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"q", "q"},
                               .locks = LockSet().key(kRack, LockMode::kShared)};
  engine.world.scripts["q"] = {.steps = 1, .locks = LockSet().key(kRack, LockMode::kShared)};
  engine.open();
  REQUIRE(engine.executor().operate().set_limit(kRack, 1).ok());
  REQUIRE(engine.executor().operate().set_type_limit("test.Job", 1).ok());
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

TEST_CASE("a procedure that asks for more locks than can be counted is refused, one less runs") {
  EngineWorld engine;
  engine.world.scripts["most"] = {.steps = 1, .locks = many(LockSet::kMaxRequests)};
  engine.world.scripts["more"] = {.steps = 1, .locks = many(LockSet::kMaxRequests + 1)};
  engine.open();

  const Status refused = engine.executor().submit(Job(engine.world, "more")).status();
  CHECK(refused.code() == StatusCode::kInvalidArgument);
  for (const char* part : {"test.Job", "65535", "65534"}) {
    CHECK_THAT(refused.to_string(), ContainsSubstring(part));
  }
  CHECK(engine.executor().inspect().live_procedures() == 0);

  // The limit on its type adds one lock.
  REQUIRE(engine.executor().operate().set_type_limit("test.Job", 2).ok());
  const ProcedureId first = engine.submit("most");
  const ProcedureId second = engine.submit("most");
  CHECK(engine.describe(first).holds_locks);
  CHECK_FALSE(engine.describe(second).holds_locks);
  engine.crash_and_open();
  CHECK(engine.describe(first).holds_locks);
  engine.run_to_the_end();
  CHECK(engine.world.journal.count("do most.1") == 2);
}

TEST_CASE("a child, or a root that a step submits, with too many locks fails the step for good") {
  EngineWorld engine;
  const bool child = GENERATE(true, false);
  for (const std::string name : {"most", "more"}) {
    engine.world.scripts["with " + name] = {.run = [=](JobRun& run) -> std::optional<Outcome> {
      if (run.step != 2) return std::nullopt;
      child ? run.spawn(name) : (void)run.ctx.submit(Job(run.world, name));
      return std::nullopt;
    }};
  }
  engine.world.scripts["most"] = {.steps = 1, .locks = many(LockSet::kMaxRequests)};
  engine.world.scripts["more"] = {.steps = 1, .locks = many(LockSet::kMaxRequests + 1)};
  engine.open();
  const ProcedureId good = engine.submit("with most");
  const ProcedureId bad = engine.submit("with more");
  engine.run_to_the_end();

  CHECK(engine.result(good).status.ok());
  const ProcedureResult undone = engine.result(bad);
  CHECK(undone.state == ProcedureState::kRolledBack);
  CHECK(undone.status.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(undone.status.to_string(), ContainsSubstring("a test.Job asks for 65535 locks"));
  CHECK(engine.world.journal.count("do most.1") == 1);
  CHECK(engine.world.journal.count("do more.1") == 0);
}

}  // namespace pv2::testing::limits_test
