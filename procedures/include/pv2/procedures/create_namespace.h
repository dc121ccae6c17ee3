// SPDX-License-Identifier: Apache-2.0
//
// CreateNamespace: makes a namespace, in which tables can be created then.
//
//     PREPARE -> CREATE_DIRECTORY -> INSERT_INTO_NS_TABLE
//
//     step                  reads and writes             runs again after a crash
//     PREPARE               the namespace's row          has changed nothing
//     CREATE_DIRECTORY      makes the directory          it is there
//     INSERT_INTO_NS_TABLE  the namespace's row          same effect key
//
// How it fails: in PREPARE only. kInvalidArgument: a bad name. kAlreadyExists: there is such a
// namespace. CREATE_DIRECTORY is the point of no return. Its result is the namespace's name.
// HBase's SET_NAMESPACE_QUOTA is left out: the limit is part of the row.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <string_view>
#include <utility>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class CreateNamespaceStep { kPrepare = 1, kCreateDirectory = 2, kInsertIntoNsTable = 3 };

/// Threads: as Procedure. Lock: the namespace, exclusively, until it ends.
class CreateNamespace final : public StateMachineProcedure<CreateNamespaceStep> {
 public:
  static constexpr std::string_view kType = "cluster.CreateNamespace";
  static constexpr auto kSteps =
      steps(step(CreateNamespaceStep::kPrepare, "PREPARE", kNoUndo).must_run(),
            step(CreateNamespaceStep::kCreateDirectory, "CREATE_DIRECTORY", kPointOfNoReturn),
            step(CreateNamespaceStep::kInsertIntoNsTable, "INSERT_INTO_NS_TABLE", kNoUndo));

  explicit CreateNamespace(ClusterPorts& ports) : ports_(&ports) {}
  CreateNamespace(ClusterPorts& ports, NamespaceRow row) : ports_(&ports), row_(std::move(row)) {}

  void fields(auto& f) { f.arg(1, "namespace", row_); }

  [[nodiscard]] LockSet locks() const override;
  Flow execute_from_state(CreateNamespaceStep step, StepContext& ctx) override;

 private:
  Flow prepare(StepContext& ctx);
  Flow create_directory(StepContext& ctx);
  Flow insert_row(StepContext& ctx);

  ClusterPorts* ports_;
  NamespaceRow row_;
};

}  // namespace pv2
