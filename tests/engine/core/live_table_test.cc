// SPDX-License-Identifier: Apache-2.0
//
// The table of live executions, compared with an ordered map. What listings make of it is in
// watch/listing_test.cc.

#include "core/live_table.h"

#include <pv2/base/random.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "model/execution.h"
#include "support/catch.h"

namespace pv2::testing::live_table_test {
namespace {

constexpr std::uint64_t kMax = UINT64_MAX;

/// A table, and a map that has to say the same.
class Compared {
 public:
  void add(std::uint64_t id) {
    std::unique_ptr<Execution>& execution = map_[id];
    if (execution != nullptr) return;
    execution = std::make_unique<Execution>();
    execution->id = ProcedureId{id};
    table_.emplace({id}, execution.get());
  }
  void erase(std::uint64_t id) {
    map_.erase(id);
    table_.erase({id});  // also when it is not there
  }
  /// Looks for `id` and for its neighbours.
  void find(std::uint64_t id) const {
    for (const std::uint64_t near : {id - 64, id - 1, id, id + 1, id + 64}) {
      const auto at = map_.find(near);
      const Execution* const found = table_.find({near});
      if (found != (at == map_.end() ? nullptr : at->second.get())) FAIL("at " << near);
    }
  }
  /// Visits up to `most` after `after`, and returns the id to go on after.
  std::uint64_t visit(std::uint64_t after, std::size_t most) const {
    std::vector<std::uint64_t> visited;
    const ProcedureId next = table_.visit_after({after}, most, [&](const Execution& execution) {
      visited.push_back(execution.id.value);
      return true;
    });
    std::vector<std::uint64_t> expected;
    auto at = map_.upper_bound(after);
    for (; at != map_.end() && expected.size() < most; ++at) expected.push_back(at->first);
    CHECK(visited == expected);
    CHECK(next == ProcedureId{expected.size() < most ? 0 : expected.back()});
    return next.value;
  }
  void compare() const {
    CHECK(table_.size() == map_.size());
    auto at = map_.begin();
    for (const Execution& execution : table_) {
      if (at == map_.end() || &execution != at->second.get()) FAIL("after " << execution.id.value);
      find(at->first);
      ++at;
    }
    CHECK(at == map_.end());
  }
  void clear() {
    map_.clear();
    table_.clear();
  }

  [[nodiscard]] const LiveTable& table() const noexcept { return table_; }
  [[nodiscard]] std::size_t size() const noexcept { return map_.size(); }
  /// The first id from `id` on, or the last one of all.
  [[nodiscard]] std::uint64_t near(std::uint64_t id) const {
    const auto at = map_.lower_bound(id);
    return at == map_.end() ? map_.rbegin()->first : at->first;
  }

