// SPDX-License-Identifier: Apache-2.0
//
// CloseTableRegions: the child of DisableTable that closes every region of the table. It converges:
// it closes what is not closed, then looks again, and begins anew until nothing is left.
//
//     SCHEDULE -> CONFIRM -> done
//        ^___________|
//         a region is not closed
//
//     step       reads and writes                                  runs again after a crash
//     SCHEDULE   the rows of the regions; a TransitRegionState     its children are part of its
//                (UNASSIGN) for each that some server may have     record
//     CONFIRM    the rows of the regions                           only reads
//
// It never fails and is never undone: what cannot be reached is asked again. A region that is hit
// by the crash of its server is opened elsewhere and closed there, by its own child, so that no
// edit is missed.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <string_view>
#include <utility>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class CloseTableRegionsStep { kSchedule = 1, kConfirm = 2 };

/// Threads: as Procedure. Lock: the table, exclusively, which its parent has.
class CloseTableRegions final : public StateMachineProcedure<CloseTableRegionsStep> {
 public:
  static constexpr std::string_view kType = "cluster.CloseTableRegions";
  static constexpr bool kChildOnly = true;
  static constexpr auto kSteps = steps(step(CloseTableRegionsStep::kSchedule, "SCHEDULE", kNoUndo),
                                       step(CloseTableRegionsStep::kConfirm, "CONFIRM", kNoUndo));

  explicit CloseTableRegions(ClusterPorts& ports) : ports_(&ports) {}
  CloseTableRegions(ClusterPorts& ports, TableName table)
      : ports_(&ports), table_(std::move(table)) {}

  void fields(auto& f) { f.arg(1, "table", table_); }

  [[nodiscard]] LockSet locks() const override;
  Flow execute_from_state(CloseTableRegionsStep step, StepContext& ctx) override;

 private:
  Flow schedule(StepContext& ctx);
  Flow confirm(StepContext& ctx);

  ClusterPorts* ports_;
  TableName table_;
};

}  // namespace pv2
