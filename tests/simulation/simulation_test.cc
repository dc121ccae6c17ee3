// SPDX-License-Identifier: Apache-2.0
//
// The engine under the seeded simulation with the mixed workload: as many seeds as fit into 45 s,
// always from the same first seed, so that a change fails for what it broke; the nightly run draws
// new ones. PV2_TEST_SEED and PV2_TEST_SEEDS repeat a run. A failure prints its seed and its shrunk
// moves.

#include "pv2/testing/simulation.h"

#include <chrono>
#include <iostream>
#include <memory>

#include "pv2/testing/seeds.h"
#include "simulation/mixed_story.h"
#include "support/catch.h"

namespace pv2::testing::simulation_test {
namespace {

std::unique_ptr<SimulationStory> mixed_story(std::uint64_t seed) {
  return std::make_unique<MixedStory>(seed);
}

}  // namespace

TEST_CASE("the simulation finds no broken promise in the mixed workload") {
  SimulationOptions options{.seeds = 100'000, .budget = std::chrono::seconds(45)};
  if (std::getenv("PV2_TEST_SEED") != nullptr) {
    const Seeds seeds = seeds_from_environment(1);
    options = {.first_seed = seeds.first, .seeds = seeds.count};
  }

  const SimulationReport report = simulate(mixed_story, options);

  std::cout << "simulation: seeds " << options.first_seed << " to "
            << options.first_seed + report.seeds - 1 << ", " << report.moves << " moves, "
            << report.steps << " steps, " << report.lives << " lives\n";
  INFO(report.failure);
  CHECK(report.ok());
  CHECK(report.seeds > 0);
}

}  // namespace pv2::testing::simulation_test
