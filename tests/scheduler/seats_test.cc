// SPDX-License-Identifier: Apache-2.0
//
// Seats: a worker is served first with what it has made runnable itself. Whatever the seats, each
// entry is served within a bound, and classes and priorities are the same for all seats together.

#include <pv2/base/random.h>
#include <pv2/scheduler/master_procedure_scheduler.h>
#include <pv2/scheduler/simple_procedure_scheduler.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
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

TEMPLATE_TEST_CASE(
    "what no worker makes runnable stands at the common seat, whoever polled it before", "",
    SimpleProcedureScheduler, MasterProcedureScheduler) {
  SystemClock clock;
  TestType scheduler(clock);
  const auto all = entries(2);
  make_runnable(scheduler, *all[0], 1);
  REQUIRE(poll_run(scheduler, 1) == Ids{1});
  make_runnable(scheduler, *all[1], 2);

  make_runnable(scheduler, *all[0], 0);  // perhaps a timer has fired

  CHECK(poll_run(scheduler, 2) == Ids{2, 1});
  complete_all(scheduler, all);
}

TEMPLATE_TEST_CASE("what another thread gives back does not wait for the worker that polled it", "",
                   SimpleProcedureScheduler, MasterProcedureScheduler) {
  SystemClock clock;
  TestType scheduler(clock);
  const auto all = entries(3);
  make_runnable(scheduler, *all[0], 1);
  REQUIRE(poll_run(scheduler, 1) == Ids{1});
  make_runnable(scheduler, *all[1], 2);
  make_runnable(scheduler, *all[2], 2);

  make_runnable(scheduler, *all[0], 0, Disposition::kReturn);  // worker 1 is in a long step

  CHECK(poll_run(scheduler, 2) == Ids{2, 1, 3});
  complete_all(scheduler, all);
}

TEMPLATE_TEST_CASE("a poll for top work that finds none is no turn of a seat", "",
                   SimpleProcedureScheduler, MasterProcedureScheduler) {
  SystemClock clock;
  TestType scheduler(clock);
  const auto all = entries(2);
  make_runnable(scheduler, *all[0], 1);
  make_runnable(scheduler, *all[1], 2);
  std::array<SchedulerEntry*, 1> run{};
  const bool has_top_classes = scheduler.has_top_classes();
  for (std::uint64_t i = 0; has_top_classes && i < 2 * SeatTurns::kNeglected; ++i) {
    REQUIRE(scheduler.poll_top(run, std::chrono::milliseconds(0)) == 0);
  }

  CHECK(poll_run(scheduler, 1) == Ids{1});
  CHECK(poll_run(scheduler, 2) == Ids{2});
  complete_all(scheduler, all);
}

TEST_CASE("what goes on is served before what begins, at whichever seat of a worker's choice") {
  SystemClock clock;
  SimpleProcedureScheduler scheduler(clock);
  const auto all = entries(6);
  for (std::size_t i = 0; i < 3; ++i) make_runnable(scheduler, *all[i], 0);  // newcomers
  for (std::size_t i = 3; i < 6; ++i) make_runnable(scheduler, *all[i], 1, Disposition::kFront);
  CHECK(scheduler.place_of(*all[1], 10).ahead == 1);
  CHECK(scheduler.place_of(*all[5], 10).ahead == 2);

  CHECK(poll_run(scheduler, 1) == Ids{4, 5, 6, 1, 2, 3});
  complete_all(scheduler, all);
}

TEMPLATE_TEST_CASE("a waiter that gets its lock from no worker stands at the common seat", "",
                   SimpleProcedureScheduler, MasterProcedureScheduler) {
  SystemClock clock;
  TestType scheduler(clock);
  TestEntry own(1, table("t", kExclusive));
  TestEntry waiter(2, table("limited", kExclusive));
  scheduler.set_limit(table_key("limited"), 0);
  make_runnable(scheduler, own, 1, Disposition::kFront);
  make_runnable(scheduler, waiter, 2);

  scheduler.set_limit(table_key("limited"), std::nullopt);

  CHECK(poll_run(scheduler, 1) == Ids{1, 2});
  complete(scheduler, own);
  complete(scheduler, waiter);
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
  CHECK(poll_run(scheduler, 1) == Ids{7, 3, 8, 4});
  complete_all(scheduler, all);
}

TEMPLATE_TEST_CASE("workers that poll by turns serve what each has and what nobody has alike", "",
                   SimpleProcedureScheduler, MasterProcedureScheduler) {
  SystemClock clock;
  TestType scheduler(clock);
  const auto seat_of_id = [](std::uint64_t id) { return id <= 10 ? 1U : id <= 20 ? 2U : 0U; };
  const auto all = entries(300);
  for (const auto& entry : all) make_runnable(scheduler, *entry, seat_of_id(entry->id.value));

  std::array<std::size_t, 3> served{};  // by the seat
  for (std::size_t polls = 0; polls < 400; ++polls) {
    const Ids run = poll_run(scheduler, 1 + polls % 2, 1);
    REQUIRE(run.size() == 1);
    const std::size_t seat = seat_of_id(run[0]);
    ++served.at(seat);
    if (seat != 0) make_runnable(scheduler, *all[run[0] - 1], seat);
  }

  CHECK(served[0] >= 190);
  CHECK(served[1] >= 90);
  CHECK(served[2] >= 90);
  complete_all(scheduler, all);
}

