// SPDX-License-Identifier: Apache-2.0
//
// CloseRegion: one attempt of a TransitRegionState to close a region on the server that has it.
//
//     DISPATCH -> REPORT_SUCCEED
//
//     step             reads              writes
//     DISPATCH         reports, server    CLOSING on the server; then asks the server
//     REPORT_SUCCEED                      CLOSED, with the last sequence of the region
//
// It ends in DISPATCH without having closed the region when the server refuses, reports a failure,
// or is dead. A server that is not reached is asked again: no other one can close the region. It
// always succeeds: its parent looks at the catalogue. Its result says what went wrong, for people.
//
// When DISPATCH runs again after a crash, it writes and asks under the same effect key. If a report
// has arrived meanwhile, it asks nobody.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class CloseRegionStep { kDispatch = 1, kReportSucceed = 2 };

/// Threads: as Procedure. Lock: none of its own; its parent has the region's.
class CloseRegion final : public StateMachineProcedure<CloseRegionStep> {
 public:
  static constexpr std::string_view kType = "cluster.CloseRegion";
  static constexpr bool kChildOnly = true;
  static constexpr bool kFinalOnSuccess = true;
  static constexpr auto kSteps =
      steps(step(CloseRegionStep::kDispatch, "DISPATCH", kNoUndo).must_run(),
            step(CloseRegionStep::kReportSucceed, "REPORT_SUCCEED", kNoUndo).must_run());

  explicit CloseRegion(ClusterPorts& ports) : ports_(&ports) {}
  CloseRegion(ClusterPorts& ports, RegionInfo region, ServerName server);

  void fields(auto& f) {
    f.arg(1, "region", region_);
    f.arg(2, "server", server_);
    f(3, "reported_sequence", reported_sequence_);
  }

  Flow execute_from_state(CloseRegionStep step, StepContext& ctx) override;

 private:
  Flow dispatch(StepContext& ctx);
  Flow report_succeed(StepContext& ctx);
  Flow ask_again(StepContext& ctx, const std::string& reason);

  ClusterPorts* ports_;
  RegionInfo region_;
  ServerName server_;
  std::uint64_t reported_sequence_ = 0;  ///< Decided by the server, written in REPORT_SUCCEED.
};

}  // namespace pv2
