// SPDX-License-Identifier: Apache-2.0
//
// The lock rules as short stories, HBase's acceptance list in our terms: which entries may hold
// together, which wait, which inherit. Every story holds for both schedulers.

#include <pv2/scheduler/master_procedure_scheduler.h>
#include <pv2/scheduler/simple_procedure_scheduler.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "support/catch.h"
#include "test_entry.h"

namespace pv2::testing::lock_rules_test {

using namespace pv2::test;

namespace {

struct Simple {
  static std::unique_ptr<ProcedureScheduler> make(const Clock& clock) {
    return std::make_unique<SimpleProcedureScheduler>(clock);
  }
};
struct Master {
  static std::unique_ptr<ProcedureScheduler> make(const Clock& clock) {
    return std::make_unique<MasterProcedureScheduler>(clock);
  }
};

template <class Kind>
struct Fixture {
  SystemClock clock;
  std::unique_ptr<ProcedureScheduler> made = Kind::make(clock);
  ProcedureScheduler& scheduler = *made;
};

}  // namespace

TEMPLATE_TEST_CASE_METHOD(Fixture,
                          "an exclusive lock admits all descendants of its holder and no ancestor",
                          "[row63]", Simple, Master) {
  auto& scheduler = this->scheduler;
  std::vector<std::unique_ptr<TestEntry>> chain;
  for (std::uint64_t i = 0; i < 15; ++i) {
    chain.push_back(std::make_unique<TestEntry>(i + 1, table("t", kExclusive),
                                                i == 0 ? nullptr : chain.back().get()));
  }

  REQUIRE(scheduler.admit(*chain[4]));

  for (std::size_t i = 5; i < 15; ++i) CHECK(scheduler.admit(*chain[i]));
  for (std::size_t i = 0; i < 4; ++i) CHECK_FALSE(scheduler.admit(*chain[i]));
}

TEMPLATE_TEST_CASE_METHOD(Fixture, "a key stays known while it is queued for, held or waited for",
                          "[row90][row91][F13]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry reader_one(1, table("t", kShared)), reader_two(2, table("t", kShared));
  TestEntry writer(3, table("t", kExclusive));
  submit(scheduler, {&reader_one, &reader_two, &writer});
  CHECK(poll_all(scheduler) == Ids{1, 2});

  complete(scheduler, reader_one);
  CHECK(ids_of(lock_on(scheduler, table_key("t")).holders) == Ids{2});
  CHECK(ids_of(lock_on(scheduler, table_key("t")).waiters) == Ids{3});
  complete(scheduler, reader_two);
  CHECK(ids_of(lock_on(scheduler, table_key("t")).holders) == Ids{3});  // 3 is queued, too
  CHECK(poll_all(scheduler) == Ids{3});
  CHECK(ids_of(lock_on(scheduler, table_key("t")).holders) == Ids{3});
  complete(scheduler, writer);

  CHECK(scheduler.locks().empty());
}

TEMPLATE_TEST_CASE_METHOD(Fixture,
                          "writers run alone, readers between them together, in order of arrival",
                          "[row92]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry x1(1, table("t", kExclusive)), s2(2, table("t", kShared)), s3(3, table("t", kShared));
  TestEntry x4(4, table("t", kExclusive)), s5(5, table("t", kShared)), s6(6, table("t", kShared));
  submit(scheduler, {&x1, &s2, &s3, &x4, &s5, &s6});

  CHECK(poll_all(scheduler) == Ids{1});
  complete(scheduler, x1);
  CHECK(poll_all(scheduler) == Ids{2, 3});
  complete(scheduler, s2);
  CHECK(poll_all(scheduler).empty());
  complete(scheduler, s3);
  CHECK(poll_all(scheduler) == Ids{4});
  complete(scheduler, x4);
  CHECK(poll_all(scheduler) == Ids{5, 6});
}

TEMPLATE_TEST_CASE_METHOD(Fixture, "a namespace lock keeps out only the tables of that namespace",
                          "[row93][row94]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry ns_op(1, name_space("ns", kExclusive));
  TestEntry inside(2, table("t", kExclusive));
  TestEntry outside(3, std::move(LockSet().table("other", "t", kExclusive)));
  submit(scheduler, {&ns_op, &inside, &outside});

  CHECK(poll_all(scheduler) == Ids{1, 3});
  complete(scheduler, ns_op);
  CHECK(poll_all(scheduler) == Ids{2});
}

TEMPLATE_TEST_CASE_METHOD(Fixture,
                          "a table writer waits for a running region operation and the reverse",
                          "[row95]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry region_op(1, region("t", "a")), writer(2, table("t", kExclusive));
  TestEntry late_region_op(3, region("t", "b"));
  submit(scheduler, {&region_op, &writer, &late_region_op});

  CHECK(poll_all(scheduler) == Ids{1});
  complete(scheduler, region_op);
  CHECK(poll_all(scheduler) == Ids{2});
  complete(scheduler, writer);
  CHECK(poll_all(scheduler) == Ids{3});
}

TEMPLATE_TEST_CASE_METHOD(Fixture,
                          "a merge makes operations on both of its regions wait and no other",
                          "[row96]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry merge(
      1,
      std::move(LockSet().region("ns", "t", "a", kExclusive).region("ns", "t", "b", kExclusive)));
  TestEntry a(2, region("t", "a")), b(3, region("t", "b")), c(4, region("t", "c"));
  submit(scheduler, {&merge, &a, &b, &c});

