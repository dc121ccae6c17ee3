// SPDX-License-Identifier: Apache-2.0
//
// The MasterProcedureScheduler: the order among entries that can run. Classes, priorities, turns,
// and the bound within which every entry gets its turn.

#include <pv2/scheduler/master_procedure_scheduler.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "support/catch.h"
#include "test_entry.h"

namespace pv2::testing::master_procedure_scheduler_test {

using namespace pv2::test;

namespace {

MasterSchedulerOptions bound(std::uint32_t turns) {
  MasterSchedulerOptions options;
  options.bounded_wait = turns;
  return options;
}

// Polls `turns` entries; those of `restless` are queued again at once, so they always have work.
Ids serve(ProcedureScheduler& scheduler, int turns, const std::vector<SchedulerEntry*>& restless) {
  Ids order;
  for (int i = 0; i < turns; ++i) {
    SchedulerEntry* next = poll(scheduler);
    REQUIRE(next != nullptr);
    order.push_back(next->id.value);
    if (std::find(restless.begin(), restless.end(), next) != restless.end()) {
      settle(scheduler, *next, Disposition::kBack);
    }
  }
  return order;
}

}  // namespace

TEST_CASE("tables take turns, and one table's operations come in order", "[row89]") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  std::vector<std::unique_ptr<TestEntry>> operations;
  for (std::uint64_t op = 0; op < 10; ++op) {
    for (std::uint64_t t = 0; t < 10; ++t) {
      operations.push_back(
          std::make_unique<TestEntry>(op * 10 + t + 1, table("t" + std::to_string(t), kExclusive)));
    }
  }
  // Table after table, so that order of arrival alone would not alternate.
  for (std::uint64_t t = 0; t < 10; ++t) {
    for (std::uint64_t op = 0; op < 10; ++op) submit(scheduler, *operations[op * 10 + t]);
  }

  for (std::uint64_t i = 1; i <= 100; ++i) {
    SchedulerEntry* next = poll(scheduler);
    REQUIRE(next != nullptr);
    CHECK(next->id.value == i);
    complete(scheduler, *next);
  }
  CHECK(poll(scheduler) == nullptr);
}

TEST_CASE("a table with one operation is served second, after the first of a thousand of another") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  std::vector<std::unique_ptr<TestEntry>> operations;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    operations.push_back(std::make_unique<TestEntry>(i, table("busy", kShared)));
    submit(scheduler, *operations.back());
  }
  TestEntry lone(1001, table("quiet", kShared));
  submit(scheduler, lone);

  const Ids order = poll_all(scheduler);

  REQUIRE(order.size() == 1001);
  CHECK(order[0] == 1);
  CHECK(order[1] == 1001);
}

TEST_CASE("classes are served in their order, namespace and region work with the tables") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  TestEntry lockless(1), of_host(2, std::move(LockSet().key({ResourceClass{70}, "k"}, kShared)));
  TestEntry a_table(3, table("t", kShared)), a_namespace(4, name_space("ns", kShared));
  TestEntry a_region(5, region("u", "a")), a_peer(6, peer("p")), a_server(7, server("s"));
  TestEntry of_meta(8, std::move(LockSet().meta(kExclusive)));
  TestEntry global(9, std::move(LockSet().global("g", kExclusive)));

  submit(scheduler, {&lockless, &of_host, &a_table, &a_namespace, &a_region, &a_peer, &a_server,
                     &of_meta, &global});

  CHECK(poll_all(scheduler) == Ids{9, 8, 7, 6, 3, 4, 5, 1, 2});
}

TEST_CASE("a host decides where its own classes are in the order") {
  SystemClock clock;
  MasterSchedulerOptions options;
  options.class_order = {ResourceClass{70}, ResourceClass::kTable, ResourceClass::kServer};
  MasterProcedureScheduler scheduler(clock, options);
  TestEntry a_server(1, server("s")), a_table(2, table("t", kShared));
  TestEntry of_host(3, std::move(LockSet().key({ResourceClass{70}, "k"}, kShared)));

  submit(scheduler, {&a_server, &a_table, &of_host});

  CHECK(poll_all(scheduler) == Ids{3, 2, 1});
}

