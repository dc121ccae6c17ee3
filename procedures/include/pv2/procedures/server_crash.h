// SPDX-License-Identifier: Apache-2.0
//
// ServerCrash: moves everything off a server that is dead, or is taken for dead. It fences the
// server and records it as crashed, so that nothing the server says later counts. It has the logs
// of the server split, those of the catalogue's own region first. Then it opens the regions
// recorded on the server elsewhere, and looks at the catalogue again until none is left.
//
//     START -> SPLIT_META_LOGS -> DELETE_SPLIT_META_WALS_DIR -> ASSIGN_META --.
//       |            ^________________________|  a log is left               |
//       '----------------------------> GET_REGIONS <-------------------------'
//                                        |      ^
//                                        v      |  a region is left
//       SPLIT_LOGS -> DELETE_SPLIT_WALS_DIR -> ASSIGN -> CHECK
//           ^________________|  a log is left              |
//                                                          v
//                                     FINISH <- CLAIM_REPLICATION_QUEUES
//
//     START -> GET_REGIONS: the server does not have the catalogue's region
//     GET_REGIONS -> ASSIGN: the logs are split already
//     CHECK -> FINISH: there is no replication peer
//
//     step                        reads                    writes
//     START                       its row, meta's region   the fence; CRASHED
//     SPLIT_META_LOGS             meta logs left           a SplitLog for each
//     DELETE_SPLIT_META_WALS_DIR  meta logs left           meta_recovered
//     ASSIGN_META                                          ABNORMALLY_CLOSED; the region's child
//     GET_REGIONS                 regions on the server    persists the first id of each group
//     SPLIT_LOGS                  logs left                a SplitLog for each
//     DELETE_SPLIT_WALS_DIR       logs left                RECOVERED; removes the directory
//     ASSIGN                      peers                    an AssignServerRegions for each group,
//                                                          a ClaimQueues for each peer
//     CHECK                       regions on it, peers
//     CLAIM_REPLICATION_QUEUES    peers                    a ClaimQueues for each peer
//     FINISH                                               RETIRED
//
// The queues are claimed in ASSIGN, so that they do not wait for a region that cannot be opened,
// and once more in CLAIM_REPLICATION_QUEUES: what came late, and what a procedure stored by an
// earlier version did not claim before. All groups are assigned at the same time: one region that
// cannot be opened, or a queue that cannot be claimed, keeps no other region closed. CHECK goes
// back to GET_REGIONS while a row still names the server: a row that came late, or one of a
// procedure that an earlier version has stored. That version knew no groups.
//
// It never fails and is never undone; a server or port that cannot be reached is asked again. Each
// step may run again after a crash: what it writes has an effect key, and its children are part of
// its record. From GET_REGIONS on it needs the catalogue, which may be waiting for another
// ServerCrash.
//
// Submit it under a nonce made from the server's name (crash_nonce()); then a second report of the
// same crash, by the same owner, starts nothing. If an operator has ended the procedure that has
// the nonce, submit another one under the next value of the nonce.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/engine/state_machine_procedure.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class ServerCrashStep {
  kStart = 1,
  kGetRegions = 2,
  kAssign = 3,
  kCheck = 4,
  kFinish = 5,
  kSplitMetaLogs = 6,
  kDeleteSplitMetaWalsDir = 7,
  kAssignMeta = 8,
  kSplitLogs = 9,
  kDeleteSplitWalsDir = 10,
  kClaimReplicationQueues = 11,
};

/// Threads: as Procedure. Lock: the server, exclusively. It locks no table: what its children start
/// locks its own region.
class ServerCrash final : public StateMachineProcedure<ServerCrashStep> {
 public:
  using Step = ServerCrashStep;
  static constexpr std::string_view kType = "cluster.ServerCrash";
  static constexpr auto kSteps =
      steps(step(Step::kStart, "START", kPointOfNoReturn).must_run(),
            step(Step::kSplitMetaLogs, "SPLIT_META_LOGS", kNoUndo),
            step(Step::kDeleteSplitMetaWalsDir, "DELETE_SPLIT_META_WALS_DIR", kNoUndo).must_run(),
            step(Step::kAssignMeta, "ASSIGN_META", kNoUndo),
            step(Step::kGetRegions, "GET_REGIONS", kNoUndo).must_run(),
            step(Step::kSplitLogs, "SPLIT_LOGS", kNoUndo),
            step(Step::kDeleteSplitWalsDir, "DELETE_SPLIT_WALS_DIR", kNoUndo).must_run(),
            step(Step::kAssign, "ASSIGN", kNoUndo), step(Step::kCheck, "CHECK", kNoUndo).must_run(),
            step(Step::kClaimReplicationQueues, "CLAIM_REPLICATION_QUEUES", kNoUndo),
            step(Step::kFinish, "FINISH", kNoUndo));

  explicit ServerCrash(ClusterPorts& ports) : ports_(&ports) {}
  /// `priority`: Priority::kMeta if the server is known to have the catalogue's region. It is only
  /// about the order among crashes: the procedure finds out by itself what the server had.
  ServerCrash(ClusterPorts& ports, ServerName server, Priority priority = Priority::kHigh)
      : ports_(&ports), server_(std::move(server)), priority_(priority) {}

  void fields(auto& f) {
    f.arg(1, "server", server_);
    // 2 was "regions"
    f(3, "carries_meta", carries_meta_);
    f(4, "recovered", recovered_);
    f(5, "cuts", cuts_);
  }

  [[nodiscard]] LockSet locks() const override;
  [[nodiscard]] Priority priority() const override { return priority_; }
  Flow execute_from_state(Step step, StepContext& ctx) override;

 private:
  Flow start(StepContext& ctx);
  Flow find_meta(StepContext& ctx);
  Flow split_meta_logs(StepContext& ctx);
  Flow delete_split_meta_wals_dir(StepContext& ctx);
  Flow assign_meta(StepContext& ctx);
  Flow get_regions(StepContext& ctx);
  Flow split_logs(StepContext& ctx);
  Flow delete_split_wals_dir(StepContext& ctx);
  Flow assign(StepContext& ctx);
  Flow check(StepContext& ctx);
  Flow claim_replication_queues(StepContext& ctx);
  Flow finish(StepContext& ctx);
  void spawn_claims(StepContext& ctx, const std::vector<std::string>& peers) const;

  ClusterPorts* ports_;
  ServerName server_;
  // Not persisted: the engine asks for it once, at submission, and keeps it.
  Priority priority_ = Priority::kHigh;
  bool carries_meta_ = false;      ///< START found that it has the catalogue's region.
  bool recovered_ = false;         ///< All its logs are split.
  std::vector<std::string> cuts_;  ///< The first id of each group of regions but the first group.
};

/// The nonce for the crash of `server`: the same for every observer of the crash.
[[nodiscard]] Nonce crash_nonce(const ServerName& server);

}  // namespace pv2
