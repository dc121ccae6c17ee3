// SPDX-License-Identifier: Apache-2.0
//
// TreeWork: what the engine does to every member of a domain, and to all domains within it, when
// the domain fails, is to be undone, or has ended. A tree may have any number of members, and every
// other thread waits while the state mutex is held. So a work pauses when its section has looked at
// enough (kSectionPauses), and goes on in a later section. Works on one tree are done one after
// another, in the order in which they began; trees take turns, so a small one does not wait until a
// large one is done.
//
// Between two sections:
//   kStop   The domain has failed, and its own members know: none begins a step. A domain within it
//           that was not come to yet goes on, as if the failure had been durable a moment later.
//   kPlan   Nobody of the domain is in flight, and nobody will be but who gives locks back.
//   kTurns  The rollback is planned; turns of it begin.
//   kEnd    Nobody finds the members any more (EngineCore::find). They leave from the bottom up, so
//           whoever is left has its ancestors.
//
// Orders of operators about a tree, durable or not, are put off while a work on it is under way.

#pragma once

#include <list>
#include <memory>
#include <vector>

#include "model/interrupted_members.h"
#include "model/requests.h"
#include "model/rollback_plan.h"
#include "model/tree_walk.h"

namespace pv2 {

/// Guarded by the state mutex, except while it `is_outside`.
struct TreeWork {
  enum class Kind : std::uint8_t { kStop, kPlan, kTurns, kEnd };
  /// Of a plan: what is to be known of all before it is made; who was in the middle of a step, if
  /// that has to be recorded first; the turns, and what they make.
  enum class Stage : std::uint8_t { kSurvey, kNames, kNamed, kTurns, kSort, kSorted };

  TreeWork(Kind what, Execution& domain) : kind(what), head(domain), cursor(domain), at(&domain) {}

  const Kind kind;
  Execution& head;
  TreeCursor cursor;

  // Of a plan.
  Stage stage = Stage::kSurvey;
  bool is_outside = false;            ///< What it has collected is being sorted, without the mutex.
  const Failure* first = nullptr;     ///< The failure that was durable first.
  const Execution* beyond = nullptr;  ///< Can be neither finished nor undone.
  const Execution* parked = nullptr;  ///< In an undo: the first one.
  std::uint32_t parked_undos = 0;     ///< How many are.
  /// By its record each may have been in the middle of a step; and whether it was.
  std::vector<InterruptedMembers::Candidate> candidates;
  bool misleads = false;   ///< One of them was not: a restart would guess wrong.
  bool has_turns = false;  ///< Somebody has something to undo.
  std::unique_ptr<InterruptedMembers> interrupted;
  std::vector<UndoTurn> turns;
  bool has_branches = false;  ///< Some are undone beside others.
  std::unique_ptr<RollbackPlan> plan;

  // Of an end.
  Execution* at;  ///< Goes down to members without children; those leave.
  std::unique_ptr<GarbageCommit> garbage;
};

/// Those on one tree. Guarded by the state mutex.
struct TreeWorks {
  explicit TreeWorks(Execution& top) : root(top) {}

  Execution& root;
  /// The first one is being done. Empty for as long only as what follows from the last one is done.
  std::list<std::unique_ptr<TreeWork>> queue;
  /// Orders of operators that are durable, and are published when no work on the tree is under way:
  /// what they are about is not half stopped or planned then.
  CommitList put_off;
};

}  // namespace pv2
