// SPDX-License-Identifier: Apache-2.0
//
// SplitLog: has one log of a dead server split by a live one, so that each region finds its edits
// in its own directory.
//
//     ACQUIRE_SPLIT_WAL_WORKER -> DISPATCH_WAL_TO_WORKER -> RELEASE_SPLIT_WORKER
//                ^_________________________________________________|
//
//     back to ACQUIRE_SPLIT_WAL_WORKER: the log is still there, so another server tries
//
//     step                        reads                       writes
//     ACQUIRE_SPLIT_WAL_WORKER    waits for a free server     nothing; persists the server
//     DISPATCH_WAL_TO_WORKER                                  nothing; the child, a
//                                                             SplitLogRemote, does
//     RELEASE_SPLIT_WORKER        whether the log is left     nothing; gives the server back
//
// That the log is not there any more is the record that it was split. A log may be split twice, by
// a slow server and by its successor: both write the same files.
//
// It never fails. Each step may run again after a crash: the same server is acquired again if it
// lives.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class SplitLogStep {
  kAcquireSplitWalWorker = 1,
  kDispatchWalToWorker = 2,
  kReleaseSplitWorker = 3,
};

/// Threads: as Procedure. Lock: none of its own; its parent, a ServerCrash, has the dead server's.
class SplitLog final : public StateMachineProcedure<SplitLogStep> {
 public:
  using Step = SplitLogStep;
  static constexpr std::string_view kType = "cluster.SplitLog";
  static constexpr bool kChildOnly = true;
  static constexpr std::string_view kCountedAs = "logs";
  static constexpr bool kFinalOnSuccess = true;
  static constexpr auto kSteps =
      steps(step(Step::kAcquireSplitWalWorker, "ACQUIRE_SPLIT_WAL_WORKER", kNoUndo).must_run(),
            step(Step::kDispatchWalToWorker, "DISPATCH_WAL_TO_WORKER", kNoUndo),
            step(Step::kReleaseSplitWorker, "RELEASE_SPLIT_WORKER", kNoUndo));

  explicit SplitLog(ClusterPorts& ports) : ports_(&ports) {}
  SplitLog(ClusterPorts& ports, ServerName dead, LogKind kind, std::string log);

  void fields(auto& f) {
    f.arg(1, "dead", dead_);
    f.arg(2, "log_kind", kind_);
    f.arg(3, "log", log_);
    f(4, "worker", worker_);
    f(5, "failures", failures_);
  }

  Flow execute_from_state(Step step, StepContext& ctx) override;

 private:
  Flow acquire_split_wal_worker(StepContext& ctx);
  Flow dispatch_wal_to_worker(StepContext& ctx);
  Flow release_split_worker(StepContext& ctx);

  ClusterPorts* ports_;
  ServerName dead_;
  LogKind kind_ = LogKind::kUser;
  std::string log_;
  ServerName worker_;  ///< Decided in ACQUIRE_SPLIT_WAL_WORKER, used from the next step on.
  std::uint32_t failures_ = 0;
};

}  // namespace pv2
