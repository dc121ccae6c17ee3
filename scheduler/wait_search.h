// SPDX-License-Identifier: Apache-2.0
//
// WaitSearch: one search for wait cycles, which is made in several critical sections of the
// scheduler's mutex: how far it has come, and what it has copied. The lock table moves it on when
// what it stands at is removed (lock_table_cycles.cc).

#pragma once

#include <boost/unordered/unordered_flat_set.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lock_listing.h"
#include "wait_graph.h"

namespace pv2 {

/// Owned by one thread. From begin() to end() all of it but the graph is read and changed under the
/// scheduler's mutex only.
struct WaitSearch {
  bool keeps = false;                   ///< Whether the cycles it finds are kept, or only listed.
  std::size_t looks_max = kSectionMax;  ///< In one section; a test may set less.
  WaitGraph graph;

  std::uint64_t last_ticket = 0;          ///< Waits that begin later are left to the next search.
  SchedulerEntry* next_nested = nullptr;  ///< The next nested waiter to start from.
  std::size_t reported_left = 0;          ///< Then: reported waiters to start from.
  struct LineToCopy {
    WaitGraph::Index line;
    std::size_t number;  ///< Which of the key's lines.
  };
  std::vector<LineToCopy> lines_to_copy;  ///< All of them, also those already copied.
  std::size_t next_line = 0;              ///< To copy; if it is half copied, `cursor` says how far.
  WaitGraph::Index next_member = 0;       ///< The next to follow. If it is half done,
  std::size_t next_link = 0;              ///< it goes on at this key of its set, or
  const SchedulerEntry* ancestor = nullptr;  ///< at this ancestor.
  TableCursor cursor;
  /// Entries that were completed since the search began: they must not be accessed.
  boost::unordered_flat_set<const SchedulerEntry*> gone;
  std::uint64_t limit_changes = 0;
  bool at_limits = false;  ///< Cycles through limits stand: they are checked again.

  /// The ids of the members of cycles that stood when the search began.
  boost::unordered_flat_set<std::uint64_t> standing;
  std::vector<WaitGraph::FoundCycle> found;
  /// The members that must still wait for the found cycles through limits to be cycles, and how
  /// many of them were checked.
  std::vector<WaitGraph::Index> to_confirm;
  std::size_t confirmed = 0;
  bool refuted = false;  ///< One of those members goes on.
  WaitGraph::Index lines_released = 0;
};

}  // namespace pv2
