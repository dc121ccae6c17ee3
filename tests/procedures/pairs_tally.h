// SPDX-License-Identifier: Apache-2.0
//
// PairsTally: what a campaign of pairs has seen of each pair, in memory that a process shares with
// its children, because a simulation runs its stories in a child process.

#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "support/catch.h"

namespace pv2::testing {

/// Plain memory: the child may die at any moment.
struct PairTally {
  std::uint64_t stories = 0;  ///< That ended well.
  std::uint64_t met = 0;      ///< Both procedures were live at one time.
  std::uint64_t done = 0;     ///< They met, and both succeeded.
};

/// One tally per pair. Owned by one thread of the parent.
class PairsTally {
 public:
  explicit PairsTally(std::size_t pairs)
      : bytes_(pairs * sizeof(PairTally)),
        memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    static_assert(std::is_trivially_destructible_v<PairTally>);
    REQUIRE(memory_ != MAP_FAILED);
    new (memory_) PairTally[pairs]{};
  }
  ~PairsTally() { munmap(memory_, bytes_); }
  PairsTally(const PairsTally&) = delete;
  PairsTally& operator=(const PairsTally&) = delete;

  [[nodiscard]] PairTally& operator[](std::size_t pair) const {
    return static_cast<PairTally*>(memory_)[pair];
  }

 private:
  const std::size_t bytes_;
  void* const memory_;
};

}  // namespace pv2::testing
