// SPDX-License-Identifier: Apache-2.0
//
// SplitTableRegion: divides one open region at a key into two.
//
//     PREPARE -> CLOSE_PARENT_REGION -> CHECK_CLOSED_REGIONS -> CREATE_DAUGHTER_REGIONS ->
//     WRITE_MAX_SEQUENCE_ID_FILE -> UPDATE_META -> OPEN_CHILD_REGIONS -> POST_OPERATION
//
//     CHECK_CLOSED_REGIONS -> CLOSE_PARENT_REGION: the parent is not closed
//     POST_OPERATION -> OPEN_CHILD_REGIONS: a daughter is not open
//
// | step                       | reads                     | writes                      | undo   |
// | PREPARE                    | table, parent, daughters  | nothing                     |        |
// | CLOSE_PARENT_REGION        |                           | a child closes the parent   | reopen |
// | CHECK_CLOSED_REGIONS       | parent, its edits         | nothing                     |        |
// | CREATE_DAUGHTER_REGIONS    |                           | daughters' directories      | remove |
// | WRITE_MAX_SEQUENCE_ID_FILE |                           | the parent's last sequence  | (same) |
// | UPDATE_META                |                           | parent SPLIT, daughters     |        |
// | OPEN_CHILD_REGIONS         |                           | children open the daughters |        |
// | POST_OPERATION             | daughters                 | nothing                     |        |
//
// UPDATE_META is the point of no return. What fails or is aborted before it is undone: the
// directories of the daughters are removed, and the parent is opened again if it was closed. After
// it the procedure asks again for as long as it takes. The parent's row and directory stay, because
// the daughters refer to its data.
//
// How it fails. kInvalidArgument: the key is not inside the region. kNotFound: there is no such
// table or region. kFailedPrecondition: the table is not enabled; the region is not open, or is the
// catalogue's own; edits of the region wait to be replayed. kAlreadyExists: a region has the id of
// a daughter. Its result is the ids of the daughters, with a space between.

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
enum class SplitTableRegionStep {
  kPrepare = 1,
  kCloseParentRegion = 2,
  kCheckClosedRegions = 3,
  kCreateDaughterRegions = 4,
  kWriteMaxSequenceIdFile = 5,
  kUpdateMeta = 6,
  kOpenChildRegions = 7,
  kPostOperation = 8,
};

/// Threads: as Procedure. Lock: the parent and both daughters, exclusively (with their table and
/// namespace shared), until it ends.
class SplitTableRegion final : public StateMachineProcedure<SplitTableRegionStep> {
 public:
  using Step = SplitTableRegionStep;
  static constexpr std::string_view kType = "cluster.SplitTableRegion";
  static constexpr auto kSteps =
      steps(step(Step::kPrepare, "PREPARE", kNoUndo).must_run(),
            step(Step::kCloseParentRegion, "CLOSE_PARENT_REGION", kUndoable),
            step(Step::kCheckClosedRegions, "CHECK_CLOSED_REGIONS", kNoUndo).must_run(),
            step(Step::kCreateDaughterRegions, "CREATE_DAUGHTER_REGIONS", kUndoable).must_run(),
            step(Step::kWriteMaxSequenceIdFile, "WRITE_MAX_SEQUENCE_ID_FILE", kNoUndo).must_run(),
            step(Step::kUpdateMeta, "UPDATE_META", kPointOfNoReturn),
            step(Step::kOpenChildRegions, "OPEN_CHILD_REGIONS", kNoUndo),
            step(Step::kPostOperation, "POST_OPERATION", kNoUndo));

  explicit SplitTableRegion(ClusterPorts& ports) : ports_(&ports) {}
  /// The first daughter ends before `split_key`, the second one begins with it.
  SplitTableRegion(ClusterPorts& ports, RegionInfo parent, std::string split_key);

  void fields(auto& f) {
    f.arg(1, "parent", parent_);
    f.arg(2, "split_key", split_key_);
    f(3, "parent_server", parent_server_);
    f(4, "parent_sequence", parent_sequence_);
    f(5, "reopen_round", reopening_.round);
    f(6, "reopen_reason", reopening_.reason);
    f(7, "reopen_failed_in", reopening_.failed_in);
  }

  [[nodiscard]] LockSet locks() const override;
  Flow execute_from_state(Step step, StepContext& ctx) override;
  Flow rollback_state(Step step, StepContext& ctx) override;

 private:
  Flow prepare(StepContext& ctx);
  Flow close_parent_region(StepContext& ctx);
  Flow check_closed_regions(StepContext& ctx);
  Flow create_daughter_regions(StepContext& ctx);
  Flow write_max_sequence_id_file(StepContext& ctx);
  Flow update_meta(StepContext& ctx);
  Flow open_child_regions(StepContext& ctx);
  Flow post_operation(StepContext& ctx);
  Flow reopen_parent(StepContext& ctx);
  Flow remove_daughters(StepContext& ctx);

  [[nodiscard]] Status check_parent(const std::optional<TableRow>& table,
                                    const std::optional<RegionRow>& row) const;
  /// Their ids follow from the arguments, because the lock set, made of the arguments, names them.
  [[nodiscard]] std::vector<RegionInfo> daughters() const;

  ClusterPorts* ports_;
  RegionInfo parent_;
  std::string split_key_;
  ServerName parent_server_;           ///< Found in CHECK_CLOSED_REGIONS, used in UPDATE_META.
  std::uint64_t parent_sequence_ = 0;  ///< Likewise.
  ReopenProgress reopening_;           ///< Of the undo.
};

}  // namespace pv2
