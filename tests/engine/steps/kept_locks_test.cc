// SPDX-License-Identifier: Apache-2.0
//
// Locks that a procedure keeps only for its offloaded work are given back when the work is gone,
// also if it ends at an odd moment: while a record of the procedure is on its way, with the
// process, or while the domain is stopped. As in offloaded_work_test.cc the callable itself runs
// the engine.

#include "support/repair_orders.h"

namespace pv2::testing::kept_locks_test {
namespace {

using namespace std::chrono_literals;

LockSet table() { return LockSet().table("shop", "t", LockMode::kExclusive); }

// What parks after it has offloaded `work` and `begun` is set: step 1, or its undo.
JobScript parks(bool forward, std::function<void()> work, const Event& begun) {
  const auto park = [=, &begun](JobRun& run) -> std::optional<Outcome> {
    run.ctx.offload(work);
    if (!run.ctx.await(begun)) return Say::wait();
    return forward ? Say::retry("stuck") : Say::fail("stuck");
  };
  return {.steps = 2,
          .run = [=](JobRun& run) -> std::optional<Outcome> {
            if (forward && run.step == 1) return park(run);
            if (run.step == 2) return Say::fail("no");
            return usual();
          },
          .undo = [=](JobRun& run) -> std::optional<Outcome> {
            return run.step == 1 ? park(run) : usual();
          },
          .locks = table().scope(LockScope::kVisit)};
}

// The process dies at the next commit.
void die(EngineWorld& engine) {
  engine.faults().crash_before(engine.faults().commits() + 1, FaultStore::AfterCrash::kFail);
}

// Another procedure gets the lock, although procedure `id` neither ends nor goes on.
void check_lock_is_free(EngineWorld& engine, ProcedureId id) {
  CHECK_FALSE(engine.describe(id).holds_locks);
  engine.world.scripts["other"] = {.steps = 1, .locks = table()};
  engine.submit("other");
  engine.run();
  CHECK(engine.world.journal.count("do other.1") == 1);
  engine.crash_and_open();
  CHECK_FALSE(engine.describe(id).holds_locks);
}

}  // namespace

TEST_CASE("a lock per visit is free if work ends while the record that parks is on its way") {
  const bool forward = GENERATE(false, true);
  CAPTURE(forward);
  EngineWorld engine;
  engine.retry.max_attempts = 1;
  Event begun;
  const auto work = [&] {
    engine.faults().hold_commit(engine.faults().commits() + 1);
    begun.set();
    engine.run();
  };
  engine.world.scripts["a"] = parks(forward, work, begun);
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.faults().release();
  engine.run();

  REQUIRE(engine.describe(id).parked);
  check_lock_is_free(engine, id);
}

TEST_CASE("a lock per visit is free if the process dies during the work of what has parked") {
  const bool forward = GENERATE(false, true);
  CAPTURE(forward);
  EngineWorld engine;
  engine.retry.max_attempts = 1;
  Event begun;
  const auto work = [&] {
    begun.set();
    engine.run();
    die(engine);
  };
  engine.world.scripts["a"] = parks(forward, work, begun);
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.open();
  engine.run();

  REQUIRE(engine.describe(id).parked);
  check_lock_is_free(engine, id);
}

TEST_CASE("a lock is free after a restart in a wait in which only lost work has kept it") {
  const bool backs_off = GENERATE(false, true);
  const LockScope scope = GENERATE(LockScope::kStep, LockScope::kVisit);
  if (!backs_off && scope == LockScope::kVisit) return;  // such a lock is kept over waits
  CAPTURE(backs_off, scope);
  EngineWorld engine;
  engine.retry = {.base = 240h, .cap = 240h, .jitter_percent = 0};
  const auto work = [&] {
    engine.run();
    die(engine);
  };
  bool goes_on = false;
  engine.world.scripts["a"] = {.steps = 2,
                               .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 1) run.ctx.offload(work);
                                 if (run.step == 1 || goes_on) return usual();
                                 return backs_off ? Say::retry("later") : Say::wait_for(240h);
                               },
                               .locks = table().scope(scope)};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.open();
  engine.run();

  check_lock_is_free(engine, id);
  goes_on = true;
  engine.advance(239h);
  CHECK(engine.world.journal.count("do a.2") == 0);
  engine.advance(1h);
  CHECK(engine.result(id).status.ok());
}

TEST_CASE("a lock is free in a domain that goes on again if work has ended while it was stopped") {
  const bool parks = GENERATE(false, true);
  CAPTURE(parks);
  EngineWorld engine;
  engine.retry.max_attempts = 1;
  bool mended = false;
  Event fails;
  const auto work = [&] {
    engine.run();
    fails.set();
    engine.run();
  };
  engine.world.scripts["root"] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                                    if (run.step != 1) return usual();
                                    run.ctx.spawn(CommittingJob(run.world, "committed"));
                                    run.ctx.spawn(Job(run.world, "a"));
                                    return Say::next(2);
                                  }};
  engine.world.scripts["committed"] = {.steps = 4,
                                       .run = [&](JobRun& run) -> std::optional<Outcome> {
                                         if (run.step != 4 || mended) return usual();
                                         if (!run.ctx.await(fails)) return Say::wait();
                                         return Say::fail("no");
                                       }};
  engine.world.scripts["a"] = {
      .steps = 2,
      .run = [&](JobRun& run) -> std::optional<Outcome> {
        if (run.step == 1) run.ctx.offload(work);
        if (run.step == 1) return usual();
        return parks ? Say::retry("stuck") : Say::wait_for(240h);
      },
      .locks = table().scope(parks ? LockScope::kVisit : LockScope::kStep)};
  engine.open();
  const ProcedureId root = engine.submit("root");
  engine.run();
  const ProcedureId committed{root.value + 1}, a{root.value + 2};
  REQUIRE(engine.describe(committed).parked);
  mended = true;
  REQUIRE(engine.executor().operate().retry_now(committed, kNote).ok());
  engine.run();

  CHECK(engine.world.journal.count("do committed.4") == 1);
  CHECK(engine.describe(a).parked == parks);
  check_lock_is_free(engine, a);
}

}  // namespace pv2::testing::kept_locks_test
