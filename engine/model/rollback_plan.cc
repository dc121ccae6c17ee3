// SPDX-License-Identifier: Apache-2.0
//
// Builder makes the lanes; the verbs go through them. `open_` is a stack: turns that may begin at
// the same time begin from the newest to the oldest.

#include "model/rollback_plan.h"

#include <pv2/base/assert.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "model/execution.h"

namespace pv2 {
namespace {

// How many forks and lanes one call of begin_next() goes through: many more than a tree has that is
// not nested on purpose.
constexpr int kStepsAtOnce = 64;

bool are_siblings(const Execution& a, const Execution& b) {
  return a.parent_execution() == b.parent_execution() && a.place->spawned_at == b.place->spawned_at;
}

// Returns the turns from `at` to `end`. A turn of `kind` for each of `members`, which are `head` or
// below it, comes right before the first turn of a descendant, unless a turn of its own comes
// before that. Of several members the highest comes first. Each member is passed once, so this
// takes no longer than a walk over all.
template <class At>
std::vector<UndoTurn> with_turns_above(const Execution& head, At at, At end,
                                       const std::vector<Execution*>& members,
                                       UndoTurn::Kind kind) {
  const std::unordered_set<const Execution*> wanted(members.begin(), members.end());
  std::unordered_set<const Execution*> passed{head.parent_execution()};
  std::vector<UndoTurn> turns;
  turns.reserve(static_cast<std::size_t>(end - at) + members.size());
  for (; at != end; ++at) {
    const auto before = static_cast<std::ptrdiff_t>(turns.size());
    for (Execution* member = at->execution; passed.insert(member).second;
         member = member->parent_execution()) {
      Looks::one();
      if (member == at->execution || !wanted.contains(member)) continue;
      turns.push_back({member, {0, at->entry.sequence}, kind});
    }
    std::reverse(turns.begin() + before, turns.end());
    turns.push_back(*at);
  }
  return turns;
}

}  // namespace

// Takes turns from the newest to the oldest. A lane stays open while turns may be added to it. The
// open lanes within an open lane are those of the fork that is its oldest item.
class RollbackPlan::Builder {
 public:
  Builder(RollbackPlan& plan, Execution& head)
      : head_(head), items_(plan.items_), lanes_(plan.lanes_) {
    lanes_.push_back({&head, kNone});
  }

  void add(const UndoTurn& turn) {
    Execution* const branch = below_head(turn.execution->beside());
    const Index lane = branch != nullptr ? lane_of(*branch) : 0;
    close_fork_of(lane);
    append(lane, turn);
  }
  void close() { close_fork_of(0); }

 private:
  // Ids grow from parent to child.
  [[nodiscard]] Execution* below_head(Execution* beside) const {
    Looks::one();
    return beside != nullptr && head_.id < beside->id ? beside : nullptr;
  }

  Index lane_of(Execution& branch) {
    std::vector<Execution*> missing;
    Execution* at = &branch;
    while (at != nullptr && !open_.contains(at)) {
      missing.push_back(at);
      at = below_head(at->parent_execution()->beside());
    }
    Index lane = at != nullptr ? open_.at(at) : 0;
    for (; !missing.empty(); missing.pop_back()) lane = add_lane(lane, *missing.back());
    return lane;
  }

  Index add_lane(Index outer, Execution& branch) {
    Index fork = lanes_[outer].oldest;
    const bool fits = fork != kNone && items_[fork].lanes != kNone &&
                      are_siblings(*lanes_[items_[fork].lanes].scope, branch);
    if (!fits) {
      close_fork_of(outer);
      fork = append(outer, {});
      last_lane_.resize(items_.size(), kNone);
    }
    const auto lane = static_cast<Index>(lanes_.size());
    lanes_.push_back({&branch, fork});
    Item& item = items_[fork];
    (item.lanes == kNone ? item.lanes : lanes_[last_lane_[fork]].next) = lane;
    last_lane_[fork] = lane;
    ++item.lanes_left;
    open_.emplace(&branch, lane);
    return lane;
  }

