// SPDX-License-Identifier: Apache-2.0
//
// LockListing: the lock table copied flat, in bounded sections. Copying is what happens under the
// scheduler's mutex, so it is no more than that, and never more at a time than kSectionMax;
// sorting and putting together is done after it was released.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pv2/scheduler/procedure_scheduler.h"

namespace pv2 {

struct LockNode;
struct LockRecord;

/// Keys and parties that one critical section of a listing looks at. 1024: each is a cache miss or
/// two, together some 0.2 ms, which is the time of a few runs of a worker.
inline constexpr std::size_t kSectionMax = 1024;

/// How far a listing has come that is made in several critical sections. While it is open, the
/// table moves it on when the key or the record that it stands at goes. Owned by one thread, read
/// and changed under the scheduler's mutex only.
struct TableCursor {
  LockNode* node = nullptr;       ///< The key that is next, or half done; null at the end.
  std::uint64_t last_birth = 0;   ///< Keys and waiters that came after the listing began are not in
  std::uint64_t last_ticket = 0;  ///< it, so that it ends.
  std::size_t line = 0;           ///< Which of the key's lines is next, or half done.
  bool in_line = false;           ///< It is half done:
  LockRecord* at = nullptr;       ///< here it goes on, null at the end of the line,
  std::uint32_t left = 0;         ///< with at most so many.
};

/// Owned by one thread.
struct LockListing {
  /// A key, or as much of it as one section has copied; then the rest follows.
  struct Key {
    ResourceClass cls;
    bool continued;        ///< It is the one before, looked at in a later section.
    std::size_t name_end;  ///< In `names`; it begins where the one before it ends.
    std::uint32_t limit;
    std::size_t parties;  ///< The next so many.
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
  std::string names;  ///< One behind the other: a string per key would cost an allocation each.
  std::vector<Party> parties;

  /// In order of keys, holders by id, waiters in the order in which they will be served.
  [[nodiscard]] std::vector<LockInfo> assemble() &&;
};

}  // namespace pv2
