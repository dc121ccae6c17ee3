// SPDX-License-Identifier: Apache-2.0
//
// ReplicationHost: what a region server asks of the replication that runs in it. The room
// replication/ implements it. A server without one reports that these operations failed.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/log.h>
#include <pv2/base/status.h>
#include <pv2/procedures/server.h>
#include <pv2/rpc/transport.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pv2/cluster/server_list.h"
#include "storage/cluster_layout.h"
#include "storage/file_tree.h"
#include "storage/server_log.h"
#include "storage/work_queue.h"

namespace pv2::cluster {

/// Called on the loop's thread; must not block there. `done` is called once, from any thread, also
/// within the call. Everything may be asked for again after it was done.
class ReplicationHost {
 public:
  using Done = std::function<void(Status)>;
  virtual ~ReplicationHost() = default;

  /// From now on the server may write. To be called before the first region is opened: an order to
  /// open one shows that the master knows of the server, so that it will be told of peers that are
  /// added from now on; it may have missed one until now.
  virtual void prepare(Done done) = 0;
  /// Reads the configuration of a peer again. A peer that is not stored any more is forgotten. OK:
  /// what the server writes from now on is shipped to the peer, or nothing is, if it is disabled;
  /// and no edits are on their way from here that the peer, as it is stored, does not allow. A
  /// server that is taken for dead is not asked: it sends nothing that it had not begun to send.
  virtual void refresh_peer(std::string peer, Done done) = 0;
  /// Goes on with what the dead server had not shipped to the peer. OK: this server has the queues.
  virtual void claim_queues(ServerName dead, std::string peer, Done done) = 0;
  /// What the server knows of peers.
  [[nodiscard]] virtual std::vector<PeerStatus> status() const = 0;
};

/// Makes the queue for what is read in the directory of this peer. Not OK: it cannot be started.
using MakePeerQueue = std::function<Result<std::unique_ptr<WorkQueue>>(const std::string& peer)>;

/// What a host may use. All of it outlives the host.
struct ReplicationGround {
  ServerName server;
  const FileTree& files;
  const ClusterLayout& layout;
  const ServerLog& log;  ///< Of users' regions.
  WorkQueue& work;
  std::shared_ptr<Transport> transport;
  std::shared_ptr<Clock> clock;
  /// On the loop. OK: the master has not taken the server for dead because of its silence.
  std::function<Status()> check_lease;
  LogSink say{};
  /// Makes a queue for what is read in the directory of one peer, whose file system may hang: then
  /// nothing else waits for it. Without one that is read on `work`.
  MakePeerQueue make_peer_queue{};
  /// Where such a queue, and the client of its peer, end: that waits for what is under way. Without
  /// one that is `work`.
  WorkQueue* peer_ends = nullptr;
};
/// Called once, when the server starts and has its logs.
using MakeReplicationHost =
    std::function<Result<std::unique_ptr<ReplicationHost>>(const ReplicationGround&)>;

}  // namespace pv2::cluster
