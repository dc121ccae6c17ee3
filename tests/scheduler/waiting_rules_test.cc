// SPDX-License-Identifier: Apache-2.0
//
// What waiting means beyond one line, as short stories: which entries wait in a cycle, which get
// the rank of an urgent waiter, how many may hold a key at once, and what is reserved for the top
// classes. The same rules at random: scheduler_model_test.cc.

#include <pv2/scheduler/master_procedure_scheduler.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "support/catch.h"
#include "test_entry.h"

namespace pv2::testing::waiting_rules_test {

using namespace pv2::test;

namespace {

struct Fixture {
  SystemClock clock;
  MasterProcedureScheduler scheduler{clock};
};

LockSet two_tables(const std::string& a, const std::string& b) {
  return std::move(LockSet().table("ns", a, kExclusive).table("ns", b, kExclusive));
}

std::vector<WaitLink::Why> reasons(const WaitCycle& cycle) {
  std::vector<WaitLink::Why> reasons;
  for (const WaitLink& link : cycle.links) reasons.push_back(link.why);
  return reasons;
}

}  // namespace

TEST_CASE_METHOD(Fixture,
                 "a cycle through two holders and their children is suspected as it closes",
                 "[X14][cycle]") {
  TestEntry first(1, table("a", kExclusive)), second(2, table("b", kExclusive));
  TestEntry child_of_first(3, table("b", kShared), &first);
  TestEntry child_of_second(4, table("a", kShared), &second);
  submit(scheduler, {&first, &second});
  REQUIRE(poll_all(scheduler) == Ids{1, 2});

  submit(scheduler, child_of_first);
  scheduler.search_cycles();
  CHECK_FALSE(scheduler.has_new_cycles());
  CHECK_FALSE(scheduler.suspects_cycles());
  submit(scheduler, child_of_second);
  CHECK(scheduler.suspects_cycles());
  scheduler.search_cycles();

  REQUIRE(scheduler.has_new_cycles());
  const std::vector<WaitCycle> cycles = new_cycles(scheduler);
  CHECK_FALSE(scheduler.has_new_cycles());
  REQUIRE(cycles.size() == 1);
  CHECK(to_string(cycles[0]) ==
        "procedure 4 waits for table ns:a, held by procedure 1; procedure 1 waits for its child 3; "
        "procedure 3 waits for table ns:b, held by procedure 2; procedure 2 waits for its child 4");
  CHECK(scheduler.cycles().size() == 1);
  scheduler.withdraw(child_of_second);
  CHECK(scheduler.cycles().empty());
}

TEST_CASE_METHOD(Fixture, "a child that passes the waiters for its parent closes no cycle",
                 "[cycle]") {
  TestEntry holder(1, table("a", kExclusive)), other(2, table("c", kShared));
  TestEntry in_line(3, two_tables("a", "b"));
  TestEntry child(4, table("b", kExclusive), &holder);
  TestEntry stranger(5, table("b", kShared));
  submit(scheduler, {&holder, &other, &stranger});
  submit(scheduler, in_line);  // waits for 1 and for 5
  REQUIRE(poll_all(scheduler) == Ids{1, 2, 5});

  submit(scheduler, child);  // passes 3 and waits for 5 alone

  CHECK(scheduler.cycles().empty());
  complete(scheduler, stranger);
  CHECK(poll_all(scheduler) == Ids{4});
}

TEST_CASE_METHOD(Fixture,
                 "a child that wants exclusively what its parent shares waits for it in a cycle",
                 "[cycle]") {
  TestEntry parent(1, table("a", kShared)), child(2, table("a", kExclusive), &parent);
  submit(scheduler, {&parent, &child});

  REQUIRE(scheduler.cycles().size() == 1);
  CHECK(reasons(scheduler.cycles()[0]) ==
        std::vector{WaitLink::Why::kHolder, WaitLink::Why::kChild});
}

TEST_CASE_METHOD(Fixture,
                 "a cycle through a limit exists only when all holders of a place are in it",
                 "[cycle][limit]") {
  const ResourceKey rack{ResourceClass::kHostFirst, "rack"};
  scheduler.set_limit(rack, 2);
  TestEntry holder(1, table("a", kExclusive));
  TestEntry one(2, std::move(LockSet().key(rack, kShared)));
  TestEntry two(3, std::move(LockSet().key(rack, kShared)));
  TestEntry one_needs(4, table("a", kShared), &one), two_needs(5, table("a", kShared), &two);
  TestEntry child(6, std::move(LockSet().key(rack, kShared)), &holder);
  submit(scheduler, {&holder, &one, &two, &one_needs, &child});

  CHECK(scheduler.cycles().empty());  // 3 goes on and gives its place back
  submit(scheduler, two_needs);
  CHECK(new_cycles(scheduler).size() == 1);
  CHECK(scheduler.cycles().size() == 2);  // through each of the places
}

TEST_CASE_METHOD(Fixture, "two chains of waiting that meet only in the line for places are a cycle",
                 "[cycle][limit]") {
  const ResourceKey rack{ResourceClass::kHostFirst, "rack"};
  scheduler.set_limit(rack, 2);
  TestEntry holder(1, table("a", kExclusive));
  TestEntry one(2, std::move(LockSet().key(rack, kShared)));
  TestEntry two(3, std::move(LockSet().key(rack, kShared)));
  TestEntry one_needs(4, table("a", kShared), &one), two_needs(5, table("a", kShared), &two);
  TestEntry child(6, std::move(LockSet().key(rack, kShared)), &holder);
  submit(scheduler, {&holder, &one, &two, &child, &one_needs});
  CHECK(new_cycles(scheduler).empty());

  // Only entries that wait for a place wait for 3, and only while 2, which waits for 1, is stuck
  // too.
  submit(scheduler, two_needs);

  const std::vector<WaitCycle> cycles = new_cycles(scheduler);
  REQUIRE(cycles.size() == 1);
  CHECK(to_string(cycles[0]) ==
        "procedure 5 waits for table ns:a, held by procedure 1; procedure 1 waits for its child 6; "
        "procedure 6 waits for a place at class64 rack, of which procedure 3 has or gets one; "
        "procedure 3 waits for its child 5");
  REQUIRE(poll_all(scheduler) == Ids{1, 2, 3});
  scheduler.withdraw(one_needs);  // it is given up
  complete(scheduler, one_needs);
  complete(scheduler, one);
  CHECK(scheduler.cycles().empty());
  CHECK(poll_all(scheduler) == Ids{6});
}

TEST_CASE_METHOD(Fixture,
                 "the second of two cycles that close at once is reported when the first is opened",
                 "[cycle]") {
  TestEntry old(1, table("a", kExclusive)), one(2, table("b", kShared)),
      two(3, table("b", kShared));
  TestEntry child_of_one(4, table("a", kShared), &one), child_of_two(5, table("a", kShared), &two);
  TestEntry child_of_old(6, table("b", kExclusive), &old);
  submit(scheduler, {&old, &one, &two, &child_of_one, &child_of_two, &child_of_old});

  const std::vector<WaitCycle> first = new_cycles(scheduler);
  REQUIRE(first.size() == 1);
  const bool through_one = first[0].has(one.id);
  scheduler.withdraw(through_one ? child_of_one : child_of_two);

  const std::vector<WaitCycle> second = new_cycles(scheduler);
  REQUIRE(second.size() == 1);
  CHECK(second[0].has(through_one ? two.id : one.id));
  scheduler.withdraw(through_one ? child_of_two : child_of_one);
  CHECK(new_cycles(scheduler).empty());
  CHECK(scheduler.cycles().empty());
}

TEST_CASE_METHOD(Fixture, "a cycle that is opened before it was taken is not reported", "[cycle]") {
  TestEntry parent(1, table("a", kShared)), child(2, table("a", kExclusive), &parent);
  submit(scheduler, {&parent, &child});
  scheduler.search_cycles();
  REQUIRE(scheduler.has_new_cycles());

  scheduler.withdraw(child);

  CHECK_FALSE(scheduler.has_new_cycles());
  CHECK(new_cycles(scheduler).empty());
}

TEST_CASE_METHOD(
    Fixture,
    "an undo passes the waiters in line while members of its tree keep locks until their turn",
    "[cycle]") {
  TestEntry root(1, table("c", kExclusive));
  TestEntry waits_for_its_turn(2, table("a", kExclusive), &root);
  TestEntry finished(3, table("b", kExclusive), &root);
  TestEntry stranger(4, two_tables("a", "b")), behind(5, two_tables("a", "c"));
  submit(scheduler, {&waits_for_its_turn, &finished});
  REQUIRE(poll_all(scheduler) == Ids{2, 3});
  settle(scheduler, finished, Disposition::kParkUnlock);
  submit(scheduler, {&stranger, &behind});  // in the lines for b and c, because of a
  scheduler.report_wait(waits_for_its_turn, root, WaitLink::Why::kTurn);

  settle(scheduler, finished, Disposition::kBack);
  CHECK(poll_all(scheduler) == Ids{3});
  settle(scheduler, finished, Disposition::kParkUnlock);
  settle(scheduler, root, Disposition::kBack);
  CHECK(poll_all(scheduler) == Ids{1});

  CHECK(new_cycles(scheduler).empty());
  complete(scheduler, finished);
  complete(scheduler, waits_for_its_turn);
  complete(scheduler, root);
  CHECK(poll_all(scheduler) == Ids{4});
}

TEST_CASE_METHOD(Fixture, "an undo of a part of a tree that goes on passes the waiters in line",
                 "[cycle]") {
  TestEntry root(1), head(2, LockSet(), &root);
  TestEntry waits_for_its_turn(3, table("a", kExclusive), &head);
  TestEntry finished(4, table("b", kExclusive), &head), stranger(5, two_tables("a", "b"));
  submit(scheduler, {&root, &head, &waits_for_its_turn, &finished});
  REQUIRE(poll_all(scheduler).size() == 4);
  settle(scheduler, finished, Disposition::kParkUnlock);
  submit(scheduler, stranger);  // in the line for b, because of a
  scheduler.report_wait(waits_for_its_turn, head, WaitLink::Why::kTurn);

  settle(scheduler, finished, Disposition::kBack);

  CHECK(poll_all(scheduler) == Ids{4});
  CHECK(scheduler.cycles().empty());
  // No other member of the tree is undone.
  TestEntry other_child(6, table("b", kExclusive), &root);
  settle(scheduler, finished, Disposition::kParkUnlock);
  CHECK_FALSE(scheduler.admit(other_child));
}

TEST_CASE_METHOD(
    Fixture, "an undo in line passes those before it as soon as members of its tree wait for it",
    "[cycle]") {
  TestEntry root(1, table("b", kExclusive)), waits_for_its_turn(2, table("a", kExclusive), &root);
  TestEntry finished(3, table("c", kExclusive), &root);
  LockSet all = two_tables("a", "b");
  all.table("ns", "c", kExclusive);
  TestEntry stranger(4, std::move(all));
  submit(scheduler, waits_for_its_turn);
  REQUIRE(poll_all(scheduler) == Ids{2});
  SchedulerEntry& behind = GENERATE(false, true) ? root : finished;
  submit(scheduler, {&stranger, &behind});
  REQUIRE(poll_all(scheduler).empty());

  scheduler.report_wait(waits_for_its_turn, root, WaitLink::Why::kTurn);

  CHECK(poll_all(scheduler) == Ids{behind.id.value});
}

TEST_CASE_METHOD(
    Fixture, "a member that takes, in a rollback, a key that one below it waits for closes a cycle",
    "[cycle]") {
  TestEntry head(1, table("a", kShared)), waits_for_its_turn(2, LockSet(), &head);
  TestEntry below(3, table("a", kExclusive), &waits_for_its_turn), reader(4, table("a", kShared));
  submit(scheduler, {&waits_for_its_turn, &reader});
  REQUIRE(poll_all(scheduler).size() == 2);
  scheduler.report_wait(waits_for_its_turn, head, WaitLink::Why::kTurn);
  submit(scheduler, below);
  CHECK(scheduler.cycles().empty());

  submit(scheduler, head);

  REQUIRE(new_cycles(scheduler).size() == 1);
  CHECK(to_string(scheduler.cycles()[0]) ==
        "procedure 3 waits for table ns:a, held by procedure 1; procedure 1 waits for its child 3");
}

TEST_CASE_METHOD(
    Fixture,
    "an undo that no member waits for any more may close a cycle with those before it in line",
    "[cycle]") {
  TestEntry root(1, table("b", kExclusive)), waits_for_its_turn(2, table("a", kExclusive), &root);
  TestEntry holder(3, table("b", kExclusive)), other(4, table("c", kExclusive));
  TestEntry before(5, two_tables("b", "c"));
  submit(scheduler, {&waits_for_its_turn, &holder, &other});
  REQUIRE(poll_all(scheduler).size() == 3);
  scheduler.report_wait(waits_for_its_turn, root, WaitLink::Why::kTurn);
  submit(scheduler, {&before, &root});
  scheduler.report_wait(other, root, WaitLink::Why::kReported);
  REQUIRE(new_cycles(scheduler).empty());  // the root waits for the holder alone

  scheduler.end_reported_wait(waits_for_its_turn);

  CHECK(new_cycles(scheduler).size() == 1);
  CHECK(scheduler.cycles().size() == 1);
}

TEST_CASE_METHOD(Fixture, "a wait that its owner reports is part of the cycle", "[cycle]") {
  TestEntry producer(1, table("a", kExclusive)), waiter(2, table("b", kExclusive));
  TestEntry child(3, table("b", kShared), &producer);
  submit(scheduler, {&producer, &waiter, &child});
  CHECK(scheduler.cycles().empty());

  scheduler.report_wait(waiter, producer, WaitLink::Why::kReported);

  REQUIRE(new_cycles(scheduler).size() == 1);
  CHECK(scheduler.cycles().size() == 1);
  scheduler.end_reported_wait(waiter);
  CHECK(scheduler.cycles().empty());
}

TEST_CASE_METHOD(
    Fixture,
    "a member that waits for its turn in a rollback is part of the cycle, but no cycle by itself",
    "[cycle]") {
  TestEntry root(1), other_root(2);
  TestEntry waits_for_its_turn(3, table("a", kExclusive), &root);
  TestEntry below(4, LockSet(), &waits_for_its_turn);
  TestEntry holder(5, table("b", kExclusive), &other_root);
  TestEntry in_turn(6, table("b", kExclusive), &below), stranger(7, table("a", kShared), &holder);
  submit(scheduler, {&root, &other_root, &waits_for_its_turn, &below, &holder});
  REQUIRE(poll_all(scheduler).size() == 5);

  scheduler.report_wait(waits_for_its_turn, root, WaitLink::Why::kTurn);
  CHECK(scheduler.cycles().empty());
  submit(scheduler, in_turn);
  CHECK(scheduler.cycles().empty());
  submit(scheduler, stranger);

  REQUIRE(new_cycles(scheduler).size() == 1);
  CHECK(scheduler.cycles().size() == 1);
  scheduler.withdraw(in_turn);
  CHECK(scheduler.cycles().empty());
}

TEST_CASE_METHOD(
    Fixture,
    "in a rollback a sibling's lock that is released only after its own turn closes a cycle",
    "[cycle]") {
  TestEntry root(1);
  TestEntry waits_for_its_turn(2, table("a", kExclusive), &root);
  TestEntry in_turn(3, table("a", kExclusive), &root);
  submit(scheduler, {&root, &waits_for_its_turn});
  REQUIRE(poll_all(scheduler).size() == 2);
  scheduler.report_wait(waits_for_its_turn, root, WaitLink::Why::kTurn);

  submit(scheduler, in_turn);

  const std::vector<WaitCycle> cycles = new_cycles(scheduler);
  REQUIRE(cycles.size() == 1);
  CHECK(to_string(cycles[0]) ==
        "procedure 3 waits for table ns:a, held by procedure 2; procedure 2 waits for its turn in "
        "the undoing of procedure 1; procedure 1 waits for its child 3");
}

TEST_CASE_METHOD(Fixture,
                 "a reported cycle that has lost a link does not hide the one that takes its place",
                 "[cycle]") {
  TestEntry root(1);
  TestEntry child(2, table("a", kExclusive), &root);
  TestEntry grandchild(3, LockSet(), &child);
  submit(scheduler, {&root, &child, &grandchild});
  REQUIRE(poll_all(scheduler).size() == 3);
  scheduler.report_wait(grandchild, root, WaitLink::Why::kReported);
  REQUIRE(new_cycles(scheduler).size() == 1);

  scheduler.report_wait(child, root, WaitLink::Why::kTurn);

  const std::vector<WaitCycle> cycles = new_cycles(scheduler);
  REQUIRE(cycles.size() == 1);
  CHECK(to_string(cycles[0]) ==
        "procedure 3 waits for something that procedure 1 has to do; procedure 1 waits for its "
        "child 3");
}

TEST_CASE_METHOD(
    Fixture,
    "a cycle through a limit that a stranger has opened does not hide one that still exists",
    "[cycle][limit]") {
  scheduler.set_limit(table_key("a"), 2);
  TestEntry holder(1, table("a", kShared)), other_holder(2, table("a", kShared));
  TestEntry stranger(3), parent(4), child(5, table("a", kShared), &parent);
  submit(scheduler, {&holder, &other_holder, &stranger, &parent});
  REQUIRE(poll_all(scheduler).size() == 4);
  submit(scheduler, child);
  scheduler.report_wait(other_holder, stranger, WaitLink::Why::kReported);
  scheduler.report_wait(stranger, other_holder, WaitLink::Why::kReported);
  scheduler.report_wait(holder, parent, WaitLink::Why::kReported);
  REQUIRE(new_cycles(scheduler).size() == 2);
  scheduler.report_wait(parent, holder, WaitLink::Why::kReported);
  REQUIRE(new_cycles(scheduler).empty());

  scheduler.end_reported_wait(other_holder);

  std::vector<WaitCycle> cycles = new_cycles(scheduler);
  while (scheduler.suspects_cycles()) {
    for (WaitCycle& cycle : new_cycles(scheduler)) cycles.push_back(std::move(cycle));
  }
  REQUIRE(cycles.size() == 1);
  CHECK(reasons(cycles[0]) == std::vector{WaitLink::Why::kReported, WaitLink::Why::kReported});
}

TEST_CASE("a reported wait, and what a parent awaits, count from when the wait began", "[cycle]") {
  const auto why = GENERATE(WaitLink::Why::kReported, WaitLink::Why::kTurn);
  ManualClock clock;
  MasterProcedureScheduler scheduler{clock};
  const LockSet locks = GENERATE(LockSet(), table("a", kExclusive));
  TestEntry root(1), child(2, {}, &root), leaf(3, locks, &child);
  submit(scheduler, {&root, &child, &leaf});
  REQUIRE(poll_all(scheduler).size() == 3);
  clock.advance(std::chrono::seconds(5));
  const SteadyTime began = clock.steady_now();
  scheduler.report_wait(leaf, root, why);
  clock.advance(std::chrono::seconds(3));

  const QueuePlace place = scheduler.place_of(leaf, 8);
  REQUIRE(place.blockers.size() == 1);
  CHECK(place.blockers[0].why == why);
  CHECK((place.blockers[0].since == began));
  const std::vector<WaitCycle> cycles = new_cycles(scheduler);
  REQUIRE(cycles.size() == (why == WaitLink::Why::kReported ? 1 : 0));
  for (const WaitCycle& cycle : cycles) {
    CHECK(cycle.links.size() == 3);
    for (const WaitLink& link : cycle.links) CHECK((link.since == began));
  }
}

TEST_CASE_METHOD(Fixture, "when a search finds more cycles than it reports, another search is due",
                 "[cycle]") {
  constexpr std::uint64_t kPairs = 100;
  std::vector<std::unique_ptr<TestEntry>> entries;
  for (std::uint64_t id = 1; id <= 2 * kPairs; ++id) {
    entries.push_back(std::make_unique<TestEntry>(id));
    scheduler.admit(*entries.back());
  }
  for (std::size_t i = 0; i < entries.size(); i += 2) {
    scheduler.report_wait(*entries[i], *entries[i + 1], WaitLink::Why::kReported);
    scheduler.report_wait(*entries[i + 1], *entries[i], WaitLink::Why::kReported);
  }

  std::size_t told = new_cycles(scheduler).size();
  CHECK(told < kPairs);
  while (scheduler.suspects_cycles()) told += new_cycles(scheduler).size();

  CHECK(told == kPairs);
}

TEST_CASE_METHOD(Fixture,
                 "an entry that urgent work waits for goes before its equals until the wait ends",
                 "[inheritance]") {
  TestEntry low(1, table("a", kExclusive), nullptr, Priority::kLow);
  TestEntry other(2, table("b", kExclusive), nullptr, Priority::kNormal);
  TestEntry urgent(3, table("a", kExclusive), nullptr, Priority::kMeta);
  submit(scheduler, {&other, &low, &urgent});

  CHECK(poll(scheduler) == &low);
  settle(scheduler, low, Disposition::kFront);
  REQUIRE(scheduler.withdraw(urgent));
  CHECK(poll(scheduler) == &other);  // 1 has no waiter any more
  CHECK(poll(scheduler) == &low);
}

TEST_CASE_METHOD(
    Fixture,
    "a class is lent as well: an entry that a server's recovery waits for runs with the servers",
    "[inheritance][F1]") {
  TestEntry table_work(1, table("a", kExclusive)), more(2, table("b", kExclusive));
  TestEntry peers(3, peer("p"));
  LockSet recovery = server("s");
  recovery.table("ns", "a", kShared);
  TestEntry crash(4, std::move(recovery));
  submit(scheduler, {&more, &table_work, &peers, &crash});

  CHECK(poll_all(scheduler) == Ids{1, 3, 2});
}

TEST_CASE_METHOD(Fixture, "ranks are lent over several locks and to all descendants",
                 "[inheritance]") {
  TestEntry far(1, table("a", kExclusive), nullptr, Priority::kLow);
  TestEntry child_of_far(2, LockSet(), &far, Priority::kLow);
  TestEntry middle(3, two_tables("a", "b"), nullptr, Priority::kLow);
  TestEntry stranger(4, table("c", kExclusive), nullptr, Priority::kHigh);
  TestEntry urgent(5, table("b", kExclusive), nullptr, Priority::kMeta);
  submit(scheduler, far);
  REQUIRE(poll(scheduler) == &far);
  submit(scheduler, {&stranger, &child_of_far, &middle});

  submit(scheduler, urgent);  // waits for 3, which waits for 1, which waits for its child

  CHECK(poll_all(scheduler) == Ids{2, 4});
}

TEST_CASE_METHOD(
    Fixture,
    "an entry before two that become urgent together is lent their rank, and so is its blocker",
    "[inheritance]") {
  TestEntry holder(1, table("a", kExclusive)), parent(2, table("b", kExclusive)), other_parent(3);
  TestEntry far(4, table("c", kExclusive), nullptr, Priority::kLow);
  TestEntry in_line(5, two_tables("a", "c"), &other_parent);
  TestEntry behind(6, table("a", kExclusive), &parent), before(7, table("a", kExclusive), &parent);
  TestEntry stranger(8, table("d", kExclusive), nullptr, Priority::kHigh);
  TestEntry urgent(9, table("b", kExclusive), nullptr, Priority::kMeta);
  submit(scheduler, {&holder, &parent, &other_parent});
  REQUIRE(poll_all(scheduler).size() == 3);
  submit(scheduler, {&far, &in_line});
  CHECK_FALSE(scheduler.admit(behind));  // known before the other child, in line behind it
  submit(scheduler, before);
  settle(scheduler, behind, Disposition::kBack);

  submit(scheduler, {&stranger, &urgent});

  CHECK(poll_all(scheduler) == Ids{4, 8});
}

TEST_CASE_METHOD(Fixture,
                 "no more entries than the limit hold a limited key, first come, first served",
                 "[limit]") {
  scheduler.set_limit(table_key("a"), 2);
  std::vector<std::unique_ptr<TestEntry>> readers;
  for (std::uint64_t id = 1; id <= 4; ++id) {
    readers.push_back(std::make_unique<TestEntry>(id, table("a", kShared)));
    submit(scheduler, *readers.back());
  }
  CHECK(poll_all(scheduler) == Ids{1, 2});
  const LockInfo info = lock_on(scheduler, table_key("a"));
  CHECK(info.limit == 2U);
  CHECK(ids_of(info.waiters) == Ids{3, 4});

  complete(scheduler, *readers[1]);
  CHECK(poll_all(scheduler) == Ids{3});
  scheduler.set_limit(table_key("a"), std::nullopt);
  CHECK(poll_all(scheduler) == Ids{4});
}

TEST_CASE_METHOD(Fixture, "a holder that takes no place blocks no other entry at a limit",
                 "[limit]") {
  scheduler.set_limit(table_key("a"), 1);
  TestEntry holder(1, table("a", kShared)), child(2, table("a", kShared), &holder);
  TestEntry waiter(3, table("a", kShared));
  submit(scheduler, {&holder, &child, &waiter});

  const QueuePlace place = scheduler.place_of(waiter, 4);

  REQUIRE(place.blockers.size() == 1);
  CHECK(place.blockers[0].awaited == holder.id);
  CHECK(place.more == 0);
}

TEST_CASE_METHOD(Fixture, "a reader waits for each writer of a tree, whenever it joined") {
  TestEntry root(1, table("a", kExclusive)), reading_child(2, table("a", kShared), &root);
  TestEntry writing_child(3, table("a", kExclusive), &root);
  TestEntry waiter(4, table("a", kShared));
  submit(scheduler, {&root, &reading_child, &writing_child, &waiter});

  const QueuePlace place = scheduler.place_of(waiter, 4);

  Ids awaited;
  for (const WaitLink& blocker : place.blockers) awaited.push_back(blocker.awaited.value);
  std::sort(awaited.begin(), awaited.end());
  CHECK(awaited == Ids{1, 3});
}

TEST_CASE_METHOD(Fixture, "a limit is taken all or nothing with the rest of the set", "[limit]") {
  scheduler.set_limit(table_key("a"), 1);
  TestEntry reader(1, table("a", kShared));
  LockSet both = table("a", kShared);
  both.table("ns", "b", kExclusive);
  TestEntry wants_both(2, std::move(both));
  TestEntry elsewhere(3, table("b", kExclusive));
  submit(scheduler, {&reader, &wants_both});

  CHECK_FALSE(scheduler.admit(elsewhere));  // 2 is ahead of it, though it holds nothing yet
  CHECK(ids_of(lock_on(scheduler, table_key("b")).holders).empty());
}

TEST_CASE_METHOD(Fixture, "holders beyond a lowered limit keep the key, even after a restart",
                 "[limit]") {
  TestEntry one(1, table("a", kShared)), two(2, table("a", kShared)), three(3, table("a", kShared));
  scheduler.set_limit(table_key("a"), 1);
  CHECK(restore(scheduler, one).ok());
  CHECK(restore(scheduler, two).ok());
  submit(scheduler, three);

  complete(scheduler, one);
  CHECK(poll(scheduler) == nullptr);
  complete(scheduler, two);
  CHECK(poll(scheduler) == &three);
}

TEST_CASE_METHOD(Fixture, "a reserved worker takes the work of the top classes and nothing else",
                 "[reserved]") {
  TestEntry ordinary(1, table("a", kExclusive));
  TestEntry meta(2, std::move(LockSet().meta(kExclusive)));
  submit(scheduler, {&ordinary, &meta});
  std::array<SchedulerEntry*, 4> run{};

  CHECK(scheduler.poll_top(run, std::chrono::milliseconds(0)) == 1);
  CHECK(run[0] == &meta);
  CHECK(scheduler.poll_top(run, std::chrono::milliseconds(0)) == 0);
  CHECK(scheduler.poll(run, std::chrono::milliseconds(0)) == 1);
}

TEST_CASE_METHOD(Fixture, "a reserved worker takes an entry that the top classes wait for",
                 "[reserved]") {
  LockSet both = table("a", kShared);
  TestEntry ordinary(1, table("a", kExclusive));
  LockSet meta_and_table = std::move(LockSet().meta(kExclusive));
  meta_and_table.table("ns", "a", kShared);
  TestEntry meta(2, std::move(meta_and_table));
  submit(scheduler, ordinary);
  std::array<SchedulerEntry*, 4> run{};
  CHECK(scheduler.poll_top(run, std::chrono::milliseconds(0)) == 0);

  submit(scheduler, meta);

  CHECK(scheduler.poll_top(run, std::chrono::milliseconds(0)) == 1);
  CHECK(run[0] == &ordinary);
}

TEST_CASE_METHOD(Fixture, "top work wakes a reserved worker that sleeps, other work does not",
                 "[reserved][X16]") {
  TestEntry ordinary(1, table("a", kExclusive));
  TestEntry meta(2, std::move(LockSet().meta(kExclusive)));
  std::atomic<std::uint64_t> served{0};
  std::thread reserved([&] {
    std::array<SchedulerEntry*, 4> run{};
    if (scheduler.poll_top(run, std::chrono::hours(1)) == 1) served = run[0]->id.value;
  });
  while (scheduler.counts().sleeping != 1) std::this_thread::yield();

  submit(scheduler, ordinary);
  CHECK(scheduler.counts().wakes == 0);
  submit(scheduler, meta);
  reserved.join();

  CHECK(served == 2);
  CHECK(scheduler.counts().wakes == 1);
}

}  // namespace pv2::testing::waiting_rules_test
