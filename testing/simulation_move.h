// SPDX-License-Identifier: Apache-2.0
//
// SimulationMove: one thing that happens in a simulation, with every choice made for it. A run is a
// list of moves; shrinking leaves some of them out, and any of them can be left out. Plain data.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pv2::testing {

class SimulationStory;

struct SimulationMove {
  enum class Kind : std::uint8_t {
    kOperate,   ///< A client or operator does something: operation `count`.
    kSteps,     ///< Workers run up to `count` steps; nothing becomes durable meanwhile.
    kCommit,    ///< The first `count` records that wait for it become durable.
    kSettle,    ///< Everything runs and becomes durable until only time and answers are missing.
    kAnswer,    ///< Something outside answers.
    kTime,      ///< `count` milliseconds pass.
    kWallJump,  ///< The wall clock alone jumps, by `count` ms, back if `choices` is odd.
    kFault,     ///< The store fails after `count` more records.
    kStop,      ///< The host stops the executor and opens it again. If `count` is not 0, steps
                ///< run, and another thread calls stop() when something could have come between
                ///< for the `count`-th time.
    kCrash,     ///< The machine dies; `count` waiting records were written unheard. It comes back.
  };
  Kind kind = Kind::kSteps;
  std::size_t count = 0;
  std::uint64_t choices = 0;  ///< Seed of the choices inside the move; 0: nothing comes between.
};

/// The moves in the run of `seed`. The seed also decides which kinds of moves there are, and how
/// often: a run without crashes goes deeper into other things.
[[nodiscard]] std::vector<SimulationMove> plan_simulation(std::uint64_t seed,
                                                          std::size_t operations);

[[nodiscard]] std::string in_words(const SimulationMove& move, const SimulationStory& story);

}  // namespace pv2::testing
