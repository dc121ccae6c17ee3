// SPDX-License-Identifier: Apache-2.0
//
// The region server as a process, with its replication.

#include "pv2/cluster/region_server.h"
#include "replication/server_replication.h"
#include "server/region_server.h"

namespace pv2::cluster {

int run_region_server(const RegionServerOptions& options) {
  return run_region_server(options, replication_of_servers());
}

}  // namespace pv2::cluster
