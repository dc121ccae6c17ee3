// SPDX-License-Identifier: Apache-2.0
//
// The table of nonces. That its entries do not outlive their owners is a matter of the whole
// engine: submission/nonce_test.cc and the simulations, under the sanitizers.

#include "core/nonce_table.h"

#include <pv2/base/random.h>

#include <map>
#include <memory>
#include <utility>

#include "support/catch.h"

namespace pv2::testing::nonce_table_test {
namespace {

NonceUse use_of(Nonce nonce, std::uint64_t low) {
  return {.nonce = nonce, .fingerprint = {.low = low}};
}

}  // namespace

TEST_CASE("a nonce is known from when it is added until it is removed") {
  const NonceUse use = use_of({1, 2}, 3);
  NonceTable table;
  CHECK(!table.find({1, 2}));
  REQUIRE(table.add({7}, use));
  REQUIRE(table.find({1, 2}));
  CHECK(table.find({1, 2})->id == ProcedureId{7});
  CHECK(table.find({1, 2})->fingerprint == use.fingerprint);
  CHECK(!table.find({2, 2}));
  CHECK(!table.find({1, 1}));
  CHECK(table.size() == 1);
  CHECK(table.remove({1, 2}, {7}));
  CHECK(!table.find({1, 2}));
  CHECK(table.size() == 0);
}

TEST_CASE("the first use of a nonce stays in the table") {
  const NonceUse use = use_of({1, 2}, 3);
  const NonceUse another = use_of({1, 2}, 4);
  NonceTable table;
  REQUIRE(table.add({7}, use));
  CHECK(!table.add({8}, another));
  CHECK(table.find({1, 2})->id == ProcedureId{7});
  CHECK(table.find({1, 2})->fingerprint == use.fingerprint);
}

TEST_CASE("a nonce is removed only for the procedure that has it") {
  const NonceUse use = use_of({1, 2}, 3);
  NonceTable table;
  REQUIRE(table.add({7}, use));
  CHECK(!table.remove({1, 2}, {8}));
  CHECK(!table.remove({1, 3}, {7}));
  CHECK(!table.remove({}, {7}));  // no nonce
  CHECK(table.size() == 1);
}

TEST_CASE("the table of nonces says what an ordered map says") {
  Random random(1);
  NonceTable table;
  std::map<Nonce, std::pair<ProcedureId, std::unique_ptr<NonceUse>>> map;
  for (std::uint64_t round = 1; round <= 50'000; ++round) {
    const Nonce nonce{random.below(3), 1 + random.below(3000)};
    const auto at = map.find(nonce);
    const auto known = table.find(nonce);
    if (known.has_value() != (at != map.end())) FAIL("round " << round);
    if (known &&
        (known->id != at->second.first || known->fingerprint != at->second.second->fingerprint)) {
      FAIL("round " << round);
    }
    if (at == map.end()) {
      auto use = std::make_unique<NonceUse>(use_of(nonce, round));
      REQUIRE(table.add({round}, *use));
      map.emplace(nonce, std::pair(ProcedureId{round}, std::move(use)));
    } else if (random.below(2) == 0) {
      REQUIRE(table.remove(nonce, at->second.first));
      map.erase(at);
    }
  }
  CHECK(table.size() == map.size());
  table.for_each(
      [&](ProcedureId id, const NonceUse& use) { CHECK(map.at(use.nonce).first == id); });
}

}  // namespace pv2::testing::nonce_table_test
