// SPDX-License-Identifier: Apache-2.0
//
// WaitGraph. Start at build(): if there are limits, members that can go on are left out first; then
// the rest becomes a graph with an edge for each wait; then its strongly connected components are
// numbered. Each cycle lies in one component, and each component of at least two vertices has a
// cycle.

#include "wait_graph.h"

#include <pv2/base/assert.h>

#include <algorithm>
#include <deque>
#include <unordered_set>

namespace pv2 {
namespace {

// The offsets of a line's vertices: see Places.
constexpr std::uint32_t kExclusiveHolders = 0;
constexpr std::uint32_t kAllHolders = 1;
constexpr std::uint32_t kPlaceHolders = 2;
constexpr std::uint32_t kWaiters = 3;

template <class Container>
void grow(Container& container, std::size_t more) {
  if (container.capacity() - container.size() < more) {
    container.reserve(2 * container.capacity() + more);
  }
}
template <class Map>
void grow_map(Map& map, std::size_t more) {
  if (map.max_load() < map.size() + more) map.reserve(2 * map.size() + more);
}

std::size_t before(const std::vector<std::uint64_t>& tickets, std::uint64_t ticket) {
  return static_cast<std::size_t>(std::ranges::lower_bound(tickets, ticket) - tickets.begin());
}

}  // namespace

/// Of one line, as far as the pass has come: the parties that are stuck.
struct WaitGraph::Counts {
  std::size_t exclusive_holders = 0;
  std::size_t holders = 0;
  std::size_t place_holders = 0;
  std::size_t ahead = 0;
  std::size_t exclusive_ahead = 0;
};

std::pair<WaitGraph::Index, bool> WaitGraph::member_for(const SchedulerEntry& entry,
                                                        ProcedureId id) {
  PV2_ASSERT(!built_, "a graph is filled before cycles are looked for in it");
  const auto index = static_cast<Index>(members_.size());
  const auto [at, is_new] = index_.try_emplace(&entry, index);
  if (!is_new) return {members_[at->second].id == id ? at->second : kNobody, false};
  Member& member = members_.emplace_back();
  member.entry = &entry;
  member.id = id;
  return {index, true};
}

std::pair<WaitGraph::Index, bool> WaitGraph::line_for(LockNode& node) {
  PV2_ASSERT(!built_, "a graph is filled before cycles are looked for in it");
  const auto index = static_cast<Index>(lines_.size());
  const auto [at, is_new] = line_index_.try_emplace(&node, index);
  if (!is_new) return {at->second, false};
  Line& line = lines_.emplace_back();
  line.node = &node;
  line.limit = node.limit();
  return {index, true};
}

void WaitGraph::reserve_more(std::size_t count) {
  grow(members_, count);
  grow(wants_, count);
  grow(lines_, count);
  grow(children_, count);
  grow_map(index_, count);
  grow_map(line_index_, count);
}

WaitGraph::Index WaitGraph::member_of(const SchedulerEntry* entry) const {
  const auto at = index_.find(entry);
  return at == index_.end() ? kNobody : at->second;
}

bool WaitGraph::is_stuck(ProcedureId id) const {
  PV2_ASSERT(built_, "the stuck members are known once the graph is built");
  const auto at = by_id_.find(id.value);
  if (at == by_id_.end() || stuck_[at->second] == 0) return false;
  return true;
}

bool WaitGraph::lacks_place(ProcedureId id, const LockNode* node) const {
  PV2_ASSERT(built_, "the members that lack a place are known once the graph is built");
  const auto at = by_id_.find(id.value);
  if (at == by_id_.end()) return false;
  const auto [from, to] = wants_of_[at->second];
  return std::any_of(wants_.begin() + static_cast<std::ptrdiff_t>(from),
                     wants_.begin() + static_cast<std::ptrdiff_t>(to), [&](const Want& want) {
                       return want.out_of_places && lines_[want.line].node == node;
                     });
}

// ---- Building it ----

void WaitGraph::build() {
  PV2_ASSERT(!built_, "a graph is built once");
  built_ = true;
  stuck_.assign(members_.size(), 1);
  wants_of_.assign(members_.size(), {0, 0});
  for (std::size_t i = 0; i < wants_.size(); ++i) {
    auto& [from, to] = wants_of_[wants_[i].member];
    if (to == 0) from = i;
    to = i + 1;
  }
  for (Index i = 0; i < members_.size(); ++i) {
    by_id_[members_[i].id.value] = i;
    if (members_[i].ticket != 0) in_order_.push_back(i);
  }
  std::ranges::sort(in_order_, {}, [this](Index i) { return members_[i].ticket; });
  for (Line& line : lines_) std::ranges::sort(line.waiters, {}, &Waiter::ticket);

  leave_out_who_goes_on();
  add_edges();
  number_components();
  came_from_.resize(vertices_);
  visited_in_.assign(vertices_, 0);
}

// Without limits every member counts as stuck here: one that really is lies in a component or waits
// for one. At a limit that is not enough, as a waiter for a place waits for any one of several. So
// members that are held up by none, or only by members already left out, are left out, until there
// are no more.
void WaitGraph::leave_out_who_goes_on() {
  const bool limited = std::ranges::any_of(
      lines_, [](const Line& line) { return line.limit != LockNode::kNoLimit; });
  if (!limited && !weighs_in_any_case_) return;
  std::vector<Counts> counts;
  for (bool changed = true; changed;) {
    changed = pass_through_lines(counts);
    changed = pass_through_others() || changed;
  }
}

// Visits the members in line in order of their tickets, so a line of any length takes one pass.
// Returns whether a member was left out.
bool WaitGraph::pass_through_lines(std::vector<Counts>& counts) {
  counts.assign(lines_.size(), {});
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    for (const Holder& holder : lines_[i].holders) {
      const Index member = member_of(holder.entry);
      if (member == kNobody || stuck_[member] == 0) continue;
      ++counts[i].holders;
      counts[i].exclusive_holders += holder.mode == LockMode::kExclusive ? 1 : 0;
      counts[i].place_holders += holder.exempt ? 0 : 1;
    }
  }
  bool changed = false;
  for (const Index member : in_order_) {
    if (stuck_[member] == 0) continue;
    const auto [from, to] = wants_of_[member];
    for (std::size_t i = from; i < to; ++i) {
      const Counts& count = counts[wants_[i].line];
      const std::size_t parties = count.place_holders + (members_[member].passes ? 0 : count.ahead);
      const std::uint32_t limit = lines_[wants_[i].line].limit;
      // Only an operator ends a wait at a limit of 0.
      wants_[i].out_of_places =
          limit != LockNode::kNoLimit && limit != 0 && !wants_[i].exempt && parties >= limit;
    }
    if (!is_held_up(member, counts)) {
      stuck_[member] = 0;
      changed = true;
      continue;
    }
    for (std::size_t i = from; i < to; ++i) {
      ++counts[wants_[i].line].ahead;
      if (wants_[i].mode == LockMode::kExclusive) ++counts[wants_[i].line].exclusive_ahead;
    }
  }
  return changed;
}

