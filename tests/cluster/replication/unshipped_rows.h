// SPDX-License-Identifier: Apache-2.0
//
// UnshippedRows: two clusters whose peer is disabled, with rows in the queues of all servers of the
// first, and one of these servers chosen to die. Tests of what happens to a dead server's queue
// begin with it.

#pragma once

#include <pv2/procedures/disable_peer.h>

#include "cluster/replication/replication_world.h"
#include "replication/queue_files.h"

namespace pv2::testing::replication_world {

/// Owned by one thread.
struct UnshippedRows {
  UnshippedRows() {
    world.add_peer();
    REQUIRE(source.run(DisablePeer(ports_elsewhere(), kPeer)).status.ok());
    rows = world.put_many(30);
    dead = source.servers().front();
  }
  /// Kills `dead`. When this returns, others have its regions and its queue.
  void lose_server() { REQUIRE(world.lose_first_server() == dead); }
  /// Waits until all is shipped, and compares the second cluster with `rows`.
  void check_shipped() {
    world.run_until_shipped();
    CHECK(world.rows_of(world.target) == rows);
    CHECK(source.disorder().empty());
  }

  TwoClusters world;
  ClusterWorld& source = world.source;
  const cluster::QueueFiles queues{source.files, source.layout};
  Rows rows;        ///< What the second cluster has to have in the end.
  ServerName dead;  ///< The server that dies.
};

}  // namespace pv2::testing::replication_world
