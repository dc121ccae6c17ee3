// SPDX-License-Identifier: Apache-2.0
//
// SplitLogRemote: one attempt of a SplitLog to have a log split by one server.
//
//     DISPATCH -> ARCHIVE
//
// | step     | reads            | writes                                                         |
// | DISPATCH | reports, server  | nothing; asks the server                                       |
// | ARCHIVE  |                  | moves the log away, which is the record that it was split      |
//
// It ends in DISPATCH without having split the log when the server refuses, was not reached,
// reports a failure, or is dead. It always succeeds: its parent looks whether the log is left. Its
// result says what went wrong, for people.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <string>
#include <string_view>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class SplitLogRemoteStep { kDispatch = 1, kArchive = 2 };

/// Threads: as Procedure. Lock: none of its own.
class SplitLogRemote final : public StateMachineProcedure<SplitLogRemoteStep> {
 public:
  using Step = SplitLogRemoteStep;
  static constexpr std::string_view kType = "cluster.SplitLogRemote";
  static constexpr bool kChildOnly = true;
  static constexpr bool kFinalOnSuccess = true;
  static constexpr auto kSteps = steps(step(Step::kDispatch, "DISPATCH", kNoUndo).must_run(),
                                       step(Step::kArchive, "ARCHIVE", kNoUndo));

  explicit SplitLogRemote(ClusterPorts& ports) : ports_(&ports) {}
  SplitLogRemote(ClusterPorts& ports, ServerName worker, ServerName dead, std::string log);

  void fields(auto& f) {
    f.arg(1, "worker", worker_);
    f.arg(2, "dead", dead_);
    f.arg(3, "log", log_);
  }

  Flow execute_from_state(Step step, StepContext& ctx) override;

 private:
  Flow dispatch(StepContext& ctx);
  Flow archive(StepContext& ctx);

  ClusterPorts* ports_;
  ServerName worker_;
  ServerName dead_;
  std::string log_;
};

}  // namespace pv2
