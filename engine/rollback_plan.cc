// SPDX-License-Identifier: Apache-2.0
//
// Opening lanes, and splitting them. `open_` is a stack: the newest turn is on top when lanes were
// split, so what may begin at the same time begins from the newest to the oldest.

#include "rollback_plan.h"

#include <pv2/base/assert.h>

#include <algorithm>
#include <utility>

#include "execution.h"

namespace pv2 {
namespace {

bool is_older(const UndoTurn& a, const UndoTurn& b) {
  return std::pair(a.entry.sequence, a.execution->id) <
         std::pair(b.entry.sequence, b.execution->id);
}

// The uppermost ancestor of `member` below `scope`, itself included, that is undone beside its
// siblings; nullptr: there is none, and it is undone in the lane of `scope`. Ids grow from parent
// to child.
Execution* branch_of(const Execution& member, const Execution& scope) {
  Execution* branch = nullptr;
  Execution* at = member.beside;
  while (at != nullptr && scope.id < at->id) {
    Looks::one();
    branch = at;
    at = at->parent_execution()->beside;
  }
  return branch;
}

bool are_siblings(const Execution& a, const Execution& b) {
  return a.parent == b.parent && a.spawned_at == b.spawned_at;
}

}  // namespace

RollbackPlan::RollbackPlan(Execution& head, std::vector<UndoTurn> turns) : left_(turns.size()) {
  std::sort(turns.begin(), turns.end(), is_older);
  Looks::some(turns.size());
  PV2_ASSERT(turns.empty() || turns.front().execution != nullptr, "a turn is that of somebody");
  for (const UndoTurn& turn : turns) new_waits_[turn.execution->id] = {turn.execution, &head};
  open(lanes_.emplace_back(Lane{&head, nullptr, std::move(turns)}));
}

const UndoTurn* RollbackPlan::begin_next() {
  if (open_.empty()) return nullptr;
  Looks::one();
  Lane& lane = *open_.back();
  PV2_ASSERT(!lane.turns.empty(), "a lane that is open has a turn");
  PV2_ASSERT(lane.inner == 0, "a lane that is open waits for no other");
  open_.pop_back();
  const UndoTurn& turn = lane.turns.back();
  const bool is_new = begun_.emplace(turn.execution->id, &lane).second;
  PV2_ASSERT(is_new, "a member has one turn at a time");
  PV2_ASSERT(begun_.size() <= left_, "a turn that has begun is left until it is over");
  return &turn;
}

// Nothing has begun in it, and it waits for no other.
void RollbackPlan::open(Lane& lane) {
  PV2_ASSERT(lane.inner == 0, "a lane goes on when all within it are empty");
  PV2_ASSERT(!lane.turns.empty() || lane.outer == nullptr || lane.outer->inner != 0,
             "a lane that is empty was waited for");
  if (lane.turns.empty()) {
    if (lane.outer != nullptr && --lane.outer->inner == 0) open(*lane.outer);
  } else if (!split(lane)) {
    open_.push_back(&lane);
  }
}

// Whether its newest turns are those of children that are undone beside each other: then they have
// lanes now.
bool RollbackPlan::split(Lane& lane) {
  std::vector<UndoTurn>& turns = lane.turns;
  const Execution* const newest = branch_of(*turns.back().execution, *lane.scope);
  if (newest == nullptr) return false;
  std::map<ProcedureId, Lane*> inner;
  while (!turns.empty()) {
    Execution* const branch = branch_of(*turns.back().execution, *lane.scope);
    if (branch == nullptr || !are_siblings(*branch, *newest)) break;
    Lane*& of_branch = inner[branch->id];
    if (of_branch == nullptr) of_branch = &lanes_.emplace_back(Lane{branch, &lane, {}});
    of_branch->turns.push_back(turns.back());
    new_waits_[turns.back().execution->id] = {turns.back().execution, branch};
    turns.pop_back();
  }
  PV2_ASSERT(!inner.empty(), "a lane is split into those of its newest turns");
  lane.inner = inner.size();
  std::vector<Lane*> oldest_first;
  for (const auto& [id, of_branch] : inner) {
    std::reverse(of_branch->turns.begin(), of_branch->turns.end());
    oldest_first.push_back(of_branch);
  }
  std::sort(oldest_first.begin(), oldest_first.end(), [](const Lane* a, const Lane* b) {
    return is_older(a->turns.back(), b->turns.back());
  });
  for (Lane* const of_branch : oldest_first) open(*of_branch);
  return true;
}

void RollbackPlan::put_back(const Execution& member) {
  const auto at = begun_.find(member.id);
  if (at == begun_.end()) return;
  PV2_ASSERT(at->second->turns.back().execution == &member, "a turn that has begun is the newest");
  open_.push_back(at->second);
  begun_.erase(at);
}

void RollbackPlan::end(Execution& member) {
  const auto at = begun_.find(member.id);
  Lane* const lane = at != begun_.end() ? at->second : lane_of_newest(member);
  PV2_ASSERT(lane != nullptr, "what is over was to be undone");
  PV2_ASSERT(left_ != 0, "a turn that is over was left");
  std::vector<UndoTurn>& turns = lane->turns;
  const auto is_its = [&](const UndoTurn& turn) { return turn.execution == &member; };
  turns.erase(std::next(std::find_if(turns.rbegin(), turns.rend(), is_its)).base());
  --left_;
  PV2_ASSERT(member.undo_left <= left_, "the turns of a member are among those that are left");
  if (member.undo_left != 0) {
    Lane* next = lane;  // in the outermost one is what is in none within it
    while (next->outer != nullptr && std::none_of(next->turns.begin(), next->turns.end(), is_its)) {
      next = next->outer;
    }
    new_waits_[member.id] = {&member, next->scope};
  }
  const bool had_begun = at != begun_.end();
  if (had_begun) begun_.erase(at);
  if (had_begun || std::erase(open_, lane) != 0) open(*lane);
}

RollbackPlan::Lane* RollbackPlan::lane_of_newest(const Execution& member) {
  const UndoTurn* const newest = newest_of(member);
  for (Lane& lane : lanes_) {
    for (const UndoTurn& turn : lane.turns) {
      Looks::one();
      if (&turn == newest) return &lane;
    }
  }
  return nullptr;
}

bool RollbackPlan::has_begun(const Execution& member) const { return begun_.contains(member.id); }

std::vector<Execution*> RollbackPlan::begun() const {
  std::vector<Execution*> members;
  members.reserve(begun_.size());
  for (const auto& [id, lane] : begun_) members.push_back(lane->turns.back().execution);
  return members;
}

const UndoTurn* RollbackPlan::last() const {
  if (left_ != 1) return nullptr;
  PV2_ASSERT(begun_.size() + open_.size() == 1, "the last turn has begun, or may");
  const Lane& lane = begun_.empty() ? *open_.back() : *begun_.begin()->second;
  return &lane.turns.back();
}

const UndoTurn* RollbackPlan::newest_of(const Execution& member) const {
  const UndoTurn* newest = nullptr;
  for (const Lane& lane : lanes_) {
    for (const UndoTurn& turn : lane.turns) {
      Looks::one();
      if (turn.execution != &member) continue;
      if (newest == nullptr || is_older(*newest, turn)) newest = &turn;
    }
  }
  return newest;
}

std::vector<RollbackPlan::Wait> RollbackPlan::take_new_waits(std::size_t most) {
  std::vector<Wait> waits;
  auto at = new_waits_.begin();
  for (; at != new_waits_.end() && most > 0; ++at, --most) {
    Looks::one();
    if (!begun_.contains(at->first)) waits.push_back(at->second);
  }
  new_waits_.erase(new_waits_.begin(), at);
  return waits;
}

void RollbackPlan::for_each(const std::function<void(const UndoTurn&)>& visit) const {
  for (const Lane& lane : lanes_) {
    for (const UndoTurn& turn : lane.turns) {
      Looks::one();
      visit(turn);
    }
  }
}

}  // namespace pv2
