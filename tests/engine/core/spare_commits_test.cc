// SPDX-License-Identifier: Apache-2.0
//
// Spare requests: who gets which of them, and how many are kept.

#include "core/spare_commits.h"

#include <memory>
#include <string>
#include <vector>

#include "model/requests.h"
#include "support/catch.h"

namespace pv2::testing::spare_commits_test {

TEST_CASE("a thread gets the request that it gave back last, and otherwise that of another one") {
  SpareCommits<StepCommit> spares(2);
  auto a = spares.take(1);
  auto b = spares.take(2);
  auto c = spares.take(0);
  const auto* const first = a.get();
  const auto* const second = b.get();
  const auto* const third = c.get();
  spares.give_back(std::move(a), 1);
  spares.give_back(std::move(b), 2);
  spares.give_back(std::move(c), 1);

  auto of_second = spares.take(2);
  auto of_first = spares.take(1);
  auto left = spares.take(2);
  CHECK(of_second.get() == second);
  CHECK(of_first.get() == third);
  CHECK(left.get() == first);
}

TEST_CASE("only small requests are kept, and not more than a bound for all threads together") {
  constexpr std::size_t kMost = 4096;
  SpareCommits<StepCommit> spares(2);
  std::vector<std::unique_ptr<StepCommit>> taken(kMost + 10);
  for (auto& commit : taken) commit = spares.take(0);
  for (std::size_t i = 0; i < taken.size(); ++i) spares.give_back(std::move(taken[i]), i % 3);
  CHECK(spares.kept() == kMost);

  auto large = spares.take(0);
  large->batch.put(Space::kHost, "key", std::string(5000, 'x'));
  spares.give_back(std::move(large), 0);
  CHECK(spares.kept() == kMost - 1);
}

}  // namespace pv2::testing::spare_commits_test