TEMPLATE_TEST_CASE("an entry does not wait for the worker at whose seat it stands", "",
                   SimpleProcedureScheduler, MasterProcedureScheduler) {
  SystemClock clock;
  TestType scheduler(clock);
  const auto all = entries(103);
  for (std::size_t i = 0; i < 100; ++i) make_runnable(scheduler, *all[i], 2);  // it is in a step
  for (std::size_t i = 100; i < 103; ++i) make_runnable(scheduler, *all[i], 1);

  std::vector<std::size_t> served;  // the polls in which what stands at the seat of worker 2 was
  for (std::size_t polls = 1; served.size() < 100 && polls < 10 * kMany; ++polls) {
    const Ids run = poll_run(scheduler, 1, 1);
    REQUIRE(run.size() == 1);
    if (run[0] <= 100) {
      served.push_back(polls);
    } else {
      make_runnable(scheduler, *all[run[0] - 1], 1);  // worker 1 is never idle
    }
  }

  REQUIRE(served.size() == 100);
  CHECK(served.front() == SeatPicker::kOthersEvery);  // it is left to worker 2 for some time
  CHECK(served.back() <= SeatTurns::kNeglected + 202);
  complete_all(scheduler, all);
}

// Classes take turns, too. Whatever their beat and that of the polls, each seat of each class has
// its turns.
TEST_CASE("an entry is served at whichever seat it stands while other classes and seats are busy") {
  const std::size_t run = GENERATE(1U, 3U, 64U);
  const std::uint32_t bounded_wait = GENERATE(1U, 2U, 3U, 64U);
  const std::size_t classes = GENERATE(1U, 2U, 3U);
  const std::size_t workers = GENERATE(1U, 2U);
  const std::size_t fillers = GENERATE(1U, 70U);  // of each class, at the seat of each worker
  const std::size_t victim_seat = GENERATE(0U, 1U, 2U);
  const std::size_t victim_class = GENERATE_COPY(range(std::size_t{0}, classes));
  CAPTURE(run, bounded_wait, classes, workers, fillers, victim_seat, victim_class);
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock, {.bounded_wait = bounded_wait});
  std::uint64_t id = 0;
  const auto entry_of = [&id](std::size_t cls) {
    const std::string name = std::to_string(++id);
    return std::make_unique<TestEntry>(id, cls == 0   ? server(name)
                                           : cls == 1 ? peer(name)
                                                      : table(name, kExclusive));
  };
  std::vector<std::unique_ptr<TestEntry>> all;
  for (std::size_t cls = 0; cls < classes; ++cls) {
    for (std::size_t worker = 1; worker <= workers; ++worker) {
      for (std::size_t i = 0; i < fillers; ++i) {
        all.push_back(entry_of(cls));
        make_runnable(scheduler, *all.back(), worker);
      }
    }
  }
  all.push_back(entry_of(victim_class));
  make_runnable(scheduler, *all.back(), victim_seat);

  // A class is passed over `bounded_wait` times and once for each other one, a seat 64 times for
  // each other one, and those before the victim in its line may go first.
  const std::size_t most =
      (bounded_wait + classes) * SeatPicker::kOthersEvery * (workers + 2) * (fillers + 1);
  std::size_t served = 0;
  bool is_served = false;
  for (std::size_t polls = 0; !is_served && served < most; ++polls) {
    const std::size_t worker = 1 + polls % workers;
    for (const std::uint64_t each : poll_run(scheduler, worker, run)) {
      ++served;
      is_served = is_served || each == id;
      make_runnable(scheduler, *all[each - 1], worker);
    }
  }
  CHECK(is_served);
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
  const auto is_own = [](std::uint64_t id) { return id <= 10; };
  CHECK(std::count_if(first.begin(), first.end(), is_own) == 10);
  complete_all(scheduler, all);
  scheduler.check_invariants();
}

TEST_CASE("a higher class or priority goes first, at whichever seat it stands") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  TestEntry low(1, table("t", kExclusive));
  TestEntry of_higher_class(2, server("s"));
  TestEntry of_higher_priority(3, table("u", kExclusive), nullptr, Priority::kHigh);
  TestEntry& high = GENERATE(true, false) ? of_higher_class : of_higher_priority;
  make_runnable(scheduler, low, 1);
  make_runnable(scheduler, high, 2);

  CHECK(poll_run(scheduler, 1) == Ids{high.id.value});
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

TEST_CASE("entries that stand with their entity at the seat of another worker do not wait for it") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  TestEntry first(1, table("t", kShared));
  TestEntry second(2, table("t", kShared));
  TestEntry third(3, table("t", kShared));
  TestEntry restless(4, table("u", kShared));
  make_runnable(scheduler, first, 2);
  make_runnable(scheduler, second, 1);
  make_runnable(scheduler, third, 1);
  REQUIRE(scheduler.withdraw(first));
  make_runnable(scheduler, restless, 1);

  std::size_t polls = 0;
  for (std::size_t served = 0; served < 2 && polls < kMany; ++polls) {
    if (poll_run(scheduler, 1, 1) != Ids{4}) {
      ++served;
    } else {
      make_runnable(scheduler, restless, 1);  // worker 1 is never idle, and worker 2 never polls
    }
  }

  CHECK(polls <= SeatTurns::kNeglected + 3);
  for (TestEntry* const entry : {&first, &second, &third, &restless}) {
    scheduler.withdraw(*entry);
    complete(scheduler, *entry);
  }
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
  STATIC_REQUIRE(seat_of(0) == kCommonSeat);
  STATIC_REQUIRE(seat_of(15) == 15);
  STATIC_REQUIRE(seat_of(16) == 1);
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
