// SPDX-License-Identifier: Apache-2.0
//
// WaitGraph: a wait-for graph copied out of the lock table, and the cycles in it. A waiter waits
// for its place in a line and not for each waiter before it, so the size of the graph is linear in
// the length of the lines. The copy is filled in sections under the scheduler's mutex; finding
// cycles in it needs no mutex. As other threads work between two sections, a cycle found here is a
// suspicion: the table verifies it (lock_table_cycles.cc).

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/resource.h>

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "lock_node.h"
#include "pv2/scheduler/wait_cycle.h"

namespace pv2 {

/// Owned by one thread.
class WaitGraph {
 public:
  using Index = std::uint32_t;
  static constexpr Index kNobody = UINT32_MAX;

  /// An entry that waits: in line, for a child, or as it was reported.
  struct Member {
    const SchedulerEntry* entry = nullptr;  ///< Perhaps completed since it was copied.
    ProcedureId id;
    SteadyTime since;          ///< Since when it stands in line; means nothing if it does not.
    std::uint64_t ticket = 0;  ///< 0: it stands in no line.
    std::uint64_t stamp = 0;   ///< Order in which waits began; 0: it only waits for a child.
    const SchedulerEntry* producer = nullptr;
    WaitLink::Why why = WaitLink::Why::kReported;  ///< Why it waits for `producer`.
    SteadyTime reported_since;
    bool passes = false;  ///< Whether it passes the waiters before it in line.
  };
  /// What a member in line asks for at one key.
  struct Want {
    Index member = kNobody;
    Index line = kNobody;
    LockMode mode = LockMode::kShared;
    bool covered = false;  ///< By an ancestor, so no holder excludes it.
    bool exempt = false;   ///< By an ancestor, so it needs no place.
    bool out_of_places = false;
  };
  struct Holder {
    const SchedulerEntry* entry = nullptr;
    LockMode mode = LockMode::kShared;
    bool exempt = false;
  };
  struct Waiter {
    std::uint64_t ticket = 0;
    Index member = kNobody;
    LockMode mode = LockMode::kShared;
  };
  /// A key, with its waiters and those of its holders that wait for something themselves.
  struct Line {
    LockNode* node = nullptr;  ///< Kept known by the search.
    std::uint32_t limit = LockNode::kNoLimit;
    unsigned wanted = 0;  ///< A bit for each of the key's lines that is, or will be, in the copy.
    std::vector<Holder> holders;
    std::vector<Waiter> waiters;
  };
  struct FoundCycle {
    WaitCycle cycle;
    std::vector<Index> members;  ///< In the order of its links.
    std::vector<Index> lines;    ///< Likewise; kNobody where there is none.
    bool through_a_limit = false;
  };
  /// Whether two cycles may share a member.
  enum class Overlap : std::uint8_t { kAllowed, kAvoided };

  // ---- Filling it, under the scheduler's mutex ----

  /// The member of `entry`, and whether it is new; kNobody if another procedure was copied from
  /// that address.
  std::pair<Index, bool> member_for(const SchedulerEntry& entry, ProcedureId id);
  /// The line of `node`, and whether it is new.
  std::pair<Index, bool> line_for(LockNode& node);
  void add_want(const Want& want) { wants_.push_back(want); }
  void add_child_wait(Index ancestor, Index descendant) {
    children_.emplace_back(ancestor, descendant);
  }
  [[nodiscard]] Member& member(Index index) { return members_[index]; }
  [[nodiscard]] const Member& member(Index index) const { return members_[index]; }
  [[nodiscard]] Line& line(Index index) { return lines_[index]; }
  [[nodiscard]] const Line& line(Index index) const { return lines_[index]; }
  [[nodiscard]] std::size_t member_count() const noexcept { return members_.size(); }
  [[nodiscard]] std::size_t line_count() const noexcept { return lines_.size(); }
  /// Makes room for `count` more of each. Called outside the mutex.
  void reserve_more(std::size_t count);

  // ---- When it is filled, without the mutex ----

  /// Lets find_cycles() compute which members are stuck even if none stands in line for a place.
  void weigh_in_any_case() noexcept { weighs_in_any_case_ = true; }

  /// At most `most` cycles, each through a waiter that is in no other of them and for which `skip`
  /// returns false. The waiter that began to wait last is tried first.
  [[nodiscard]] std::vector<FoundCycle> find_cycles(const std::function<bool(ProcedureId)>& skip,
                                                    Overlap overlap, std::size_t most);
  /// All stuck members for which `members` wait, over any number of steps.
  [[nodiscard]] std::vector<Index> reach_of(const std::vector<Index>& members);
  /// Whether, by this copy, the procedure is stuck: it cannot go on.
  [[nodiscard]] bool is_stuck(ProcedureId id) const;
  /// Whether other stuck procedures have, or get first, all places of the key that the procedure
  /// stands in line for.
  [[nodiscard]] bool lacks_place(ProcedureId id, const LockNode* node) const;
  /// Whether find_cycles() ended before it had tried every waiter.
  [[nodiscard]] bool found_enough() const noexcept { return found_enough_; }

 private:
  struct Counts;

  void build();
  void leave_out_who_goes_on();
  [[nodiscard]] bool pass_through_lines(std::vector<Counts>& counts);
  [[nodiscard]] bool is_held_up(Index member, const std::vector<Counts>& counts) const;
  [[nodiscard]] bool pass_through_others();
  void add_edges();
  void add_line_edges(Index line);
  void add_want_edges(const Want& want);
  void number_components();
  [[nodiscard]] std::vector<Index> path_through(Index start);
  [[nodiscard]] FoundCycle cycle_of(const std::vector<Index>& path) const;
  [[nodiscard]] Index member_of(const SchedulerEntry* entry) const;
  void add_edge(Index from, Index to) { edges_.emplace_back(from, to); }
  [[nodiscard]] bool is_member(Index vertex) const noexcept { return vertex < members_.size(); }

  std::vector<Member> members_;
  boost::unordered_flat_map<const SchedulerEntry*, Index> index_;
  std::vector<Want> wants_;  // those of a member are adjacent
  std::vector<Line> lines_;
  boost::unordered_flat_map<const LockNode*, Index> line_index_;
  std::vector<std::pair<Index, Index>> children_;  // a waiting ancestor, its descendant

  bool weighs_in_any_case_ = false;
  bool built_ = false;
  bool found_enough_ = false;
  std::vector<char> stuck_;                                    // per member
  std::vector<Index> in_order_;                                // the members in line, by ticket
  std::vector<std::pair<std::size_t, std::size_t>> wants_of_;  // per member: from, to
  boost::unordered_flat_map<std::uint64_t, Index> by_id_;
  // The graph. Its vertices are the members, and behind them for each line: one for its exclusive
  // holders, one for all its holders, one for the holders that take a place, one for each waiter
  // ("it and those before it"), and one for each exclusive waiter ("it and the exclusive ones
  // before it").
  struct Places {
    Index first = 0;
    Index all = 0;
    Index exclusive = 0;
    std::vector<std::uint64_t> tickets;            // of all waiters
    std::vector<std::uint64_t> exclusive_tickets;  // of the exclusive waiters
  };
  std::vector<Places> places_;
  Index vertices_ = 0;
  std::vector<std::pair<Index, Index>> edges_;
  std::vector<Index> first_edge_;  // per vertex, into targets_; one more than there are vertices
  std::vector<Index> targets_;
  std::vector<Index> component_;
  std::vector<Index> component_size_;
  // For path_through().
  std::vector<Index> came_from_;
  std::vector<Index> visited_in_;
  Index round_ = 0;
};

}  // namespace pv2
