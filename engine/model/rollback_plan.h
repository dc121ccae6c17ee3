// SPDX-License-Identifier: Apache-2.0
//
// RollbackPlan: the undo turns that a failed domain has left, and which of them may begin now. It
// knows turns and the tree of members. It knows no records and no threads, and takes no locks.
//
// A lane is a list of turns, from the oldest to the newest: in order of age, except where
// undo_order.h says otherwise. They are undone from the newest on, one at a time. A fork stands in
// a lane in the place of consecutive turns that all belong to children that one step spawned to be
// undone concurrently, or to descendants of these. The fork has a lane for each such child with its
// descendants. The outer lane goes on when all lanes of the fork are empty. So older turns of other
// members wait for all these children, and the children do not wait for each other.
//
// The locks of a member cover its descendants: these work under them, and may hold the same keys.
// So they are undone under them. A member that has ended has given its locks back. If none of its
// own turns, which take them again, comes before all turns below it, it gets a *first turn*, which
// undoes no step and only takes the locks, right before the newest turn below it. A member keeps
// its locks until nothing below it is left to undo. If its own oldest turn is older than all turns
// below it, the locks go back with that turn. Otherwise it gets a *last turn*, which only gives
// them back, right after the oldest turn below it.
//
// The constructor makes all lanes and forks. Every later call, except for for_each(),
// take_locks_instead() and the searches that are not given a bound, takes a bounded number of
// looks, however many turns there are.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/resource.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "model/record.h"

namespace pv2 {

struct Execution;

/// One step that rollback still has to undo, or the first or the last turn of a member.
struct UndoTurn {
  enum class Kind : std::uint8_t { kStep, kFirst, kLast };

  Execution* execution = nullptr;
  UndoEntry entry;  ///< Only one of kStep has a step.
  Kind kind = Kind::kStep;
};

/// What has to be known of the locks of the members of a domain to undo it.
struct UndoLocks {
  /// Those that hold their locks, and keep them until their turns and those of their descendants
  /// are over.
  std::vector<Execution*> holders{};
  /// Those that had their locks when they spawned descendants, and take them again.
  std::vector<Execution*> takers{};
  /// Descendants of the head, takers or holders, that keep their locks for what is below them.
  std::vector<Execution*> keepers{};
  /// Keys with a limit: those who share one may keep each other out.
  std::set<ResourceKey> limited{};
  /// Those that hold their locks, per step or per visit, for what their newest turn undoes, and
  /// give them back after it.
  std::vector<Execution*> holders_at_first{};
  /// Those that have held their locks since before their first step, and keep them as `holders` do.
  /// Nobody else of the tree has used these locks since, so nobody waits for them.
  std::vector<Execution*> never_gave_back{};
  bool is_one_needed = false;  ///< The undo of a member has to take locks first.
};

/// Of one domain, in one run. After a restart it is made again from the undo lists. Guarded by the
/// state mutex.
class RollbackPlan {
 public:
  /// `turns` are those of `head` and its descendants, each of a step, as in_undo_order() returns
  /// them.
  RollbackPlan(Execution& head, std::vector<UndoTurn> turns, const UndoLocks& locks = {});
  RollbackPlan(const RollbackPlan&) = delete;
  RollbackPlan& operator=(const RollbackPlan&) = delete;

  /// The newest turn of `member`, which is of a step, is over, and `member` has not got its locks
  /// in it. If the next turn of it or of those below it is not its own, it becomes a first turn
  /// right before that, as in a plan that is made after a restart. False: nothing was done.
  [[nodiscard]] bool take_locks_instead(Execution& member);
  /// Returns the member of each first and of each last turn, then nullptr. The caller counts these
  /// turns in its Turn::left before any turn begins.
  [[nodiscard]] Execution* take_with_added_turn();

  /// How many turns are left, including those that have begun.
  [[nodiscard]] std::size_t left() const noexcept { return left_; }

