// SPDX-License-Identifier: Apache-2.0
//
// The whole cluster under a seeded simulation: clients, operators, deaths, stops and cuts of the
// power, in the order that a seed chooses. PV2_TEST_SEED repeats one seed, and PV2_TEST_SEEDS asks
// for that many. A failure prints its seed and the end of its story.

#include <cstdlib>
#include <iostream>

#include "cluster/simulation/random_story.h"
#include "pv2/testing/seeds.h"
#include "support/catch.h"

namespace pv2::testing::cluster_simulation_test {
namespace {

using cluster_simulation::RandomStory;
using cluster_simulation::StoryCounts;

// Of a test run: some seconds. The nightly run asks for more.
constexpr std::uint64_t kStories = 25;

}  // namespace

TEST_CASE("a cluster in a storm loses no write, does none twice, and is in order afterwards") {
  const Seeds seeds = seeds_from_environment(kStories);
  StoryCounts all;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    INFO("repeat with PV2_TEST_SEED=" << seed);
    RandomStory story(seed);
    const std::string trouble = story.run();
    all += story.counts();
    INFO(trouble);
    REQUIRE(trouble.empty());
  }
  std::cout << "cluster: seeds " << seeds.first << " to " << seeds.first + seeds.count - 1 << ", "
            << all.turns << " turns, " << all.writes << " writes (" << all.done_writes << " done, "
            << all.unknown << " unknown after the storm), " << all.orders << " orders (" << all.done
            << " done), deaths of " << all.server_deaths << " servers and " << all.master_deaths
            << " masters, " << all.stops << " stops, " << all.deposed << " masters deposed, "
            << all.power_cuts << " cuts of the power, " << all.moves << " moves of regions\n";
  CHECK(all.writes > 0);
}

TEST_CASE("the same seed gives the same story of a cluster, and another seed another one") {
  const Seeds seeds = seeds_from_environment(3);
  std::uint64_t before = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    INFO("repeat with PV2_TEST_SEED=" << seed);
    RandomStory first(seed);
    RandomStory second(seed);
    CHECK(first.run() == second.run());
    const auto [one, other] = std::ranges::mismatch(first.lines(), second.lines());
    if (one != first.lines().end() && other != second.lines().end()) {
      FAIL_CHECK("the stories part at:\n" << *one << "\n" << *other);
    }
    CHECK(first.hash() == second.hash());
    CHECK(first.hash() != before);
    before = first.hash();
  }
}

}  // namespace pv2::testing::cluster_simulation_test
