// SPDX-License-Identifier: Apache-2.0
//
// ClusterPorts: everything that a procedure may know of the cluster, in one dependency. What
// implements the ports (memory, processes on one machine, a real cluster) does not concern a
// procedure and may change without it.

#pragma once

#include <pv2/engine/procedure_registry.h>

#include "pv2/procedures/catalogue.h"
#include "pv2/procedures/descriptor_cache.h"
#include "pv2/procedures/peer_storage.h"
#include "pv2/procedures/server_calls.h"
#include "pv2/procedures/server_logs.h"
#include "pv2/procedures/table_files.h"

namespace pv2 {

/// The ports of one cluster; they must outlive every holder of this. Const methods may be called
/// concurrently.
struct ClusterPorts {
  Catalogue& catalogue;
  TableFiles& files;
  ServerCalls& servers;
  ServerLogs& logs;
  PeerStorage& peers;
  DescriptorCache& descriptors;
};

/// For a procedure that is made in this program and runs in another, which the arguments of the
/// procedure are sent to (RemoteExecutor). A step must not run with these: they are nothing.
[[nodiscard]] ClusterPorts& ports_elsewhere() noexcept;

/// Registers all built-in procedures. `ports` must outlive the executor.
void add_cluster_procedures(ProcedureRegistry& registry, ClusterPorts& ports);

}  // namespace pv2
