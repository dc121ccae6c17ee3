// SPDX-License-Identifier: Apache-2.0
//
// Listings that are made in sections: how much one critical section looks at, and what is listed
// although other threads work between two sections. The tests drive the lock table directly, so
// each decides what happens in between.

#include <pv2/scheduler/master_procedure_scheduler.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "lock_table.h"
#include "support/catch.h"
#include "test_entry.h"

namespace pv2::testing::lock_listing_test {

using namespace pv2::test;

namespace {

// A table of locks with entries that hold or wait, and a listing in progress.
class Sections {
 public:
  ~Sections() {
    if (!cursor_open_) return;
    table_.close(cursor_);
  }

  TestEntry& add(LockSet locks, TestEntry* parent = nullptr) {
    entries_.push_back(std::make_unique<TestEntry>(entries_.size() + 1, std::move(locks), parent));
    TestEntry& entry = *entries_.back();
    table_.meet(entry, 0);
    if (!table_.take(entry, now())) table_.wait(entry, now());
    return entry;
  }
  void release(TestEntry& entry) {
    table_.release(entry, now());
    while (table_.owes()) {
      table_.begin_section();
      table_.serve_rest();
    }
    while (table_.granted().pop_front() != nullptr) {
    }
  }
  void cancel(TestEntry& entry) {
    table_.begin_section();
    table_.cancel(entry, now());
    table_.forget(entry);
  }
  void leave(TestEntry& entry) {
    release(entry);
    table_.forget(entry);
  }

  void begin() {
    table_.open(cursor_);
    cursor_open_ = true;
  }
  /// Runs one critical section and returns what it looked at.
  std::size_t copy() {
    const std::size_t before = listing_.keys.size() + listing_.parties.size();
    more_ = table_.copy_section(cursor_, listing_);
    return listing_.keys.size() + listing_.parties.size() - before;
  }
  [[nodiscard]] bool more() const { return more_; }
  std::vector<LockInfo> finish() {
    while (more_) copy();
    return std::move(listing_).assemble();
  }
  [[nodiscard]] const ResourceKey& next_key() const { return cursor_.node->key; }
  /// The entry that the listing comes to next, in the middle of a key.
  [[nodiscard]] std::uint64_t next_party() const { return cursor_.at->entry().id.value; }
  [[nodiscard]] bool at_end() const { return cursor_.node == nullptr; }
  [[nodiscard]] const LockTable& table() const { return table_; }
  [[nodiscard]] TableCursor& cursor() { return cursor_; }

 private:
  static SteadyTime now() { return SteadyTime(); }

