// SPDX-License-Identifier: Apache-2.0
//
// Garbage: rows of ended procedures that are being deleted, or are to be. They are deleted a
// bounded chunk at a time (GarbageCommit). The chunks of one tree follow each other, so a member's
// rows go before those of its parent.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "core/flat_map.h"
#include "model/reply.h"

namespace pv2 {

struct Effects;
struct GarbageCommit;

/// Rows of one tree that are being deleted.
struct PendingGarbage {
  /// How many GarbageCommits are under way or queued. Each deletes its rows chunk after chunk.
  std::size_t chains = 0;
  bool under_way = false;                            ///< The first chain has begun.
  std::vector<std::unique_ptr<GarbageCommit>> next;  ///< The queued chains.
  /// Acknowledgements of the root's result. They wait for the last chain, because rows of members
  /// without their root would look like a torn tree.
  std::vector<Reply<Status>> acknowledgements;

  PendingGarbage();
  ~PendingGarbage();
  PendingGarbage(PendingGarbage&&) noexcept;
  PendingGarbage& operator=(PendingGarbage&&) noexcept;
};

/// Guarded by the state mutex.
struct Garbage {
  /// Roots, live or ended, whose descendants' rows are being deleted.
  FlatMap<ProcedureId, PendingGarbage> pending;
  /// By root: rows of members that left before the end of their tree. They are deleted when they
  /// are many, or with the other rows of the tree. Each entry is a chain of that root.
  FlatMap<ProcedureId, std::unique_ptr<GarbageCommit>> dropped;

  /// Queues the deletion of rows, behind the deletions for the same root that are under way. The
  /// root counts the chain already.
  void delete_rows(std::unique_ptr<GarbageCommit> garbage, Effects& effects);
  /// Deletes all that is in `dropped`.
  void delete_dropped(Effects& effects);
};

}  // namespace pv2