TEST_CASE("a higher priority goes first within a class and equals take turns") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  TestEntry user_one(1, table("a", kShared)), user_two(2, table("a", kShared));
  TestEntry user_three(3, table("b", kShared));
  TestEntry meta(4, table("m", kShared), nullptr, Priority::kMeta);
  TestEntry system(5, table("s", kShared), nullptr, Priority::kSystem);

  submit(scheduler, {&user_one, &user_two, &user_three, &system, &meta});

  CHECK(poll_all(scheduler) == Ids{4, 5, 1, 3, 2});
}

TEST_CASE("an urgent entry does not queue behind the less urgent ones of its entity") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  TestEntry low(1, table("t", kShared), nullptr, Priority::kLow), normal(2, table("t", kShared));
  TestEntry high(3, table("t", kShared), nullptr, Priority::kHigh);

  submit(scheduler, {&low, &normal, &high});

  CHECK(poll_all(scheduler) == Ids{3, 2, 1});
}

TEST_CASE("a lower class runs within its bound under endless higher work", "[X13]") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock, bound(3));
  TestEntry busy_server(1, server("s")), a_peer(2, peer("p")), a_table(3, table("t", kShared));
  submit(scheduler, {&busy_server, &a_peer, &a_table});

  CHECK(serve(scheduler, 6, {&busy_server}) == Ids{1, 1, 1, 2, 3, 1});
}

TEST_CASE("a lower priority runs within its bound under endless higher work", "[X13]") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock, bound(3));
  TestEntry urgent(1, table("m", kShared), nullptr, Priority::kMeta);
  TestEntry ordinary(2, table("t", kShared));
  submit(scheduler, {&urgent, &ordinary});

  CHECK(serve(scheduler, 5, {&urgent}) == Ids{1, 1, 1, 2, 1});
}

TEST_CASE("without a bound the order is strict") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock, bound(0));
  TestEntry busy_server(1, server("s")), a_table(2, table("t", kShared));
  submit(scheduler, {&busy_server, &a_table});

  CHECK(serve(scheduler, 500, {&busy_server}) == Ids(500, 1));
}

TEST_CASE("by default ordinary work gets at least one turn in sixty-five") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  TestEntry busy_server(1, server("s")), a_table(2, table("t", kShared));
  submit(scheduler, {&busy_server, &a_table});

  const Ids order = serve(scheduler, 65, {&busy_server});

  CHECK(std::count(order.begin(), order.end(), 2) == 1);
}

TEST_CASE("a run holds entries of one class, and as many of each table as turns would give") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  TestEntry a1(1, table("a", kShared)), a2(2, table("a", kShared)), b(3, table("b", kShared));
  TestEntry a_server(4, server("s"));
  submit(scheduler, {&a1, &a2, &b, &a_server});

  std::array<SchedulerEntry*, 16> run{};
  REQUIRE(scheduler.poll(run, std::chrono::milliseconds(0)) == 1);
  CHECK(run[0] == &a_server);
  REQUIRE(scheduler.poll(run, std::chrono::milliseconds(0)) == 3);
  CHECK(run[0] == &a1);
  CHECK(run[1] == &b);
  CHECK(run[2] == &a2);
}

TEST_CASE("a waiter that gets its locks goes before those that begin in the same queue") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  TestEntry holder(1, region("t", "a")), waiter(2, region("t", "a")), beginner(3, region("t", "b"));
  submit(scheduler, {&holder, &waiter});
  CHECK(poll_all(scheduler) == Ids{1});
  submit(scheduler, beginner);

  complete(scheduler, holder);

  CHECK(poll_all(scheduler) == Ids{2, 3});
}

}  // namespace pv2::testing::master_procedure_scheduler_test