bool WaitGraph::is_held_up(Index member, const std::vector<Counts>& counts) const {
  const Member& waiter = members_[member];
  if (waiter.producer != nullptr) {
    const Index producer = member_of(waiter.producer);
    if (producer != kNobody && stuck_[producer] != 0) return true;
  }
  const auto [from, to] = wants_of_[member];
  return std::any_of(wants_.begin() + static_cast<std::ptrdiff_t>(from),
                     wants_.begin() + static_cast<std::ptrdiff_t>(to), [&](const Want& want) {
                       const Counts& count = counts[want.line];
                       const bool all = want.mode == LockMode::kExclusive;
                       const std::size_t holders = all ? count.holders : count.exclusive_holders;
                       const std::size_t ahead = all ? count.ahead : count.exclusive_ahead;
                       return (!want.covered && holders != 0) || (!waiter.passes && ahead != 0) ||
                              want.out_of_places;
                     });
}

// Visits the members that stand in no line: they wait for children or as reported. Returns whether
// a member was left out.
bool WaitGraph::pass_through_others() {
  bool any = false;
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<char> held_up(members_.size(), 0);
    for (const auto& [ancestor, descendant] : children_) {
      if (stuck_[descendant] != 0) held_up[ancestor] = 1;
    }
    for (Index i = 0; i < members_.size(); ++i) {
      if (members_[i].ticket != 0 || stuck_[i] == 0 || held_up[i] != 0) continue;
      const Index producer = members_[i].producer != nullptr ? member_of(members_[i].producer) : i;
      if (producer != i && producer != kNobody && stuck_[producer] != 0) continue;
      stuck_[i] = 0;
      changed = any = true;
    }
  }
  return any;
}

