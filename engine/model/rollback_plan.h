// SPDX-License-Identifier: Apache-2.0
//
// RollbackPlan: what a domain that failed has left to undo, and what of that may be undone now. It
// knows of turns and of who spawned whom; nothing of records, locks or threads.
//
// Turns are in the order in which their steps became durable, and are undone from the newest to the
// oldest, one at a time: a lane. Where turns that follow each other all belong to children that one
// step spawned to be undone concurrently, a fork stands in their place, with a lane for each such
// child and what it spawned; the lane goes on when all of these are empty. So an older turn of
// somebody else waits for all of them, and those children wait for nothing of each other.
//
// Lanes and forks are all made with the plan, which takes no lock. From then on each call but
// for_each() takes a bounded number of looks, however many turns there are.

#pragma once

#include <pv2/base/ids.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "model/record.h"

namespace pv2 {

struct Execution;

/// One step that rollback still has to undo.
struct UndoTurn {
  Execution* execution = nullptr;
  UndoEntry entry;
};

/// Of one domain, in one run: after a restart it is made anew from the undo lists. Under the state
/// mutex.
class RollbackPlan {
 public:
  /// `turns`, in any order, are those of `head` and its descendants.
  RollbackPlan(Execution& head, std::vector<UndoTurn> turns);
  RollbackPlan(const RollbackPlan&) = delete;
  RollbackPlan& operator=(const RollbackPlan&) = delete;

  /// How many turns are left, with those that have begun.
  [[nodiscard]] std::size_t left() const noexcept { return left_; }

  /// Begins the newest turn that may begin, and says which; valid until it is over. nullptr: it has
  /// not come to one yet (may_begin), or there is none until one of those that have begun ends.
  const UndoTurn* begin_next();
  /// The turn of `member`, if it had begun, is to begin again.
  void put_back(const Execution& member);
  /// The newest turn of `member` is over: the one that has begun, or, if an operator passes over
  /// one, one that has not. `undo_left` counts those that are left of it.
  void end(Execution& member);

  [[nodiscard]] bool has_begun(const Execution& member) const;
  /// Those whose turn has begun, in order of their ids: the first ones. How many are in all.
  [[nodiscard]] std::vector<Execution*> begun(std::size_t most = SIZE_MAX) const;
  [[nodiscard]] std::size_t begun_count() const noexcept { return begun_.size(); }
  /// The only turn that is left, or nullptr.
  [[nodiscard]] const UndoTurn* last() const;
  /// The newest turn of `member`, or nullptr.
  [[nodiscard]] const UndoTurn* newest_of(const Execution& member) const;

  void for_each(const std::function<void(const UndoTurn&)>& visit) const;

  /// `member` waits for turns of the descendants of `scope`, or of itself, before its next one.
  struct Wait {
    Execution* member;
    Execution* scope;
  };
  /// The waits that have changed since the last call. It looks at no more than `most` of them;
  /// has_new_waits() says whether some are left.
  [[nodiscard]] std::vector<Wait> take_new_waits(std::size_t most = SIZE_MAX);
  /// Whether begin_next() may come to one.
  [[nodiscard]] bool may_begin() const noexcept { return !open_.empty(); }
  [[nodiscard]] bool has_new_waits() const noexcept {
    return !new_waits_.empty() || !opened_.empty();
  }

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = UINT32_MAX;

  /// In a lane: a turn, or a fork. Items stand in the order in which they may begin, those in the
  /// lanes of a fork between it and what comes after it.
  struct Item {
    UndoTurn turn;  // of nobody: a fork, or it is over
    Index lane;
    Index newer = kNone;  // of the lane
    Index older = kNone;
    Index next_of_member = kNone;  // the next older turn of the same member
    // Of a fork.
    Index lanes = kNone;     // the newest one
    Index unopened = kNone;  // of its lanes
    Index lanes_left = 0;    // that are not empty
    Index end = 0;           // the first item that is not within it
    bool is_open = false;    // nothing newer is left of its lane
  };
  struct Lane {
    Execution* scope;  // its turns are those of descendants of it, or its own
    Index fork;        // that it is one of
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

  std::size_t left_;
  std::vector<Item> items_;
  std::vector<Lane> lanes_;              // that of the head first
  std::vector<Open> open_;               // the newest on top: lanes, and forks with such unopened
  std::map<ProcedureId, Index> newest_;  // turn of each member that has some left
  std::map<ProcedureId, Index> begun_;   // lanes whose newest turn is that of this member
  std::map<ProcedureId, Wait> new_waits_;
  bool has_locks_ = false;    // members of forks have some
  std::deque<Index> opened_;  // forks whose members wait for less than before, and were not told
  Index told_ = 0;            // items of the first of them
};

}  // namespace pv2
