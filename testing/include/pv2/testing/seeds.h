// SPDX-License-Identifier: Apache-2.0
//
// Which seeds a randomised test runs: one convention for all of them, so that one command repeats
// any failure and a nightly run can ask for more. PV2_TEST_SEED is the first seed, and the only
// one unless PV2_TEST_SEEDS says how many. With PV2_TEST_PART=N a test that would run many seeds,
// or crash a story in many places, does so with each N-th: for a sanitizer, where all of them were
// played without it. Not a source of randomness. A value that is no number counts as 0.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace pv2::testing {

/// The seeds `first` to `first + count - 1`.
struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t count = 1;
};

/// At least 1: each how many-th seed or crash is to be played.
inline std::uint64_t test_part() {
  const char* const part = std::getenv("PV2_TEST_PART");
  return part == nullptr ? 1 : std::max<std::uint64_t>(1, std::strtoull(part, nullptr, 10));
}

/// What the environment asks for, else 1 to `count_by_default`, or to a part of that.
inline Seeds seeds_from_environment(std::uint64_t count_by_default) {
  const char* const first = std::getenv("PV2_TEST_SEED");
  const char* const count = std::getenv("PV2_TEST_SEEDS");
  Seeds seeds{.first = 1, .count = std::max<std::uint64_t>(1, count_by_default / test_part())};
  if (first != nullptr) seeds = {.first = std::strtoull(first, nullptr, 10), .count = 1};
  if (count != nullptr) seeds.count = std::strtoull(count, nullptr, 10);
  return seeds;
}

}  // namespace pv2::testing
