// SPDX-License-Identifier: Apache-2.0
//
// AssignRegion: brings one region online on a live server. CreateTable and ServerCrash run one for
// each region. It is final on success: the undo of the operation around it has to decide what
// becomes of an open region.
//
//     CHOOSE_SERVER -> OPEN -> CONFIRM_OPEN
//           ^___________|__________|
//
//     back to CHOOSE_SERVER: the server refused, was not reached, or crashed
//
// It never fails: while no server takes the region, it waits and asks again. Two servers never hold
// the region, because AssignRegion leaves a server that may have it only once that server is
// recorded as crashed (docs/cluster.md).

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class AssignRegionStep { kChooseServer = 1, kOpen = 2, kConfirmOpen = 3 };

/// Threads: as Procedure. Lock: the region, exclusively (with its table and namespace shared).
class AssignRegion final : public StateMachineProcedure<AssignRegionStep> {
 public:
  static constexpr std::string_view kType = "cluster.AssignRegion";
  static constexpr bool kFinalOnSuccess = true;
  // Nothing is undone: a region that is open on some server may stay there.
  static constexpr auto kSteps =
      steps(step(AssignRegionStep::kChooseServer, "CHOOSE_SERVER", kNoUndo),
            step(AssignRegionStep::kOpen, "OPEN", kNoUndo),
            step(AssignRegionStep::kConfirmOpen, "CONFIRM_OPEN", kNoUndo));

  explicit AssignRegion(ClusterPorts& ports) : ports_(&ports) {}
  /// Assigns `region`. `spread` makes neighbouring regions choose different servers. With `from`,
  /// the region is assigned only if the catalogue still records it on that server.
  AssignRegion(ClusterPorts& ports, RegionInfo region, std::uint32_t spread, ServerName from = {});

  void fields(auto& f) {
    f.arg(1, "region", region_);
    f.arg(2, "spread", spread_);
    f.arg(3, "from", from_);
    f(4, "target", target_);
    f(5, "last_sequence", last_sequence_);
    f(6, "open_sequence", open_sequence_);
    f(7, "avoided", avoided_);
  }

  [[nodiscard]] LockSet locks() const override;
  Flow execute_from_state(AssignRegionStep step, StepContext& ctx) override;

 private:
  Flow choose_server(StepContext& ctx);
  Flow open(StepContext& ctx);
  Flow confirm_open(StepContext& ctx);
  Flow leave_if_crashed(StepContext& ctx, const std::string& reason);
  Flow choose_another();

  ClusterPorts* ports_;
  RegionInfo region_;
  std::uint32_t spread_ = 0;
  ServerName from_;
  ServerName target_;                ///< Decided in CHOOSE_SERVER, used from OPEN on.
  std::uint64_t last_sequence_ = 0;  ///< From the catalogue, when the server was chosen.
  std::uint64_t open_sequence_ = 0;  ///< What the server answered.
  std::vector<ServerName> avoided_;  ///< Servers that did not take the region in this round.
};

}  // namespace pv2
