// SPDX-License-Identifier: Apache-2.0
//
// The search for cycles of waiting, section by section: how much one section looks at, and what
// happens when other threads work between two sections. The tests drive the table directly.

#include <pv2/base/random.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lock_table.h"
#include "support/catch.h"
#include "test_entry.h"

namespace pv2::testing::wait_search_test {

using namespace pv2::test;

namespace {

class Table {
 public:
  ~Table() {
    while (table_.granted().pop_front() != nullptr) {
    }
  }
  TestEntry& add(LockSet locks, TestEntry* parent = nullptr) {
    entries_.push_back(std::make_unique<TestEntry>(++last_id_, std::move(locks), parent));
    table_.meet(*entries_.back(), 0);
    queue(*entries_.back());
    return *entries_.back();
  }
  void queue(TestEntry& entry) {
    if (entry.holds_locks() || table_.take(entry, SteadyTime())) return;
    table_.wait(entry, SteadyTime());
  }
  void cancel(TestEntry& entry) {
    table_.begin_section();
    table_.cancel(entry, SteadyTime());
    take_granted();
  }
  void release(TestEntry& entry) {
    table_.release(entry, SteadyTime());
    while (table_.owes()) {
      table_.begin_section();
      table_.serve_rest();
    }
    take_granted();
  }
  /// Removes an entry that neither holds nor waits, and frees its memory.
  void bury(TestEntry& entry) {
    table_.forget(entry);
    std::erase_if(entries_, [&](const auto& other) { return other.get() == &entry; });
  }
  /// Runs one section of the search; returns whether there are more.
  bool copy(WaitSearch& search) {
    const std::uint64_t before = table_.looks();
    const bool more = table_.copy_waits(search);
    looks_max_ = std::max(looks_max_, table_.looks() - before);
    return more;
  }
  std::vector<WaitCycle> finish(WaitSearch& search) {
    search.found = search.graph.find_cycles([](ProcedureId) { return false; },
                                            WaitGraph::Overlap::kAvoided, 64);
    std::vector<WaitGraph::Index> members;
    for (const auto& found : search.found) {
      if (!found.through_a_limit) continue;
      members.insert(members.end(), found.members.begin(), found.members.end());
    }
    search.to_confirm = search.graph.reach_of(members);
    while (table_.confirm(search)) {
    }
    table_.adopt(search);
    while (table_.end(search)) {
    }
    return table_.take_closed_cycles();
  }
  std::vector<WaitCycle> search() {
    WaitSearch search;
    begin(search);
    while (copy(search)) {
    }
    return finish(search);
  }
  void begin(WaitSearch& search) {
    search.keeps = true;
    table_.begin(search);
  }
  [[nodiscard]] bool waits(const TestEntry& entry) {
    for (const LockInfo& info : locks()) {
      for (const auto& party : info.waiters) {
        if (party.id == entry.id) return true;
      }
    }
    return false;
  }
  [[nodiscard]] LockTable& table() { return table_; }
  [[nodiscard]] std::uint64_t looks_max() const { return looks_max_; }
  [[nodiscard]] const std::vector<std::unique_ptr<TestEntry>>& entries() const { return entries_; }

 private:
  std::vector<LockInfo> locks() {
    LockListing listing;
    TableCursor cursor;
    table_.open(cursor);
    while (table_.copy_section(cursor, listing)) {
    }
    table_.close(cursor);
    return std::move(listing).assemble();
  }
  void take_granted() {
    while (table_.granted().pop_front() != nullptr) {
    }
  }

