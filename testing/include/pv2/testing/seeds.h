// SPDX-License-Identifier: Apache-2.0
//
// Which seeds a randomised test runs: one convention for all of them, so that one command repeats
// any failure and a nightly run can ask for more. PV2_TEST_SEED is the first seed, and the only
// one unless PV2_TEST_SEEDS says how many. Not a source of randomness. A value that is no number
// counts as 0.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace pv2::testing {

/// The seeds `first` to `first + count - 1`.
struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t count = 1;
};

/// What the environment asks for, else 1 to `count_by_default`.
inline Seeds seeds_from_environment(std::uint64_t count_by_default) {
  const char* const first = std::getenv("PV2_TEST_SEED");
  const char* const count = std::getenv("PV2_TEST_SEEDS");
  Seeds seeds{.first = 1, .count = count_by_default};
  if (first != nullptr) seeds = {.first = std::strtoull(first, nullptr, 10), .count = 1};
  if (count != nullptr) seeds.count = std::strtoull(count, nullptr, 10);
  return seeds;
}

}  // namespace pv2::testing