void WaitGraph::add_edges() {
  vertices_ = static_cast<Index>(members_.size());
  places_.resize(lines_.size());
  for (Index i = 0; i < lines_.size(); ++i) add_line_edges(i);
  for (const Want& want : wants_) {
    if (stuck_[want.member] != 0) add_want_edges(want);
  }
  for (const auto& [ancestor, descendant] : children_) {
    if (stuck_[ancestor] != 0 && stuck_[descendant] != 0) add_edge(ancestor, descendant);
  }
  for (Index i = 0; i < members_.size(); ++i) {
    if (members_[i].producer == nullptr || stuck_[i] == 0) continue;
    const Index producer = member_of(members_[i].producer);
    if (producer != kNobody && stuck_[producer] != 0) add_edge(i, producer);
  }
  // Sorted by their sources, so that the edges of a vertex lie together.
  first_edge_.assign(vertices_ + std::size_t{1}, 0);
  for (const auto& [from, to] : edges_) ++first_edge_[from + 1];
  for (Index i = 0; i < vertices_; ++i) first_edge_[i + 1] += first_edge_[i];
  targets_.resize(edges_.size());
  std::vector<Index> next(first_edge_.begin(), first_edge_.end() - 1);
  for (const auto& [from, to] : edges_) targets_[next[from]++] = to;
}

void WaitGraph::add_line_edges(Index line) {
  Places& places = places_[line];
  places.first = vertices_;
  for (const Holder& holder : lines_[line].holders) {
    const Index member = member_of(holder.entry);
    if (member == kNobody || stuck_[member] == 0) continue;
    add_edge(places.first + kAllHolders, member);
    if (holder.mode == LockMode::kExclusive) add_edge(places.first + kExclusiveHolders, member);
    if (!holder.exempt) add_edge(places.first + kPlaceHolders, member);
  }
  places.all = places.first + kWaiters;
  const std::vector<Waiter>& waiters = lines_[line].waiters;
  for (const Waiter& waiter : waiters) {
    if (stuck_[waiter.member] == 0) continue;
    const Index place = places.all + static_cast<Index>(places.tickets.size());
    if (!places.tickets.empty()) add_edge(place, place - 1);
    add_edge(place, waiter.member);
    places.tickets.push_back(waiter.ticket);
  }
  places.exclusive = places.all + static_cast<Index>(places.tickets.size());
  for (const Waiter& waiter : waiters) {
    if (stuck_[waiter.member] == 0 || waiter.mode != LockMode::kExclusive) continue;
    const Index place = places.exclusive + static_cast<Index>(places.exclusive_tickets.size());
    if (!places.exclusive_tickets.empty()) add_edge(place, place - 1);
    add_edge(place, waiter.member);
    places.exclusive_tickets.push_back(waiter.ticket);
  }
  vertices_ = places.exclusive + static_cast<Index>(places.exclusive_tickets.size());
}