  CHECK(poll_all(scheduler) == Ids{1, 4});
  complete(scheduler, merge);
  CHECK(poll_all(scheduler) == Ids{2, 3});
}

TEMPLATE_TEST_CASE_METHOD(Fixture, "region children run under their parent's exclusive table lock",
                          "[row97][row108]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry parent(1, table("t", kExclusive));
  TestEntry a(2, region("t", "a"), &parent), b(3, region("t", "b"), &parent);
  TestEntry same_as_a(4, region("t", "a"), &parent);
  submit(scheduler, parent);
  CHECK(poll_all(scheduler) == Ids{1});

  submit(scheduler, {&a, &b, &same_as_a});

  // A key that the parent does not hold itself excludes siblings as it excludes any entry.
  CHECK(poll_all(scheduler) == Ids{2, 3});
  complete(scheduler, a);
  CHECK(poll_all(scheduler) == Ids{4});
}

TEMPLATE_TEST_CASE_METHOD(
    Fixture, "an outsider waits until the last member of the tree has released the lock",
    "[row98][row100][row101]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry root(1, region("t", "a")), child(2, region("t", "a"), &root);
  TestEntry grandchild(3, table("t", kShared), &child), outsider(4, region("t", "a"));
  TestEntry writer(5, table("t", kExclusive));
  submit(scheduler, root);
  CHECK(poll_all(scheduler) == Ids{1});
  submit(scheduler, {&outsider, &writer, &child, &grandchild});

  CHECK(poll_all(scheduler) == Ids{2, 3});
  complete(scheduler, root);
  CHECK(poll_all(scheduler).empty());
  complete(scheduler, child);
  CHECK(poll_all(scheduler) == Ids{4});
  complete(scheduler, outsider);
  CHECK(poll_all(scheduler).empty());
  complete(scheduler, grandchild);
  CHECK(poll_all(scheduler) == Ids{5});
}

TEMPLATE_TEST_CASE_METHOD(Fixture,
                          "descendants share a key that an ancestor holds exclusively, and the "
                          "next writer follows them all",
                          "[row100][row101]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry root(1, table("t", kExclusive)), child(2, table("t", kShared), &root);
  TestEntry lockless(3, LockSet(), &root), grandchild(4, table("t", kShared), &lockless);
  TestEntry writer(5, table("t", kExclusive));
  submit(scheduler, root);
  REQUIRE(poll_all(scheduler) == Ids{1});

  submit(scheduler, {&writer, &child, &grandchild});

  Ids ran = poll_all(scheduler);
  std::sort(ran.begin(), ran.end());
  CHECK(ran == Ids{2, 4});
  const bool root_first = GENERATE(true, false);
  complete(scheduler, root_first ? root : child);
  complete(scheduler, grandchild);
  CHECK(poll_all(scheduler).empty());
  complete(scheduler, root_first ? child : root);
  CHECK(poll_all(scheduler) == Ids{5});
}

