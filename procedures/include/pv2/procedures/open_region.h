// SPDX-License-Identifier: Apache-2.0
//
// OpenRegion: one attempt of a TransitRegionState to open a region on one server.
//
//     DISPATCH -> REPORT_SUCCEED
//
//     step             reads              writes
//     DISPATCH         reports, server    OPENING on the server; then asks the server
//     REPORT_SUCCEED                      OPEN on the server, with the sequence it reported
//
// It ends in DISPATCH without having opened the region when the server refuses, reports a failure,
// is dead, or was certainly never asked. It always succeeds: its parent looks at the catalogue. Its
// result says what went wrong, for people; it is empty if nothing did.
//
// When DISPATCH runs again after a crash, it writes and asks under the same effect key, so the
// server is asked once. If a report has arrived meanwhile, it asks nobody.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class OpenRegionStep { kDispatch = 1, kReportSucceed = 2 };

/// Threads: as Procedure. Lock: none of its own; its parent has the region's.
class OpenRegion final : public StateMachineProcedure<OpenRegionStep> {
 public:
  static constexpr std::string_view kType = "cluster.OpenRegion";
  static constexpr bool kChildOnly = true;
  static constexpr bool kFinalOnSuccess = true;
  static constexpr auto kSteps =
      steps(step(OpenRegionStep::kDispatch, "DISPATCH", kNoUndo).must_run(),
            step(OpenRegionStep::kReportSucceed, "REPORT_SUCCEED", kNoUndo).must_run());

  explicit OpenRegion(ClusterPorts& ports) : ports_(&ports) {}
  /// Whether somebody has asked the server before, who cannot say how it ended. Persisted.
  enum class Asked : std::uint8_t { kNever = 1, kPerhaps = 2 };
  /// `sequence`: the highest one that the region is known to have.
  OpenRegion(ClusterPorts& ports, RegionInfo region, ServerName server, std::uint64_t sequence,
             Asked asked_before = Asked::kNever);

  void fields(auto& f) {
    f.arg(1, "region", region_);
    f.arg(2, "server", server_);
    f.arg(3, "sequence", sequence_);
    f(4, "reported_sequence", reported_sequence_);
    f.arg(5, "asked_before", asked_before_);
  }

  Flow execute_from_state(OpenRegionStep step, StepContext& ctx) override;

 private:
  Flow dispatch(StepContext& ctx);
  Flow report_succeed(StepContext& ctx);
  Flow ask_again(StepContext& ctx, const std::string& reason);

  ClusterPorts* ports_;
  RegionInfo region_;
  ServerName server_;
  std::uint64_t sequence_ = 0;
  Asked asked_before_ = Asked::kNever;
  std::uint64_t reported_sequence_ = 0;  ///< Decided by the server, written in REPORT_SUCCEED.
};

}  // namespace pv2
