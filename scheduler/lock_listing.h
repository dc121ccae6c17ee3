// SPDX-License-Identifier: Apache-2.0
//
// LockListing: a flat copy of the lock table, made in bounded sections. Under the scheduler's mutex
// keys and parties are only copied, at most kSectionMax at a time; sorting and assembling follow
// after the mutex is released.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lock_node.h"
#include "pv2/scheduler/procedure_scheduler.h"

namespace pv2 {

/// How many keys and parties one critical section of a listing looks at. 1024: each is a cache miss
/// or two, together about 0.2 ms, as long as a worker needs for a few runs.
inline constexpr std::size_t kSectionMax = 1024;

/// The lines of a key have numbers, in the order in which a listing copies them: four lines of
/// waiters, by kin and mode, and then the holders.
[[nodiscard]] constexpr std::size_t waiter_line(Kin kin, LockMode mode) noexcept {
  return 2 * static_cast<std::size_t>(kin) + (mode == LockMode::kExclusive ? 1 : 0);
}
inline constexpr std::size_t kHolderLine = 4;
inline constexpr std::size_t kLines = 5;

/// How far a listing made in several critical sections has come. While the cursor is open, the
/// table moves it on when the key or record it stands at is removed. Owned by one thread; read and
/// changed under the scheduler's mutex only.
struct TableCursor {
  LockNode* node = nullptr;       ///< The next key, or the one half copied; null at the end.
  LockNode* last = nullptr;       ///< Keys that came after the listing began are left out, so that
  std::uint64_t last_ticket = 0;  ///< it ends; likewise waiters that came later.
  std::size_t line = 0;           ///< The key's next line, or the one half copied.
  bool in_line = false;           ///< Whether that line is half copied.
  LockRecord* at = nullptr;       ///< Where a half-copied line goes on; null at its end.
  std::uint32_t left = 0;         ///< How many more of that line to copy, at most.
};

/// Owned by one thread.
struct LockListing {
  /// A key, or the part of it that one section copied; the rest follows.
  struct Key {
    ResourceClass cls;
    bool continued;        ///< The key before it goes on here, in a later section.
    std::size_t name_end;  ///< Of its name in `names`, which begins where the one before it ends.
    std::uint32_t limit;
    std::size_t parties;  ///< How many of the parties, in order, are at this key.
  };
  struct Party {
    ProcedureId id;
    SteadyTime since;
    std::uint64_t ticket;
    LockMode mode;
    bool holds;
  };
  /// Makes room for another section, so that copying it allocates little.
  void reserve_section();

  std::vector<Key> keys;
  std::string names;  ///< Concatenated: a string per key would cost an allocation each.
  std::vector<Party> parties;

  /// The keys in order; the holders of each by id, its waiters in the order in which they will be
  /// served.
  [[nodiscard]] std::vector<LockInfo> assemble() &&;
};

}  // namespace pv2
