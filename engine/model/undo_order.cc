// SPDX-License-Identifier: Apache-2.0
//
// HoldersFirst takes the turns from the newest to the oldest. Before the first turn of a member it
// looks for the holders whose locks that member needs, and takes their turns first, before which it
// looks in the same way. The turns of a holder are brought forward once, so this ends even if
// holders need each other's locks.

#include "model/undo_order.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
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
  HoldersFirst(const Execution& head, const std::vector<UndoTurn>& turns, const UndoLocks& locks)
      : head_(head),
        turns_(turns),
        limited_(locks.limited),
        takers_(locks.takers.begin(), locks.takers.end()),
        never_gave_back_(locks.never_gave_back.begin(), locks.never_gave_back.end()),
        below_(locks.holders.size() + locks.holders_at_first.size()),
        taken_(turns.size()) {
    for (std::size_t i = 0; i < locks.holders.size(); ++i) holders_.emplace(locks.holders[i], i);
    for (std::size_t i = 0; i < locks.holders.size(); ++i) {
      note_held(*locks.holders[i], i);
      const std::size_t above = holder_around(locks.holders[i]->parent_execution());
      if (above != kNone) below_[above].holders.push_back(i);
    }
    for (std::size_t i = 0; i < turns.size(); ++i) {
      const std::size_t above = holder_around(turns[i].execution);
      if (above != kNone) below_[above].turns.push_back(i);
    }
    note_held_at_first(locks.holders_at_first);
  }

  std::vector<UndoTurn> order() {
    std::vector<UndoTurn> newest_first;
    newest_first.reserve(turns_.size());
    std::vector<std::vector<std::size_t>> lists(1);  // the last list comes first, from its back
    for (std::size_t i = 0; i < turns_.size(); ++i) lists[0].push_back(i);
    while (!lists.empty()) {
      if (lists.back().empty()) {
        lists.pop_back();
        continue;
      }
      Looks::one();
      const std::size_t turn = lists.back().back();
      if (!taken_[turn]) {
        const std::vector<std::size_t> in_the_way = take_holders_in_the_way(turn);
        for (const std::size_t holder : in_the_way) lists.push_back(turns_below(holder));
        if (!in_the_way.empty()) continue;
      }
      lists.back().pop_back();
      if (!taken_[turn]) newest_first.push_back(turns_[turn]);
      taken_[turn] = true;
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
  };
  /// What has a holder as its nearest one.
  struct Below {
    std::vector<std::size_t> turns;
    std::vector<std::size_t> holders;
    bool is_brought = false;
    bool is_empty = false;  ///< All of it was taken.
  };

  void note_held(const Execution& holder, std::size_t number) {
    const EntryLocks& held = holder.locks();
    for (std::size_t at = 0; at < held.size(); ++at) {
      Held& by = held_[&held.key(at)];
      (excludes(held, at) ? by.exclusive : by.shared).push_back(number);
    }
  }
  /// Of a member that gives its locks back after its newest turn, only that one is in the way.
  void note_held_at_first(const std::vector<Execution*>& members) {
    std::unordered_map<const Execution*, std::size_t> numbers;
    for (const Execution* const member : members) {
      const std::size_t number = holders_.size() + numbers.size();
      numbers.emplace(member, number);
      note_held(*member, number);
    }
    for (std::size_t i = turns_.size(); i-- > 0 && !numbers.empty();) {
      const auto at = numbers.find(turns_[i].execution);
      if (at == numbers.end()) continue;
      below_[at->second].turns.push_back(i);
      held_at_.insert(i);
      numbers.erase(at);
    }
  }

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

  /// Whether who has the key number `at` of `locks` keeps out all others.
  [[nodiscard]] bool excludes(const EntryLocks& locks, std::size_t at) const {
    return locks.mode(at) == LockMode::kExclusive ||
           (!limited_.empty() && limited_.contains(locks.key(at)));
  }

  /// Returns the holders that the turn waits for, because its member or an ancestor takes its locks
  /// first, as far as they were not brought forward yet.
  std::vector<std::size_t> take_holders_in_the_way(std::size_t turn) {
    std::vector<std::size_t> found;
    const Execution& member = *turns_[turn].execution;
    const bool holds =
        holders_.contains(&member) || never_gave_back_.contains(&member) || held_at_.contains(turn);
    if (!holds && asked_.insert(&member).second) take_holders_of_keys(member, found);
    for (const Execution* at = &member; at != &head_;) {
      at = at->parent_execution();
      if (!passed_.insert(at).second) break;
      Looks::one();
      if (takers_.contains(at) && asked_.insert(at).second) take_holders_of_keys(*at, found);
    }
    return found;
  }
  void take_holders_of_keys(const Execution& member, std::vector<std::size_t>& found) {
    const EntryLocks& locks = member.locks();
    for (std::size_t i = 0; i < locks.size(); ++i) {
      Looks::one();
      const auto at = held_.find(&locks.key(i));
      if (at == held_.end()) continue;
      auto& [key, by] = *at;
      const bool takes_shared = excludes(locks, i) && !by.shared.empty();
      if ((by.exclusive.empty() && !takes_shared) || is_covered(member, *key)) continue;
      bring(by.exclusive, found);
      if (takes_shared) bring(by.shared, found);
    }
  }
  void bring(std::vector<std::size_t>& holders, std::vector<std::size_t>& found) {
    for (const std::size_t holder : holders) {
      if (!std::exchange(below_[holder].is_brought, true)) found.push_back(holder);
    }
    holders.clear();
  }

  /// Whether an ancestor of `member` has the key, or takes it before: its descendants do not keep
  /// each other out. Below one that shares it, no member has taken a step that needs it alone.
  [[nodiscard]] bool is_covered(const Execution& member, const ResourceKey& key) {
    for (const Execution* at = cover_of(member); at != nullptr; at = cover_of(*at)) {
      Looks::one();
      if (at->locks().find(key)) return true;
    }
    return false;
  }
  /// The nearest ancestor that has locks or takes them; nullptr: there is none.
  [[nodiscard]] const Execution* cover_of(const Execution& member) {
    std::vector<const Execution*> path;
    const Execution* found = nullptr;
    for (const Execution* at = &member; at != nullptr; at = at->parent_execution()) {
      Looks::one();
      if (at != &member && has_locks(*at)) {
        found = at;
        break;
      }
      if (const auto known = covers_.find(at); known != covers_.end()) {
        found = known->second;
        break;
      }
      path.push_back(at);
    }
    for (const Execution* const passed : path) covers_.emplace(passed, found);
    return found;
  }
  [[nodiscard]] bool has_locks(const Execution& member) const {
    if (member.locks().empty()) return false;
    if (holders_.contains(&member) || takers_.contains(&member)) return true;
    if (never_gave_back_.contains(&member)) return true;
    // Those above the head have not ended, and have what they hold for the operation.
    return member.id < head_.id && member.locks().scope() == LockScope::kOperation;
  }

  /// The turns of a holder and of its descendants that were not taken, in order of age.
  [[nodiscard]] std::vector<std::size_t> turns_below(std::size_t holder) {
    std::vector<std::size_t> found;
    std::vector<std::size_t> visited{holder};
    for (std::size_t i = 0; i < visited.size(); ++i) {
      for (const std::size_t turn : below_[visited[i]].turns) {
        Looks::one();
        if (!taken_[turn]) found.push_back(turn);
      }
      for (const std::size_t inner : below_[visited[i]].holders) {
        Looks::one();
        if (!below_[inner].is_empty) visited.push_back(inner);
      }
    }
    if (found.empty()) {
      for (const std::size_t each : visited) below_[each].is_empty = true;
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  const Execution& head_;
  const std::vector<UndoTurn>& turns_;
  const std::set<ResourceKey>& limited_;
  const std::unordered_set<const Execution*> takers_;
  const std::unordered_set<const Execution*> never_gave_back_;
  std::unordered_map<const Execution*, std::size_t> holders_;
  std::vector<Below> below_;
  std::vector<bool> taken_;                                        // which turns are in order
  std::map<const ResourceKey*, Held, ByName> held_;                // by those who were not brought
  std::unordered_map<const Execution*, std::size_t> around_;       // what holder_around() has found
  std::unordered_map<const Execution*, const Execution*> covers_;  // what cover_of() has found
  std::unordered_set<std::size_t> held_at_;                        // turns whose member holds
  std::unordered_set<const Execution*> asked_;                     // whose locks were looked at
  std::unordered_set<const Execution*> passed_;  // whose ancestors were looked at, too
};

}  // namespace

void forget_takers_above_holders(const Execution& head, UndoLocks& locks) {
  if (locks.takers.empty()) return;
  std::unordered_set<const Execution*> passed{head.parent_execution()};
  for (const auto* const holders :
       {&locks.holders, &locks.holders_at_first, &locks.never_gave_back}) {
    for (const Execution* const holder : *holders) {
      for (const Execution* at = holder; passed.insert(at).second; at = at->parent_execution()) {
        Looks::one();
      }
    }
  }
  std::erase_if(locks.takers, [&](const Execution* taker) { return passed.contains(taker); });
}

std::vector<UndoTurn> in_undo_order(const Execution& head, std::vector<UndoTurn> turns,
                                    const UndoLocks& locks) {
  std::sort(turns.begin(), turns.end(), is_older);
  if (locks.holders.empty() && locks.holders_at_first.empty()) return turns;
  return HoldersFirst(head, turns, locks).order();
}

}  // namespace pv2
