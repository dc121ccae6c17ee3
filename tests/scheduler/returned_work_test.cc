// SPDX-License-Identifier: Apache-2.0
//
// Entries that were polled and are returned because their work has not begun: their place in the
// queue, what becomes of their locks, and how the worker that polled them learns that an entry of a
// higher class waits.

#include <pv2/scheduler/master_procedure_scheduler.h>

#include <memory>
#include <vector>

#include "support/catch.h"
#include "test_entry.h"

namespace pv2::testing::returned_work_test {

using namespace pv2::test;

namespace {

std::vector<SchedulerEntry*> poll_run(ProcedureScheduler& scheduler, std::size_t most) {
  std::vector<SchedulerEntry*> run(most);
  run.resize(scheduler.poll(run, std::chrono::milliseconds(0)));
  return run;
}

// As an engine does it: the last in the batch goes to the front.
void give_back(ProcedureScheduler& scheduler, const std::vector<SchedulerEntry*>& run) {
  EntryList batch;
  for (auto at = run.rbegin(); at != run.rend(); ++at) {
    batch.push_back(**at, Disposition::kReturn);
  }
  scheduler.settle(std::move(batch));
}

Ids ids_of_run(const std::vector<SchedulerEntry*>& run) {
  Ids ids;
  for (const SchedulerEntry* const entry : run) ids.push_back(entry->id.value);
  return ids;
}

}  // namespace

TEST_CASE("returned entries are served again in the order in which they were polled") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  std::vector<std::unique_ptr<TestEntry>> entries;
  for (std::uint64_t id = 1; id <= 9; ++id) {
    entries.push_back(
        std::make_unique<TestEntry>(id, table("t" + std::to_string(id % 3), kShared)));
    submit(scheduler, *entries.back());
  }
  const auto run = poll_run(scheduler, 6);
  REQUIRE(run.size() == 6);

  give_back(scheduler, run);

  CHECK(scheduler.counts().queued == 9);
  CHECK(ids_of_run(poll_run(scheduler, 9)) == Ids{1, 2, 3, 4, 5, 6, 7, 8, 9});
  for (const auto& entry : entries) complete(scheduler, *entry);
}

TEST_CASE("an entry is returned that was polled with the highest rank there is, and lost it") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  TestEntry holder(1, table("t", kExclusive));
  LockSet locks = std::move(LockSet().global("g", kExclusive));
  TestEntry waiter(2, std::move(locks.table("ns", "t", kExclusive)), nullptr, Priority{255});
  submit(scheduler, {&holder, &waiter});
  REQUIRE(poll(scheduler) == &holder);
  REQUIRE(scheduler.withdraw(waiter));

  settle(scheduler, holder, Disposition::kReturn);

  CHECK(poll(scheduler) == &holder);
  complete(scheduler, holder);
  complete(scheduler, waiter);
}

TEST_CASE("a returned entry keeps its locks, and a grant that is in no record yet") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  TestEntry holder(1, table("t", kExclusive));
  TestEntry waiter(2, table("t", kExclusive));
  submit(scheduler, {&holder, &waiter});
  REQUIRE(poll(scheduler) == &holder);
  CHECK_FALSE(holder.granted_by_poll());
  complete(scheduler, holder);
  REQUIRE(poll(scheduler) == &waiter);
  REQUIRE(waiter.granted_by_poll());

  settle(scheduler, waiter, Disposition::kReturn);
  CHECK(lock_on(scheduler, {ResourceClass::kTable, table_key_name("ns", "t")}).holders.size() == 1);
  REQUIRE(poll(scheduler) == &waiter);
  CHECK(waiter.granted_by_poll());

  settle(scheduler, waiter, Disposition::kReturn);
  CHECK(scheduler.withdraw(waiter));
  CHECK_FALSE(waiter.holds_locks());  // it got them in the queue
  complete(scheduler, waiter);
}

TEST_CASE("a polled entry is overtaken while an entry of a higher class can run") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  TestEntry first(1, table("a", kExclusive));
  TestEntry second(2, table("b", kExclusive));
  TestEntry urgent_table(3, table("c", kExclusive), nullptr, Priority::kMeta);
  TestEntry of_server(4, server("s"));
  TestEntry meta(5, std::move(LockSet().meta(kExclusive)));
  submit(scheduler, {&first, &second});
  const std::uint64_t lifts = scheduler.lifts();
  const auto run = poll_run(scheduler, 2);
  REQUIRE(run.size() == 2);
  CHECK_FALSE(scheduler.is_overtaken(second, lifts));

  submit(scheduler, urgent_table);
  CHECK_FALSE(scheduler.is_overtaken(second, lifts));  // the same class waits until the run ends
  submit(scheduler, of_server);
  CHECK(scheduler.is_overtaken(second, lifts));
  CHECK_FALSE(scheduler.is_top_work(second));
  REQUIRE(poll(scheduler) == &of_server);
  CHECK_FALSE(scheduler.is_overtaken(second, lifts));  // another worker has it
  submit(scheduler, meta);
  CHECK(scheduler.is_overtaken(of_server, lifts));
  REQUIRE(poll(scheduler) == &meta);
  CHECK(scheduler.is_top_work(meta));
  CHECK_FALSE(scheduler.is_top_work(of_server));
  for (TestEntry* const entry : {&first, &second, &of_server, &meta}) complete(scheduler, *entry);
  CHECK(scheduler.withdraw(urgent_table));
  complete(scheduler, urgent_table);
}

TEST_CASE("a polled entry is overtaken when an urgent entry begins to wait for it") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  TestEntry first(1, table("a", kExclusive));
  TestEntry holder(2, table("b", kExclusive));
  TestEntry equal(3, table("b", kExclusive));
  LockSet both;
  both.meta(kExclusive).table("ns", "b", kExclusive);
  TestEntry meta(4, std::move(both));
  submit(scheduler, {&first, &holder});
  const std::uint64_t lifts = scheduler.lifts();
  const auto run = poll_run(scheduler, 2);
  REQUIRE(run.size() == 2);

  submit(scheduler, equal);
  CHECK_FALSE(scheduler.is_overtaken(first, lifts));
  submit(scheduler, meta);
  CHECK(scheduler.is_overtaken(first, lifts));
  CHECK_FALSE(scheduler.is_overtaken(first, scheduler.lifts()));  // reported once

  give_back(scheduler, run);
  REQUIRE(poll(scheduler) == &holder);  // at the class of its waiter
  CHECK(scheduler.is_top_work(holder));
  complete(scheduler, holder);
  for (TestEntry* const entry : {&first, &equal, &meta}) {
    scheduler.withdraw(*entry);
    complete(scheduler, *entry);
  }
}

}  // namespace pv2::testing::returned_work_test
