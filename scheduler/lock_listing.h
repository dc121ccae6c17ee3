// SPDX-License-Identifier: Apache-2.0
//
// LockListing: the lock table as it was at one moment, copied flat. Copying is what happens under
// the scheduler's mutex, so it is no more than that; sorting and putting together is done after it
// was released.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pv2/scheduler/procedure_scheduler.h"

namespace pv2 {

/// Owned by one thread.
struct LockListing {
  struct Key {
    ResourceClass cls;
    std::size_t name_end;  ///< In `names`; it begins where the one before it ends.
    std::uint32_t limit;
    std::uint32_t holders;  ///< The next so many parties hold it,
    std::uint32_t waiters;  ///< and so many after those wait for it.
  };
  struct Party {
    ProcedureId id;
    SteadyTime since;
    std::uint64_t ticket;
    LockMode mode;
  };
  /// Makes room, so that copying allocates little.
  void reserve(std::size_t key_count) {
    keys.reserve(key_count);
    names.reserve(key_count * 24);  // a table's or server's name
    parties.reserve(key_count * 2);
  }

  std::vector<Key> keys;
  std::string names;  ///< One behind the other: a string per key would cost an allocation each.
  std::vector<Party> parties;

  /// In order of keys, holders by id, waiters in the order in which they will be served.
  [[nodiscard]] std::vector<LockInfo> assemble() &&;
};

}  // namespace pv2
