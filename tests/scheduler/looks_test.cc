// SPDX-License-Identifier: Apache-2.0
//
// What the scheduler looks at under its mutex, compared with the number of waiters: in total, as n
// grows, and in one critical section. Counted, not timed.

#include <pv2/scheduler/master_procedure_scheduler.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lock_table.h"
#include "support/catch.h"
#include "test_entry.h"

namespace pv2::testing::looks_test {

using namespace pv2::test;

namespace {

constexpr std::uint64_t kFew = 500;
constexpr std::uint64_t kLooksMax = 1024;  // in one critical section

LockSet key(const std::string& name, LockMode mode) {
  return std::move(LockSet().key({ResourceClass::kHostFirst, name}, mode));
}

struct Fixture {
  ~Fixture() { scheduler.stop(); }

  TestEntry& add(LockSet locks, TestEntry* parent = nullptr) {
    entries.push_back(std::make_unique<TestEntry>(entries.size() + 1, std::move(locks), parent));
    submit(scheduler, *entries.back());
    return *entries.back();
  }
  /// What `action` looks at.
  template <class Action>
  std::uint64_t looks(Action action) {
    const std::uint64_t before = scheduler.looks().total;
    action();
    return scheduler.looks().total - before;
  }

  SystemClock clock;
  MasterProcedureScheduler scheduler{clock};
  std::vector<std::unique_ptr<TestEntry>> entries;
};

/// What 50 turns cost, with a search after every tenth, while `n` roots are queued: each holds the
/// key and spawns a child that waits for another for a while.
std::uint64_t turns_in_a_line_of(std::uint64_t n) {
  Fixture f;
  TestEntry& other = f.add(key("other", kExclusive));
  REQUIRE(poll(f.scheduler) == &other);
  for (std::uint64_t i = 0; i < n; ++i) f.add(key("line", kExclusive));
  const std::uint64_t looks = f.looks([&] {
    for (int turn = 0; turn < 50; ++turn) {
      SchedulerEntry* const root = poll(f.scheduler);
      REQUIRE(root != nullptr);
      TestEntry child(100'000, key("other", kExclusive), static_cast<TestEntry*>(root));
      submit(f.scheduler, child);
      if (turn % 10 == 0) CHECK(new_cycles(f.scheduler).empty());
      settle(f.scheduler, other, Disposition::kBackUnlock);
      REQUIRE(poll(f.scheduler) == &child);
      complete(f.scheduler, child);
      complete(f.scheduler, *root);
      REQUIRE(poll(f.scheduler) == &other);
    }
  });
  CHECK(f.scheduler.looks().section_max <= kLooksMax);
  return looks;
}

}  // namespace

TEST_CASE("a turn costs the same however many roots are queued behind it", "[looks]") {
  const std::uint64_t few = turns_in_a_line_of(kFew);

  CHECK(turns_in_a_line_of(2 * kFew) == few);
  CHECK(turns_in_a_line_of(4 * kFew) == few);
}

TEST_CASE("a search looks a few times at each waiter, and at a bounded number at once", "[looks]") {
  const std::uint64_t n = GENERATE(500U, 1000U, 2000U);
  Fixture f;
  TestEntry& a = f.add(key("a", kExclusive));
  f.add(key("b", kExclusive));
  TestEntry& free_root = f.add(LockSet());
  for (std::uint64_t i = 0; i < n; ++i) {
    f.add(key("a", kExclusive));
    f.add(key("b", kExclusive), &a);
  }
  f.add(key("a", kExclusive), &free_root);  // stands behind all of the first

  CHECK(f.looks([&] { f.scheduler.search_cycles(); }) <= 20 * n);
  CHECK(f.looks([&] { CHECK(f.scheduler.cycles().empty()); }) <= 20 * n);
  CHECK(f.scheduler.looks().section_max <= kLooksMax);
}

TEST_CASE("readers that wait for one writer are granted its key in sections", "[looks]") {
  const std::uint64_t n = GENERATE(500U, 1000U, 2000U);
  Fixture f;
  TestEntry& writer = f.add(key("a", kExclusive));
  REQUIRE(poll(f.scheduler) == &writer);
  for (std::uint64_t i = 0; i < n; ++i) f.add(key("a", kShared));

  std::size_t ran = 0;
  const std::uint64_t looks = f.looks([&] {
    complete(f.scheduler, writer);
    ran = poll_all(f.scheduler).size();
  });

  CHECK(ran == n);
  CHECK(looks <= 10 * n);
  CHECK(f.scheduler.looks().section_max <= kLooksMax);
}

TEST_CASE("a poll that can run nothing serves what is owed in sections", "[looks]") {
  const std::uint64_t n = GENERATE(500U, 1000U, 2000U);
  Fixture f;
  f.add(key("other", kExclusive));
  TestEntry& holder = f.add(key("a", kExclusive));
  TestEntry& parent = f.add(LockSet());  // its children are asked although the other key is held
  REQUIRE(poll_all(f.scheduler).size() == 3);
  for (std::uint64_t i = 0; i < n; ++i) {
    LockSet both = key("a", kShared);
    f.add(std::move(both.key({ResourceClass::kHostFirst, "other"}, kShared)), &parent);
  }

  const std::uint64_t looks = f.looks([&] {
    complete(f.scheduler, holder);
    CHECK(poll(f.scheduler) == nullptr);
  });

  CHECK(looks >= n);
  CHECK(f.scheduler.looks().section_max <= kLooksMax);
}

TEST_CASE("the members of a tree that is lent a rank end their waits with a few looks each",
          "[looks]") {
  const std::uint64_t n = GENERATE(500U, 1000U);
  const bool is_deep = GENERATE(false, true);  // below a child of the head
  Fixture f;
  TestEntry& head = f.add(key("t", kExclusive));
  TestEntry& parent = is_deep ? f.add(LockSet(), &head) : head;
  std::vector<TestEntry*> members;
  for (std::uint64_t i = 0; i < n; ++i) {
    members.push_back(&f.add(key(std::to_string(i), kExclusive), &parent));
  }
  REQUIRE(poll_all(f.scheduler).size() == n + (is_deep ? 2 : 1));
  for (TestEntry* const member : members) {
    f.scheduler.report_wait(*member, head, WaitLink::Why::kTurn);
  }
  TestEntry urgent(100'000, key("t", kExclusive), nullptr, Priority::kHigh);
  settle(f.scheduler, urgent, Disposition::kBack);

  const std::uint64_t looks = f.looks([&] {
    for (TestEntry* const member : members) {
      f.scheduler.end_reported_wait(*member);
      complete(f.scheduler, *member);
    }
  });

  CHECK(looks <= 20 * n);
  f.scheduler.check_invariants();
}

TEST_CASE("leaving a line, or asking for the blockers in it, looks at a few entries", "[looks]") {
  const std::uint64_t n = GENERATE(500U, 1000U, 2000U);
  Fixture f;
  f.add(key("a", kExclusive));
  for (std::uint64_t i = 0; i < n; ++i) f.add(key("a", kExclusive));

  CHECK(f.looks([&] { f.scheduler.withdraw(*f.entries[n / 2]); }) < 20);
  CHECK(f.looks([&] { CHECK(f.scheduler.place_of(*f.entries.back(), 8).blockers.size() == 1); }) <
        20);
}

TEST_CASE("a waiter for very many keys looks at each a few times while they come free", "[looks]") {
  const std::uint64_t n = GENERATE(500U, 1000U, 2000U);
  const bool backwards = GENERATE(false, true);
  Fixture f;
  LockSet all;
  for (std::uint64_t i = 0; i < n; ++i) {
    f.add(key(std::to_string(i), kExclusive));
    all.key({ResourceClass::kHostFirst, std::to_string(i)}, kExclusive);
  }
  TestEntry& waiter = f.add(std::move(all));
  REQUIRE(poll_all(f.scheduler).size() == n);

  const std::uint64_t looks = f.looks([&] {
    for (std::uint64_t i = 0; i < n; ++i) {
      complete(f.scheduler, *f.entries[backwards ? n - 1 - i : i]);
    }
  });

  CHECK(poll(f.scheduler) == &waiter);
  CHECK(looks <= 10 * n);
}

TEST_CASE("a place of a limit that comes free is handed on with a few looks", "[looks]") {
  const std::uint64_t n = GENERATE(500U, 1000U, 2000U);
  Fixture f;
  f.scheduler.set_limit({ResourceClass::kHostFirst, "rack"}, static_cast<std::uint32_t>(n));
  for (std::uint64_t i = 0; i < 2 * n; ++i) f.add(key("rack", kShared));
  REQUIRE(poll_all(f.scheduler).size() == n);

  const std::uint64_t looks = f.looks([&] {
    for (std::uint64_t i = 0; i < n; ++i) {
      complete(f.scheduler, *f.entries[i]);
      REQUIRE(poll(f.scheduler) == f.entries[n + i].get());
    }
  });

  CHECK(looks <= 20 * n);
}

TEST_CASE("a limit is changed with a few looks, however long the line for its places", "[looks]") {
  const std::uint64_t n = GENERATE(500U, 1000U, 2000U);
  const ResourceKey rack{ResourceClass::kHostFirst, "rack"};
  Fixture f;
  f.scheduler.set_limit(rack, 1);
  for (std::uint64_t i = 0; i < n; ++i) f.add(key("rack", kShared));
  TestEntry urgent(100'000, key("other", kShared), nullptr, Priority::kHigh);
  submit(f.scheduler, urgent);

  for (const std::uint32_t limit : {2U, 50U, 1U}) {
    CHECK(f.looks([&] { f.scheduler.set_limit(rack, limit); }) <= 20 * (limit + 1));
  }
}

TEST_CASE("a hand-over does not look at a line in which each waiter has a place", "[looks]") {
  const std::uint64_t n = GENERATE(500U, 1000U, 2000U);
  constexpr std::uint64_t kTurns = 50;
  const auto both = [](const char* own) {
    LockSet locks = key(own, kExclusive);
    locks.key({ResourceClass::kHostFirst, "type"}, kShared);
    return locks;
  };
  Fixture f;
  f.scheduler.set_limit({ResourceClass::kHostFirst, "type"}, static_cast<std::uint32_t>(2 * n));
  f.add(both("a"));
  REQUIRE(poll(f.scheduler) != nullptr);
  for (std::uint64_t i = 0; i < n; ++i) f.add(both("a"));
  for (std::uint64_t i = 0; i < kTurns; ++i) f.add(both("b"));

  const std::uint64_t looks = f.looks([&] {
    for (std::uint64_t i = 0; i < kTurns; ++i) {
      SchedulerEntry* const next = poll(f.scheduler);
      REQUIRE(next != nullptr);
      complete(f.scheduler, *next);
    }
  });

  CHECK(looks <= 20 * kTurns);
}

TEST_CASE("waiters that lack another key do not look along the line for a place", "[looks]") {
  const std::uint64_t n = GENERATE(500U, 1000U, 2000U);
  LockSet both = key("a", kExclusive);
  both.key({ResourceClass::kHostFirst, "type"}, kShared);
  Fixture f;
  f.scheduler.set_limit({ResourceClass::kHostFirst, "type"}, static_cast<std::uint32_t>(n / 2));
  for (std::uint64_t i = 0; i < n; ++i) f.add(both);

  CHECK(poll_all(f.scheduler).size() == 1);
  complete(f.scheduler, *f.entries.front());

  CHECK(poll_all(f.scheduler).size() == 1);
  CHECK(f.scheduler.looks().section_max <= kLooksMax);
}

TEST_CASE("a wait for a turn, or a set that is taken, concerns no waiter of another tree",
          "[looks]") {
  Fixture f;
  f.add(key("big", kExclusive));
  for (std::uint64_t i = 0; i < kFew; ++i) f.add(key("big", kExclusive));
  f.add(key("other", kExclusive));
  TestEntry& head = f.add(key("head", kExclusive));
  REQUIRE(poll_all(f.scheduler).size() == 3);
  settle(f.scheduler, head, Disposition::kParkUnlock);
  TestEntry& sibling = f.add(key("sibling", kExclusive), &head);
  f.add(key("other", kExclusive), &head);

  CHECK(f.looks([&] { settle(f.scheduler, head, Disposition::kBack); }) < 20);
  REQUIRE(poll_all(f.scheduler).size() == 2);
  settle(f.scheduler, head, Disposition::kParkUnlock);
  CHECK(f.looks([&] { f.scheduler.report_wait(sibling, head, WaitLink::Why::kTurn); }) < 20);
}

TEST_CASE("very many waiters that begin to pass others are granted their sets in sections",
          "[looks]") {
  const std::uint64_t n = GENERATE(500U, 1000U, 2000U);
  Fixture f;
  f.add(key("x", kExclusive));
  TestEntry& head = f.add(LockSet());
  TestEntry& sibling = f.add(key("sibling", kExclusive), &head);
  REQUIRE(poll_all(f.scheduler).size() == 3);
  for (std::uint64_t i = 0; i < n; ++i) {
    LockSet both = key(std::to_string(i), kExclusive);
    f.add(std::move(both.key({ResourceClass::kHostFirst, "x"}, kExclusive)));
    f.add(key(std::to_string(i), kExclusive), &head);
  }
  REQUIRE(poll(f.scheduler) == nullptr);

  const std::uint64_t looks = f.looks([&] {
    f.scheduler.report_wait(sibling, head, WaitLink::Why::kTurn);
    CHECK(f.scheduler.counts().runnable == LockTable::kServedMax);
    CHECK(poll_all(f.scheduler).size() == n);
  });

  CHECK(looks <= 20 * n);
}

TEST_CASE("a waiter that leaves its line before it is asked is asked no more", "[looks]") {
  constexpr std::uint64_t kMany = 2 * LockTable::kServedMax;
  Fixture f;
  TestEntry& holder = f.add(key("a", kExclusive));
  TestEntry& parent = f.add(key("a", kExclusive));
  for (std::uint64_t i = 0; i < kMany; ++i) f.add(key("a", kExclusive), &parent);
  REQUIRE(poll(f.scheduler) == &holder);
  complete(f.scheduler, holder);  // the parent gets the key, and its children can have it, too

  f.scheduler.withdraw(*f.entries.back());
  complete(f.scheduler, *f.entries.back());
  f.entries.pop_back();

  f.scheduler.check_invariants();
  CHECK(poll_all(f.scheduler).size() == kMany);
  f.scheduler.check_invariants();
}

TEST_CASE("a listing looks once at each key and party, and at a bounded number at once",
          "[looks]") {
  const std::uint64_t n = GENERATE(500U, 1000U, 2000U);
  Fixture f;
  for (std::uint64_t i = 0; i < n; ++i) {
    f.add(key("a", kExclusive));
    f.add(key(std::to_string(i), kShared));
  }

  CHECK(f.looks([&] { CHECK(f.scheduler.locks().size() == n + 1); }) <= 10 * n);
  CHECK(f.scheduler.looks().section_max <= 2 * kLooksMax);
}

TEST_CASE("each of a chain of n levels takes its locks with a few looks", "[looks]") {
  const std::uint64_t n = GENERATE(500U, 1000U, 2000U);
  Fixture f;
  const std::uint64_t looks = f.looks([&] {
    TestEntry* parent = nullptr;
    for (std::uint64_t i = 0; i < n; ++i) parent = &f.add(key(std::to_string(i), kShared), parent);
  });

  CHECK(looks <= 10 * n);
}

}  // namespace pv2::testing::looks_test
