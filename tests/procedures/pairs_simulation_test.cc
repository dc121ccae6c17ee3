// SPDX-License-Identifier: Apache-2.0
//
// Every procedure meets every other one, and another of its own kind, on one cluster while servers
// die and the master crashes, in the order that a seed chooses. PV2_TEST_SEED repeats one seed, and
// PV2_TEST_SEEDS asks for that many. PV2_PAIRS_SHOW prints how often each pair met.

#include <pv2/engine/procedure_registry.h>
#include <pv2/procedures/claim_queues.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pairs_story.h"
#include "pv2/testing/seeds.h"
#include "support/catch.h"

namespace pv2::testing::pairs_simulation_test {
namespace {

// Of each pair in a test run. Two, because a story takes some 50 ms; the nightly run asks for more.
constexpr std::uint64_t kStories = 2;

std::string words_of(const ActorPair& pair) {
  return std::string(testing::words_of(pair[0])) + " & " + std::string(testing::words_of(pair[1]));
}

/// The pairs whose first actor is one of `first` to `last`.
std::vector<ActorPair> pairs_of(Actor first, Actor last) {
  std::vector<ActorPair> pairs;
  std::ranges::copy_if(all_pairs(), std::back_inserter(pairs),
                       [&](const ActorPair& pair) { return pair[0] >= first && pair[0] <= last; });
  return pairs;
}

void show(const std::vector<ActorPair>& pairs, const PairsTally& tally) {
  for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
    std::cout << words_of(pairs[pair]) << ": " << tally[pair].stories << " stories, met in "
              << tally[pair].met << ", both succeeded in " << tally[pair].done << "\n";
  }
}

void meet(const std::vector<ActorPair>& pairs) {
  const Seeds seeds = seeds_from_environment(kStories * pairs.size());
  const PairsTally tally(pairs.size());
  // Consecutive seeds go through all pairs. Each round begins one pair later, so that a pair is not
  // bound to what the simulation derives from the last bits of a seed.
  const auto pair_of = [&](std::uint64_t seed) {
    return static_cast<std::size_t>((seed + seed / pairs.size()) % pairs.size());
  };

  const SimulationReport report = simulate(
      [&](std::uint64_t seed) {
        const std::size_t pair = pair_of(seed);
        return std::make_unique<PairsStory>(seed, pairs[pair], &tally[pair]);
      },
      {.first_seed = seeds.first, .seeds = seeds.count});

  PairTally all;
  for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
    all.met += tally[pair].met;
    all.done += tally[pair].done;
  }
  if (std::getenv("PV2_PAIRS_SHOW") != nullptr) show(pairs, tally);
  std::cout << "pairs: " << pairs.size() << ", seeds " << seeds.first << " to "
            << seeds.first + report.seeds - 1 << ", " << report.lives << " lives; the two met in "
            << all.met << " stories, and both succeeded in " << all.done << " of those\n";
  INFO(report.failure);
  CHECK(report.ok());
  CHECK(report.seeds == seeds.count);
}

}  // namespace

TEST_CASE("every procedure that a host registers is an actor, or is run by one") {
  MemoryCluster cluster;
  ProcedureRegistry registry;
  add_cluster_procedures(registry, cluster.ports());

  std::set<std::string> registered;
  for (const auto& [name, type] : registry.types()) registered.insert(name);
  std::set<std::string> listed;
  for (const ActorKind& kind : all_actors()) listed.emplace(kind.type);
  for (const ChildKind& kind : all_children()) listed.emplace(kind.type);

  CHECK(registered == listed);
  // Whatever is run by another one cannot be submitted: it would lack the locks of that one.
  for (const ActorKind& kind : all_actors()) CHECK_FALSE(registry.find(kind.type)->child_only);
  // ClaimQueues has the lock that it needs; the master submits it for what is left too late.
  for (const ChildKind& kind : all_children()) {
    CAPTURE(kind.type);
    CHECK(registry.find(kind.type)->child_only == (kind.type != ClaimQueues::kType));
  }
  CHECK(all_pairs().size() == all_actors().size() * (all_actors().size() + 1) / 2);
}

TEST_CASE("procedures that meet those of tables leave a cluster in order and lose no row") {
  meet(pairs_of(Actor::kCreateTable, Actor::kTruncateTable));
}

TEST_CASE("procedures that meet those of namespaces, peers and locks leave a cluster in order") {
  meet(pairs_of(Actor::kCreateNamespace, Actor::kLock));
}

TEST_CASE("procedures that meet those of regions leave a cluster in order and lose no row") {
  meet(pairs_of(Actor::kAssign, Actor::kInitMeta));
}

}  // namespace pv2::testing::pairs_simulation_test
