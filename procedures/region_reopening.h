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
#include <optional>
#include <string>
#include <vector>

#include "pv2/procedures/cluster_ports.h"
#include "pv2/procedures/open_region.h"
#include "pv2/procedures/reopen_progress.h"
#include "remote_report.h"

namespace pv2 {

/// Lives for one run of an undo.
class RegionReopening {
 public:
  enum class Kind {
    kOpen,      ///< All are open.
    kWait,      ///< The undo has to wait.
    kRetry,     ///< The undo has to be tried again; `why` says what is missing.
    kNewRound,  ///< A server could not open a region, and the progress has changed. A retry goes
                ///< back to the last durable image, so the undo first makes it durable by a wait of
                ///< no length; the next run of this attempt is then answered with a retry.
  };
  struct Answer {
    Kind kind = Kind::kOpen;
    Status why{};
  };

  RegionReopening(ClusterPorts& ports, StepContext& ctx, ReopenProgress& progress)
      : ports_(ports), ctx_(ctx), progress_(progress), reports_(all_reports(ctx)) {}

  /// To be called for the same regions in the same order in each run.
  [[nodiscard]] Answer reopen(const std::vector<RegionInfo>& regions);

 private:
  /// What a server has made of an operation.
  struct Reply {
    std::optional<RemoteReport> done{};    ///< It has done it.
    std::optional<std::string> refusal{};  ///< It never does it under this key; why.
    Answer answer{};                       ///< Neither is known: what the undo has to do.
  };

  [[nodiscard]] Answer reopen_one(const RegionInfo& region);
  /// `asked_before` kNever: a server that was not reached is like one that has refused.
  [[nodiscard]] Reply ask(const RemoteOperation& operation, OpenRegion::Asked asked_before);
  [[nodiscard]] Answer open_on(const RegionInfo& region, const ServerName& target,
                               std::uint64_t sequence, OpenRegion::Asked asked_before);
  /// kOpen means here that the row says CLOSED.
  [[nodiscard]] Answer close_on(const RegionInfo& region, const ServerName& home);
  [[nodiscard]] Answer record(const RegionInfo& region, const ServerName& target,
                              std::uint64_t sequence);
  [[nodiscard]] Answer give_up(const RegionInfo& region, const ServerName& target,
                               const std::string& reason);
  [[nodiscard]] std::string key(const RegionInfo& region, const ServerName& target) const;

  ClusterPorts& ports_;
  StepContext& ctx_;
  ReopenProgress& progress_;
  std::vector<RemoteReport> reports_;
};

}  // namespace pv2
