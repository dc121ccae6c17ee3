// SPDX-License-Identifier: Apache-2.0
//
// Seats: a worker is served first with what it has made runnable itself. Whatever the seats, each
// entry is served within a bound, and classes and priorities are the same for all seats together.

#include <pv2/base/random.h>
#include <pv2/scheduler/master_procedure_scheduler.h>
#include <pv2/scheduler/simple_procedure_scheduler.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pv2/testing/seeds.h"
#include "seat_turns.h"
#include "support/catch.h"
#include "test_entry.h"

namespace pv2::testing::seats_test {

using namespace pv2::test;

namespace {

constexpr std::size_t kMany = 1000;

void make_runnable(ProcedureScheduler& scheduler, SchedulerEntry& entry, std::size_t worker,
                   Disposition disposition = Disposition::kBack) {
  EntryList batch;
  batch.push_back(entry, disposition);
  scheduler.settle(std::move(batch), {.own = kMany, .seat = worker});
}

Ids poll_run(ProcedureScheduler& scheduler, std::size_t worker, std::size_t most = kMany) {
  std::vector<SchedulerEntry*> run(most);
  run.resize(scheduler.poll(run, std::chrono::milliseconds(0), {.own = most, .seat = worker}));
  Ids ids;
  for (const SchedulerEntry* const entry : run) ids.push_back(entry->id.value);
  return ids;
}

// Entries with the ids 1 to `count`, each with a table of its own.
std::vector<std::unique_ptr<TestEntry>> entries(std::size_t count) {
  std::vector<std::unique_ptr<TestEntry>> made;
  for (std::uint64_t id = 1; id <= count; ++id) {
    made.push_back(std::make_unique<TestEntry>(id, table("t" + std::to_string(id), kExclusive)));
  }
  return made;
}

void complete_all(ProcedureScheduler& scheduler,
                  const std::vector<std::unique_ptr<TestEntry>>& all) {
  for (const auto& entry : all) {
    scheduler.withdraw(*entry);
    complete(scheduler, *entry);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("a worker is served first with what it has made runnable", "",
                   SimpleProcedureScheduler, MasterProcedureScheduler) {
  SystemClock clock;
  TestType scheduler(clock);
  const auto all = entries(6);
  for (std::size_t i = 0; i < 6; ++i) make_runnable(scheduler, *all[i], 1 + i % 2);

  CHECK(poll_run(scheduler, 2) == Ids{2, 4, 6});
  CHECK(poll_run(scheduler, 1) == Ids{1, 3, 5});
  complete_all(scheduler, all);
  scheduler.check_invariants();
}

TEMPLATE_TEST_CASE("an entry that no worker makes runnable goes to the one that polled it last", "",
                   SimpleProcedureScheduler, MasterProcedureScheduler) {
  SystemClock clock;
  TestType scheduler(clock);
  const auto all = entries(2);
  make_runnable(scheduler, *all[0], 1);
  REQUIRE(poll_run(scheduler, 1) == Ids{1});
  make_runnable(scheduler, *all[1], 2);

  make_runnable(scheduler, *all[0], 0);  // perhaps a timer has fired

  CHECK(poll_run(scheduler, 2) == Ids{2});
  CHECK(poll_run(scheduler, 1) == Ids{1});
  complete_all(scheduler, all);
}

TEMPLATE_TEST_CASE("a worker that has nothing takes a half of what another one has", "",
                   SimpleProcedureScheduler, MasterProcedureScheduler) {
  SystemClock clock;
  TestType scheduler(clock);
  const auto all = entries(7);
  for (const auto& entry : all) make_runnable(scheduler, *entry, 1);

  CHECK(poll_run(scheduler, 2) == Ids{1, 2, 3, 4});
  CHECK(poll_run(scheduler, 1) == Ids{5, 6, 7});
  CHECK(poll_run(scheduler, 2).empty());
  complete_all(scheduler, all);
}

TEMPLATE_TEST_CASE("what a worker has and what nobody has take turns to be served first", "",
                   SimpleProcedureScheduler, MasterProcedureScheduler) {
  SystemClock clock;
  TestType scheduler(clock);
  const auto all = entries(8);
  for (std::size_t i = 0; i < 8; ++i) make_runnable(scheduler, *all[i], i < 4 ? 0 : 1);

  Ids order;
  for (int i = 0; i < 4; ++i) order.push_back(poll_run(scheduler, 1, 1).at(0));

  CHECK(order == Ids{5, 1, 6, 2});
  CHECK(poll_run(scheduler, 1) == Ids{7, 8, 3, 4});  // one run has both
  complete_all(scheduler, all);
}

TEMPLATE_TEST_CASE("an entry does not wait for the worker at whose seat it stands", "",
                   SimpleProcedureScheduler, MasterProcedureScheduler) {
  SystemClock clock;
  TestType scheduler(clock);
  const auto all = entries(4);
  make_runnable(scheduler, *all[0], 2);  // a step of worker 2 takes long from now on
  for (std::size_t i = 1; i < 4; ++i) make_runnable(scheduler, *all[i], 1);

  std::size_t polls = 0;
  Ids run;
  do {
    run = poll_run(scheduler, 1, 1);
    ++polls;
    REQUIRE(run.size() == 1);
    if (run[0] != 1) make_runnable(scheduler, *all[run[0] - 1], 1);  // worker 1 is never idle
  } while (run[0] != 1 && polls < kMany);

  CHECK(polls > SeatTurns::kNeglected);  // it is left to worker 2 for some time
  CHECK(polls <= SeatTurns::kNeglected + 3);
  complete_all(scheduler, all);
}

TEMPLATE_TEST_CASE("a worker that has few takes from one that has very many", "",
                   SimpleProcedureScheduler, MasterProcedureScheduler) {
  SystemClock clock;
  TestType scheduler(clock);
  const auto all = entries(400);
  for (std::size_t i = 0; i < 400; ++i) make_runnable(scheduler, *all[i], i < 10 ? 2 : 1);

  const Ids first = poll_run(scheduler, 2, 64);
  const Ids second = poll_run(scheduler, 2, 64);

  CHECK(first.size() == 64);
  CHECK(second.size() == 64);
  CHECK(first.front() == 1);  // its own first
  complete_all(scheduler, all);
  scheduler.check_invariants();
}

TEST_CASE("a higher class goes first, at whichever seat it stands") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  TestEntry low(1, table("t", kExclusive));
  TestEntry high(2, server("s"));
  make_runnable(scheduler, low, 1);
  make_runnable(scheduler, high, 2);

  CHECK(poll_run(scheduler, 1) == Ids{2});
  CHECK(poll_run(scheduler, 1) == Ids{1});
  complete(scheduler, low);
  complete(scheduler, high);
}

TEST_CASE("a higher priority goes first, at whichever seat it stands") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  TestEntry low(1, table("t", kExclusive));
  TestEntry high(2, table("u", kExclusive), nullptr, Priority::kHigh);
  make_runnable(scheduler, low, 1);
  make_runnable(scheduler, high, 2);

  CHECK(poll_run(scheduler, 1) == Ids{2});
  CHECK(poll_run(scheduler, 1) == Ids{1});
  complete(scheduler, low);
  complete(scheduler, high);
}

TEST_CASE("the entries of one entity stand where its first one stands") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  std::vector<std::unique_ptr<TestEntry>> all;
  for (std::uint64_t id = 1; id <= 4; ++id) {
    all.push_back(std::make_unique<TestEntry>(id, table("t", kShared)));
    make_runnable(scheduler, *all.back(), 1 + (id - 1) % 2);
  }
  scheduler.check_invariants();
  TestEntry other(5, table("u", kShared));
  make_runnable(scheduler, other, 2);

