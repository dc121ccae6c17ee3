// SPDX-License-Identifier: Apache-2.0
//
// The list of built-in procedures, in one place, so that a host cannot forget to register one whose
// children it would meet later.

#include "pv2/procedures/cluster_ports.h"

#include "pv2/procedures/add_peer.h"
#include "pv2/procedures/assign_server_regions.h"
#include "pv2/procedures/claim_queues.h"
#include "pv2/procedures/close_region.h"
#include "pv2/procedures/close_table_regions.h"
#include "pv2/procedures/create_namespace.h"
#include "pv2/procedures/create_table.h"
#include "pv2/procedures/delete_namespace.h"
#include "pv2/procedures/delete_table.h"
#include "pv2/procedures/disable_peer.h"
#include "pv2/procedures/disable_table.h"
#include "pv2/procedures/enable_peer.h"
#include "pv2/procedures/enable_table.h"
#include "pv2/procedures/init_meta.h"
#include "pv2/procedures/lock_procedure.h"
#include "pv2/procedures/merge_table_regions.h"
#include "pv2/procedures/modify_namespace.h"
#include "pv2/procedures/modify_table.h"
#include "pv2/procedures/open_region.h"
#include "pv2/procedures/refresh_peer.h"
#include "pv2/procedures/remove_peer.h"
#include "pv2/procedures/reopen_table_regions.h"
#include "pv2/procedures/server_crash.h"
#include "pv2/procedures/split_log.h"
#include "pv2/procedures/split_log_remote.h"
#include "pv2/procedures/split_table_region.h"
#include "pv2/procedures/transit_region_state.h"
#include "pv2/procedures/truncate_table.h"
#include "pv2/procedures/update_peer_config.h"

namespace pv2 {

ClusterPorts& ports_elsewhere() noexcept {
  // Storage without an object in it: a procedure that is only described keeps the address.
  union Nowhere {
    Nowhere() noexcept {}
    ~Nowhere() {}
    ClusterPorts ports;
  };
  static Nowhere nowhere;
  return nowhere.ports;
}

void add_cluster_procedures(ProcedureRegistry& registry, ClusterPorts& ports) {
  registry.add<CreateTable>(ports)
      .add<DeleteTable>(ports)
      .add<EnableTable>(ports)
      .add<DisableTable>(ports)
      .add<CloseTableRegions>(ports)
      .add<ModifyTable>(ports)
      .add<ReopenTableRegions>(ports)
      .add<TruncateTable>(ports);
  registry.add<CreateNamespace>(ports).add<ModifyNamespace>(ports).add<DeleteNamespace>(ports);
  registry.add<AddPeer>(ports)
      .add<RemovePeer>(ports)
      .add<EnablePeer>(ports)
      .add<DisablePeer>(ports)
      .add<UpdatePeerConfig>(ports)
      .add<RefreshPeer>(ports);
  registry.add<LockProcedure>();
  registry.add<TransitRegionState>(ports).add<OpenRegion>(ports).add<CloseRegion>(ports);
  registry.add<SplitTableRegion>(ports).add<MergeTableRegions>(ports);
  registry.add<ServerCrash>(ports)
      .add<SplitLog>(ports)
      .add<SplitLogRemote>(ports)
      .add<AssignServerRegions>(ports)
      .add<ClaimQueues>(ports);
  registry.add<InitMeta>(ports);
}

}  // namespace pv2