  // If the oldest item of the lane is a fork, nothing is added to that fork any more.
  void close_fork_of(Index lane) {
    std::vector<Index> to_close{lanes_[lane].oldest};
    while (!to_close.empty()) {
      const Index fork = to_close.back();
      to_close.pop_back();
      if (fork == kNone || items_[fork].lanes == kNone) continue;
      items_[fork].end = static_cast<Index>(items_.size());
      for (Index in = items_[fork].lanes; in != kNone; in = lanes_[in].next) {
        open_.erase(lanes_[in].scope);
        to_close.push_back(lanes_[in].oldest);
      }
    }
  }

  Index append(Index lane, const UndoTurn& turn) {
    const auto index = static_cast<Index>(items_.size());
    const Index newer = std::exchange(lanes_[lane].oldest, index);
    items_.push_back({.turn = turn, .lane = lane, .newer = newer});
    (newer != kNone ? items_[newer].older : lanes_[lane].newest) = index;
    return index;
  }

  Execution& head_;
  std::vector<Item>& items_;
  std::vector<Lane>& lanes_;
  std::unordered_map<const Execution*, Index> open_;
  std::vector<Index> last_lane_;  // of each fork: the lane that was added last
};

// Turns are undone from the back of the list. Of several members above one the highest takes its
// locks first, and the lowest gives them back first:
//
//     members      head - A - B - C, of which A and B had locks; head - D
//     turns        C1  C2  D1
//     then         A-  B-  C1  C2  B+  A+  D1     + are first turns, - are last turns
//     undone       D1, A+, B+, C2, C1, B-, A-
RollbackPlan::RollbackPlan(Execution& head, std::vector<UndoTurn> turns, const UndoLocks& locks) {
  if (!locks.takers.empty()) {
    const std::vector<UndoTurn> newest_first =
        with_turns_above(head, turns.rbegin(), turns.rend(), locks.takers, UndoTurn::Kind::kFirst);
    turns.assign(newest_first.rbegin(), newest_first.rend());
  }
  if (!locks.keepers.empty()) {
    turns =
        with_turns_above(head, turns.begin(), turns.end(), locks.keepers, UndoTurn::Kind::kLast);
  }
  for (const UndoTurn& turn : turns) {
    if (turn.kind != UndoTurn::Kind::kStep) with_added_turn_.push_back(turn.execution);
  }
  PV2_ASSERT(turns.size() < kNone / 2, "turns of a plan are numbered");
  left_ = turns.size();
  items_.reserve(turns.size());
  Builder builder(*this, head);
  for (std::size_t i = turns.size(); i-- > 0;) builder.add(turns[i]);
  builder.close();
  for (std::size_t i = items_.size(); i-- > 0;) {  // the oldest first
    Execution* const member = items_[i].turn.execution;
    if (member == nullptr) continue;
    const auto index = static_cast<Index>(i);
    const auto [at, is_first] = newest_.try_emplace(member->id, index);
    if (!is_first) items_[i].next_of_member = std::exchange(at->second, index);
    if (is_first) new_waits_.emplace(member->id, Wait{member, &head});
    has_locks_ = has_locks_ || (items_[i].lane != 0 && !member->locks().empty());
  }
  open_.push_back({0, false});
}

Execution* RollbackPlan::take_with_added_turn() {
  if (with_added_turn_.empty()) return nullptr;
  Looks::one();
  Execution* const member = with_added_turn_.back();
  with_added_turn_.pop_back();
  return member;
}

const UndoTurn* RollbackPlan::begin_next() {
  for (int i = 0; i < kStepsAtOnce && !open_.empty(); ++i) {
    Looks::one();
    const auto [index, is_fork] = open_.back();
    if (is_fork) {
      step_into_fork(index);
      continue;
    }
    const Index newest = lanes_[index].newest;
    if (newest == kNone || items_[newest].lanes != kNone) {
      step_into_lane(index);
      continue;
    }
    open_.pop_back();
    const UndoTurn& turn = items_[newest].turn;
    PV2_ASSERT(turn.execution != nullptr, "a turn that begins has a member");
    const bool is_new = begun_.emplace(turn.execution->id, index).second;
    PV2_ASSERT(is_new, "a member has one turn at a time");
    PV2_ASSERT(begun_.size() <= left_, "a turn that has begun counts as left until it is over");
    return &turn;
  }
  return nullptr;
}

// The top of `open_` is a lane that is empty or whose next item is a fork.
void RollbackPlan::step_into_lane(Index index) {
  const Lane& lane = lanes_[index];
  open_.pop_back();
  if (lane.newest != kNone) {
    Item& fork = items_[lane.newest];
    PV2_ASSERT(!fork.is_open && fork.lanes_left != 0, "a fork is opened once, and has lanes");
    fork.is_open = true;
    fork.unopened = fork.lanes;
    open_.push_back({lane.newest, true});
    if (has_locks_) opened_.push_back(lane.newest);
    return;
  }
  if (lane.fork == kNone) return;
  Item& fork = items_[lane.fork];
  PV2_ASSERT(fork.is_open && fork.lanes_left != 0,
             "the fork of an empty lane is open and counts it");
  if (--fork.lanes_left != 0) return;
  PV2_ASSERT(lanes_[fork.lane].newest == lane.fork,
             "a fork that is over is the newest of its lane");
  open_.push_back({fork.lane, false});
  take_out(lane.fork);
}

void RollbackPlan::step_into_fork(Index index) {
  Item& fork = items_[index];
  const Index lane = fork.unopened;
  PV2_ASSERT(lane != kNone, "an open fork has a lane that is not opened");
  fork.unopened = lanes_[lane].next;
  if (fork.unopened == kNone) open_.pop_back();
  open_.push_back({lane, false});
}

// Takes an item out of its lane.
void RollbackPlan::take_out(Index index) {
  const Item& item = items_[index];
  Lane& lane = lanes_[item.lane];
  (item.newer != kNone ? items_[item.newer].older : lane.newest) = item.older;
  (item.older != kNone ? items_[item.older].newer : lane.oldest) = item.newer;
}

void RollbackPlan::put_back(const Execution& member) {
  const auto at = begun_.find(member.id);
  if (at == begun_.end()) return;
  PV2_ASSERT(items_[lanes_[at->second].newest].turn.execution == &member,
             "a turn that has begun is the newest of its lane");
  open_.push_back({at->second, false});
  begun_.erase(at);
}

// The next older turn of its lane, or fork, that is below the member of the turn `item`; kNone: an
// own turn of the member comes before, or there is none.
RollbackPlan::Index RollbackPlan::next_below(Index item) const {
  const Execution* const member = items_[item].turn.execution;
  for (Index at = items_[item].older; at != kNone; at = items_[at].older) {
    const bool is_fork = items_[at].lanes != kNone;
    const Execution* of = is_fork ? lanes_[items_[at].lanes].scope : items_[at].turn.execution;
    if (of == member) return kNone;
    for (; of != nullptr && member->id < of->id; of = of->parent_execution()) Looks::one();
    if (of == member) return at;
  }
  return kNone;
}

bool RollbackPlan::take_locks_instead(Execution& member) {
  const Index index = newest_.at(member.id);
  Item& item = items_[index];
  const Index below = next_below(index);
  PV2_ASSERT(item.turn.kind == UndoTurn::Kind::kStep, "a turn that was skipped is of a step");
  if (below == kNone) return false;
  if (const auto at = begun_.find(member.id); at != begun_.end()) {
    open_.push_back({at->second, false});
    begun_.erase(at);
  }
  take_out(index);
  item.turn.kind = UndoTurn::Kind::kFirst;
  item.turn.entry.step = 0;
  item.older = below;
  item.newer = std::exchange(items_[below].newer, index);
  (item.newer != kNone ? items_[item.newer].older : lanes_[item.lane].newest) = index;
  return true;
}

void RollbackPlan::end(Execution& member) {
  const auto newest = newest_.find(member.id);
  PV2_ASSERT(newest != newest_.end(), "the plan has a turn of the member");
  PV2_ASSERT(left_ != 0, "a turn that ends was counted as left");
  Item& item = items_[newest->second];
  if (const auto at = begun_.find(member.id); at != begun_.end()) {
    PV2_ASSERT(lanes_[at->second].newest == newest->second,
               "a turn that has begun is the newest of its lane");
    open_.push_back({at->second, false});
    begun_.erase(at);
  }
  take_out(newest->second);
  item.turn.execution = nullptr;
  --left_;
  PV2_ASSERT(member.turn().left <= left_, "the turns of a member are among those that are left");
  newest->second = item.next_of_member;
  if (newest->second == kNone) {
    newest_.erase(newest);
    new_waits_.erase(member.id);
  } else {
    new_waits_[member.id] = {&member, scope_now(newest->second)};
  }
}

// The scope of the innermost lane around the item that waits for nothing outside of itself.
Execution* RollbackPlan::scope_now(Index item) const {
  Index lane = items_[item].lane;
  while (lanes_[lane].fork != kNone && !items_[lanes_[lane].fork].is_open) {
    Looks::one();
    lane = items_[lanes_[lane].fork].lane;
  }
  return lanes_[lane].scope;
}

bool RollbackPlan::has_begun(const Execution& member) const { return begun_.contains(member.id); }

std::vector<Execution*> RollbackPlan::begun(std::size_t most) const {
  std::vector<Execution*> members;
  members.reserve(std::min(most, begun_.size()));
  for (const auto& [id, lane] : begun_) {
    if (members.size() == most) break;
    Looks::one();
    members.push_back(items_[lanes_[lane].newest].turn.execution);
  }
  return members;
}

const UndoTurn* RollbackPlan::last() const {
  return left_ == 1 ? &items_[newest_.begin()->second].turn : nullptr;
}

bool RollbackPlan::goes_on_with(const Execution& member) const {
  const Item& item = items_[newest_.at(member.id)];
  return item.older != kNone && items_[item.older].turn.execution == &member;
}

const UndoTurn* RollbackPlan::newest_of(const Execution& member) const {
  const auto at = newest_.find(member.id);
  return at != newest_.end() ? &items_[at->second].turn : nullptr;
}

std::vector<RollbackPlan::Wait> RollbackPlan::take_new_waits(std::size_t most) {
  std::vector<Wait> waits;
  auto at = new_waits_.begin();
  for (; at != new_waits_.end() && most > 0; ++at, --most) {
    Looks::one();
    if (!begun_.contains(at->first)) waits.push_back(at->second);
  }
  new_waits_.erase(new_waits_.begin(), at);
  for (; !opened_.empty() && most > 0; --most) {
    Looks::one();
    const Index fork = opened_.front();
    const Index index = std::max(told_, fork + 1);
    told_ = index + 1;
    if (told_ >= items_[fork].end) {
      opened_.pop_front();
      told_ = 0;
    }
    Execution* const member = items_[index].turn.execution;
    const bool waits_in_it = member != nullptr && !member->locks().empty() &&
                             newest_.at(member->id) == index && !begun_.contains(member->id);
    if (waits_in_it) waits.push_back({member, scope_now(index)});
  }
  return waits;
}

void RollbackPlan::for_each(const std::function<void(const UndoTurn&)>& visit) const {
  for (const Item& item : items_) {
    Looks::one();
    if (item.turn.execution != nullptr) visit(item.turn);
  }
}

}  // namespace pv2
