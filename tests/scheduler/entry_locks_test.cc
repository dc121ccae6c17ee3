// SPDX-License-Identifier: Apache-2.0
//
// EntryLocks: what is read of the locks of an entry, from its creation until it completes.

#include <pv2/scheduler/entry_locks.h>
#include <pv2/scheduler/simple_procedure_scheduler.h>

#include <string>
#include <utility>
#include <vector>

#include "support/catch.h"
#include "test_entry.h"

namespace pv2::testing::entry_locks_test {

using namespace pv2::test;

namespace {

using Ids = std::vector<std::uint64_t>;

// What an entry says of its locks, read through every verb.
void check_reads(const TestEntry& entry, const LockSet& asked) {
  const EntryLocks& locks = entry.locks();
  const auto& requests = asked.requests();
  CHECK(locks.to_set() == asked);
  CHECK(locks.empty() == asked.empty());
  CHECK(locks.primary() == asked.primary());
  CHECK(locks.scope() == asked.scope());
  REQUIRE(locks.size() == requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    CHECK(locks.key(i) == requests[i].key);
    CHECK(locks.mode(i) == requests[i].mode);
    CHECK(locks.find(requests[i].key) == requests[i].mode);
  }
  CHECK_FALSE(locks.find({ResourceClass::kGlobal, "a key of nobody"}));
  CHECK_FALSE(locks.find({ResourceClass::kHostFirst, "a key of nobody"}));
}

std::vector<LockSet> sets() {
  LockSet many = region("t", "r");
  for (int i = 0; i < 40; ++i) many.server("s" + std::to_string(i), i % 2 ? kShared : kExclusive);
  return {LockSet(), server("one"), std::move(table("t", kExclusive).scope(LockScope::kStep)),
          // The primary key is neither the first one nor the last one.
          std::move(table("t", kShared).peer("p", kExclusive).scope(LockScope::kVisit)),
          std::move(many)};
}

}  // namespace

TEST_CASE("an entry asks for the same locks before and after the scheduler knows it") {
  SystemClock clock;
  SimpleProcedureScheduler scheduler(clock);
  std::uint64_t id = 0;
  for (const LockSet& asked : sets()) {
    TestEntry entry(++id, asked);
    check_reads(entry, asked);
    submit(scheduler, {&entry});
    check_reads(entry, asked);
    CHECK(poll_all(scheduler) == Ids{id});
    check_reads(entry, asked);
    settle(scheduler, entry, Disposition::kParkUnlock);
    check_reads(entry, asked);
    complete(scheduler, entry);
    CHECK(entry.locks().empty());
  }
}

TEST_CASE("a key that two entries ask for is in memory once") {
  SystemClock clock;
  SimpleProcedureScheduler scheduler(clock);
  TestEntry one(1, table("a table with a long name", kExclusive));
  TestEntry other(2, table("a table with a long name", kShared));
  submit(scheduler, {&one, &other});

  CHECK(&one.locks().key(0) == &other.locks().key(0));
  CHECK(&one.locks().key(1) == &other.locks().key(1));

  // The first entry brought the name; the second one keeps it.
  CHECK(poll_all(scheduler) == Ids{1});
  complete(scheduler, one);
  check_reads(other, table("a table with a long name", kShared));
  CHECK(poll_all(scheduler) == Ids{2});
  complete(scheduler, other);
}

}  // namespace pv2::testing::entry_locks_test
