// SPDX-License-Identifier: Apache-2.0
//
// MergeTableRegions: unites two or more neighbouring open regions of one table.
//
//     PREPARE -> CLOSE_REGIONS -> CHECK_CLOSED_REGIONS -> CREATE_MERGED_REGION ->
//     WRITE_MAX_SEQUENCE_ID_FILE -> UPDATE_META -> OPEN_MERGED_REGION -> POST_OPERATION
//
//     CHECK_CLOSED_REGIONS -> CLOSE_REGIONS: a parent is not closed
//     POST_OPERATION -> OPEN_MERGED_REGION: the merged region is not open
//
// | step                       | reads                   | writes                        | undo   |
// | PREPARE                    | table, parents, merged  | nothing                       |        |
// | CLOSE_REGIONS              |                         | a child closes each parent    | reopen |
// | CHECK_CLOSED_REGIONS       | parents, their edits    | nothing                       |        |
// | CREATE_MERGED_REGION       |                         | the merged one's directory    | remove |
// | WRITE_MAX_SEQUENCE_ID_FILE |                         | the highest of the sequences  | (same) |
// | UPDATE_META                |                         | parents SPLIT, the merged one |        |
// | OPEN_MERGED_REGION         |                         | a child opens it              |        |
// | POST_OPERATION             | merged region           | nothing                       |        |
//
// UPDATE_META is the point of no return. What fails or is aborted before it is undone: the
// directory of the merged region is removed, and those parents that were closed are opened again.
// After it the procedure asks again for as long as it takes. The parents' rows stay, as SPLIT, and
// so do their directories, because the merged region refers to their data.
//
// How it fails. kInvalidArgument: fewer than two regions, one of them twice, regions of several
// tables, or not neighbours. kNotFound: there is no such table or region. kFailedPrecondition: the
// table is not enabled, or is the catalogue's; a region is not open; edits of a region wait to be
// replayed. kAlreadyExists: a region has the id of the merged one. Its result is the id of the
// merged region.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/procedures/cluster_ports.h"
#include "pv2/procedures/reopen_progress.h"

namespace pv2 {

/// Persisted.
enum class MergeTableRegionsStep {
  kPrepare = 1,
  kCloseRegions = 2,
  kCheckClosedRegions = 3,
  kCreateMergedRegion = 4,
  kWriteMaxSequenceIdFile = 5,
  kUpdateMeta = 6,
  kOpenMergedRegion = 7,
  kPostOperation = 8,
};

/// Threads: as Procedure. Lock: the parents and the merged region, exclusively (with their table
/// and namespace shared), until it ends.
class MergeTableRegions final : public StateMachineProcedure<MergeTableRegionsStep> {
 public:
  using Step = MergeTableRegionsStep;
  static constexpr std::string_view kType = "cluster.MergeTableRegions";
  static constexpr auto kSteps =
      steps(step(Step::kPrepare, "PREPARE", kNoUndo).must_run(),
            step(Step::kCloseRegions, "CLOSE_REGIONS", kUndoable),
            step(Step::kCheckClosedRegions, "CHECK_CLOSED_REGIONS", kNoUndo).must_run(),
            step(Step::kCreateMergedRegion, "CREATE_MERGED_REGION", kUndoable).must_run(),
            step(Step::kWriteMaxSequenceIdFile, "WRITE_MAX_SEQUENCE_ID_FILE", kNoUndo).must_run(),
            step(Step::kUpdateMeta, "UPDATE_META", kPointOfNoReturn),
            step(Step::kOpenMergedRegion, "OPEN_MERGED_REGION", kNoUndo),
            step(Step::kPostOperation, "POST_OPERATION", kNoUndo));

  explicit MergeTableRegions(ClusterPorts& ports) : ports_(&ports) {}
  /// `parents`: in any order.
  MergeTableRegions(ClusterPorts& ports, std::vector<RegionInfo> parents);

  void fields(auto& f) {
    f.arg(1, "parents", parents_);
    f(2, "server", server_);
    f(3, "sequence", sequence_);
    f(4, "reopen_round", reopening_.round);
    f(5, "reopen_reason", reopening_.reason);
    f(6, "reopen_failed_in", reopening_.failed_in);
  }

  [[nodiscard]] LockSet locks() const override;
  Flow execute_from_state(Step step, StepContext& ctx) override;
  Flow rollback_state(Step step, StepContext& ctx) override;

 private:
  Flow prepare(StepContext& ctx);
  Flow close_regions(StepContext& ctx);
  Flow check_closed_regions(StepContext& ctx);
  Flow create_merged_region(StepContext& ctx);
  Flow write_max_sequence_id_file(StepContext& ctx);
  Flow update_meta(StepContext& ctx);
  Flow open_merged_region(StepContext& ctx);
  Flow post_operation(StepContext& ctx);
  Flow reopen_parents(StepContext& ctx);
  Flow remove_merged(StepContext& ctx);

  [[nodiscard]] Status check_arguments() const;
  [[nodiscard]] Status check_parent(const RegionInfo& parent,
                                    const std::optional<RegionRow>& row) const;
  /// Its id follows from the arguments, because the lock set, made of the arguments, names it.
  [[nodiscard]] RegionInfo merged() const;

  ClusterPorts* ports_;
  std::vector<RegionInfo> parents_;  ///< In the order of their keys.
  ServerName server_;                ///< Of the first parent; found in CHECK_CLOSED_REGIONS.
  std::uint64_t sequence_ = 0;       ///< The highest one of the parents; likewise.
  ReopenProgress reopening_;         ///< Of the undo.
};

}  // namespace pv2
