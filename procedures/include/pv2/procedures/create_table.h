// SPDX-License-Identifier: Apache-2.0
//
// CreateTable: makes a table: its directory, its rows in the catalogue, its regions on servers. It
// has the same six steps as in HBase. The first one only checks and decides, and ends at the point
// of no return; what later steps cannot reach they ask again, with a growing pause, until it
// answers.
//
// How it fails: in the first step only, before anything is changed. kInvalidArgument: a bad name,
// no family, or a repeated split key. kNotFound: there is no such namespace. kAlreadyExists: there
// is such a table. kFailedPrecondition: the namespace has as many tables as it may have
// (NamespaceRow::max_tables), or is reserved. Its result is the table's name.
//
// Directories and region rows that another CreateTable of this table left, because an operator
// ended it (bypass), are replaced: WRITE_FS_LAYOUT and ADD_TO_META remove what is not of this
// table's regions.
//
// The limit of a namespace is compared with the tables that are there when CreateTable begins, so
// operations that run at the same time may exceed it.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class CreateTableStep {
  kPreOperation = 1,
  kWriteFsLayout = 2,
  kAddToMeta = 3,
  kAssignRegions = 4,
  kUpdateDescCache = 5,
  kPostOperation = 6,
};

/// Threads: as Procedure. Lock: the table, exclusively, until it ends.
class CreateTable final : public StateMachineProcedure<CreateTableStep> {
 public:
  static constexpr std::string_view kType = "cluster.CreateTable";
  static constexpr auto kSteps =
      steps(step(CreateTableStep::kPreOperation, "PRE_OPERATION", kPointOfNoReturn).must_run(),
            step(CreateTableStep::kWriteFsLayout, "WRITE_FS_LAYOUT", kNoUndo),
            step(CreateTableStep::kAddToMeta, "ADD_TO_META", kNoUndo),
            step(CreateTableStep::kAssignRegions, "ASSIGN_REGIONS", kNoUndo),
            step(CreateTableStep::kUpdateDescCache, "UPDATE_DESC_CACHE", kNoUndo),
            step(CreateTableStep::kPostOperation, "POST_OPERATION", kNoUndo));

  explicit CreateTable(ClusterPorts& ports) : ports_(&ports) {}
  /// Makes one region more than there are split keys; see even_split_keys().
  CreateTable(ClusterPorts& ports, TableDescriptor descriptor,
              std::vector<std::string> split_keys = {});
  /// Makes a table of the cluster itself, in the namespace that is refused to everyone else. Only
  /// for code in the control plane: what a client sends cannot say so.
  static CreateTable of_system(ClusterPorts& ports, TableDescriptor descriptor,
                               std::vector<std::string> split_keys = {});

  void fields(auto& f) {
    f.arg(1, "descriptor", descriptor_);
    f.arg(2, "split_keys", split_keys_);
    f(3, "regions", regions_);
    f(4, "internal", internal_);
    f(5, "assigned", assigned_);
  }

  [[nodiscard]] LockSet locks() const override;
  Flow execute_from_state(CreateTableStep step, StepContext& ctx) override;

 private:
  Flow pre_operation(StepContext& ctx);
  Flow write_fs_layout(StepContext& ctx);
  Flow add_to_meta(StepContext& ctx);
  Flow assign_regions(StepContext& ctx);
  Flow update_desc_cache(StepContext& ctx);
  Flow post_operation(StepContext& ctx);

  [[nodiscard]] Status check_arguments() const;

  ClusterPorts* ports_;
  TableDescriptor descriptor_;
  std::vector<std::string> split_keys_;
  std::vector<RegionInfo> regions_;  ///< Decided in PRE_OPERATION, used from the next step on.
  std::uint32_t assigned_ = 0;       ///< So many of them have been given to children.
  bool internal_ = false;            ///< It may make a table in the system's namespace.
};

}  // namespace pv2
