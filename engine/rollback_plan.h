// SPDX-License-Identifier: Apache-2.0
//
// RollbackPlan: what a domain that failed has left to undo, and what of that may be undone now. It
// knows of turns and of who spawned whom; nothing of records, locks or threads.
//
// Turns are in the order in which their steps became durable, and are undone from the newest to the
// oldest, one at a time: a lane. Where the newest turns of a lane all belong to children that one
// step spawned to be undone concurrently, they are split into a lane for each such child, with what
// it spawned; the lane goes on when all of these are empty. So an older turn of somebody else waits
// for all of them, and those children wait for nothing of each other.

#pragma once

#include <pv2/base/ids.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

namespace pv2 {

struct Execution;

/// The place of a step in whose middle a member was stopped: newer than any that is durable, so it
/// is undone first. An undo of it that is not over is recorded under it too, so that a restart
/// leaves it in its place.
inline constexpr CommitSequence kUnfinishedStep{UINT64_MAX - 1};

/// A step to be undone if the tree fails. The sequence orders entries over the whole tree.
struct UndoEntry {
  std::uint32_t step = 0;
  CommitSequence sequence;
};

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

  /// Begins the newest turn that may begin, and says which; nullptr: there is none until one of
  /// those that have begun ends. Valid until then.
  const UndoTurn* begin_next();
  /// The turn of `member`, if it had begun, is to begin again.
  void put_back(const Execution& member);
  /// The newest turn of `member` is over: the one that has begun, or, if an operator passes over
  /// one, one that has not. `undo_left` counts those that are left of it.
  void end(Execution& member);

  [[nodiscard]] bool has_begun(const Execution& member) const;
  /// Those whose turn has begun, in order of their ids.
  [[nodiscard]] std::vector<Execution*> begun() const;
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
  /// What has changed of such waits since the last call, in order of their members' ids: at most so
  /// many of them.
  [[nodiscard]] std::vector<Wait> take_new_waits(std::size_t most = SIZE_MAX);
  /// Whether begin_next() would begin one.
  [[nodiscard]] bool may_begin() const noexcept { return !open_.empty(); }
  [[nodiscard]] bool has_new_waits() const noexcept { return !new_waits_.empty(); }

 private:
  struct Lane {
    Execution* scope;             // children of it and further below may get lanes of their own
    Lane* outer;                  // waits until this one is empty
    std::vector<UndoTurn> turns;  // oldest first
    std::size_t inner = 0;        // lanes that this one waits for
  };

  void open(Lane& lane);
  [[nodiscard]] bool split(Lane& lane);
  [[nodiscard]] Lane* lane_of_newest(const Execution& member);

  std::size_t left_;
  std::deque<Lane> lanes_;              // empty ones included: others point to them
  std::vector<Lane*> open_;             // whose newest turn may begin
  std::map<ProcedureId, Lane*> begun_;  // whose newest turn is that of this member
  std::map<ProcedureId, Wait> new_waits_;
};

}  // namespace pv2
