// SPDX-License-Identifier: Apache-2.0
//
// IdTable against std::map: ids that end in order, ids that stay for long, ids that all have one
// place.

#include "id_table.h"

#include <pv2/base/random.h>
#include <pv2/testing/seeds.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <memory>

#include "support/catch.h"

namespace pv2::testing::id_table_test {
namespace {

class Tables {
 public:
  void insert(std::uint64_t id) {
    table_.insert(id, std::make_unique<std::uint64_t>(10 * id));
    model_.emplace(id, 10 * id);
  }
  void take(std::uint64_t id) {
    const auto taken = table_.take(id);
    const auto expected = model_.find(id);
    REQUIRE((taken != nullptr) == (expected != model_.end()));
    if (taken == nullptr) return;
    REQUIRE(*taken == expected->second);
    model_.erase(expected);
  }
  void check() {
    REQUIRE(table_.size() == model_.size());
    REQUIRE(table_.empty() == model_.empty());
    std::map<std::uint64_t, std::uint64_t> seen;
    table_.for_each([&](std::uint64_t id, const auto& value) { seen.emplace(id, *value); });
    REQUIRE(seen == model_);
    for (const auto& [id, value] : model_) REQUIRE(**table_.find(id) == value);
  }
  [[nodiscard]] bool has(std::uint64_t id) { return table_.find(id) != nullptr; }
  [[nodiscard]] const auto& model() const { return model_; }
  void clear() {
    table_.clear();
    model_.clear();
  }

 private:
  IdTable<std::unique_ptr<std::uint64_t>> table_;
  std::map<std::uint64_t, std::uint64_t> model_;
};

TEST_CASE("id table: ids that nobody has inserted are not in the table") {
  Tables tables;
  CHECK(!tables.has(1));
  tables.take(1);
  tables.insert(1);
  CHECK(tables.has(1));
  CHECK(!tables.has(0));
  CHECK(!tables.has(17));  // has the place of 1
  tables.take(17);
  tables.check();
  tables.clear();
  CHECK(!tables.has(1));
  tables.insert(1);
  tables.check();
}

TEST_CASE("id table: ids of one place are told apart, whichever goes first") {
  for (const bool is_first_in_first_out : {true, false}) {
    Tables tables;
    for (std::uint64_t i = 1; i <= 100; ++i) tables.insert(i << 32);
    tables.check();
    for (std::uint64_t i = 1; i <= 100; ++i) {
      tables.take((is_first_in_first_out ? i : 101 - i) << 32);
      tables.check();
    }
  }
}

TEST_CASE("id table: however ids come and go, the table has those that a map has") {
  const Seeds seeds = seeds_from_environment(20);
  for (std::uint64_t i = 0; i < seeds.count; ++i) {
    INFO("PV2_TEST_SEED=" << seeds.first + i);
    Random random(seeds.first + i);
    Tables tables;
    // Up to the highest id there is, and once around.
    std::uint64_t last = random.below(2) == 0 ? 0 : ~std::uint64_t{0} - 1000;
    for (int step = 0; step < 2000; ++step) {
      if (random.below(2) == 0 || tables.model().empty()) {
        last += 1 + (random.below(10) == 0 ? random.below(40) : 0);
        if (last != 0 && !tables.has(last)) tables.insert(last);
      } else if (random.below(4) == 0) {
        tables.take(std::next(tables.model().begin(),
                              static_cast<std::ptrdiff_t>(random.below(tables.model().size())))
                        ->first);
      } else if (random.below(8) == 0) {
        tables.take(random.below(last | 1) + 1);
      } else {
        tables.take(std::prev(tables.model().end())->first);
      }
      if (step % 16 == 0) tables.check();
    }
    tables.check();
  }
}

}  // namespace
}  // namespace pv2::testing::id_table_test
