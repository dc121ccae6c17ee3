// SPDX-License-Identifier: Apache-2.0
//
// RegionServer: a region server as an object, over the transport, clock, files and queues that it
// is given: so it runs in a process of its own (region_server_process.cc) and in a simulation on
// one thread. It puts the parts together and starts them in the right order.
//
// How it fails: when it is fenced, or its log or a region fails, it calls `on_end` once, and from
// then on acknowledges nothing. Without stop() its destructor is a crash.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/status.h>
#include <pv2/procedures/server.h>
#include <pv2/rpc/transport.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "pv2/cluster/region_server.h"
#include "pv2/cluster/server_list.h"
#include "server/replication_host.h"
#include "server/server_context.h"
#include "storage/file_tree.h"

namespace pv2::cluster {

/// What a server runs on. The files and the queues outlive it; see ServerQueues for their end.
struct ServerGround {
  std::shared_ptr<Transport> transport;
  std::shared_ptr<Clock> clock;
  const FileTree& files;
  ServerQueues queues;
  /// Called once, on the loop, when the server ends itself. It may not destroy the server.
  std::function<void(const Status&)> on_end;
  MakeReplicationHost make_replication{};  ///< Without it the server has no replication.
  /// A queue of its own for replication. Without it replication uses the one of the regions.
  WorkQueue* replication_work = nullptr;
  /// For what hangs if the directory of another cluster does: ReplicationGround. Without them
  /// replication uses its own queue.
  MakePeerQueue make_peer_queue{};
  WorkQueue* peer_ends = nullptr;
  /// A queue of its own for looks where the master is. Without it the loop looks.
  WorkQueue* looks = nullptr;
};

/// Thread-safe, except construction and destruction.
class RegionServer {
 public:
  /// Makes the server's logs, listens, and then tells the master. Blocks on disk.
  [[nodiscard]] static Result<std::unique_ptr<RegionServer>> start(RegionServerOptions options,
                                                                   ServerGround ground);
  /// A thread of the transport's own must not destroy it.
  ~RegionServer();
  /// Closes all regions, tells the master that the server leaves, and calls `done`, on the loop;
  /// never if the server ends itself before. To be called once.
  void stop(std::function<void()> done);
  RegionServer(const RegionServer&) = delete;
  RegionServer& operator=(const RegionServer&) = delete;

  [[nodiscard]] const ServerName& name() const noexcept;
  [[nodiscard]] const std::string& address() const noexcept;
  /// What server.status answers.
  [[nodiscard]] ServerStatus status() const;
  [[nodiscard]] bool is_ended() const;

 private:
  struct Parts;
  explicit RegionServer(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

/// A start code for a new run: the time, but above that of every directory of the host.
[[nodiscard]] Result<std::uint64_t> choose_start_code(const FileTree& files,
                                                      const ClusterLayout& layout,
                                                      const std::string& host, WallTime now);

/// run_region_server() of pv2/cluster/region_server.h, which gives it the room replication/.
int run_region_server(const RegionServerOptions& options, MakeReplicationHost make_replication);

}  // namespace pv2::cluster