  std::vector<std::unique_ptr<TestEntry>> entries_;
  LockTable table_;
  LockListing listing_;
  TableCursor cursor_;
  bool cursor_open_ = false;
  bool more_ = true;
};

LockSet own_key(std::uint64_t number, LockMode mode) {
  return std::move(LockSet().key({ResourceClass::kHostFirst, std::to_string(number)}, mode));
}

Ids numbers(std::uint64_t first, std::uint64_t last) {
  Ids ids;
  for (; first <= last; ++first) ids.push_back(first);
  return ids;
}

}  // namespace

TEST_CASE("a listing looks at no more than its bound in one critical section") {
  Sections sections;
  for (std::uint64_t i = 0; i < 5000; ++i) sections.add(own_key(i, kExclusive));
  for (std::uint64_t i = 0; i < 5000; ++i) sections.add(own_key(5000, kExclusive));

  sections.begin();
  std::size_t looked_at = 0;
  for (int section = 1; sections.more(); ++section) {
    const std::size_t now = sections.copy();
    CHECK(now <= kSectionMax + 1);
    looked_at += now;
    REQUIRE(section < 100);
  }

  CHECK(looked_at >= 5001 + 10'000);
  const std::vector<LockInfo> infos = sections.finish();
  REQUIRE(infos.size() == 5001);
  const auto crowded = std::find_if(infos.begin(), infos.end(),
                                    [](const LockInfo& info) { return info.key.name == "5000"; });
  CHECK(ids_of(crowded->holders) == Ids{5001});
  CHECK(ids_of(crowded->waiters) == numbers(5002, 10'000));
}

TEST_CASE("an entry that holds or waits during a whole listing is listed exactly once") {
  Sections sections;
  std::vector<TestEntry*> keepers, leavers;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    (i % 2 == 1 ? keepers : leavers).push_back(&sections.add(own_key(i, kExclusive)));
  }
  sections.begin();
  sections.copy();
  REQUIRE(sections.next_key() == leavers[256]->locks().primary());
  for (TestEntry* const entry : leavers) sections.leave(*entry);
  for (std::uint64_t i = 0; i < 3000; ++i) sections.add(own_key(10'000 + i, kExclusive));

  std::vector<LockInfo> infos = sections.finish();

  std::vector<std::uint64_t> listed;
  for (const LockInfo& info : infos) {
    REQUIRE(info.holders.size() == 1);
    listed.push_back(info.holders[0].id.value);
  }
  std::sort(listed.begin(), listed.end());
  CHECK(std::adjacent_find(listed.begin(), listed.end()) == listed.end());
  for (TestEntry* const entry : keepers) {
    CHECK(std::binary_search(listed.begin(), listed.end(), entry->id.value));
  }
}

TEST_CASE("only waiters that leave in the middle of a listing are missing from it") {
  Sections sections;
  sections.add(own_key(1, kExclusive));
  std::vector<TestEntry*> waiters;
  for (int i = 0; i < 3000; ++i) waiters.push_back(&sections.add(own_key(1, kExclusive)));
  sections.begin();
  sections.copy();
  const std::uint64_t next = sections.next_party();
  for (std::uint64_t id = next; id < next + 100; ++id) sections.cancel(*waiters[id - 2]);

  const std::vector<LockInfo> infos = sections.finish();

  Ids expected = numbers(2, next - 1);
  for (std::uint64_t id = next + 100; id <= 3001; ++id) expected.push_back(id);
  REQUIRE(infos.size() == 1);
  CHECK(ids_of(infos[0].waiters) == expected);
  CHECK(ids_of(infos[0].holders) == Ids{1});
}

TEST_CASE(
    "a waiter that is granted a crowded key in the middle of its listing is listed as a holder") {
  Sections sections;
  TestEntry& writer = sections.add(own_key(1, kExclusive));
  for (int i = 0; i < 3000; ++i) sections.add(own_key(1, kShared));
  sections.begin();
  sections.copy();
  REQUIRE(sections.more());

  sections.release(writer);  // all readers hold it now, also those that were listed as waiters

  const std::vector<LockInfo> infos = sections.finish();
  REQUIRE(infos.size() == 1);
  CHECK(ids_of(infos[0].holders) == numbers(2, 3001));
  CHECK(infos[0].waiters.empty());
}

TEST_CASE("holders of a tree that join in the middle of a listing hide none who held before") {
  Sections sections;
  TestEntry& root = sections.add(own_key(1, kExclusive));
  for (int i = 0; i < 3000; ++i) sections.add(own_key(1, kShared), &root);
  sections.begin();
  sections.copy();
  REQUIRE(sections.more());
  const std::uint64_t next = sections.next_party();
  REQUIRE(next > 2);

  const TestEntry& writer = sections.add(own_key(1, kExclusive), &root);  // joins before the root
  const TestEntry& reader = sections.add(own_key(1, kShared), &root);     // joins at the end
  REQUIRE((writer.holds_locks() && reader.holds_locks()));
  CHECK(sections.next_party() == next);
  sections.table().check_invariants();

  const std::vector<LockInfo> infos = sections.finish();
  REQUIRE(infos.size() == 1);
  CHECK(ids_of(infos[0].holders) == numbers(1, 3001));
  CHECK(infos[0].holders[0].mode == kExclusive);
  CHECK(std::all_of(infos[0].holders.begin() + 1, infos[0].holders.end(),
                    [](const LockInfo::Party& holder) { return holder.mode == kShared; }));
}

TEST_CASE("a listing ends where it should although the keys at its end are dropped meanwhile") {
  constexpr std::uint64_t kKeys = 2000;
  Sections sections;
  std::vector<TestEntry*> entries;
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    entries.push_back(&sections.add(own_key(i, kExclusive)));
  }
  std::uint64_t left = kKeys;  // how many of the first ones stay
  const auto drop_last = [&] { sections.leave(*entries[--left]); };
  sections.begin();
  SECTION("before it has begun to copy, one by one") {
    for (int i = 0; i < 3; ++i) drop_last();
  }
  SECTION("before it has begun to copy, all of them") {
    while (left > 0) drop_last();
    CHECK(sections.at_end());
  }
  SECTION("after it has copied some, in the order in which they came") {
    sections.copy();
    left -= 3;
    for (std::uint64_t i = left; i < kKeys; ++i) sections.leave(*entries[i]);
  }
  SECTION("after it has copied some, all that it has not copied") {
    sections.copy();
    const LockSet next = own_key(512, kExclusive);
    REQUIRE(sections.next_key() == next.primary());
    while (left > 512) drop_last();
    CHECK(sections.at_end());
  }

  for (std::uint64_t i = 0; i < kKeys; ++i) sections.add(own_key(10'000 + i, kExclusive));

  Ids listed;
  for (const LockInfo& info : sections.finish()) {
    for (const LockInfo::Party& holder : info.holders) listed.push_back(holder.id.value);
  }
  std::sort(listed.begin(), listed.end());
  CHECK(listed == numbers(1, left));
}

TEST_CASE("a key with nobody but waiters who came during the listing is not listed") {
  Sections sections;
  constexpr std::uint64_t kLast = 1999;
  TestEntry* holder = nullptr;
  for (std::uint64_t i = 0; i <= kLast; ++i) holder = &sections.add(own_key(i, kExclusive));

  sections.begin();
  sections.copy();
  sections.release(*holder);
  LockSet both = own_key(0, kExclusive);
  both.key({ResourceClass::kHostFirst, std::to_string(kLast)}, kExclusive);
  sections.add(std::move(both));  // waits for the holder of the first key, in the lines of both
  const auto keys = sections.finish();
  CHECK(keys.size() == kLast);
  for (const LockInfo& info : keys) CHECK(info.key.name != std::to_string(kLast));
}

TEST_CASE("a listing ends although keys and waiters keep coming") {
  Sections sections;
  sections.add(own_key(1, kExclusive));
  for (int i = 0; i < 1500; ++i) sections.add(own_key(1, kExclusive));
  sections.begin();
  int count = 0;
  while (sections.more() && ++count < 100) {
    sections.copy();
    for (int i = 0; i < 1100; ++i) sections.add(own_key(1, kExclusive));
    for (std::uint64_t i = 0; i < 1100; ++i) {
      sections.add(own_key(10'000U * static_cast<unsigned>(count) + i, kExclusive));
    }
  }

  CHECK(count < 100);
  const std::vector<LockInfo> infos = sections.finish();
  REQUIRE(infos.size() == 1);
  CHECK(ids_of(infos[0].waiters) == numbers(2, 1501));
}

TEST_CASE("listings agree with the holders of the same keys in other threads") {
  SystemClock clock;
  MasterProcedureScheduler scheduler(clock);
  std::vector<std::unique_ptr<TestEntry>> keepers;
  for (std::uint64_t id = 1; id <= 3000; ++id) {
    keepers.push_back(std::make_unique<TestEntry>(
        id, id <= 1500 ? own_key(id, kExclusive) : own_key(0, kExclusive)));
    submit(scheduler, *keepers.back());
  }
  std::atomic<bool> over{false};
  std::vector<std::thread> others;
  for (std::uint64_t thread = 0; thread < 3; ++thread) {
    others.emplace_back([&scheduler, &over, thread] {
      for (std::uint64_t round = 0; !over; ++round) {
        TestEntry entry(10'000 + thread, own_key(20'000 + round % 7, kShared));
        scheduler.admit(entry);
        complete(scheduler, entry);
      }
    });
  }

  for (int round = 0; round < 20; ++round) {
    std::size_t kept = 0;
    for (const LockInfo& info : scheduler.locks()) {
      for (const auto* const parties : {&info.holders, &info.waiters}) {
        kept += static_cast<std::size_t>(
            std::count_if(parties->begin(), parties->end(),
                          [](const LockInfo::Party& party) { return party.id.value <= 3000; }));
      }
    }
    CHECK(kept == 3000);
    CHECK(scheduler.cycles().empty());
  }
  over = true;
  for (std::thread& other : others) other.join();
}

}  // namespace pv2::testing::lock_listing_test
