// SPDX-License-Identifier: Apache-2.0
//
// ServerReplication: the replication that runs in one region server: the peers that the server
// knows and a QueueShipper for each of its queues.
//
// Invariants:
// - What the server writes after refresh_peer() was done is shipped to the peer: its queue was made
//   durable before, at a position that no later write can be before. Nothing is promised of earlier
//   writes; some of them are shipped too. Peers that were stored before the server's first region
//   was opened have all of its writes: prepare().
// - A server that was fenced leaves no queue behind: it looks at its fence after it has made one,
//   and whoever takes its place looks for queues after the fence.
// - All changes of queues are made on one work queue, in order. So when a peer was refreshed away,
//   nothing is recorded for it any more.
// - What may hang with the directory of a peer is done on a queue of that peer, or by its client:
//   nobody waits for it but the shipping to that peer.
//
// It also reads all peers from time to time, in case it was not told of one.

#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pv2/cluster/cluster_client.h"
#include "replication/queue_files.h"
#include "replication/queue_shipper.h"
#include "server/replication_host.h"
#include "storage/peer_files.h"
#include "wire/loop_tasks.h"

namespace pv2::cluster {

/// For ServerGround::make_replication.
[[nodiscard]] MakeReplicationHost replication_of_servers();

/// Used on the loop only, but for construction and destruction.
class ServerReplication final : public ReplicationHost {
 public:
  explicit ServerReplication(const ReplicationGround& ground);
  ~ServerReplication() override;
  /// To be called once: from now on it ships by itself.
  void look();

  void prepare(Done done) override;
  void refresh_peer(std::string peer, Done done) override;
  void claim_queues(ServerName dead, std::string peer, Done done) override;
  [[nodiscard]] std::vector<PeerStatus> status() const override;

 private:
  struct Peer {
    PeerRow row;
    std::unique_ptr<WorkQueue> looks;  ///< Null: there is none of its own.
    std::unique_ptr<ClusterClient> client;
    std::map<ServerName, std::shared_ptr<QueueShipper>> queues;  ///< By owner.
  };
  /// A peer as the files have it.
  struct Stored {
    std::string id;
    std::optional<PeerRow> row{};
    std::vector<StoredQueue> queues{};
    Status status{};
    /// Stored, but the row cannot be read. Its queue is kept all the same: the file may be mended.
    [[nodiscard]] bool is_damaged() const {
      return !row && status.code() == StatusCode::kCorruption;
    }
  };
  using StoredPeers = std::shared_ptr<std::vector<Stored>>;

  // On the work queue.
  void load(Stored& stored) const;
  Status make_queue(const std::string& peer) const;
  Status load_all(std::vector<Stored>& all) const;

  static void end(const Peer& peer);

  // On the loop.
  /// `done`: nothing is shipped any more that the peer, as it is stored, does not allow.
  void take(const Stored& stored, const Done& done);
  void take_all(const StoredPeers& all, const Status& status);
  Status connect(Peer& peer, const PeerRow& row);
  /// Nothing is under way to it; a look at its directory may be.
  void bury(Peer& peer);
  /// `done`: no edits are on their way to it, also if it was forgotten before.
  void forget(const std::string& peer, const Done& done);
  void when_left(const std::string& peer, const Done& done);
  void add_shipper(Peer& peer, const StoredQueue& queue);
  static void when_current(const Peer& peer, const std::function<void()>& done);
  void read_all(Done done);

  ReplicationGround ground_;
  const PeerFiles peer_files_;
  const QueueFiles queue_files_;
  std::map<std::string, Peer> peers_;
  std::list<Peer> leaving_;  ///< Forgotten, and something is under way still.
  bool is_prepared_ = false;
  SteadyTime next_reading_ = SteadyTime::min();
  LoopTasks tasks_;
};

}  // namespace pv2::cluster