TEMPLATE_TEST_CASE_METHOD(
    Fixture,
    "one exclusive operation per table and per peer runs at a time, on different ones at once",
    "[row109][row110]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry t1(1, table("t", kExclusive)), t2(2, table("t", kExclusive));
  TestEntry u(3, table("u", kExclusive));
  TestEntry p1(4, peer("p")), p2(5, peer("p")), q(6, peer("q"));
  submit(scheduler, {&t1, &t2, &u, &p1, &p2, &q});

  Ids ran = poll_all(scheduler);
  std::sort(ran.begin(), ran.end());  // this test is not about the order of classes
  CHECK(ran == Ids{1, 3, 4, 6});
  complete(scheduler, t1);
  CHECK(poll_all(scheduler) == Ids{2});
  complete(scheduler, p1);
  CHECK(poll_all(scheduler) == Ids{5});
}

TEMPLATE_TEST_CASE_METHOD(
    Fixture, "children and grandchildren may take exclusively what an ancestor holds exclusively",
    "[row102][row103][F7]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry root(1, table("t", kExclusive)), lockless(2, {}, &root);
  TestEntry child(3, table("t", kExclusive), &root), sibling(4, table("t", kExclusive), &root);
  TestEntry grandchild(5, table("t", kExclusive), &lockless);
  submit(scheduler, root);
  CHECK(poll_all(scheduler) == Ids{1});

  submit(scheduler, {&child, &sibling, &grandchild});

  CHECK(poll_all(scheduler).size() == 3);
  CHECK(ids_of(lock_on(scheduler, table_key("t")).holders) == Ids{1, 3, 4, 5});
}

TEMPLATE_TEST_CASE_METHOD(Fixture, "a holder that yields is polled again even if others wait",
                          "[row104][row105]", Simple, Master) {
  auto& scheduler = this->scheduler;
  const LockMode mode = GENERATE(kShared, kExclusive);
  TestEntry holder(1, table("t", mode)), writer(2, table("t", kExclusive));
  submit(scheduler, {&holder, &writer});

  for (int turn = 0; turn < 3; ++turn) {
    CHECK(poll_all(scheduler) == Ids{1});
    settle(scheduler, holder, Disposition::kBack);
  }
  CHECK(poll_all(scheduler) == Ids{1});
  settle(scheduler, holder, Disposition::kBackUnlock);

  CHECK(poll_all(scheduler) == Ids{2});
}

TEMPLATE_TEST_CASE_METHOD(Fixture, "a parked entry is not polled until it is settled again",
                          "[row99][row116]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry suspended(1, table("t", kExclusive)), other(2, table("t", kExclusive));
  submit(scheduler, suspended);
  CHECK(poll_all(scheduler) == Ids{1});

  submit(scheduler, other);
  CHECK(poll_all(scheduler).empty());  // it keeps its locks until it is settled
  settle(scheduler, suspended, Disposition::kParkUnlock);
  CHECK(poll_all(scheduler) == Ids{2});
  complete(scheduler, other);
  CHECK(poll_all(scheduler).empty());
  CHECK_FALSE(suspended.holds_locks());

  settle(scheduler, suspended, Disposition::kFront);
  CHECK(poll_all(scheduler) == Ids{1});
  CHECK(suspended.granted_by_poll());
  CHECK(poll_all(scheduler).empty());
}

