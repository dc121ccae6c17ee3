// SPDX-License-Identifier: Apache-2.0
//
// AssignServerRegions: the child of ServerCrash that opens one group of a dead server's regions
// elsewhere. A group is as many regions as one step starts children for. The groups are children of
// their own so that none of them waits for another one: a region that cannot be opened, or whose
// table is locked, keeps no region of another group closed.
//
//     SCHEDULE -> FINISH
//
//     step       reads                                writes
//     SCHEDULE   those of the group that still name   ABNORMALLY_CLOSED; a TransitRegionState
//                the server                           (ASSIGN) for each
//     FINISH     nothing                              nothing; the children have ended
//
// It never fails and is never undone: what cannot be reached is asked again. SCHEDULE may run again
// after a crash: its writes have effect keys, and its children are part of its record. Whether a
// region is left on the server is looked at by ServerCrash.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class AssignServerRegionsStep { kSchedule = 1, kFinish = 2 };

/// Threads: as Procedure. Lock: none of its own; its parent, a ServerCrash, has the dead server's,
/// and its children lock their regions.
class AssignServerRegions final : public StateMachineProcedure<AssignServerRegionsStep> {
 public:
  using Step = AssignServerRegionsStep;
  static constexpr std::string_view kType = "cluster.AssignServerRegions";
  static constexpr bool kChildOnly = true;
  static constexpr std::string_view kCountedAs = "groups of regions";
  static constexpr auto kSteps =
      steps(step(Step::kSchedule, "SCHEDULE", kNoUndo), step(Step::kFinish, "FINISH", kNoUndo));

  explicit AssignServerRegions(ClusterPorts& ports) : ports_(&ports) {}
  /// `ids`: those of the group.
  AssignServerRegions(ClusterPorts& ports, ServerName dead, RegionIds ids)
      : ports_(&ports), dead_(std::move(dead)), ids_(std::move(ids)) {}

  void fields(auto& f) {
    f.arg(1, "dead", dead_);
    f.arg(2, "ids", ids_);
  }

  /// The usual priority of its parent.
  [[nodiscard]] Priority priority() const override { return Priority::kHigh; }
  Flow execute_from_state(Step step, StepContext& ctx) override;

 private:
  Flow schedule(StepContext& ctx);
  /// Marks the rows of `group`, the first of `rows` rows. No value: all are marked. Otherwise what
  /// the step answers.
  std::optional<Flow> mark_closed(std::span<const RegionRow> group, std::size_t rows,
                                  StepContext& ctx);

  ClusterPorts* ports_;
  ServerName dead_;
  RegionIds ids_;
};

}  // namespace pv2