  CHECK(poll_run(scheduler, 2) == Ids{5});
  CHECK(poll_run(scheduler, 1) == Ids{1, 2, 3, 4});
  scheduler.check_invariants();
  complete_all(scheduler, all);
  complete(scheduler, other);
}

TEST_CASE(
    "an entry that stands with its entity at the seat of another worker does not wait for it") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  TestEntry first(1, table("t", kShared));
  TestEntry second(2, table("t", kShared));
  TestEntry restless(3, table("u", kShared));
  make_runnable(scheduler, first, 2);
  make_runnable(scheduler, second, 1);
  REQUIRE(scheduler.withdraw(first));
  make_runnable(scheduler, restless, 1);

  std::size_t polls = 0;
  while (poll_run(scheduler, 1, 1) != Ids{2} && ++polls < kMany) {
    make_runnable(scheduler, restless, 1);  // worker 1 is never idle, and worker 2 never polls
  }

  CHECK(polls <= SeatTurns::kNeglected + 1);
  complete(scheduler, first);
  complete(scheduler, second);
  scheduler.withdraw(restless);
  complete(scheduler, restless);
}

TEMPLATE_TEST_CASE("an entry without locks stands at the seat of its worker, too", "",
                   SimpleProcedureScheduler, MasterProcedureScheduler) {
  SystemClock clock;
  TestType scheduler(clock);
  TestEntry a(1), b(2);
  make_runnable(scheduler, a, 1);
  make_runnable(scheduler, b, 2);

  CHECK(poll_run(scheduler, 2) == Ids{2});
  CHECK(poll_run(scheduler, 1) == Ids{1});
  complete(scheduler, a);
  complete(scheduler, b);
}

