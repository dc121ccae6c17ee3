// SPDX-License-Identifier: Apache-2.0
//
// Lock sets: the hierarchy that an entry brings with it, the one global order, the stronger of two
// modes.

#include "pv2/base/resource.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <new>
#include <numeric>
#include <thread>
#include <vector>

#include "pv2/base/block_cache.h"
#include "pv2/base/random.h"
#include "support/catch.h"
#include "support/own_malloc.h"

namespace pv2 {

struct LockSetForTests {
  /// How many of the requests are not sorted in.
  static std::size_t tail(const LockSet& locks) { return locks.tail_; }
  /// How many requests there are, and how many of them are behind `key`; reading them would sort
  /// them.
  static std::size_t size(const LockSet& locks) { return locks.requests_.size(); }
  static std::size_t behind(const LockSet& locks, const ResourceKey& key) {
    const auto& all = locks.requests_;
    return static_cast<std::size_t>(
        all.end() -
        std::upper_bound(all.begin(), all.end(), key,
                         [](const auto& wanted, const auto& other) { return wanted < other.key; }));
  }
};

}  // namespace pv2

namespace pv2::testing::resource_test {

namespace {

constexpr LockMode kShared = LockMode::kShared;
constexpr LockMode kExclusive = LockMode::kExclusive;

/// "namespace ns shared, table ns:t exclusive".
std::string shown(const LockSet& locks) {
  std::string text;
  for (const LockRequest& request : locks.requests()) {
    if (!text.empty()) text += ", ";
    text += to_string(request.key) + " " + std::string(to_string(request.mode));
  }
  return text;
}

}  // namespace

TEST_CASE("a lock on a table adds a shared lock on its namespace") {
  CHECK(shown(LockSet().table("ns", "t", kExclusive)) ==
        "namespace ns shared, table ns:t exclusive");
  CHECK(shown(LockSet().table("ns", "t", kShared)) == "namespace ns shared, table ns:t shared");
}

TEST_CASE("the requests of a temporary set outlive it in a loop") {
  const auto locks = [] { return LockSet().table(std::string(100, 'n'), "t", kExclusive); };
  std::string all;
  for (const LockRequest& request : locks().requests()) all += to_string(request.key) + " ";
  CHECK(all == "namespace " + std::string(100, 'n') + " table " + std::string(100, 'n') + ":t ");
  CHECK(locks().primary().name == std::string(100, 'n') + ":t");
}

TEST_CASE("a lock on a region adds shared locks on its table and namespace") {
  CHECK(shown(LockSet().region("ns", "t", "r1", kExclusive)) ==
        "namespace ns shared, table ns:t shared, region ns:t,r1 exclusive");
}

TEST_CASE("locks on resources outside the hierarchy add no others") {
  CHECK(shown(LockSet().global("balance", kExclusive)) == "global balance exclusive");
  CHECK(shown(LockSet().meta(kShared)) == "meta shared");
  CHECK(shown(LockSet().name_space("ns", kExclusive)) == "namespace ns exclusive");
  CHECK(shown(LockSet().server("s1", kExclusive)) == "server s1 exclusive");
  CHECK(shown(LockSet().peer("p1", kExclusive)) == "peer p1 exclusive");
  CHECK(shown(LockSet().key({static_cast<ResourceClass>(65), "order-1"}, kShared)) ==
        "class65 order-1 shared");
}

TEST_CASE("asking twice keeps the stronger mode, in either order") {
  CHECK(shown(LockSet().server("s", kShared).server("s", kExclusive)) == "server s exclusive");
  CHECK(shown(LockSet().server("s", kExclusive).server("s", kShared)) == "server s exclusive");
  CHECK(shown(LockSet().name_space("ns", kExclusive).table("ns", "t", kShared)) ==
        "namespace ns exclusive, table ns:t shared");
  CHECK(shown(LockSet().region("ns", "t", "r", kShared).table("ns", "t", kExclusive)) ==
        "namespace ns shared, table ns:t exclusive, region ns:t,r shared");
}

TEST_CASE("the primary resource is the one first asked for, and the table for a region") {
  CHECK(LockSet().primary() == ResourceKey{});
  CHECK(LockSet().server("s", kShared).table("ns", "t", kShared).primary() ==
        ResourceKey{ResourceClass::kServer, "s"});
  CHECK(LockSet().table("ns", "t", kShared).primary() ==
        ResourceKey{ResourceClass::kTable, "ns:t"});
  CHECK(LockSet().region("ns", "t", "r", kExclusive).primary() ==
        ResourceKey{ResourceClass::kTable, "ns:t"});
}

TEST_CASE("a set is kept for the operation by default, and its scope is part of its value") {
  LockSet locks;
  CHECK(locks.empty());
  CHECK(locks.scope() == LockScope::kOperation);
  CHECK(locks.meta(kShared).scope(LockScope::kStep).scope() == LockScope::kStep);
  CHECK_FALSE(locks.empty());
  CHECK_FALSE(locks == LockSet().meta(kShared));
  CHECK(locks == LockSet().meta(kShared).scope(LockScope::kStep));
}

TEST_CASE("classes, modes and scopes keep their numbers, which are persisted") {
  CHECK(static_cast<int>(ResourceClass::kGlobal) == 1);
  CHECK(static_cast<int>(ResourceClass::kMeta) == 2);
  CHECK(static_cast<int>(ResourceClass::kNamespace) == 3);
  CHECK(static_cast<int>(ResourceClass::kTable) == 4);
  CHECK(static_cast<int>(ResourceClass::kRegion) == 5);
  CHECK(static_cast<int>(ResourceClass::kServer) == 6);
  CHECK(static_cast<int>(ResourceClass::kPeer) == 7);
  CHECK(static_cast<int>(ResourceClass::kHostFirst) == 64);
  CHECK(static_cast<int>(kShared) == 1);
  CHECK(static_cast<int>(kExclusive) == 2);
  CHECK(static_cast<int>(LockScope::kOperation) == 1);
  CHECK(static_cast<int>(LockScope::kStep) == 2);
}

TEST_CASE(
    "in whatever order it is built, a set is sorted, without repeats, and keeps the strongest "
    "mode") {
  Random random(1);
  for (int round = 0; round < 500; ++round) {
    LockSet locks;
    std::map<ResourceKey, LockMode> expected;
    const auto expect = [&](ResourceKey key, LockMode mode) {
      const auto [at, is_new] = expected.emplace(std::move(key), mode);
      if (!is_new) at->second = std::max(at->second, mode);
    };
    for (std::uint64_t asks = random.below(8); asks > 0; --asks) {
      const std::string ns(1, static_cast<char>('a' + random.below(2)));
      const std::string table(1, static_cast<char>('t' + random.below(2)));
      const LockMode mode = random.below(2) == 0 ? kShared : kExclusive;
      switch (random.below(4)) {
        case 0:
          locks.name_space(ns, mode);
          expect({ResourceClass::kNamespace, ns}, mode);
          break;
        case 1:
          locks.table(ns, table, mode);
          expect({ResourceClass::kNamespace, ns}, kShared);
          expect({ResourceClass::kTable, table_key_name(ns, table)}, mode);
          break;
        case 2:
          locks.region(ns, table, "r", mode);
          expect({ResourceClass::kNamespace, ns}, kShared);
          expect({ResourceClass::kTable, table_key_name(ns, table)}, kShared);
          expect({ResourceClass::kRegion, table_key_name(ns, table) + ",r"}, mode);
          break;
        default:
          locks.meta(mode);
          expect({ResourceClass::kMeta, ""}, mode);
          break;
      }
    }
    LockRequests wanted;
    for (const auto& [key, mode] : expected) wanted.push_back({key, mode});
    REQUIRE((locks.requests() == wanted));
  }
}

namespace {

ResourceKey numbered(std::uint64_t number) {
  std::string name = std::to_string(number);
  name.insert(0, 20 - name.size(), '0');
  return {ResourceClass::kHostFirst, std::move(name)};
}

std::vector<std::uint64_t> shuffled(std::uint64_t count) {
  std::vector<std::uint64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  Random random(7);
  for (std::uint64_t i = count; i > 1; --i) std::swap(numbers[i - 1], numbers[random.below(i)]);
  return numbers;
}

}  // namespace

TEST_CASE("a large set is sorted whatever the order in which its keys come, and however often") {
  const std::uint64_t count = LockSet::kMaxRequests;
  const std::vector<std::uint64_t> numbers = shuffled(count);
  LockSet locks;
  for (const std::uint64_t number : numbers) {
    locks.key(numbered(number), number % 3 == 0 ? kExclusive : kShared);
    if (number % 5 == 0) locks.key(numbered(numbers[number / 2]), kShared);
    if (number % 7 == 0) locks.key(numbered(number), kExclusive);
  }
  const LockSet copy = locks;

  REQUIRE(locks.requests().size() == count);
  bool is_right = true;
  for (std::uint64_t i = 0; i < count; ++i) {
    const LockMode mode = i % 3 == 0 || i % 7 == 0 ? kExclusive : kShared;
    is_right = is_right && locks.requests()[i] == LockRequest{numbered(i), mode};
  }
  CHECK(is_right);
  CHECK(locks.primary() == numbered(numbers.front()));
  CHECK((copy == locks));
}

TEST_CASE("a set that is read while it grows is the same as one that is not") {
  LockSet read, unread;
  for (const std::uint64_t number : shuffled(3000)) {
    read.key(numbered(number), kShared);
    unread.key(numbered(number), kShared);
    if (number % 10 == 0) REQUIRE(std::ranges::is_sorted(read.requests()));
  }
  CHECK(LockSetForTests::tail(unread) != 0);
  CHECK_FALSE(unread.empty());
  CHECK((read == unread));
  CHECK(LockSetForTests::tail(unread) == 0);
}

TEST_CASE("what was moved from a set is complete, and the set is empty and can be used again") {
  LockSet locks;
  for (const std::uint64_t number : shuffled(1000)) locks.key(numbered(number), kShared);
  REQUIRE(LockSetForTests::tail(locks) != 0);
  LockSet moved = std::move(locks);
  CHECK(locks.empty());  // NOLINT(bugprone-use-after-move): that it is empty is relied on
  CHECK((locks == LockSet()));
  CHECK(locks.key(numbered(5), kShared).requests().size() == 1);

  locks = std::move(moved);
  CHECK(std::move(locks).requests().size() == 1000);
}

// Inserted one by one they would make 8000 * 8000 / 4 moves.
TEST_CASE("to add keys in any order makes a number of moves that grows as their number does") {
  constexpr std::uint64_t kKeys = 8000;
  LockSet locks;
  std::size_t moves = 0;
  for (const std::uint64_t number : shuffled(kKeys)) {
    const ResourceKey key = numbered(number);
    const std::size_t before = LockSetForTests::tail(locks);
    locks.key(key, kShared);
    const std::size_t after = LockSetForTests::tail(locks);
    if (after > before) continue;
    moves += before != 0 ? LockSetForTests::size(locks) : LockSetForTests::behind(locks, key);
  }
  CHECK(moves < 10 * kKeys);
}

TEST_CASE("several threads may read one set that has not been read before") {
  LockSet locks;
  for (const std::uint64_t number : shuffled(1000)) locks.key(numbered(number), kShared);
  REQUIRE(LockSetForTests::tail(locks) != 0);
  const LockSet& read = locks;
  std::atomic<int> right{0};
  std::array<std::thread, 3> readers;
  for (std::thread& reader : readers) {
    reader = std::thread([&] {
      const LockSet copy = read;
      if (copy.requests() == read.requests() && copy.primary() == read.primary()) ++right;
    });
  }
  for (std::thread& reader : readers) reader.join();
  CHECK(right == 3);
}

#if !PV2_HAS_OWN_MALLOC

TEST_CASE("a set that finds no memory for a lock is as before") {
  LockSet locks;
  locks.key({ResourceClass::kTable, "b"}, kExclusive);
  {
    const FewBlocksForTests none(0);
    REQUIRE_THROWS_AS(locks.key({ResourceClass::kTable, "a"}, kShared), std::bad_alloc);
  }
  CHECK(shown(locks) == "table b exclusive");
  CHECK(&locks.primary() == &locks.requests().front().key);
}

#endif

}  // namespace pv2::testing::resource_test
