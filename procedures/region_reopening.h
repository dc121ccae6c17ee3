// SPDX-License-Identifier: Apache-2.0
//
// RegionReopening: opens regions again in the undo of a split or merge that has closed them. An
// undo can start no child, so this does in one run of the undo what a TransitRegionState does in
// several steps. What it decides is in the catalogue: the row that is OPENING names the server, and
// a later run goes on with that server.
//
// It opens only what is not open: a region that was never closed, because the step had not got that
// far, stays as it is.

#pragma once

#include <pv2/engine/step_context.h>

#include <cstdint>
#include <string>
#include <vector>

#include "pv2/procedures/cluster_ports.h"
#include "remote_report.h"

namespace pv2 {

/// Lives for one run of an undo.
class RegionReopening {
 public:
  enum class Kind {
    kOpen,      ///< The region is open.
    kWait,      ///< The undo has to wait.
    kRetry,     ///< The undo has to be tried again; `why` says what is missing.
    kNewRound,  ///< The server could not open the region: try again with a higher round.
  };
  struct Answer {
    Kind kind = Kind::kOpen;
    Status why{};
  };

  /// `round` is durable, and grows whenever a server could not open a region.
  RegionReopening(ClusterPorts& ports, StepContext& ctx, std::uint32_t round)
      : ports_(ports), ctx_(ctx), round_(round), reports_(all_reports(ctx)) {}

  /// To be called for the same regions in the same order in each run, until one answer is not
  /// kOpen.
  [[nodiscard]] Answer reopen(const RegionInfo& region);

 private:
  [[nodiscard]] Answer open_on(const RegionInfo& region, const ServerName& target,
                               std::uint64_t sequence);
  [[nodiscard]] Answer record(const RegionInfo& region, const ServerName& target,
                              std::uint64_t sequence);
  [[nodiscard]] Answer give_up(const RegionInfo& region, const ServerName& target,
                               const std::string& reason);
  [[nodiscard]] std::string key(const RegionInfo& region, const ServerName& target) const;

  ClusterPorts& ports_;
  StepContext& ctx_;
  std::uint32_t round_;
  std::vector<RemoteReport> reports_;
};

}  // namespace pv2