TEMPLATE_TEST_CASE_METHOD(
    Fixture, "a child's shared request under its parent's shared lock passes a waiting writer",
    "[row113]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry parent(1, table("t", kShared)), child(2, table("t", kShared), &parent);
  TestEntry writer(3, table("t", kExclusive)), reader(4, table("t", kShared));
  submit(scheduler, parent);
  CHECK(poll_all(scheduler) == Ids{1});

  submit(scheduler, {&writer, &child, &reader});

  CHECK(poll_all(scheduler) == Ids{2});
  complete(scheduler, child);
  complete(scheduler, parent);
  CHECK(poll_all(scheduler) == Ids{3});
}

TEMPLATE_TEST_CASE_METHOD(
    Fixture, "a child does not queue behind an entry that waits for its parent, on any key",
    "[fairness]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry parent(1, table("t", kExclusive)), waits_for_parent(2, region("t", "a"));
  TestEntry child(3, region("t", "a"), &parent);
  submit(scheduler, {&parent, &waits_for_parent});
  CHECK(poll_all(scheduler) == Ids{1});

  submit(scheduler, child);

  CHECK(poll_all(scheduler) == Ids{3});
}

TEMPLATE_TEST_CASE_METHOD(Fixture, "a child may not take exclusively what its parent only shares",
                          "[upgrade]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry parent(1, table("t", kShared)), child(2, table("t", kExclusive), &parent);
  REQUIRE(scheduler.admit(parent));

  CHECK_FALSE(scheduler.admit(child));
}

TEMPLATE_TEST_CASE_METHOD(Fixture,
                          "a stream of readers does not starve a writer, nor writers a reader",
                          "[X13]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry r1(1, table("t", kShared)), r2(2, table("t", kShared));
  TestEntry writer(3, table("t", kExclusive)), second_writer(4, table("t", kExclusive));
  submit(scheduler, {&r1, &writer, &r2, &second_writer});
  CHECK(poll_all(scheduler) == Ids{1});

  settle(scheduler, r1, Disposition::kBackUnlock);
  CHECK(poll_all(scheduler) == Ids{3});
  settle(scheduler, writer, Disposition::kBackUnlock);
  CHECK(poll_all(scheduler) == Ids{2});
  complete(scheduler, r2);
  CHECK(poll_all(scheduler) == Ids{4});
  complete(scheduler, second_writer);
  CHECK(poll_all(scheduler) == Ids{1});
}

TEMPLATE_TEST_CASE_METHOD(Fixture,
                          "the listing shows the hierarchy, all holders and all waiters in order",
                          "[row106][row107][X14]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry holder(1, region("t", "a")), writer(2, table("t", kExclusive));
  TestEntry reader(3, table("t", kShared));
  submit(scheduler, {&holder, &writer, &reader});
  CHECK(poll_all(scheduler) == Ids{1});
  CHECK(scheduler.admit(holder));  // held already: nothing is taken twice

  const std::vector<LockInfo> locks = scheduler.locks();
  REQUIRE(locks.size() == 3);
  CHECK(locks[0].key == ResourceKey{ResourceClass::kNamespace, "ns"});
  CHECK(locks[0].holders[0].mode == kShared);
  CHECK(ids_of(locks[0].waiters) == Ids{2, 3});
  CHECK(locks[1].key == table_key("t"));
  CHECK(ids_of(locks[1].holders) == Ids{1});
  CHECK(ids_of(locks[1].waiters) == Ids{2, 3});
  CHECK(locks[1].waiters[0].mode == kExclusive);
  CHECK(locks[1].waiters[1].mode == kShared);
  CHECK(to_string(locks[2].key) == "region ns:t,a");
  CHECK(locks[2].holders[0].mode == kExclusive);
}

