// SPDX-License-Identifier: Apache-2.0
//
// The generator. Weights are drawn once per run, so that runs differ in kind and not only in order.

#include "simulation_move.h"

#include <fmt/format.h>
#include <pv2/base/assert.h>
#include <pv2/base/random.h>

#include <algorithm>
#include <array>

#include "pv2/testing/simulation.h"

namespace pv2::testing {
namespace {

using Kind = SimulationMove::Kind;

struct Weight {
  Kind kind;
  std::uint64_t weight;
};

// In a quarter of all runs a kind of move does not occur; steps and commits always do.
std::array<Weight, 9> draw_weights(Random& random) {
  std::array<Weight, 9> weights{{{Kind::kSteps, 40},
                                 {Kind::kCommit, 30},
                                 {Kind::kSettle, 6},
                                 {Kind::kAnswer, 12},
                                 {Kind::kTime, 12},
                                 {Kind::kWallJump, 2},
                                 {Kind::kFault, 2},
                                 {Kind::kStop, 2},
                                 {Kind::kCrash, 6}}};
  for (Weight& weight : weights) {
    const bool needed = weight.kind == Kind::kSteps || weight.kind == Kind::kCommit;
    if (!needed && random.below(4) == 0) weight.weight = 0;
    weight.weight *= 1 + random.below(4);
  }
  return weights;
}

Kind draw_kind(const std::array<Weight, 9>& weights, Random& random) {
  std::uint64_t sum = 0;
  for (const Weight& weight : weights) sum += weight.weight;
  PV2_ASSERT(sum != 0, "some kind of move can always be made");
  std::uint64_t left = random.below(sum);
  for (const Weight& weight : weights) {
    if (left < weight.weight) return weight.kind;
    left -= weight.weight;
  }
  return Kind::kSteps;
}

std::size_t draw_count(Kind kind, Random& random) {
  switch (kind) {
    case Kind::kSteps:
      return 1 + random.below(4);
    case Kind::kCommit:
      return random.below(3) == 0 ? SIZE_MAX : 1 + random.below(3);
    case Kind::kTime:
      // From one millisecond, the edge of a timer, to longer than any timer.
      return std::size_t{1} << random.below(22);
    case Kind::kWallJump:
      return std::size_t{1000} << random.below(14);
    case Kind::kFault:
    case Kind::kCrash:
      return random.below(2) == 0 ? 0 : random.below(4);
    case Kind::kStop:
      return random.below(3) == 0 ? 0 : 1 + random.below(12);
    case Kind::kOperate:
    case Kind::kSettle:
    case Kind::kAnswer:
      break;
  }
  return 0;
}

}  // namespace

std::vector<SimulationMove> plan_simulation(std::uint64_t seed, std::size_t operations) {
  Random random(seed ^ 0x51319'0fULL);
  const std::array<Weight, 9> weights = draw_weights(random);
  const std::size_t others = 20 + random.below(60 + 10 * operations);
  const bool calm = random.below(3) == 0;  // nothing comes between, which makes shrinking easy
  std::vector<SimulationMove> moves;
  std::size_t next_operation = 0;
  for (std::size_t left = others; left > 0 || next_operation < operations;) {
    const std::size_t missing = operations - next_operation;
    // Operations are likely early in the run, so that there is something to disturb.
    if (missing > 0 && random.below(left / 2 + missing) < missing) {
      moves.push_back({Kind::kOperate, next_operation++, calm ? 0 : random.next()});
      continue;
    }
    if (left == 0) continue;
    --left;
    const Kind kind = draw_kind(weights, random);
    const std::size_t count = draw_count(kind, random);
    moves.push_back({kind, count, calm && kind != Kind::kAnswer ? 0 : random.next()});
  }
  return moves;
}

std::string in_words(const SimulationMove& move, const SimulationStory& story) {
  const std::string between = move.choices != 0 ? " (others come between)" : "";
  const std::string count = move.count == SIZE_MAX ? "all" : std::to_string(move.count);
  switch (move.kind) {
    case Kind::kOperate:
      return story.operation_words(move.count);
    case Kind::kSteps:
      return fmt::format("up to {} steps run{}", count, between);
    case Kind::kCommit:
      return fmt::format("{} of the waiting records become durable", count);
    case Kind::kSettle:
      return "everything runs until only time and answers are missing" + between;
    case Kind::kAnswer:
      return "something outside answers";
    case Kind::kTime:
      return fmt::format("{} ms pass", count);
    case Kind::kWallJump:
      return fmt::format("the wall clock jumps {} by {} ms",
                         move.choices % 2 == 1 ? "back" : "forward", count);
    case Kind::kFault:
      return fmt::format("the store will fail after {} more records{}", count,
                         move.choices % 2 == 1 ? ", the next one of which is written" : "");
    case Kind::kStop:
      return move.count == 0 || move.choices == 0
                 ? "the executor is stopped and opened again"
                 : fmt::format("steps run, and are stopped after {} moments", move.count);
    case Kind::kCrash:
      return fmt::format("the machine crashes; {} of the waiting records are on the disk", count);
  }
  return {};
}

}  // namespace pv2::testing
