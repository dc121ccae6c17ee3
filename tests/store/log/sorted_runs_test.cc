// SPDX-License-Identifier: Apache-2.0
//
// Keys that are added in any order are found by their prefix.

#include "log/sorted_runs.h"

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/base/random.h"
#include "support/catch.h"

namespace pv2::testing::sorted_runs_test {
namespace {

TEST_CASE("a visit of a prefix finds exactly the keys that begin with it, however they came") {
  Random random(1);
  std::deque<std::string> keys;
  SortedRuns runs;
  for (int round = 0; round < 300; ++round) {
    for (std::uint64_t left = random.below(round % 50 == 0 ? 200 : 6); left > 0; --left) {
      runs.add(keys.emplace_back(std::to_string(random.below(2'000))));
    }
    const std::string prefix =
        random.below(5) == 0 ? "" : std::to_string(random.below(random.below(2) == 0 ? 10 : 300));

    std::vector<std::string_view> found;
    runs.collect(prefix, found);

    std::vector<std::string_view> expected;
    for (const std::string& key : keys) {
      if (key.starts_with(prefix)) expected.push_back(key);
    }
    for (auto* const list : {&found, &expected}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    REQUIRE(found == expected);
  }
}

}  // namespace
}  // namespace pv2::testing::sorted_runs_test