TEMPLATE_TEST_CASE("with more workers than seats each is served", "", SimpleProcedureScheduler,
                   MasterProcedureScheduler) {
  SystemClock clock;
  TestType scheduler(clock);
  const auto all = entries(100);
  for (std::size_t i = 0; i < 100; ++i) make_runnable(scheduler, *all[i], 1 + i);

  std::set<std::uint64_t> served;
  for (std::size_t worker = 1; worker <= 100; ++worker) {
    const Ids run = poll_run(scheduler, worker, 1);
    REQUIRE(run.size() == 1);
    served.insert(run.front());
  }

  CHECK(served.size() == 100);
  complete_all(scheduler, all);
}

// Each entry has ten turns. Between them it is returned, yields, goes on or waits for a lock, as
// chance has it, and is withdrawn now and then.
TEMPLATE_TEST_CASE("no entry is lost or served twice, whichever workers settle and poll", "",
                   SimpleProcedureScheduler, MasterProcedureScheduler) {
  constexpr std::size_t kEntries = 60;
  constexpr std::size_t kTurns = 10;
  const Seeds seeds = seeds_from_environment(50);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    SystemClock clock;
    TestType scheduler(clock);
    std::vector<std::unique_ptr<TestEntry>> all;
    for (std::uint64_t id = 1; id <= kEntries; ++id) {
      const std::string name = "t" + std::to_string(random.below(20));
      const LockMode mode = random.below(3) == 0 ? kExclusive : kShared;
      LockSet locks = random.below(4) == 0 ? LockSet() : table(name, mode);
      if (random.below(10) == 0) locks = server("s" + std::to_string(random.below(3)), kShared);
      all.push_back(
          std::make_unique<TestEntry>(id, std::move(locks), nullptr,
                                      random.below(5) == 0 ? Priority::kHigh : Priority::kNormal));
    }
    const auto worker = [&] { return random.below(5); };
    std::vector<std::size_t> turns(kEntries + 1, 0);
    std::set<std::uint64_t> queued;
    for (const auto& entry : all) {
      make_runnable(scheduler, *entry, worker());
      queued.insert(entry->id.value);
    }
    std::size_t completed = 0;
    for (std::size_t move = 0; completed < kEntries; ++move) {
      REQUIRE(move < 100 * kEntries * kTurns);
      scheduler.check_invariants();
      if (random.below(20) == 0) {
        TestEntry& one = *all[random.below(kEntries)];
        const bool was_queued = queued.contains(one.id.value);
        REQUIRE(scheduler.withdraw(one) == was_queued);
        if (was_queued) make_runnable(scheduler, one, worker(), Disposition::kFront);
      }
      const std::size_t who = worker();
      const Ids run = poll_run(scheduler, who, 1 + random.below(8));
      for (const std::uint64_t id : run) REQUIRE(queued.erase(id) == 1);
      for (const std::uint64_t id : run) {
        TestEntry& entry = *all[id - 1];
        const std::uint64_t what = random.below(5);
        if (++turns[id] < kTurns) {
          const auto goes_on = what == 0   ? Disposition::kReturn
                               : what == 1 ? Disposition::kBackUnlock
                               : what == 2 ? Disposition::kBack
                                           : Disposition::kFront;
          make_runnable(scheduler, entry, random.below(8) == 0 ? worker() : who, goes_on);
          queued.insert(id);
        } else {
          make_runnable(scheduler, entry, who, Disposition::kComplete);
          ++completed;
        }
      }
    }
    CHECK(scheduler.counts().queued == 0);
    CHECK(poll_run(scheduler, 1).empty());
  }
}

}  // namespace pv2::testing::seats_test
