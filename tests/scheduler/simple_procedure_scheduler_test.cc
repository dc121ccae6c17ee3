// SPDX-License-Identifier: Apache-2.0
//
// The SimpleProcedureScheduler: the order of its one queue. Its locks are tested for both
// schedulers together, in lock_rules_test.cc and scheduler_model_test.cc.

#include <pv2/scheduler/simple_procedure_scheduler.h>

#include <array>
#include <chrono>

#include "support/catch.h"
#include "test_entry.h"

namespace pv2::testing::simple_procedure_scheduler_test {

using namespace pv2::test;

TEST_CASE("entries of the simple scheduler run in the order in which they were queued") {
  SystemClock clock;
  SimpleProcedureScheduler scheduler(clock);
  TestEntry a(1), b(2), c(3);

  submit(scheduler, {&a, &b, &c});

  CHECK(poll_all(scheduler) == Ids{1, 2, 3});
}

TEST_CASE("entries queued at the front go before those at the back, in order among themselves") {
  SystemClock clock;
  SimpleProcedureScheduler scheduler(clock);
  TestEntry back(1), child_one(2), child_two(3);

  submit(scheduler, back);
  EntryList batch;
  batch.push_back(child_one, Disposition::kFront);
  batch.push_back(child_two, Disposition::kFront);
  scheduler.settle(std::move(batch));

  CHECK(poll_all(scheduler) == Ids{2, 3, 1});
}

TEST_CASE("an entry that always returns to the front lets the back through within the bound") {
  SystemClock clock;
  SimpleProcedureScheduler scheduler(clock, {.bounded_wait = 3});
  TestEntry restless(1), patient(2);
  submit(scheduler, patient);
  settle(scheduler, restless, Disposition::kFront);

  Ids order;
  for (int i = 0; i < 5; ++i) {
    SchedulerEntry* next = poll(scheduler);
    REQUIRE(next != nullptr);
    order.push_back(next->id.value);
    if (next == &restless) settle(scheduler, restless, Disposition::kFront);
  }

  CHECK(order == Ids{1, 1, 1, 2, 1});
}

TEST_CASE("an entry blocked on a lock is skipped and granted when the lock comes free") {
  SystemClock clock;
  SimpleProcedureScheduler scheduler(clock);
  TestEntry holder(1, table("t", LockMode::kExclusive));
  TestEntry blocked(2, table("t", LockMode::kExclusive));
  TestEntry other(3, table("u", LockMode::kExclusive));
  submit(scheduler, {&holder, &blocked, &other});
  CHECK(holder.holds_locks());
  CHECK_FALSE(blocked.holds_locks());

  CHECK(poll_all(scheduler) == Ids{1, 3});
  CHECK_FALSE(holder.granted_by_poll());
  complete(scheduler, holder);

  CHECK(poll_all(scheduler) == Ids{2});
  CHECK(blocked.granted_by_poll());
  CHECK(blocked.holds_locks());
}

TEST_CASE("a poll takes a run and nothing after stop") {
  SystemClock clock;
  SimpleProcedureScheduler scheduler(clock);
  TestEntry a(1), b(2), c(3);
  submit(scheduler, {&a, &b, &c});

  std::array<SchedulerEntry*, 2> run{};
  CHECK(scheduler.poll(run, std::chrono::milliseconds(0)) == 2);
  scheduler.stop();

  CHECK(scheduler.poll(run, std::chrono::hours(1)) == 0);
  CHECK(scheduler.counts().queued == 1);
}

}  // namespace pv2::testing::simple_procedure_scheduler_test
