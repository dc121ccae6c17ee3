// SPDX-License-Identifier: Apache-2.0
//
// LeftoverRows: rows that recovery found and that are not needed any more: a crash came before
// their deletion. Recovery writes nothing; it hands the rows to Effects, and they are deleted once
// the engine has started.

#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/engine_core.h"
#include "recovery/record_reader.h"

namespace pv2 {

/// Owned by one thread.
class LeftoverRows {
 public:
  /// Keys of messages and orders whose procedure is gone, or that came after its end.
  void add_orphans(std::vector<std::string> keys);
  /// The copy of an order is left over if its root is gone, or if the order itself is among the
  /// orphans.
  void add_copy(AuditCopy copy, bool root_is_there);
  /// A member of a tree whose root has ended: its header, state and messages.
  void add_of_ended_root(const LoadedProcedure& loaded);
  /// A member that has left a tree that is live: its header, state and messages.
  void add_of_live_root(const LoadedProcedure& loaded);

  /// Keeps the messages and orders of roots whose records are lost, and the copies of such orders:
  /// their trees are live. `lost` has the stand-ins of all these roots; their messages and orders
  /// get numbers above those of the rows. Before delete_orphans().
  void keep_rows_of(const FlatMap<ProcedureId, Execution*>& lost);
  /// Has the messages and orders deleted.
  void delete_orphans(Effects& effects);
  /// Has the members deleted: those of a live root children before their parents, as one that has
  /// left is known by its parent; those of an ended root in any order. Acknowledgements of their
  /// roots wait for that.
  void delete_members(EngineCore& core, Effects& effects) PV2_REQUIRES(core.state_mutex);

 private:
  using Members = FlatMap<ProcedureId, std::vector<ProcedureId>>;  // by root, in order of id

  void add_messages_of(const LoadedProcedure& loaded);

  std::vector<std::string> orphans_;
  std::vector<AuditCopy> copies_;                                // left over
  std::set<std::pair<ProcedureId, std::uint64_t>> late_orders_;  // among the orphans: root, number
  Members of_ended_roots_;
  Members of_live_roots_;
};

}  // namespace pv2
