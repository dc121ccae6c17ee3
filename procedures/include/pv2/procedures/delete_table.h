// SPDX-License-Identifier: Apache-2.0
//
// DeleteTable: removes a disabled table: its files, the rows of its regions, then its own row, so
// that until the end the table is there and disabled.
//
//     PRE_OPERATION -> CLEAR_FS_LAYOUT -> REMOVE_FROM_META -> UNASSIGN_REGIONS -> POST_OPERATION
//
//     step               reads and writes                       runs again after a crash
//     PRE_OPERATION      the table's row                        has changed nothing
//     CLEAR_FS_LAYOUT    archives the table's directory         archives what is left
//     REMOVE_FROM_META   removes every region row that the      finds fewer rows
//                        table has at that moment; the cache
//                        forgets the table
//     UNASSIGN_REGIONS   removes the table's row                removes nothing
//     POST_OPERATION     the table's row                        only reads
//
// How it fails: in the first step only. kNotFound: there is no such table. kFailedPrecondition: the
// table is not disabled, or holds the catalogue. From CLEAR_FS_LAYOUT on there is no way back, and
// calls that fail are repeated. HBase's SNAPSHOT step is left out: there are no snapshots. Its
// result is the table's name.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <string_view>
#include <utility>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class DeleteTableStep {
  kPreOperation = 1,
  kClearFsLayout = 2,
  kRemoveFromMeta = 3,
  kUnassignRegions = 4,
  kPostOperation = 5,
};

/// Threads: as Procedure. Lock: the table, exclusively, until it ends.
class DeleteTable final : public StateMachineProcedure<DeleteTableStep> {
 public:
  static constexpr std::string_view kType = "cluster.DeleteTable";
  static constexpr auto kSteps =
      steps(step(DeleteTableStep::kPreOperation, "PRE_OPERATION", kNoUndo).must_run(),
            step(DeleteTableStep::kClearFsLayout, "CLEAR_FS_LAYOUT", kPointOfNoReturn),
            step(DeleteTableStep::kRemoveFromMeta, "REMOVE_FROM_META", kNoUndo),
            step(DeleteTableStep::kUnassignRegions, "UNASSIGN_REGIONS", kNoUndo),
            step(DeleteTableStep::kPostOperation, "POST_OPERATION", kNoUndo));

  explicit DeleteTable(ClusterPorts& ports) : ports_(&ports) {}
  DeleteTable(ClusterPorts& ports, TableName table) : ports_(&ports), table_(std::move(table)) {}

  void fields(auto& f) { f.arg(1, "table", table_); }

  [[nodiscard]] LockSet locks() const override;
  Flow execute_from_state(DeleteTableStep step, StepContext& ctx) override;

 private:
  Flow pre_operation(StepContext& ctx);
  Flow clear_fs_layout(StepContext& ctx);
  Flow remove_from_meta(StepContext& ctx);
  Flow unassign_regions(StepContext& ctx);
  Flow post_operation(StepContext& ctx);

  ClusterPorts* ports_;
  TableName table_;
};

}  // namespace pv2
