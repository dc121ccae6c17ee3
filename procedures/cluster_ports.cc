// SPDX-License-Identifier: Apache-2.0
//
// The list of built-in procedures, in one place, so that a host cannot forget to register one whose
// children it would meet later.

#include "pv2/procedures/cluster_ports.h"

#include "pv2/procedures/assign_region.h"
#include "pv2/procedures/create_table.h"
#include "pv2/procedures/server_crash.h"

namespace pv2 {

void add_cluster_procedures(ProcedureRegistry& registry, ClusterPorts& ports) {
  registry.add<CreateTable>(ports).add<AssignRegion>(ports).add<ServerCrash>(ports);
}

}  // namespace pv2