void WaitGraph::add_want_edges(const Want& want) {
  const Places& places = places_[want.line];
  const Member& waiter = members_[want.member];
  PV2_ASSERT(waiter.ticket != 0, "a member that asks for a key stands in its line");
  const bool all = want.mode == LockMode::kExclusive;
  if (!want.covered) {
    add_edge(want.member, places.first + (all ? kAllHolders : kExclusiveHolders));
  }
  if (!waiter.passes) {
    const auto& tickets = all ? places.tickets : places.exclusive_tickets;
    const auto ahead = static_cast<Index>(before(tickets, waiter.ticket));
    if (ahead != 0) add_edge(want.member, (all ? places.all : places.exclusive) + ahead - 1);
  }
  if (!want.out_of_places) return;
  add_edge(want.member, places.first + kPlaceHolders);
  const auto ahead = static_cast<Index>(before(places.tickets, waiter.ticket));
  if (!all && !waiter.passes && ahead != 0) add_edge(want.member, places.all + ahead - 1);
}

// Tarjan's strongly connected components, with a stack of our own: a chain may be long.
void WaitGraph::number_components() {
  constexpr Index kNone = UINT32_MAX;
  component_.assign(vertices_, kNone);
  std::vector<Index> order(vertices_, kNone);
  std::vector<Index> low(vertices_, 0);
  std::vector<Index> next(first_edge_.begin(), first_edge_.end() - 1);
  std::vector<Index> open;
  std::vector<Index> path;
  Index count = 0;
  const auto enter = [&](Index vertex) {
    order[vertex] = low[vertex] = count++;
    open.push_back(vertex);
    path.push_back(vertex);
  };
  for (Index root = 0; root < vertices_; ++root) {
    if (order[root] != kNone) continue;
    enter(root);
    while (!path.empty()) {
      const Index vertex = path.back();
      if (next[vertex] != first_edge_[vertex + 1]) {
        const Index target = targets_[next[vertex]++];
        if (order[target] == kNone) {
          enter(target);
        } else if (component_[target] == kNone) {
          low[vertex] = std::min(low[vertex], order[target]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) low[path.back()] = std::min(low[path.back()], low[vertex]);
      if (low[vertex] != order[vertex]) continue;
      Index size = 0;
      Index member = kNone;
      do {
        member = open.back();
        open.pop_back();
        component_[member] = static_cast<Index>(component_size_.size());
        ++size;
      } while (member != vertex);
      component_size_.push_back(size);
    }
  }
  PV2_ASSERT(open.empty(), "every vertex belongs to a component");
}

// ---- Cycles ----

// The path of the fewest members from `start` back to it. The places in lines on the way are no
// members and cost nothing.
std::vector<WaitGraph::Index> WaitGraph::path_through(Index start) {
  ++round_;
  std::deque<Index> to_do{start};
  std::vector<char> unused;
  while (!to_do.empty()) {
    const Index vertex = to_do.front();
    to_do.pop_front();
    for (Index i = first_edge_[vertex]; i < first_edge_[vertex + 1]; ++i) {
      const Index target = targets_[i];
      if (component_[target] != component_[start] || visited_in_[target] == round_) continue;
      visited_in_[target] = round_;
      came_from_[target] = vertex;
      if (target == start) {
        std::vector<Index> path;
        Index at = start;
        do {
          at = came_from_[at];
          path.push_back(at);
        } while (at != start);
        std::ranges::reverse(path);
        return path;
      }
      is_member(target) ? to_do.push_back(target) : to_do.push_front(target);
    }
  }
  PV2_ASSERT(false, "in a component a path leads from each vertex back to it");
  return {};
}

WaitGraph::FoundCycle WaitGraph::cycle_of(const std::vector<Index>& path) const {
  PV2_ASSERT(!path.empty() && is_member(path.front()), "the path of a cycle begins with a member");
  FoundCycle found;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (!is_member(path[i])) continue;
    const Member& waiter = members_[path[i]];
    found.members.push_back(path[i]);
    WaitLink& link = found.cycle.links.emplace_back();
    link.waiter = waiter.id;
    link.since = waiter.since;
    std::size_t next = i + 1;
    while (next < path.size() && !is_member(path[next])) ++next;
    const Member& awaited = members_[next == path.size() ? path.front() : path[next]];
    link.awaited = awaited.id;
    Index line = kNobody;
    if (next == i + 1) {
      const bool reported = waiter.producer == awaited.entry;
      link.why = reported ? waiter.why : WaitLink::Why::kChild;
      if (reported) link.since = waiter.reported_since;
    } else {
      const Index place = path[i + 1];
      const auto at = std::ranges::upper_bound(places_, place, {}, &Places::first);
      line = static_cast<Index>(at - places_.begin()) - 1;
      link.key = lines_[line].node->key;
      const auto [from, to] = wants_of_[path[i]];
      const auto want = std::find_if(wants_.begin() + static_cast<std::ptrdiff_t>(from),
                                     wants_.begin() + static_cast<std::ptrdiff_t>(to),
                                     [&](const Want& other) { return other.line == line; });
      const Index kind = place - places_[line].first;
      const bool in_line = kind >= kWaiters;
      const bool excluded =
          in_line ? place >= places_[line].exclusive || want->mode == LockMode::kExclusive
                  : kind != kPlaceHolders;
      link.why = !excluded ? WaitLink::Why::kLimit
                 : in_line ? WaitLink::Why::kAhead
                           : WaitLink::Why::kHolder;
      found.through_a_limit = found.through_a_limit || !excluded;
    }
    found.lines.push_back(line);
  }
  // A parent waits since its child does, which may wait for a child of its own. So the links are
  // visited backwards. The first of two rounds may begin inside a run of such links, whose end it
  // reaches last; the second round then brings that time to the others of the run. The links of a
  // cycle are not all of this kind.
  std::vector<WaitLink>& links = found.cycle.links;
  for (std::size_t i = 2 * links.size(); i-- > 0;) {
    WaitLink& link = links[i % links.size()];
    if (link.why == WaitLink::Why::kChild) link.since = links[(i + 1) % links.size()].since;
  }
  return found;
}

std::vector<WaitGraph::FoundCycle> WaitGraph::find_cycles(
    const std::function<bool(ProcedureId)>& skip, Overlap overlap, std::size_t most) {
  if (!built_) build();
  std::vector<Index> waiters;
  for (Index i = 0; i < members_.size(); ++i) {
    if (members_[i].stamp != 0 && component_size_[component_[i]] > 1) waiters.push_back(i);
  }
  std::ranges::sort(waiters, std::greater<>(), [this](Index i) { return members_[i].stamp; });
  std::vector<FoundCycle> found;
  std::vector<char> listed(members_.size(), 0);
  std::size_t tries = 2 * most;
  for (const Index waiter : waiters) {
    if (listed[waiter] != 0 || skip(members_[waiter].id)) continue;
    if (found.size() == most || tries == 0) {
      found_enough_ = true;
      break;
    }
    --tries;
    FoundCycle cycle = cycle_of(path_through(waiter));
    const bool overlaps =
        std::ranges::any_of(cycle.members, [&](Index member) { return listed[member] != 0; });
    if (overlaps && overlap == Overlap::kAvoided) continue;
    for (const Index member : cycle.members) listed[member] = 1;
    found.push_back(std::move(cycle));
  }
  return found;
}

std::vector<WaitGraph::Index> WaitGraph::reach_of(const std::vector<Index>& members) {
  PV2_ASSERT(built_, "members are reached along the edges of a built graph");
  ++round_;
  std::vector<Index> to_do(members);
  std::vector<Index> reached;
  for (const Index member : members) visited_in_[member] = round_;
  while (!to_do.empty()) {
    const Index vertex = to_do.back();
    to_do.pop_back();
    if (is_member(vertex)) reached.push_back(vertex);
    for (Index i = first_edge_[vertex]; i < first_edge_[vertex + 1]; ++i) {
      if (visited_in_[targets_[i]] == round_) continue;
      visited_in_[targets_[i]] = round_;
      to_do.push_back(targets_[i]);
    }
  }
  return reached;
}

}  // namespace pv2
