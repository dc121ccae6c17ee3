// SPDX-License-Identifier: Apache-2.0
//
// ModifyNamespace: changes how many tables may be created in a namespace.
//
//     PREPARE -> UPDATE_NS_TABLE
//
//     step             reads and writes                     runs again after a crash
//     PREPARE          the namespace's row, its tables      has changed nothing
//     UPDATE_NS_TABLE  the namespace's row                  same effect key
//
// How it fails: in PREPARE only. kNotFound: there is no such namespace. kFailedPrecondition: it has
// more tables than the new limit, or it is the system's. UPDATE_NS_TABLE is the point of no return.
// Its result is the namespace's name.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <string_view>
#include <utility>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class ModifyNamespaceStep { kPrepare = 1, kUpdateNsTable = 2 };

/// Threads: as Procedure. Lock: the namespace, exclusively, until it ends; so no table is created
/// in it meanwhile.
class ModifyNamespace final : public StateMachineProcedure<ModifyNamespaceStep> {
 public:
  static constexpr std::string_view kType = "cluster.ModifyNamespace";
  static constexpr auto kSteps =
      steps(step(ModifyNamespaceStep::kPrepare, "PREPARE", kNoUndo).must_run(),
            step(ModifyNamespaceStep::kUpdateNsTable, "UPDATE_NS_TABLE", kPointOfNoReturn));

  explicit ModifyNamespace(ClusterPorts& ports) : ports_(&ports) {}
  ModifyNamespace(ClusterPorts& ports, NamespaceRow row) : ports_(&ports), row_(std::move(row)) {}

  void fields(auto& f) { f.arg(1, "namespace", row_); }

  [[nodiscard]] LockSet locks() const override;
  Flow execute_from_state(ModifyNamespaceStep step, StepContext& ctx) override;

 private:
  Flow prepare(StepContext& ctx);
  Flow update_row(StepContext& ctx);

  ClusterPorts* ports_;
  NamespaceRow row_;
};

}  // namespace pv2