 private:
  std::map<std::uint64_t, std::unique_ptr<Execution>> map_;
  LiveTable table_;
};

/// Adds, erases and visits in turn, with ids that `draw` chooses and about `size_usual` of them.
void compare_at_random(std::uint64_t seed, std::size_t size_usual,
                       const std::function<std::uint64_t(Random&)>& draw) {
  CAPTURE(seed);
  Random random(seed);
  Compared compared;
  std::uint64_t visited = 0;  // by a visit that goes on while the table changes
  for (int round = 0; round < 4000; ++round) {
    const std::uint64_t id = std::max<std::uint64_t>(draw(random), 1);
    if (random.below(2 * size_usual) >= compared.size()) {
      compared.add(id);
    } else {
      compared.erase(compared.near(id));
    }
    compared.find(id);
    if (round % 16 == 0) visited = compared.visit(visited, 1 + random.below(100));
    if (round % 256 == 0) compared.compare();
  }
  while (compared.size() != 0) compared.erase(compared.near(draw(random)));
  compared.compare();
}

}  // namespace

TEST_CASE("the live table visits in order of id, a bounded number at a time") {
  Compared compared;
  CHECK(compared.visit(0, 100) == 0);
  for (std::uint64_t id = 1; id <= 5000; ++id) compared.add(id);
  compared.add(5'000'000'000);
  for (std::uint64_t id = 1; id <= 5000; ++id) {
    if (id % 100 != 0) compared.erase(id);
  }
  compared.erase(77);  // was erased before
  CHECK(compared.size() == 51);
  CHECK(compared.visit(0, 10) == 1000);
  CHECK(compared.visit(1000, 1) == 1100);
  CHECK(compared.visit(1001, 1) == 1100);
  CHECK(compared.visit(100, SIZE_MAX) == 0);
  CHECK(compared.visit(4999, 2) == 5'000'000'000);
  CHECK(compared.visit(5'000'000'000, 1) == 0);
  for (std::uint64_t id = 100; id <= 5000; id += 100) compared.erase(id);
  compared.add(3);
  CHECK(compared.visit(0, SIZE_MAX) == 0);
  CHECK(compared.visit(3, 1) == 5'000'000'000);
  compared.compare();
}

TEST_CASE("a visit of the live table ends where its visitor says") {
  Compared compared;
  for (std::uint64_t id = 60; id < 70; ++id) compared.add(id);
  const auto up_to_64 = [](const Execution& execution) { return execution.id.value < 64; };
  CHECK(compared.table().visit_after({}, 100, up_to_64) == ProcedureId{64});
}

TEST_CASE("the live table has the least and the greatest ids, and those at borders of its parts") {
  Compared compared;
  const std::vector<std::uint64_t> ids = {1,          63,        64,        65,       127,
                                          128,        4095,      4096,      4097,     1ULL << 32,
                                          1ULL << 63, kMax - 64, kMax - 63, kMax - 1, kMax};
  for (const std::uint64_t id : ids) compared.add(id);
  compared.compare();
  CHECK(compared.visit(kMax - 1, 1) == kMax);
  CHECK(compared.visit(kMax, 1) == 0);
  std::uint64_t after = 0;
  for (const std::uint64_t id : ids) CHECK((after = compared.visit(after, 1)) == id);
  CHECK(compared.visit(after, 1) == 0);
  for (const std::uint64_t id : ids) {
    compared.erase(id);
    compared.compare();
  }
}

TEST_CASE("what is erased or added between two pieces of a visit is left out or met") {
  Compared compared;
  for (std::uint64_t id = 1; id <= 300; ++id) compared.add(id);
  REQUIRE(compared.visit(0, 100) == 100);
  for (std::uint64_t id = 90; id < 260; ++id) compared.erase(id);
  compared.add(1000);
  CHECK(compared.visit(100, 41) == 300);
  CHECK(compared.visit(300, 2) == 0);
}

TEST_CASE("a part of the live table finds what is in it, however full it is") {
  Random random(1);
  for (int round = 0; round < 20; ++round) {
    Compared compared;
    std::vector<std::uint64_t> ids(64);
    for (std::uint64_t i = 0; i < 64; ++i) ids[i] = 6400 + i;
    const auto shuffle = [&] {
      for (std::size_t i = 63; i > 0; --i) std::swap(ids[i], ids[random.below(i + 1)]);
    };
    shuffle();
    for (const std::uint64_t id : ids) {
      compared.add(id);
      compared.compare();
    }
    shuffle();
    for (const std::uint64_t id : ids) {
      compared.erase(id);
      compared.compare();
    }
  }
}

TEST_CASE("the live table says what an ordered map says: dense ids") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::uint64_t next = 0;
    // Most are new; those that are erased are old.
    compare_at_random(seed, 300, [&](Random& random) {
      return random.below(2) == 0 ? ++next : next - std::min(next, random.below(700));
    });
  }
}

TEST_CASE("the live table says what an ordered map says: few ids, far apart, up to the greatest") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    compare_at_random(seed, 40, [](Random& random) { return random.next() >> random.below(64); });
    compare_at_random(seed, 40, [](Random& random) { return kMax - random.below(10'000); });
  }
}

TEST_CASE("the live table says what an ordered map says: groups of ids") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    compare_at_random(seed, 500, [](Random& random) {
      return random.below(20) * 1'000'000'007 + random.below(150);
    });
  }
}

TEST_CASE("a live table that was cleared is like a new one") {
  Compared compared;
  for (std::uint64_t id = 1; id <= 1000; ++id) compared.add(id);
  compared.clear();
  compared.compare();
  CHECK(compared.visit(0, 1) == 0);
  compared.add(1000);
  compared.find(1000);
  compared.compare();
}

}  // namespace pv2::testing::live_table_test
