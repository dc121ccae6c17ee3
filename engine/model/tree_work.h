// SPDX-License-Identifier: Apache-2.0
//
// TreeWork: what the engine does to every member of a domain, and to all domains within it, when
// the domain fails, is to be undone, or has ended. A tree may have any number of members, and every
// other thread waits while the state mutex is held. So a work pauses when its section has looked at
// enough members (kSectionPauses), and goes on in a later section. Works on one tree are done one
// after another, in the order in which they began. Trees take turns, so a small tree does not wait
// until a large one is done.
//
// What holds between two sections, by the kind of work:
//
//     kStop   The domain has failed, and its own members do not begin a step. A domain within it
//             that the work has not reached goes on, as if the failure had become durable later.
//     kPlan   No member of the domain is in flight. No member will be, except to give back locks.
//     kTurns  The rollback is planned, and turns begin.
//     kEnd    EngineCore::find() does not find the members any more. They leave from the bottom up,
//             so each member that is left still has its ancestors.
//
// Orders of operators about a tree, durable or not, are put off while a work on the tree is under
// way.

#pragma once

#include <list>
#include <memory>
#include <vector>

#include "model/interrupted_members.h"
#include "model/requests.h"
#include "model/rollback_plan.h"
#include "model/tree_walk.h"

namespace pv2 {

/// Guarded by the state mutex. While `is_outside`, it belongs to the thread that sorts for it.
struct TreeWork {
  enum class Kind : std::uint8_t { kStop, kPlan, kTurns, kEnd };
  /// The stages of a plan: kSurvey learns what has to be known of all members; kGiveBack gives back
  /// locks that no undo needs, after which the plan begins again; kNames and kNamed
  /// find the interrupted members, if these have to be recorded first; kTurns collects the turns;
  /// kSort and kSorted make the plan of them, and give back locks that cover no turn.
  enum class Stage : std::uint8_t { kSurvey, kGiveBack, kNames, kNamed, kTurns, kSort, kSorted };

  TreeWork(Kind what, Execution& domain) : kind(what), head(domain), cursor(domain), at(&domain) {}

  const Kind kind;
  Execution& head;
  TreeCursor cursor;

  // Of a plan.
  Stage stage = Stage::kSurvey;
  bool is_outside = false;            ///< What it has collected is being sorted without the mutex.
  const Failure* first = nullptr;     ///< The failure that was durable first.
  const Execution* beyond = nullptr;  ///< A member that can be neither finished nor undone.
  const Execution* parked = nullptr;  ///< The first member that is parked in its undo.
  std::uint32_t parked_undos = 0;     ///< How many members are parked in their undo.
  /// Members that hold locks per step or per visit for nothing, in the order of the walk.
  std::vector<Execution*> to_give_back;
  /// Members whose record allows that they were in the middle of a step, and whether they were.
  std::vector<InterruptedMembers::Candidate> candidates;
  bool misleads = false;   ///< A candidate was not interrupted: a restart would guess wrong.
  bool has_turns = false;  ///< A member has something to undo.
  std::unique_ptr<InterruptedMembers> interrupted;
  std::vector<UndoTurn> turns;
  UndoLocks locks;
  /// Members that hold locks and have no step to undo, in the order of the walk.
  std::vector<Execution*> idle_holders;
  bool has_branches = false;  ///< Some turns are undone concurrently.
  std::unique_ptr<RollbackPlan> plan;

  // Of an end.
  Execution* at;  ///< Goes down to members without children, which leave.
  std::unique_ptr<GarbageCommit> garbage;
};

/// The works on one tree. Guarded by the state mutex.
struct TreeWorks {
  explicit TreeWorks(Execution& top) : root(top) {}

  Execution& root;
  /// The first work is under way. Empty only while the consequences of the last work are carried
  /// out.
  std::list<std::unique_ptr<TreeWork>> queue;
  /// Durable orders of operators. They are published when no work on the tree is under way, so they
  /// never meet a domain that is half stopped or half planned.
  CommitList put_off;
};

}  // namespace pv2
