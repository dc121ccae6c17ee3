// SPDX-License-Identifier: Apache-2.0
//
// DisableTable: closes all regions of a table. Its one child, CloseTableRegions, does the closing.
//
//     PREPARE -> SET_DISABLING_TABLE_STATE -> MARK_REGIONS_OFFLINE -> SET_DISABLED_TABLE_STATE
//                                                     ^______________________|    |
//                                          a region is not closed                 v
//                                                                           POST_OPERATION
//
//     step                       reads and writes                  runs again after a crash
//     PREPARE                    the table's row                   has changed nothing
//     SET_DISABLING_TABLE_STATE  the table's row                   same effect key
//     MARK_REGIONS_OFFLINE       a CloseTableRegions               it is part of its record
//     SET_DISABLED_TABLE_STATE   the rows of its regions, then     same effect key
//                                the table's row
//     POST_OPERATION             the table's row                   only reads
//
// How it fails: in PREPARE only. kNotFound: there is no such table. kFailedPrecondition: it is
// disabled, or holds the catalogue. SET_DISABLING_TABLE_STATE is the point of no return. Its result
// is the table's name.
//
// A table that is ENABLING or DISABLING while this procedure has the table's lock was left like
// that when an operator ended another operation. Such a table is disabled too: this is the way out.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <string_view>
#include <utility>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class DisableTableStep {
  kPrepare = 1,
  kSetDisablingTableState = 2,
  kMarkRegionsOffline = 3,
  kSetDisabledTableState = 4,
  kPostOperation = 5,
};

/// Threads: as Procedure. Lock: the table, exclusively, until it ends. A ServerCrash never needs
/// that lock; its children do, and what they would open is opened and closed by the children of
/// this procedure.
class DisableTable final : public StateMachineProcedure<DisableTableStep> {
 public:
  static constexpr std::string_view kType = "cluster.DisableTable";
  static constexpr auto kSteps =
      steps(step(DisableTableStep::kPrepare, "PREPARE", kNoUndo).must_run(),
            step(DisableTableStep::kSetDisablingTableState, "SET_DISABLING_TABLE_STATE",
                 kPointOfNoReturn),
            step(DisableTableStep::kMarkRegionsOffline, "MARK_REGIONS_OFFLINE", kNoUndo),
            step(DisableTableStep::kSetDisabledTableState, "SET_DISABLED_TABLE_STATE", kNoUndo),
            step(DisableTableStep::kPostOperation, "POST_OPERATION", kNoUndo));

  explicit DisableTable(ClusterPorts& ports) : ports_(&ports) {}
  DisableTable(ClusterPorts& ports, TableName table) : ports_(&ports), table_(std::move(table)) {}

  void fields(auto& f) {
    f.arg(1, "table", table_);
    f(2, "descriptor", descriptor_);
  }

  [[nodiscard]] LockSet locks() const override;
  Flow execute_from_state(DisableTableStep step, StepContext& ctx) override;

 private:
  Flow prepare(StepContext& ctx);
  Flow set_disabling(StepContext& ctx);
  Flow mark_regions_offline(StepContext& ctx);
  Flow set_disabled(StepContext& ctx);
  Flow post_operation(StepContext& ctx);

  ClusterPorts* ports_;
  TableName table_;
  TableDescriptor descriptor_;  ///< As PREPARE found it; part of the row that later steps write.
};

}  // namespace pv2
