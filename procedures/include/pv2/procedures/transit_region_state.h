// SPDX-License-Identifier: Apache-2.0
//
// TransitRegionState: brings one region online, takes it offline, or both. It is the only procedure
// that changes where a region is. It hands the work to an OpenRegion or a CloseRegion, and then
// believes the catalogue alone.
//
//     ASSIGN, and REOPEN of a closed region:
//       GET_ASSIGN_CANDIDATE -> OPEN -> CONFIRM_OPENED
//                ^________________|__________|
//     UNASSIGN:
//       GET_ASSIGN_CANDIDATE -> CLOSE -> CONFIRM_CLOSED
//     MOVE, REOPEN:
//       GET_ASSIGN_CANDIDATE -> CLOSE -> CONFIRM_CLOSED -> GET_ASSIGN_CANDIDATE -> OPEN -> ...
//
//     back to GET_ASSIGN_CANDIDATE: the server refused, was not reached, or crashed
//     GET_ASSIGN_CANDIDATE -> CLOSE: also if a live server was closing the region, for a procedure
//       that an operator has ended; that server may go on serving it until it has closed it
//     CLOSE, CONFIRM_CLOSED -> GET_ASSIGN_CANDIDATE: the server crashed. The region is opened
//       elsewhere even if it is to be closed in the end, so that the edits which the server had
//       acknowledged are replayed; CONFIRM_OPENED -> CLOSE then closes it.
//
//     step                  reads                                 writes
//     GET_ASSIGN_CANDIDATE  region, table, server, live servers   nothing; persists the target
//     OPEN, CLOSE           region                                nothing; the child writes
//     CONFIRM_OPENED        region, server                        FAILED_OPEN, if it gives up
//     CONFIRM_CLOSED        region, server                        nothing
//
// How it fails: in its first step only, before anything is changed. kNotFound: there is no such
// region. kFailedPrecondition: the region was split; it is to be moved and is not open; it is to be
// opened and its table is disabled; it is the catalogue's, and is to be closed. After that it never
// fails: what cannot be done now is asked again with a growing pause, and every attempt leaves an
// error in listings. Each step may run again after a crash: it only reads, and its children are
// part of its record.
//
// Its result is the server that has the region, or had it last.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// What becomes of the region. Persisted.
enum class TransitKind : std::uint8_t { kAssign = 1, kUnassign = 2, kMove = 3, kReopen = 4 };

/// Where a region is to be opened. A plain value.
struct AssignOptions {
  std::uint32_t spread = 0;  ///< Makes neighbouring regions choose different servers.
  bool retain = false;       ///< The server that had it last, if it lives.
  /// Assigns the region only if the catalogue still records it there. A ServerCrash says this, for
  /// regions that may have moved meanwhile, or may be gone.
  ServerName from{};
  ServerName target{};  ///< A wish: another server is chosen if this one cannot be had.

  void fields(auto& f) {
    f(1, "spread", spread);
    f(2, "retain", retain);
    f(3, "from", from);
    f(4, "target", target);
  }
};

/// Persisted.
enum class TransitRegionStateStep {
  kGetAssignCandidate = 1,
  kOpen = 2,
  kConfirmOpened = 3,
  kClose = 4,
  kConfirmClosed = 5,
};

/// Threads: as Procedure. Lock: the region, exclusively (with its table and namespace shared),
/// until it ends.
class TransitRegionState final : public StateMachineProcedure<TransitRegionStateStep> {
 public:
  using Step = TransitRegionStateStep;
  static constexpr std::string_view kType = "cluster.TransitRegionState";
  static constexpr std::string_view kCountedAs = "regions";
  // The undo of the operation around it decides what becomes of an open or closed region.
  static constexpr bool kFinalOnSuccess = true;
  // Once it has begun, a server may be at work, so it goes on until it knows where the region is.
  static constexpr auto kSteps = steps(
      step(Step::kGetAssignCandidate, "GET_ASSIGN_CANDIDATE", kPointOfNoReturn).must_run(),
      step(Step::kOpen, "OPEN", kNoUndo), step(Step::kConfirmOpened, "CONFIRM_OPENED", kNoUndo),
      step(Step::kClose, "CLOSE", kNoUndo), step(Step::kConfirmClosed, "CONFIRM_CLOSED", kNoUndo));

  explicit TransitRegionState(ClusterPorts& ports) : ports_(&ports) {}
  /// Opens a region that is not open. An open region stays where it is.
  [[nodiscard]] static TransitRegionState assign(ClusterPorts& ports, RegionInfo region,
                                                 AssignOptions options = {});
  /// Closes a region; all its edits are in its files then.
  [[nodiscard]] static TransitRegionState unassign(ClusterPorts& ports, RegionInfo region);
  /// Closes an open region and opens it on `target`, or on another server if `target` cannot be
  /// had.
  [[nodiscard]] static TransitRegionState move(ClusterPorts& ports, RegionInfo region,
                                               ServerName target);
  /// Closes a region and opens it again, on the same server if possible.
  [[nodiscard]] static TransitRegionState reopen(ClusterPorts& ports, RegionInfo region);

  void fields(auto& f) {
    f.arg(1, "kind", kind_);
    f.arg(2, "region", region_);
    f.arg(3, "options", options_);
    f(4, "begun", begun_);
    f(5, "closes_again", closes_again_);
    f(6, "target", target_);
    f(7, "sequence", sequence_);
    f(8, "avoided", avoided_);
    f(9, "failed_openings", failed_openings_);
    f(10, "failed_closings", failed_closings_);
    f(11, "reason", reason_);
    f(12, "unsure_of", unsure_of_);
  }

  [[nodiscard]] LockSet locks() const override;
  [[nodiscard]] Priority priority() const override;
  Flow execute_from_state(Step step, StepContext& ctx) override;

 private:
  TransitRegionState(ClusterPorts& ports, TransitKind kind, RegionInfo region,
                     AssignOptions options);

  Flow get_assign_candidate(StepContext& ctx);
  Flow open(StepContext& ctx);
  Flow confirm_opened(StepContext& ctx);
  Flow close(StepContext& ctx);
  Flow confirm_closed(StepContext& ctx);

  /// What the first run of the procedure finds: how it ends at once, or nullopt.
  [[nodiscard]] std::optional<Flow> begin(const std::optional<RegionRow>& row,
                                          const std::optional<TableRow>& table,
                                          ServerState home) const;
  Flow choose(StepContext& ctx, const RegionRow& row, const std::vector<ServerName>& live);
  Flow opening_failed(StepContext& ctx);
  Flow leave_dead_home(StepContext& ctx, const ServerName& home);

  /// Whether the region is closed when all is done.
  [[nodiscard]] bool ends_closed() const {
    return kind_ == TransitKind::kUnassign || closes_again_;
  }
  [[nodiscard]] LogKind log_kind() const;

  ClusterPorts* ports_;
  TransitKind kind_ = TransitKind::kAssign;
  RegionInfo region_;
  AssignOptions options_;
  bool begun_ = false;
  bool closes_again_ = false;  ///< To be assigned, but its table is disabled.
  ServerName target_;          ///< Decided in GET_ASSIGN_CANDIDATE, used from the next step on.
  std::uint64_t sequence_ = 0;
  std::vector<ServerName> avoided_;  ///< They could not open the region in this round.
  std::uint32_t failed_openings_ = 0;
  std::uint32_t failed_closings_ = 0;
  std::string reason_;  ///< What the last child said that did not succeed.
  /// The server that an earlier procedure, which an operator has ended, was opening the region on.
  ServerName unsure_of_;
};

}  // namespace pv2
