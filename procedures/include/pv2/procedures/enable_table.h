// SPDX-License-Identifier: Apache-2.0
//
// EnableTable: opens the regions of a disabled table, each on the server that had it last, if that
// server still lives.
//
//     PREPARE -> SET_ENABLING_TABLE_STATE -> MARK_REGIONS_ONLINE -> SET_ENABLED_TABLE_STATE
//                                                    ^______________________|    |
//                                         a region is not open                   v
//                                                                          POST_OPERATION
//
//     step                      reads and writes                    runs again after a crash
//     PREPARE                   the table's row, its descriptor     has changed nothing
//     SET_ENABLING_TABLE_STATE  the table's row                     same effect key
//     MARK_REGIONS_ONLINE       the rows of its regions; a          its children are part of its
//                               TransitRegionState for each         record
//     SET_ENABLED_TABLE_STATE   the rows of its regions, then       same effect key
//                               the table's row; the cache
//     POST_OPERATION            the table's row                     only reads
//
// How it fails: in PREPARE only. kNotFound: there is no such table. kFailedPrecondition: it is not
// disabled, is the catalogue's, or has no descriptor in its directory. SET_ENABLING_TABLE_STATE is
// the point of no return. Its result is the table's name. HBase's PRE_OPERATION calls hooks, which
// there are none of.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <string_view>
#include <utility>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class EnableTableStep {
  kPrepare = 1,
  kSetEnablingTableState = 2,
  kMarkRegionsOnline = 3,
  kSetEnabledTableState = 4,
  kPostOperation = 5,
};

/// Threads: as Procedure. Lock: the table, exclusively, until it ends.
class EnableTable final : public StateMachineProcedure<EnableTableStep> {
 public:
  static constexpr std::string_view kType = "cluster.EnableTable";
  static constexpr auto kSteps = steps(
      step(EnableTableStep::kPrepare, "PREPARE", kNoUndo).must_run(),
      step(EnableTableStep::kSetEnablingTableState, "SET_ENABLING_TABLE_STATE", kPointOfNoReturn),
      step(EnableTableStep::kMarkRegionsOnline, "MARK_REGIONS_ONLINE", kNoUndo),
      step(EnableTableStep::kSetEnabledTableState, "SET_ENABLED_TABLE_STATE", kNoUndo),
      step(EnableTableStep::kPostOperation, "POST_OPERATION", kNoUndo));

  explicit EnableTable(ClusterPorts& ports) : ports_(&ports) {}
  EnableTable(ClusterPorts& ports, TableName table) : ports_(&ports), table_(std::move(table)) {}

  void fields(auto& f) {
    f.arg(1, "table", table_);
    f(2, "descriptor", descriptor_);
  }

  [[nodiscard]] LockSet locks() const override;
  Flow execute_from_state(EnableTableStep step, StepContext& ctx) override;

 private:
  Flow prepare(StepContext& ctx);
  Flow set_enabling(StepContext& ctx);
  Flow mark_regions_online(StepContext& ctx);
  Flow set_enabled(StepContext& ctx);
  Flow post_operation(StepContext& ctx);

  ClusterPorts* ports_;
  TableName table_;
  TableDescriptor descriptor_;  ///< As PREPARE found it; part of the row that later steps write.
};

}  // namespace pv2
