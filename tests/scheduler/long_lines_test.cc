// SPDX-License-Identifier: Apache-2.0
//
// Long lines: the cost when very many entries wait for one thing. It is not measured in time: the
// lock table counts the entries that it looks at to lend ranks and to find cycles. The tests drive
// the table directly.

#include <pv2/scheduler/master_procedure_scheduler.h>

#include <cstdint>
#include <deque>
#include <functional>

#include "lock_table.h"
#include "rank.h"
#include "support/catch.h"
#include "test_entry.h"

namespace pv2::testing::long_lines_test {

using namespace pv2::test;

namespace {

constexpr std::uint64_t kMany = 500;
const ResourceKey kRack{ResourceClass::kHostFirst, "rack"};

LockSet rack() { return std::move(LockSet().key(kRack, kShared)); }

class Table {
 public:
  ~Table() {
    while (table_.granted().pop_front() != nullptr) {
    }
  }
  /// Adds an entry that takes its set or waits for it.
  TestEntry& add(LockSet locks, TestEntry* parent = nullptr,
                 Priority priority = Priority::kNormal) {
    TestEntry& entry = entries_.emplace_back(entries_.size() + 1, std::move(locks), parent);
    table_.meet(entry, make_rank(0, priority));
    if (!table_.take(entry, SteadyTime())) table_.wait(entry, SteadyTime());
    return entry;
  }
  void limit(std::uint32_t limit) { table_.set_limit(kRack, limit, SteadyTime()); }
  void cancel(TestEntry& entry) {
    table_.begin_section();
    table_.cancel(entry, SteadyTime());
  }
  /// Ends the first entry that was granted what it waits for, then the next, until none is left.
  void release(TestEntry& holder) {
    table_.release(holder, SteadyTime());
    while (table_.owes()) {
      table_.begin_section();
      table_.serve_rest();
    }
    while (SchedulerEntry* const next = table_.granted().pop_front()) {
      table_.begin_section();
      table_.release(*next, SteadyTime());
    }
  }
  void search() {
    if (!table_.suspects_cycles()) return;
    WaitSearch search;
    search.keeps = true;
    table_.begin(search);
    while (table_.copy_waits(search)) {
    }
    search.found = search.graph.find_cycles([](ProcedureId) { return false; },
                                            WaitGraph::Overlap::kAvoided, 1);
    table_.adopt(search);
    while (table_.end(search)) {
    }
  }
  [[nodiscard]] bool has_cycle() {
    search();
    return table_.has_closed_cycles();
  }
  /// How many entries `action` looks at.
  std::uint64_t looks(const std::function<void()>& action) {
    const std::uint64_t before = table_.looks();
    action();
    return table_.looks() - before;
  }

 private:
  std::deque<TestEntry> entries_;
  LockTable table_;
};

}  // namespace

TEST_CASE("a search for a cycle does not look at entries that only queue behind its members") {
  Table t;
  TestEntry& parent = t.add(table("a", kExclusive));
  t.add(table("b", kExclusive));
  for (std::uint64_t i = 0; i < kMany; ++i) t.add(table("a", kExclusive));

  CHECK(t.looks([&] { t.add(table("b", kShared), &parent); }) < 20);
  CHECK(t.looks([&] { t.search(); }) < 20);
  CHECK_FALSE(t.has_cycle());
}

TEST_CASE("a search for a cycle looks a few times at each entry queued before its members") {
  Table t;
  TestEntry& parent = t.add(table("a", kExclusive));
  t.add(table("b", kExclusive));
  const auto children = [&] {
    for (std::uint64_t i = 0; i < kMany; ++i) t.add(table("b", kShared), &parent);
  };
  t.looks(children);

  CHECK(t.looks([&] { t.search(); }) < 10 * kMany);
  CHECK(t.looks([&] { t.search(); }) == 0);  // nothing has begun since
  CHECK_FALSE(t.has_cycle());
}

TEST_CASE("a cycle is found although entries outside it are queued before the one that closes it") {
  Table t;
  TestEntry& first = t.add(table("a", kExclusive));
  TestEntry& second = t.add(table("b", kExclusive));
  t.add(table("b", kShared), &first);
  t.add(table("b", kShared), &first);
  t.add(table("b", kExclusive));
  CHECK_FALSE(t.has_cycle());

  t.add(table("a", kShared), &second);

  CHECK(t.has_cycle());
}

TEST_CASE("a sibling that waits for more is searched for a cycle too") {
  Table t;
  TestEntry& parent = t.add(table("a", kExclusive));
  TestEntry& reader = t.add(table("b", kShared));
  TestEntry& writer = t.add(table("c", kExclusive));
  LockSet both = table("b", kShared);
  both.table("ns", "c", kShared);
  t.add(both, &parent);                 // waits for the writer
  t.add(table("a", kShared), &reader);  // waits for the parent
  CHECK_FALSE(t.has_cycle());

  t.add(table("b", kExclusive), &parent);  // behind its sibling, but waits for the reader as well

  CHECK(t.has_cycle());
  t.release(writer);
}

TEST_CASE("an urgent waiter that joins or leaves a long line looks a few times at each in it") {
  Table t;
  const LockMode mode = GENERATE(kShared, kExclusive);
  t.add(table("a", kExclusive));
  for (std::uint64_t i = 0; i < kMany; ++i) {
    t.add(table("a", i % 2 == 0 ? kExclusive : mode));
  }
  TestEntry* urgent = nullptr;

  CHECK(t.looks([&] { urgent = &t.add(table("a", kExclusive), nullptr, Priority::kMeta); }) <
        5 * kMany);
  CHECK(t.looks([&] { t.cancel(*urgent); }) < 10 * kMany);
}

TEST_CASE("urgent siblings that wait for a place look only at the one before them") {
  Table t;
  t.limit(2);
  t.add(table("a", kExclusive), nullptr, Priority::kLow);
  TestEntry& parent = t.add(server("s"), nullptr, Priority::kMeta);
  TestEntry& first = t.add(rack(), &parent);
  t.add(rack(), &parent);
  const auto others = [&] {
    for (std::uint64_t i = 0; i < kMany; ++i) t.add(rack(), &parent);
  };

  CHECK(t.looks(others) < 10 * kMany);
  CHECK(t.looks([&] { t.release(first); }) < 10 * kMany);
}

}  // namespace pv2::testing::long_lines_test
