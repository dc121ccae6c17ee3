// SPDX-License-Identifier: Apache-2.0
//
// Lock sets: the hierarchy that an entry brings with it, the one global order, the stronger of two
// modes.

#include "pv2/base/resource.h"

#include <algorithm>
#include <map>
#include <new>

#include "pv2/base/block_cache.h"
#include "pv2/base/random.h"
#include "support/catch.h"
#include "support/own_malloc.h"

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
