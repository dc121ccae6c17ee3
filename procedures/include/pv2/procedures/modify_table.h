// SPDX-License-Identifier: Apache-2.0
//
// ModifyTable: gives a table another descriptor and, if the table is enabled, reopens its regions
// so that they use it.
//
//     PREPARE -> PRE_OPERATION -> UPDATE_TABLE_DESCRIPTOR -> POST_OPERATION -> REOPEN_ALL_REGIONS
//                                                                  |
//                                                                  v
//                                                       done, if the table is disabled
//
//     step                     reads and writes                       runs again after a crash
//     PREPARE                  the table's row; keeps the old one     has changed nothing
//     PRE_OPERATION            decides whether regions are reopened   has changed nothing
//     UPDATE_TABLE_DESCRIPTOR  a new version of the descriptor, then  same effect keys
//                              the table's row, then the cache
//     POST_OPERATION           the table's row                        only reads
//     REOPEN_ALL_REGIONS       a ReopenTableRegions                   it is part of its record
//
// How it fails: before UPDATE_TABLE_DESCRIPTOR only, which is the point of no return.
// kInvalidArgument: the new descriptor is not legal. kNotFound: there is no such table.
// kFailedPrecondition: the table holds the catalogue; is neither enabled nor disabled; or does not
// have the descriptor that the caller expects, because someone has modified it meanwhile. Its
// result is the table's name.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <optional>
#include <string_view>
#include <utility>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class ModifyTableStep {
  kPrepare = 1,
  kPreOperation = 2,
  kUpdateTableDescriptor = 3,
  kPostOperation = 4,
  kReopenAllRegions = 5,
};

/// Threads: as Procedure. Lock: the table, exclusively, until it ends.
class ModifyTable final : public StateMachineProcedure<ModifyTableStep> {
 public:
  static constexpr std::string_view kType = "cluster.ModifyTable";
  static constexpr auto kSteps = steps(
      step(ModifyTableStep::kPrepare, "PREPARE", kNoUndo).must_run(),
      step(ModifyTableStep::kPreOperation, "PRE_OPERATION", kNoUndo).must_run(),
      step(ModifyTableStep::kUpdateTableDescriptor, "UPDATE_TABLE_DESCRIPTOR", kPointOfNoReturn),
      step(ModifyTableStep::kPostOperation, "POST_OPERATION", kNoUndo),
      step(ModifyTableStep::kReopenAllRegions, "REOPEN_ALL_REGIONS", kNoUndo));

  explicit ModifyTable(ClusterPorts& ports) : ports_(&ports) {}
  /// Gives the table that `descriptor` names this descriptor. With `expected`, only if the table
  /// has that one now (compare and set).
  ModifyTable(ClusterPorts& ports, TableDescriptor descriptor,
              std::optional<TableDescriptor> expected = {})
      : ports_(&ports), descriptor_(std::move(descriptor)), expected_(std::move(expected)) {}

  void fields(auto& f) {
    f.arg(1, "descriptor", descriptor_);
    f.arg(2, "expected", expected_);
    f(3, "old", old_);
    f(4, "reopens", reopens_);
  }

  [[nodiscard]] LockSet locks() const override;
  Flow execute_from_state(ModifyTableStep step, StepContext& ctx) override;

 private:
  Flow prepare(StepContext& ctx);
  Flow pre_operation();
  Flow update_table_descriptor(StepContext& ctx);
  Flow post_operation(StepContext& ctx);
  Flow reopen_all_regions(StepContext& ctx);

  ClusterPorts* ports_;
  TableDescriptor descriptor_;
  std::optional<TableDescriptor> expected_;
  TableRow old_;          ///< As PREPARE found it, for people too.
  bool reopens_ = false;  ///< Decided in PRE_OPERATION: the table is enabled.
};

}  // namespace pv2