  /// Begins the newest turn that may begin and returns it; it is valid until it is over. nullptr:
  /// the search has not come to one yet (then may_begin() is true), or no turn can begin before
  /// another one ends.
  const UndoTurn* begin_next();
  /// If the turn of `member` has begun, it counts as not begun: begin_next() will return it again.
  void put_back(const Execution& member);
  /// The newest turn of `member` is over. It has begun, unless an operator skips it. Turn::left of
  /// `member` must already count this turn as gone.
  void end(Execution& member);

  [[nodiscard]] bool has_begun(const Execution& member) const;
  /// The first `most` members whose turn has begun, in order of ids.
  [[nodiscard]] std::vector<Execution*> begun(std::size_t most = SIZE_MAX) const;
  [[nodiscard]] std::size_t begun_count() const noexcept { return begun_.size(); }
  /// The only turn that is left, or nullptr.
  [[nodiscard]] const UndoTurn* last() const;
  /// Whether the turn of `member` that has begun is followed in its lane by another of its turns.
  [[nodiscard]] bool goes_on_with(const Execution& member) const;
  /// The newest turn of `member`, or nullptr.
  [[nodiscard]] const UndoTurn* newest_of(const Execution& member) const;

  void for_each(const std::function<void(const UndoTurn&)>& visit) const;

  /// Before its next turn, `member` waits for turns of `scope` or of the descendants of `scope`.
  struct Wait {
    Execution* member;
    Execution* scope;
  };
  /// The waits that have changed since the last call. Looks at no more than `most` of them;
  /// has_new_waits() says whether some are left.
  [[nodiscard]] std::vector<Wait> take_new_waits(std::size_t most = SIZE_MAX);
  /// Whether begin_next() may find a turn that may begin.
  [[nodiscard]] bool may_begin() const noexcept { return !open_.empty(); }
  [[nodiscard]] bool has_new_waits() const noexcept {
    return !new_waits_.empty() || !opened_.empty();
  }

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = UINT32_MAX;

  /// An item of a lane: a turn or a fork. `items_` is in the order in which items may begin: a
  /// fork, then the items of its lanes, then the items after the fork.
  struct Item {
    UndoTurn turn;  // without an execution: a fork, or a turn that is over
    Index lane;
    Index newer = kNone;           // the next newer item of the lane
    Index older = kNone;           // the next older item of the lane
    Index next_of_member = kNone;  // the next older turn of the same member
    // Of a fork:
    Index lanes = kNone;     // its newest lane
    Index unopened = kNone;  // its newest lane that was not opened yet
    Index lanes_left = 0;    // how many of its lanes are not empty
    Index end = 0;           // the first item behind those of its lanes
    bool is_open = false;    // no newer item of its lane is left
  };
  struct Lane {
    Execution* scope;  // the lane has turns of this member and of its descendants
    Index fork;        // the fork that it belongs to; kNone: the lane of the head
    Index newest = kNone;
    Index oldest = kNone;
    Index next = kNone;  // the next older lane of the fork
  };
  struct Open {
    Index index;
    bool is_fork;
  };

  class Builder;

  void step_into_lane(Index index);
  void step_into_fork(Index index);
  void take_out(Index index);
  [[nodiscard]] Execution* scope_now(Index item) const;
  [[nodiscard]] Index next_below(Index item) const;

  std::size_t left_ = 0;
  std::vector<Execution*> with_added_turn_;  // those that take_with_added_turn() has yet to return
  std::vector<Item> items_;
  std::vector<Lane> lanes_;  // the lane of the head is the first
  std::vector<Open> open_;   // a stack, the newest on top: lanes, and forks with unopened lanes
  std::map<ProcedureId, Index> newest_;  // of each member with turns left: its newest turn
  std::map<ProcedureId, Index> begun_;   // of each member whose turn has begun: the lane
  std::map<ProcedureId, Wait> new_waits_;
  bool has_locks_ = false;    // whether members in forks have locks
  std::deque<Index> opened_;  // opened forks whose members' new waits were not taken yet
  Index told_ = 0;            // how far the items of the first such fork were looked at
};

}  // namespace pv2
