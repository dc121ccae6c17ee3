// SPDX-License-Identifier: Apache-2.0
//
// DeleteNamespace: removes a namespace that has no tables.
//
//     PREPARE -> DELETE_FROM_NS_TABLE -> DELETE_DIRECTORIES
//
//     step                  reads and writes                  runs again after a crash
//     PREPARE               the namespace's row, its tables   has changed nothing
//     DELETE_FROM_NS_TABLE  removes the namespace's row       removes nothing
//     DELETE_DIRECTORIES    removes the directory             it is not there
//
// How it fails: in PREPARE only. kNotFound: there is no such namespace. kFailedPrecondition: it is
// reserved, or has tables. DELETE_FROM_NS_TABLE is the point of no return. A directory in which
// files of a table are left is not removed: the procedure tries again, and listings say why, until
// someone has moved the files away. Its result is the namespace's name.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <string>
#include <string_view>
#include <utility>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class DeleteNamespaceStep { kPrepare = 1, kDeleteFromNsTable = 2, kDeleteDirectories = 3 };

/// Threads: as Procedure. Lock: the namespace, exclusively, until it ends; so no table is created
/// in it meanwhile.
class DeleteNamespace final : public StateMachineProcedure<DeleteNamespaceStep> {
 public:
  static constexpr std::string_view kType = "cluster.DeleteNamespace";
  static constexpr auto kSteps =
      steps(step(DeleteNamespaceStep::kPrepare, "PREPARE", kNoUndo).must_run(),
            step(DeleteNamespaceStep::kDeleteFromNsTable, "DELETE_FROM_NS_TABLE", kPointOfNoReturn),
            step(DeleteNamespaceStep::kDeleteDirectories, "DELETE_DIRECTORIES", kNoUndo));

  explicit DeleteNamespace(ClusterPorts& ports) : ports_(&ports) {}
  DeleteNamespace(ClusterPorts& ports, std::string name) : ports_(&ports), name_(std::move(name)) {}

  void fields(auto& f) { f.arg(1, "name", name_); }

  [[nodiscard]] LockSet locks() const override;
  Flow execute_from_state(DeleteNamespaceStep step, StepContext& ctx) override;

 private:
  Flow prepare(StepContext& ctx);
  Flow delete_row(StepContext& ctx);
  Flow delete_directories(StepContext& ctx);

  ClusterPorts* ports_;
  std::string name_;
};

}  // namespace pv2
