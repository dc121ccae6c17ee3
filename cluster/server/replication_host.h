// SPDX-License-Identifier: Apache-2.0
//
// ReplicationHost: what a region server asks of the replication that runs in it. The room
// replication/ implements it. A server without one reports that these operations failed.

#pragma once

#include <pv2/base/status.h>
#include <pv2/procedures/server.h>

#include <functional>
#include <memory>
#include <string>

#include "storage/cluster_layout.h"
#include "storage/file_tree.h"
#include "storage/work_queue.h"

namespace pv2 {
class Transport;
}

namespace pv2::cluster {

/// Called on the loop's thread; must not block there. `done` is called once, from any thread, also
/// within the call. Both may be asked for again after they were done.
class ReplicationHost {
 public:
  using Done = std::function<void(Status)>;
  virtual ~ReplicationHost() = default;

  /// Reads the configuration of a peer again. A peer that is not stored any more is forgotten.
  virtual void refresh_peer(std::string peer, Done done) = 0;
  /// Goes on with what the dead server had not shipped to the peer. OK: this server has the queues.
  virtual void claim_queues(ServerName dead, std::string peer, Done done) = 0;
};

/// What a host may use. All of it outlives the host.
struct ReplicationGround {
  ServerName server;
  const FileTree& files;
  const ClusterLayout& layout;
  WorkQueue& work;
  Transport& transport;
};
/// Called once, when the server starts and has its logs.
using MakeReplicationHost =
    std::function<Result<std::unique_ptr<ReplicationHost>>(const ReplicationGround&)>;

}  // namespace pv2::cluster
