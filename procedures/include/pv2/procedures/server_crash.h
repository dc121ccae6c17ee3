// SPDX-License-Identifier: Apache-2.0
//
// ServerCrash: moves everything off a server that is dead, or is taken for dead. It fences the
// server and records it as crashed, so that nothing the server says later counts. Then it opens the
// regions recorded on the server elsewhere, and looks at the catalogue again until none is left.
//
//     START -> GET_REGIONS -> ASSIGN -> CHECK -> FINISH
//                   ^____________________|
//
//     back to GET_REGIONS: some region is still recorded on the server
//
// It never fails and is never undone; a server or port that cannot be reached is asked again.
// Submit it under a nonce made from the server's name (crash_nonce()); then a second report of the
// same crash starts nothing.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/engine/state_machine_procedure.h>

#include <string_view>
#include <utility>
#include <vector>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class ServerCrashStep { kStart = 1, kGetRegions = 2, kAssign = 3, kCheck = 4, kFinish = 5 };

/// Threads: as Procedure. Lock: the server, exclusively. It locks no table: its children lock their
/// regions.
class ServerCrash final : public StateMachineProcedure<ServerCrashStep> {
 public:
  static constexpr std::string_view kType = "cluster.ServerCrash";
  static constexpr auto kSteps = steps(step(ServerCrashStep::kStart, "START", kPointOfNoReturn),
                                       step(ServerCrashStep::kGetRegions, "GET_REGIONS", kNoUndo),
                                       step(ServerCrashStep::kAssign, "ASSIGN", kNoUndo),
                                       step(ServerCrashStep::kCheck, "CHECK", kNoUndo),
                                       step(ServerCrashStep::kFinish, "FINISH", kNoUndo));

  explicit ServerCrash(ClusterPorts& ports) : ports_(&ports) {}
  ServerCrash(ClusterPorts& ports, ServerName server)
      : ports_(&ports), server_(std::move(server)) {}

  void fields(auto& f) {
    f.arg(1, "server", server_);
    f(2, "regions", regions_);
  }

  [[nodiscard]] LockSet locks() const override;
  [[nodiscard]] Priority priority() const override { return Priority::kHigh; }
  Flow execute_from_state(ServerCrashStep step, StepContext& ctx) override;

 private:
  Flow start(StepContext& ctx);
  Flow get_regions(StepContext& ctx);
  Flow assign(StepContext& ctx);
  Flow check(StepContext& ctx);
  Flow finish(StepContext& ctx);

  ClusterPorts* ports_;
  ServerName server_;
  std::vector<RegionInfo> regions_;  ///< The regions that GET_REGIONS found.
};

/// The nonce for the crash of `server`: the same for every observer of the crash.
[[nodiscard]] Nonce crash_nonce(const ServerName& server);

}  // namespace pv2