TEMPLATE_TEST_CASE_METHOD(
    Fixture, "servers, peers, globals, meta and keys of the host exclude only themselves",
    "[row106]", Simple, Master) {
  auto& scheduler = this->scheduler;
  const auto same = GENERATE(0, 1, 2, 3, 4);
  const auto set = [&](const char* name) -> LockSet {
    switch (same) {
      case 0:
        return server(name);
      case 1:
        return peer(name);
      case 2:
        return std::move(LockSet().global(name, kExclusive));
      case 3:
        return std::move(LockSet().meta(kExclusive));
      default:
        return std::move(LockSet().key({ResourceClass{70}, name}, kExclusive));
    }
  };
  TestEntry first(1, set("one")), second(2, set("one"));
  TestEntry elsewhere(3, table("t", kExclusive));
  submit(scheduler, {&first, &second, &elsewhere});

  Ids ran = poll_all(scheduler);
  std::sort(ran.begin(), ran.end());  // this test is not about the order of classes
  CHECK(ran == Ids{1, 3});
  CHECK(scheduler.locks().size() == 3);
  const LockInfo info = lock_on(scheduler, set("one").primary());
  CHECK(ids_of(info.holders) == Ids{1});
  CHECK(info.holders[0].mode == kExclusive);
  CHECK(ids_of(info.waiters) == Ids{2});
  complete(scheduler, first);
  CHECK(poll_all(scheduler) == Ids{2});
}

TEMPLATE_TEST_CASE_METHOD(Fixture,
                          "restored holders run before those that waited, whatever their ids",
                          "[row112][F8][F10]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry waiter(1, table("t", kExclusive)), holder(2, table("t", kShared));
  REQUIRE(restore(scheduler, holder).ok());
  submit(scheduler, {&waiter, &holder});

  CHECK(poll_all(scheduler) == Ids{2});
  CHECK_FALSE(holder.granted_by_poll());
  complete(scheduler, holder);
  CHECK(poll_all(scheduler) == Ids{1});
}

TEMPLATE_TEST_CASE_METHOD(
    Fixture, "a lock that cannot be restored names the key and its holder, and takes nothing",
    "[F8]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry first(7, table("t", kExclusive)), second(8, region("t", "a"));
  REQUIRE(restore(scheduler, first).ok());

  const Status status = restore(scheduler, second);

  CHECK(status.code() == StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(status.message()), ContainsSubstring("table ns:t is held by procedure 7"));
  CHECK(scheduler.locks().size() == 2);
  CHECK_FALSE(second.holds_locks());
}

TEMPLATE_TEST_CASE_METHOD(Fixture,
                          "of restored holders, one whose lock another one has is named, and the "
                          "others hold theirs",
                          "[F8]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry one(1, table("a", kExclusive)), two(2, table("b", kExclusive));
  TestEntry wrong(3, table("a", kShared)), three(4, table("c", kExclusive));
  TestEntry child(5, region("c", "r"), &three);
  EntryList all;
  for (TestEntry* entry : {&one, &two, &wrong, &three, &child}) all.push_back(*entry);

  const std::vector<NotRestored> failed = scheduler.restore(std::move(all));

  REQUIRE(failed.size() == 1);
  CHECK(failed[0].entry == &wrong);
  CHECK(failed[0].why.code() == StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(failed[0].why.message()), ContainsSubstring("is held by procedure 1"));
  CHECK_FALSE(wrong.holds_locks());
  for (TestEntry* entry : {&one, &two, &three, &child}) CHECK(entry->holds_locks());
  complete(scheduler, one);
  submit(scheduler, wrong);
  CHECK(poll_all(scheduler) == Ids{3});
}

TEMPLATE_TEST_CASE_METHOD(
    Fixture, "only one exclusive operation per table is in progress, even while it waits",
    "[row114][F11][F12]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry server_crash(1, server("s1"));
  TestEntry table_op(2, table("t", kExclusive), &server_crash);
  TestEntry next_op(3, table("t", kExclusive));
  submit(scheduler, server_crash);
  CHECK(poll_all(scheduler) == Ids{1});
  submit(scheduler, {&table_op, &next_op});
  CHECK(poll_all(scheduler) == Ids{2});

  CHECK(poll_all(scheduler).empty());  // it waits for something: still the one in progress
  complete(scheduler, table_op);

  CHECK(poll_all(scheduler) == Ids{3});
}