  std::vector<std::unique_ptr<TestEntry>> entries_;
  LockTable table_;
  std::uint64_t last_id_ = 0;
  std::uint64_t looks_max_ = 0;
};

/// Two trees, each with a child that waits for what the other holds.
struct Cycle {
  explicit Cycle(Table& t)
      : first(t.add(table("a", kExclusive))),
        second(t.add(table("b", kExclusive))),
        child_of_first(t.add(table("b", kShared), &first)),
        child_of_second(t.add(table("a", kShared), &second)) {}
  TestEntry& first;
  TestEntry& second;
  TestEntry& child_of_first;
  TestEntry& child_of_second;
};

// A cycle of two trees, one of which passes a line of `line` waiters.
void add_cycle_past(Table& t, int line) {
  TestEntry& first = t.add(table("a", kExclusive));
  TestEntry& second = t.add(table("b", kExclusive));
  for (int i = 0; i < line; ++i) t.add(table("a", kExclusive));
  t.add(table("b", kExclusive), &first);
  t.add(table("a", kExclusive), &second);
}

}  // namespace

TEST_CASE("one section of a search looks at a bounded number of waiters, whatever the line") {
  Table t;
  add_cycle_past(t, 5000);
  t.add(table("a", kExclusive), &t.add(LockSet()));  // behind all of the line
  WaitSearch search;

  t.begin(search);
  int sections = 1;
  while (t.copy(search)) ++sections;

  CHECK(sections > 5);
  CHECK(t.looks_max() <= kSectionMax);
  CHECK(t.finish(search).size() == 1);
}

TEST_CASE("a search does not look at a line that is passed by all who may be in a cycle") {
  Table t;
  add_cycle_past(t, 5000);
  const std::uint64_t before = t.table().looks();

  CHECK(t.search().size() == 1);

  CHECK(t.table().looks() - before < 100);
}

TEST_CASE("no section of a search looks at more than its bound, where the steps take several") {
  // A step looks at a waiter in a line twice, and three times at one whose parent is followed and
  // who waits for a producer that stands in line.
  Table t;
  TestEntry& first = t.add(table("a", kExclusive));
  TestEntry& second = t.add(table("b", kExclusive));
  for (int i = 0; i < 10; ++i) {
    TestEntry& waiter = t.add(table("a", kShared), &second);
    t.add(table("b", kExclusive));
    TestEntry& producer = t.add(table("b", kExclusive), &first);
    t.table().report_wait(t.add(LockSet(), &second), producer, WaitLink::Why::kReported,
                          SteadyTime());
    t.table().report_wait(waiter, producer, WaitLink::Why::kReported, SteadyTime());
  }
  // Each bound lets other steps be the last of a section.
  for (std::size_t bound = 3; bound <= 40; ++bound) {
    WaitSearch search;
    search.looks_max = bound;
    t.begin(search);
    bool more = true;
    while (more) {
      const std::uint64_t before = t.table().looks();
      more = t.copy(search);
      CHECK(t.table().looks() - before <= bound);
    }
    (void)t.finish(search);
  }
}

TEST_CASE("a cycle that opens between two sections of the search is not reported") {
  Table t;
  Cycle cycle(t);
  WaitSearch search;
  search.looks_max = 1;
  t.begin(search);
  const auto sections = GENERATE(0, 1, 2, 4, 8, 100);
  for (int i = 0; i < sections && t.copy(search); ++i) {
  }

  t.cancel(cycle.child_of_second);
  while (t.copy(search)) {
  }

  CHECK(t.finish(search).empty());
  CHECK(t.search().empty());
}

TEST_CASE("a cycle through a limit is not reported when a holder of a place goes on meanwhile") {
  Table t;
  t.table().set_limit(table_key("a"), 2, SteadyTime());
  TestEntry& holder = t.add(table("a", kShared));
  TestEntry& other_holder = t.add(table("a", kShared));
  TestEntry& parent = t.add(LockSet());
  t.add(table("a", kShared), &parent);
  t.table().report_wait(holder, parent, WaitLink::Why::kReported, SteadyTime());
  // The other holder is stuck too, in a cycle of its own.
  TestEntry& stranger = t.add(table("b", kExclusive));
  TestEntry& child_of_other = t.add(table("b", kExclusive), &other_holder);
  t.table().report_wait(stranger, other_holder, WaitLink::Why::kReported, SteadyTime());
  WaitSearch search;
  t.begin(search);
  while (t.copy(search)) {
  }

  SECTION("no holder goes on: both cycles are reported") { CHECK(t.finish(search).size() == 2); }
  SECTION("the child that the other holder waits for leaves its line") {
    t.cancel(child_of_other);
    CHECK(t.finish(search).empty());
    CHECK(t.search().empty());
  }
  SECTION("the holder of the lock that the other holder's child waits for goes on") {
    t.table().end_reported_wait(stranger);
    CHECK(t.finish(search).empty());
    CHECK(t.search().empty());
  }
  SECTION("who it waits for went on, and waits again: the next search finds the cycle") {
    t.table().end_reported_wait(stranger);
    t.table().report_wait(stranger, other_holder, WaitLink::Why::kReported, SteadyTime());
    CHECK(t.finish(search).size() == 1);
    CHECK(t.search().size() == 1);
  }
}

TEST_CASE("a cycle that closes during a search is found by the next search at the latest") {
  Table t;
  Cycle cycle(t);
  t.cancel(cycle.child_of_second);
  REQUIRE(t.search().empty());
  WaitSearch search;
  search.looks_max = 1;
  t.begin(search);
  const auto sections = GENERATE(0, 1, 2, 4, 8, 100);
  for (int i = 0; i < sections && t.copy(search); ++i) {
  }

  t.queue(cycle.child_of_second);
  while (t.copy(search)) {
  }

  const std::size_t found = t.finish(search).size();
  CHECK((found == 1 || t.table().suspects_cycles()));
  CHECK(found + t.search().size() == 1);
}

TEST_CASE("changes between the sections of a search do not mislead it", "[random]") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    Table t;
    const auto change = [&] {
      static const std::string kNames[] = {"a", "b", "c"};
      const std::uint64_t choice = random.below(6);
      if (t.entries().size() < 12 && choice < 3) {
        TestEntry* parent = nullptr;
        if (!t.entries().empty() && random.below(2) == 0) {
          parent = t.entries()[random.below(t.entries().size())].get();
        }
        LockSet locks = table(kNames[random.below(3)], random.below(2) == 0 ? kShared : kExclusive);
        if (random.below(3) == 0) locks.table("ns", kNames[random.below(3)], kExclusive);
        t.add(std::move(locks), parent);
        return;
      }
      if (t.entries().empty()) return;
      TestEntry& entry = *t.entries()[random.below(t.entries().size())];
      const bool has_child = std::ranges::any_of(
          t.entries(), [&](const auto& other) { return other->parent() == &entry; });
      if (entry.holds_locks()) {
        if (has_child && random.below(8) != 0) return;
        t.release(entry);
      } else if (t.waits(entry)) {
        t.cancel(entry);
      } else if (!has_child && choice < 4) {
        t.bury(entry);
      } else {
        t.queue(entry);
      }
    };
    for (int round = 0; round < 10; ++round) {
      WaitSearch search;
      search.looks_max = 1 + random.below(4);
      t.begin(search);
      while (t.copy(search)) {
        if (random.below(3) == 0) change();
      }
      (void)t.finish(search);
      for (int i = 0; i < 4; ++i) change();
      t.table().check_invariants();
    }
    // Every cycle that exists now is found by one more search, or was found before.
    (void)t.search();
    WaitSearch all;
    t.table().begin(all);
    while (t.copy(all)) {
    }
    all.found =
        all.graph.find_cycles([](ProcedureId) { return false; }, WaitGraph::Overlap::kAllowed, 64);
    const std::size_t in_copy = all.found.size();
    t.table().verify(all);
    INFO("seed " << seed);
    CHECK(all.found.size() == in_copy);  // nothing happened meanwhile
    while (t.table().end(all)) {
    }
  }
}

}  // namespace pv2::testing::wait_search_test
