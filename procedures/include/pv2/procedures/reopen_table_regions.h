// SPDX-License-Identifier: Apache-2.0
//
// ReopenTableRegions: has every region of a table closed and opened again, a few at a time, so that
// all of them use the table's descriptor of this moment. The first batch is of one region, and each
// batch that succeeds doubles the next, up to kBatchMax: a descriptor that no server can open stops
// the procedure at the first region.
//
//     GET_REGIONS -> REOPEN -> CONFIRM -> done
//                       ^_________|
//                    regions are left
//
//     step          reads and writes                                 runs again after a crash
//     GET_REGIONS   the rows of the regions; keeps their sequences   has changed nothing
//     REOPEN        a TransitRegionState (REOPEN) for each region    its children are part of its
//                   of the batch                                     record
//     CONFIRM       the rows of the regions; strikes off those       only reads
//                   that were reopened
//
// A region was reopened if its row has a greater open sequence than the one that was kept, whoever
// has reopened it. A region that no server has (closed, split, removed) is struck off: its next
// opening reads the new descriptor. The size of the batch is persisted. It never fails and is never
// undone.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class ReopenTableRegionsStep { kGetRegions = 1, kReopen = 2, kConfirm = 3 };

/// A region that is still to be reopened. A plain value.
struct RegionToReopen {
  RegionInfo region;
  std::uint64_t sequence = 0;  ///< A greater open sequence proves that it was reopened.
  /// It was being opened when the sequence was read, perhaps with the old descriptor. When it is
  /// open, it counts as a region to be reopened with the sequence that it has then.
  bool was_opening = false;

  void fields(auto& f) {
    f(1, "region", region);
    f(2, "sequence", sequence);
    f(3, "was_opening", was_opening);
  }
};

/// Threads: as Procedure. Lock: the table, exclusively, which its parent has.
class ReopenTableRegions final : public StateMachineProcedure<ReopenTableRegionsStep> {
 public:
  static constexpr std::string_view kType = "cluster.ReopenTableRegions";
  static constexpr bool kChildOnly = true;
  static constexpr auto kSteps =
      steps(step(ReopenTableRegionsStep::kGetRegions, "GET_REGIONS", kNoUndo).must_run(),
            step(ReopenTableRegionsStep::kReopen, "REOPEN", kNoUndo),
            step(ReopenTableRegionsStep::kConfirm, "CONFIRM", kNoUndo));
  /// The most regions that are closed at one time for this table: enough to keep many servers busy,
  /// and a small part of a large table.
  static constexpr std::uint32_t kBatchMax = 64;

  explicit ReopenTableRegions(ClusterPorts& ports) : ports_(&ports) {}
  ReopenTableRegions(ClusterPorts& ports, TableName table)
      : ports_(&ports), table_(std::move(table)) {}

  void fields(auto& f) {
    f.arg(1, "table", table_);
    f(2, "left", left_);
    f(3, "batch", batch_);
    f(4, "total", total_);
  }

  [[nodiscard]] LockSet locks() const override;
  /// The regions of the batches that have ended.
  [[nodiscard]] std::string progress() const override;
  Flow execute_from_state(ReopenTableRegionsStep step, StepContext& ctx) override;

 private:
  Flow get_regions(StepContext& ctx);
  Flow reopen(StepContext& ctx);
  Flow confirm(StepContext& ctx);

  ClusterPorts* ports_;
  TableName table_;
  std::vector<RegionToReopen> left_;  ///< The first `batch_` of them are being reopened.
  std::uint32_t batch_ = 1;
  std::uint64_t total_ = 0;  ///< How many regions GET_REGIONS found. 0: an older version began it.
};

}  // namespace pv2
