// SPDX-License-Identifier: Apache-2.0
//
// WaitSearch: one search for circles of waiting, which is made in several critical sections of the
// scheduler's mutex: how far it has come, and what it has copied. The lock table moves it on when
// what it stands at goes (lock_table_cycles.cc).

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
  bool keeps = false;                   ///< What it finds is kept; else it is only shown.
  std::size_t looks_max = kSectionMax;  ///< In one section. A test may want less.
  WaitGraph graph;

  std::uint64_t last_ticket = 0;          ///< Who began to wait later is another search's.
  SchedulerEntry* next_nested = nullptr;  ///< The next to begin at, then
  std::size_t reported_left = 0;          ///< so many of those who were reported.
  struct LineToCopy {
    WaitGraph::Index line;
    std::size_t number;  ///< Which of the lines of its key.
  };
  std::vector<LineToCopy> lines_to_copy;     ///< All of them, also those that are done.
  std::size_t next_line = 0;                 ///< To copy; while half done, `cursor` says how far.
  WaitGraph::Index next_member = 0;          ///< To follow; while half done,
  std::size_t next_link = 0;                 ///< from this key of its set, or
  const SchedulerEntry* ancestor = nullptr;  ///< from this ancestor.
  TableCursor cursor;
  /// Entries that were completed since the search began: nothing of them may be touched.
  boost::unordered_flat_set<const SchedulerEntry*> gone;
  std::uint64_t limit_changes = 0;
  bool at_limits = false;  ///< Cycles through limits stand: who is in them is asked again.

  /// Those in a cycle that stood when the search began.
  boost::unordered_flat_set<std::uint64_t> standing;
  std::vector<WaitGraph::FoundCycle> found;
  /// Who must stand still for the found ones through limits to be cycles, and how many were asked.
  std::vector<WaitGraph::Index> to_confirm;
  std::size_t confirmed = 0;
  bool refuted = false;  ///< One of them goes on.
  WaitGraph::Index lines_released = 0;
};

}  // namespace pv2
