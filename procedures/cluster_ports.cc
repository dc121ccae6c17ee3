// SPDX-License-Identifier: Apache-2.0
//
// The list of built-in procedures, in one place, so that a host cannot forget to register one whose
// children it would meet later.

#include "pv2/procedures/cluster_ports.h"

#include "pv2/procedures/claim_queues.h"
#include "pv2/procedures/close_region.h"
#include "pv2/procedures/create_table.h"
#include "pv2/procedures/init_meta.h"
#include "pv2/procedures/merge_table_regions.h"
#include "pv2/procedures/open_region.h"
#include "pv2/procedures/server_crash.h"
#include "pv2/procedures/split_log.h"
#include "pv2/procedures/split_log_remote.h"
#include "pv2/procedures/split_table_region.h"
#include "pv2/procedures/transit_region_state.h"

namespace pv2 {

void add_cluster_procedures(ProcedureRegistry& registry, ClusterPorts& ports) {
  registry.add<CreateTable>(ports)
      .add<TransitRegionState>(ports)
      .add<OpenRegion>(ports)
      .add<CloseRegion>(ports)
      .add<ServerCrash>(ports)
      .add<SplitLog>(ports)
      .add<SplitLogRemote>(ports)
      .add<ClaimQueues>(ports)
      .add<InitMeta>(ports)
      .add<SplitTableRegion>(ports)
      .add<MergeTableRegions>(ports);
}

}  // namespace pv2