TEMPLATE_TEST_CASE_METHOD(
    Fixture, "a withdrawn waiter blocks no other entry, and a withdrawn holder keeps its locks",
    "[withdraw]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry reader(1, table("t", kShared)), writer(2, table("t", kExclusive));
  TestEntry late_reader(3, table("t", kShared));
  submit(scheduler, {&reader, &writer, &late_reader});

  CHECK(scheduler.withdraw(writer));
  CHECK_FALSE(scheduler.withdraw(writer));
  CHECK(scheduler.withdraw(reader));

  CHECK(reader.holds_locks());
  CHECK_FALSE(writer.holds_locks());
  CHECK(poll_all(scheduler) == Ids{3});
  // Not queued and not waiting, a parked writer has no place in the line either.
  CHECK(ids_of(lock_on(scheduler, table_key("t")).holders) == Ids{1, 3});
  CHECK(lock_on(scheduler, table_key("t")).waiters.empty());
}

TEMPLATE_TEST_CASE_METHOD(Fixture,
                          "locks that a queued entry was granted are released when it is withdrawn",
                          "[withdraw]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry first(1, table("t", kExclusive)), second(2, table("t", kExclusive));
  TestEntry third(3, table("t", kExclusive));
  submit(scheduler, {&first, &second, &third});
  CHECK(poll_all(scheduler) == Ids{1});
  complete(scheduler, first);

  CHECK(scheduler.withdraw(second));

  CHECK_FALSE(second.holds_locks());
  CHECK(poll_all(scheduler) == Ids{3});
}

TEMPLATE_TEST_CASE_METHOD(Fixture,
                          "an entry is admitted with its whole lock set or with no part of it",
                          "[admit]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry entry(1, region("t", "a")), holder(2, region("t", "a"));
  TestEntry writer(3, table("t", kExclusive));
  REQUIRE(scheduler.admit(holder));

  CHECK_FALSE(scheduler.admit(entry));
  complete(scheduler, holder);

  CHECK(scheduler.locks().empty());  // and no place in a line
  CHECK(scheduler.admit(writer));
}

TEMPLATE_TEST_CASE_METHOD(Fixture,
                          "a holder is asked to give way only if another entry waits for it",
                          "[contended]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry reader(1, table("t", kShared)), other_reader(2, table("t", kShared));
  TestEntry child(3, region("t", "r"), &reader);
  submit(scheduler, {&reader, &other_reader});
  CHECK(poll_all(scheduler) == Ids{1, 2});
  CHECK_FALSE(scheduler.contended(reader));

  TestEntry elsewhere(4, table("u", kExclusive)), waits_elsewhere(5, table("u", kExclusive));
  submit(scheduler, {&elsewhere, &waits_elsewhere, &child});
  CHECK_FALSE(scheduler.contended(reader));
  CHECK(scheduler.contended(elsewhere));

  TestEntry writer(6, table("t", kExclusive));
  submit(scheduler, writer);
  CHECK(scheduler.contended(reader));
  CHECK(scheduler.contended(other_reader));
  CHECK_FALSE(scheduler.contended(child));  // it would pass the writer anyway
}

TEMPLATE_TEST_CASE_METHOD(Fixture,
                          "readers that need their locks step by step take turns at a limit",
                          "[contended]", Simple, Master) {
  auto& scheduler = this->scheduler;
  scheduler.set_limit(table_key("t"), 1);
  TestEntry one(1, table("t", kShared)), other(2, table("t", kShared));
  submit(scheduler, {&one, &other});

  Ids steps;
  while (steps.size() < 6) {
    SchedulerEntry* const entry = poll(scheduler);
    REQUIRE(entry != nullptr);
    steps.push_back(entry->id.value);
    settle(scheduler, *entry,
           scheduler.contended(*entry) ? Disposition::kBackUnlock : Disposition::kBack);
  }

  CHECK(steps == Ids{1, 2, 1, 2, 1, 2});
}

