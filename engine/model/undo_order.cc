// SPDX-License-Identifier: Apache-2.0
//
// HoldersFirst takes the turns from the newest to the oldest. Before the first turn of a member it
// looks for the holders whose locks that member needs, and takes their turns first, before which it
// looks in the same way. No holder is looked for twice under one key, so this ends even if holders
// need each other's locks; such a tree is in a deadlock in any order.

#include "model/undo_order.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "model/execution.h"

namespace pv2 {
namespace {

bool is_older(const UndoTurn& a, const UndoTurn& b) {
  return std::pair(a.entry.sequence, a.execution->id) <
         std::pair(b.entry.sequence, b.execution->id);
}

class HoldersFirst {
 public:
  /// `turns` are in order of age.
  HoldersFirst(const Execution& head, const std::vector<UndoTurn>& turns,
               const std::vector<Execution*>& holders)
      : head_(head), turns_(turns), below_(holders.size()) {
    for (std::size_t i = 0; i < holders.size(); ++i) holders_.emplace(holders[i], i);
    for (std::size_t i = 0; i < holders.size(); ++i) {
      const EntryLocks& locks = holders[i]->locks();
      for (std::size_t at = 0; at < locks.size(); ++at) {
        held_[&locks.key(at)].of(locks.mode(at)).push_back(i);
      }
      const std::size_t above = holder_around(holders[i]->parent_execution());
      if (above != kNone) below_[above].holders.push_back(i);
    }
    for (std::size_t i = 0; i < turns.size(); ++i) {
      const std::size_t above = holder_around(turns[i].execution);
      if (above != kNone) below_[above].turns.push_back(i);
    }
  }

  std::vector<UndoTurn> order() {
    std::vector<UndoTurn> newest_first;
    newest_first.reserve(turns_.size());
    std::vector<bool> taken(turns_.size());
    std::vector<std::vector<std::size_t>> lists(1);  // the last list comes first, from its back
    for (std::size_t i = 0; i < turns_.size(); ++i) lists[0].push_back(i);
    while (!lists.empty()) {
      if (lists.back().empty()) {
        lists.pop_back();
        continue;
      }
      Looks::one();
      const std::size_t turn = lists.back().back();
      Execution& member = *turns_[turn].execution;
      if (!taken[turn] && asked_.insert(&member).second) {
        const std::vector<std::size_t> in_the_way = take_holders_in_the_way(member);
        for (const std::size_t holder : in_the_way) lists.push_back(turns_below(holder));
        if (!in_the_way.empty()) continue;
      }
      lists.back().pop_back();
      if (!taken[turn]) newest_first.push_back(turns_[turn]);
      taken[turn] = true;
    }
    std::reverse(newest_first.begin(), newest_first.end());
    return newest_first;
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  struct ByName {
    bool operator()(const ResourceKey* a, const ResourceKey* b) const { return *a < *b; }
  };
  /// Those who hold one key.
  struct Held {
    std::vector<std::size_t> exclusive;
    std::vector<std::size_t> shared;
    std::vector<std::size_t>& of(LockMode mode) {
      return mode == LockMode::kExclusive ? exclusive : shared;
    }
  };
  /// What has a holder as its nearest one.
  struct Below {
    std::vector<std::size_t> turns;
    std::vector<std::size_t> holders;
  };

  /// `member`, if it is a holder, or its nearest ancestor that is one.
  std::size_t holder_around(const Execution* member) {
    std::vector<const Execution*> path;
    std::size_t around = kNone;
    for (; member != nullptr; member = member->parent_execution()) {
      Looks::one();
      const auto known = around_.find(member);
      const auto holder = holders_.find(member);
      if (known == around_.end() && holder == holders_.end()) {
        path.push_back(member);
        continue;
      }
      around = known != around_.end() ? known->second : holder->second;
      break;
    }
    for (const Execution* const passed : path) around_.emplace(passed, around);
    return around;
  }

  /// Returns the holders that `member` waits for, itself or because an ancestor takes its locks
  /// first, and forgets that they have the keys in question.
  std::vector<std::size_t> take_holders_in_the_way(const Execution& member) {
    std::vector<std::size_t> found;
    const Execution* at = &member;
    do {
      const bool takes_locks = at == &member || at->locks().scope() == LockScope::kOperation;
      if (takes_locks && !holders_.contains(at)) take_holders_of_keys(*at, found);
      at = at->parent_execution();
    } while (at != nullptr && &member != &head_ && at != &head_ && asked_.insert(at).second);
    return found;
  }
  void take_holders_of_keys(const Execution& member, std::vector<std::size_t>& found) {
    const EntryLocks& locks = member.locks();
    for (std::size_t i = 0; i < locks.size(); ++i) {
      const auto at = held_.find(&locks.key(i));
      if (at == held_.end() || is_covered(member, locks.key(i))) continue;
      const auto take = [&](std::vector<std::size_t>& holders) {
        found.insert(found.end(), holders.begin(), holders.end());
        holders.clear();
      };
      take(at->second.exclusive);
      if (locks.mode(i) == LockMode::kExclusive) take(at->second.shared);
    }
  }

  /// Whether an ancestor of `member` has the key, or takes it before: its descendants do not keep
  /// each other out. Below one that shares it, no member has taken a step that needs it alone.
  [[nodiscard]] bool is_covered(const Execution& member, const ResourceKey& key) const {
    for (const Execution* at = member.parent_execution(); at != nullptr;
         at = at->parent_execution()) {
      Looks::one();
      const bool covers = at->locks().scope() == LockScope::kOperation || holders_.contains(at);
      if (covers && at->locks().find(key)) return true;
    }
    return false;
  }

  /// The turns of a holder and of its descendants, in order of age.
  [[nodiscard]] std::vector<std::size_t> turns_below(std::size_t holder) const {
    std::vector<std::size_t> found;
    std::vector<std::size_t> to_visit{holder};
    while (!to_visit.empty()) {
      Looks::one();
      const Below& below = below_[to_visit.back()];
      to_visit.pop_back();
      found.insert(found.end(), below.turns.begin(), below.turns.end());
      to_visit.insert(to_visit.end(), below.holders.begin(), below.holders.end());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  const Execution& head_;
  const std::vector<UndoTurn>& turns_;
  std::unordered_map<const Execution*, std::size_t> holders_;
  std::vector<Below> below_;
  std::map<const ResourceKey*, Held, ByName> held_;           // without those that were taken
  std::unordered_map<const Execution*, std::size_t> around_;  // what holder_around() has found
  std::unordered_set<const Execution*> asked_;                // whose locks were looked at
};

}  // namespace

std::vector<UndoTurn> in_undo_order(const Execution& head, std::vector<UndoTurn> turns,
                                    const std::vector<Execution*>& holders) {
  std::sort(turns.begin(), turns.end(), is_older);
  return holders.empty() ? turns : HoldersFirst(head, turns, holders).order();
}

}  // namespace pv2
