// SPDX-License-Identifier: Apache-2.0
//
// TruncateTable: removes all data of a disabled table and opens it again, empty. It replaces the
// regions: their directories and rows go, and new ones come, which cover the same keys. The table's
// own row stays, so that the table is there at every moment. It leaves the table enabled.
//
//     PRE_OPERATION -> CLEAR_FS_LAYOUT -> REMOVE_FROM_META -> CREATE_FS_LAYOUT -> ADD_TO_META
//                                                                                      |
//                                                            POST_OPERATION <- ASSIGN_REGIONS
//
//     step               reads and writes                         runs again after a crash
//     PRE_OPERATION      the table's row and the rows of its      has changed nothing
//                        regions; decides the new regions
//     CLEAR_FS_LAYOUT    archives the table's directory           archives what is left
//     REMOVE_FROM_META   removes every region row that the table  finds fewer rows
//                        has at that moment
//     CREATE_FS_LAYOUT   writes the directory, with the           completes the layout
//                        descriptor and the new regions
//     ADD_TO_META        writes the rows of the new regions       same effect key
//     ASSIGN_REGIONS     the table's row; a TransitRegionState    same effect key; its children are
//                        for each region                          part of its record
//     POST_OPERATION     the table's row; the cache               same effect key
//
// The descriptor is in the directory that goes, so PRE_OPERATION keeps a copy. The new regions are
// persisted with the same record, before anything is removed: whatever the moment of a crash, the
// same directories and rows are made.
//
// How it fails: in PRE_OPERATION only. kNotFound: there is no such table. kFailedPrecondition: the
// table is not disabled, or holds the catalogue. CLEAR_FS_LAYOUT is the point of no return. Its
// result is the table's name.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// What becomes of the boundaries between the regions. Persisted.
enum class TruncateSplits : std::uint8_t {
  kDrop = 1,      ///< The table has one region afterwards.
  kPreserve = 2,  ///< It has regions with the same keys as before.
};

/// Persisted.
enum class TruncateTableStep {
  kPreOperation = 1,
  kClearFsLayout = 2,
  kRemoveFromMeta = 3,
  kCreateFsLayout = 4,
  kAddToMeta = 5,
  kAssignRegions = 6,
  kPostOperation = 7,
};

/// Threads: as Procedure. Lock: the table, exclusively, until it ends.
class TruncateTable final : public StateMachineProcedure<TruncateTableStep> {
 public:
  static constexpr std::string_view kType = "cluster.TruncateTable";
  static constexpr auto kSteps =
      steps(step(TruncateTableStep::kPreOperation, "PRE_OPERATION", kNoUndo).must_run(),
            step(TruncateTableStep::kClearFsLayout, "CLEAR_FS_LAYOUT", kPointOfNoReturn),
            step(TruncateTableStep::kRemoveFromMeta, "REMOVE_FROM_META", kNoUndo),
            step(TruncateTableStep::kCreateFsLayout, "CREATE_FS_LAYOUT", kNoUndo),
            step(TruncateTableStep::kAddToMeta, "ADD_TO_META", kNoUndo),
            step(TruncateTableStep::kAssignRegions, "ASSIGN_REGIONS", kNoUndo),
            step(TruncateTableStep::kPostOperation, "POST_OPERATION", kNoUndo));

  explicit TruncateTable(ClusterPorts& ports) : ports_(&ports) {}
  TruncateTable(ClusterPorts& ports, TableName table, TruncateSplits splits)
      : ports_(&ports), table_(std::move(table)), splits_(splits) {}

  void fields(auto& f) {
    f.arg(1, "table", table_);
    f.arg(2, "splits", splits_);
    f(3, "descriptor", descriptor_);
    f(4, "regions", regions_);
    f(5, "assigned", assigned_);
  }

  [[nodiscard]] LockSet locks() const override;
  Flow execute_from_state(TruncateTableStep step, StepContext& ctx) override;

 private:
  Flow pre_operation(StepContext& ctx);
  Flow clear_fs_layout(StepContext& ctx);
  Flow remove_from_meta(StepContext& ctx);
  Flow create_fs_layout(StepContext& ctx);
  Flow add_to_meta(StepContext& ctx);
  Flow assign_regions(StepContext& ctx);
  Flow post_operation(StepContext& ctx);

  ClusterPorts* ports_;
  TableName table_;
  TruncateSplits splits_ = TruncateSplits::kDrop;
  TableDescriptor descriptor_;       ///< Kept in PRE_OPERATION.
  std::vector<RegionInfo> regions_;  ///< Decided in PRE_OPERATION: those that come.
  std::uint32_t assigned_ = 0;       ///< So many of them have been given to children.
};

}  // namespace pv2