TEMPLATE_TEST_CASE_METHOD(Fixture, "a holder gives way at a limit if a waiter lacks a place",
                          "[contended]", Simple, Master) {
  auto& scheduler = this->scheduler;
  const auto reads = [](const char* also) {
    LockSet locks = table("t", kShared);
    locks.table("ns", also, kExclusive);
    return locks;
  };
  scheduler.set_limit(table_key("t"), 2);
  TestEntry a(1, table("a", kExclusive)), b(2, table("b", kExclusive));
  TestEntry holder(3, table("t", kShared)), waits_for_a(4, reads("a")), waits_for_b(5, reads("b"));
  submit(scheduler, {&a, &b, &holder});
  CHECK_FALSE(scheduler.contended(holder));

  submit(scheduler, waits_for_a);
  CHECK_FALSE(scheduler.contended(holder));  // there is a place for it
  submit(scheduler, waits_for_b);
  CHECK(scheduler.contended(holder));

  scheduler.set_limit(table_key("t"), 0);
  CHECK_FALSE(scheduler.contended(holder));  // it would give way to nobody
}

TEMPLATE_TEST_CASE_METHOD(Fixture,
                          "an entry at the back counts the entries at the front as ahead of it",
                          "[place]", Simple, Master) {
  auto& scheduler = this->scheduler;
  TestEntry begins(1, table("t", kShared)), begins_later(2, table("t", kShared));
  TestEntry goes_on(3, table("t", kShared));
  submit(scheduler, {&begins, &begins_later});
  REQUIRE(scheduler.admit(goes_on));
  settle(scheduler, goes_on, Disposition::kFront);

  CHECK(scheduler.place_of(goes_on, 1).ahead == 0);
  CHECK(scheduler.place_of(begins, 1).ahead == 1);
  CHECK(scheduler.place_of(begins_later, 1).ahead == 2);
  CHECK(scheduler.place_of(begins_later, 1).runnable == 3);
  CHECK(poll_all(scheduler) == Ids{3, 1, 2});
}

TEMPLATE_TEST_CASE_METHOD(Fixture, "a lock set of many keys is taken all or nothing", "[many]",
                          Simple, Master) {
  auto& scheduler = this->scheduler;
  LockSet many;
  for (const char* name : {"a", "b", "c", "d", "e"}) many.region("ns", "t", name, kExclusive);
  TestEntry one(1, region("t", "e")), all(2, std::move(many)), late(3, region("t", "a"));
  submit(scheduler, {&one, &all, &late});

  CHECK(poll_all(scheduler) == Ids{1});
  complete(scheduler, one);
  CHECK(poll_all(scheduler) == Ids{2});
  complete(scheduler, all);
  CHECK(poll_all(scheduler) == Ids{3});
}

TEMPLATE_TEST_CASE_METHOD(Fixture,
                          "an entry may hold, or wait for, as many locks as can be counted",
                          "[many]", Simple, Master) {
  auto& scheduler = this->scheduler;
  LockSet most;
  for (std::size_t i = 0; i < SchedulerEntry::kMaxLocks; ++i) {
    most.key({ResourceClass::kHostFirst, std::to_string(100'000 + i)}, kExclusive);
  }
  const ResourceKey last = most.requests().back().key;
  TestEntry first(1, most), second(2, most), child(3, most, &first);
  submit(scheduler, {&first, &second, &child});

  CHECK(poll_all(scheduler) == Ids{1, 3});
  CHECK(scheduler.locks().size() == SchedulerEntry::kMaxLocks);
  CHECK(ids_of(lock_on(scheduler, last).holders) == Ids{1, 3});
  CHECK(ids_of(lock_on(scheduler, last).waiters) == Ids{2});
  complete(scheduler, child);
  complete(scheduler, first);
  CHECK(poll_all(scheduler) == Ids{2});
}

TEST_CASE("an entry that waits for locks costs its owner no more than 200 bytes") {
  CHECK(sizeof(TestEntry) <= 200);
}

}  // namespace pv2::testing::lock_rules_test
