// SPDX-License-Identifier: Apache-2.0
//
// InitMeta: makes the catalogue of a new cluster: its table, its one region on a server, and the
// namespaces "default" and "system".
//
//     WRITE_FS_LAYOUT -> ASSIGN_META -> CREATE_NAMESPACES
//
//     step               reads                          writes
//     WRITE_FS_LAYOUT    the region's row, its data     the directory of the catalogue's table
//     ASSIGN_META                                       the region's row, CLOSED; a child opens it
//     CREATE_NAMESPACES                                 directories, then rows of the namespaces
//
// How it fails: in the first step only, before anything is changed. kFailedPrecondition: the
// cluster has a catalogue already, or the directory of its table holds data. After that it asks
// again for as long as it takes. Each step may run again after a crash, with the same effects.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <string_view>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class InitMetaStep { kWriteFsLayout = 1, kAssignMeta = 2, kCreateNamespaces = 3 };

/// The table of the catalogue as InitMeta makes it: a family for regions, for namespaces and for
/// tables.
[[nodiscard]] TableDescriptor meta_descriptor();

/// Threads: as Procedure. Lock: kMeta, exclusively, until it ends, so that only one of
/// them runs. What it makes is locked by who works on it: its child, or a ServerCrash.
class InitMeta final : public StateMachineProcedure<InitMetaStep> {
 public:
  using Step = InitMetaStep;
  static constexpr std::string_view kType = "cluster.InitMeta";
  static constexpr auto kSteps =
      steps(step(Step::kWriteFsLayout, "WRITE_FS_LAYOUT", kPointOfNoReturn).must_run(),
            step(Step::kAssignMeta, "ASSIGN_META", kNoUndo),
            step(Step::kCreateNamespaces, "CREATE_NAMESPACES", kNoUndo));

  explicit InitMeta(ClusterPorts& ports) : ports_(&ports) {}

  void fields(auto& /*f*/) {}

  [[nodiscard]] LockSet locks() const override;
  [[nodiscard]] Priority priority() const override { return Priority::kMeta; }
  Flow execute_from_state(Step step, StepContext& ctx) override;

 private:
  Flow write_fs_layout(StepContext& ctx);
  Flow assign_meta(StepContext& ctx);
  Flow create_namespaces(StepContext& ctx);

  ClusterPorts* ports_;
};

}  // namespace pv2
