// SPDX-License-Identifier: Apache-2.0
//
// In which order the turns of a failed domain are undone: from the newest step to the oldest, with
// one exception for locks.
//
// A member that is half undone keeps its locks until the rest of its turns are over. So may a
// member whose undo has begun in a domain within, when a wider domain fails around it:
//
//     A1        m, of the child A, has taken a step under the key k
//     B1        after m had ended, b has taken a step under k, too
//     A fails; a newer step of m is undone, and m keeps k. Now the tree fails.
//
// By age B1 would be undone before A1. But its undo needs k, which m gives back after A1 only. So
// the turns of m, and those of its descendants, come right before B1. If they need a lock that b,
// or a member above it, holds until B1 is undone, no order helps; the deadlock is found like any
// other.
//
// That is so if m has k for the operation. If it has k per step or per visit, only what it has half
// done was done under the present grant, and b may have used k between the older steps of m. So
// only the newest turn of m comes before B1, and m gives k back after it.

#pragma once

#include <vector>

#include "model/rollback_plan.h"

namespace pv2 {

struct Execution;

/// A member below which another one already holds its locks does not take its own any more: it
/// would wait for that one, which waits for it. That is so if a version before this one, or an
/// operator who skipped an undo, has undone something below it without its locks.
void forget_takers_above_holders(const Execution& head, UndoLocks& locks);

/// Returns `turns`, of the domain of `head` and given in any order, so that they are to be undone
/// from the back. Without holders age alone decides. The same members in the same states give the
/// same order, so a restart in the middle of a rollback goes on with it.
[[nodiscard]] std::vector<UndoTurn> in_undo_order(const Execution& head,
                                                  std::vector<UndoTurn> turns,
                                                  const UndoLocks& locks = {});

}  // namespace pv2
