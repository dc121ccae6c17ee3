// SPDX-License-Identifier: Apache-2.0
//
// Files are read and written on the work queue; what was found is taken on the loop.

#include "replication/server_replication.h"

#include <pv2/base/hash128.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace pv2::cluster {
namespace {

// How often a queue looks for new entries: what an edit waits for at most before it is on its way.
constexpr Duration kLookEvery = std::chrono::milliseconds(100);
// How often the peers are read without being asked for.
constexpr Duration kReadEvery = std::chrono::seconds(5);

}  // namespace

MakeReplicationHost replication_of_servers() {
  return [](const ReplicationGround& ground) -> Result<std::unique_ptr<ReplicationHost>> {
    auto replication = std::make_unique<ServerReplication>(ground);
    run_on_loop(*ground.transport, [&] { replication->look(); });
    return Result<std::unique_ptr<ReplicationHost>>(std::move(replication));
  };
}

ServerReplication::ServerReplication(const ReplicationGround& ground)
    : ground_(ground),
      peer_files_(ground.files, ground.layout),
      queue_files_(ground.files, ground.layout),
      tasks_(ground.transport) {}

ServerReplication::~ServerReplication() {
  // Before the clients end: what waits for them must not be called any more.
  tasks_.end();
  for (const auto& [id, peer] : peers_) end(peer);
  for (const Peer& peer : leaving_) end(peer);
}

void ServerReplication::end(const Peer& peer) {
  for (const auto& [owner, shipper] : peer.queues) shipper->end();
}

void ServerReplication::look() {
  for (const auto& [id, peer] : peers_) {
    const auto queues = peer.queues;  // one that ends is removed
    for (const auto& [owner, shipper] : queues) shipper->look();
  }
  if (tasks_.now() >= next_reading_) read_all([](const Status&) {});
  tasks_.after(kLookEvery, [this] { look(); });
}

void ServerReplication::prepare(Done done) {
  if (is_prepared_) return done(Status());
  read_all([this, done = std::move(done)](const Status& status) {
    is_prepared_ = is_prepared_ || status.ok();
    done(status);
  });
}

void ServerReplication::refresh_peer(std::string peer, Done done) {
  const auto stored = std::make_shared<Stored>(Stored{.id = std::move(peer)});
  ground_.work.run([this, stored, done = std::move(done), post = tasks_.poster()] {
    load(*stored);
    post([this, stored, done] { take(*stored, done); });
  });
}

void ServerReplication::claim_queues(ServerName dead, std::string peer, Done done) {
  const auto stored = std::make_shared<Stored>(Stored{.id = std::move(peer)});
  ground_.work.run(
      [this, dead = std::move(dead), stored, done = std::move(done), post = tasks_.poster()] {
        load(*stored);
        // A claim needs no configuration.
        const bool is_stored = stored->row || stored->is_damaged();
        Status claimed = stored->is_damaged() ? Status() : stored->status;
        if (claimed.ok() && !is_stored) claimed = queue_files_.remove_all(stored->id, dead);
        if (claimed.ok() && is_stored) {
          claimed = queue_files_.claim(stored->id, dead, ground_.server);
          // Also after a failure: what was moved is here now.
          auto queues = queue_files_.queues(stored->id, ground_.server);
          if (claimed.ok()) claimed = queues.status();
          if (queues.ok()) stored->queues = *std::move(queues);
        }
        post([this, stored, claimed, done] {
          take(*stored, [](const Status&) {});
          done(claimed);
        });
      });
}

std::vector<PeerStatus> ServerReplication::status() const {
  std::vector<PeerStatus> all;
  for (const auto& [id, peer] : peers_) {
    PeerStatus& status = all.emplace_back(PeerStatus{peer.row, {}});
    for (const auto& [owner, shipper] : peer.queues) status.queues.push_back(shipper->status());
  }
  return all;
}

void ServerReplication::load(Stored& stored) const {
  auto row = peer_files_.read(stored.id);
  stored.status = row.status();
  if (stored.is_damaged()) {
    // What is written from now on must not be missing if the file is mended.
    if (Status bad = make_queue(stored.id); !bad.ok()) stored.status = bad;
  }
  if (!row.ok()) return;
  stored.row = *std::move(row);
  stored.status =
      stored.row ? make_queue(stored.id) : queue_files_.remove_all(stored.id, ground_.server);
  if (!stored.row || !stored.status.ok()) return;
  auto queues = queue_files_.queues(stored.id, ground_.server);
  stored.status = queues.status();
  if (queues.ok()) stored.queues = *std::move(queues);
}

Status ServerReplication::make_queue(const std::string& peer) const {
  // Later writes have later positions.
  const LogPosition end = ground_.log.durable_end();
  const Result<bool> made = queue_files_.make(peer, ground_.server, end);
  if (!made.ok()) return made.status();
  const Status fence = ground_.log.check_fence();
  // A queue that was there before the fence is not ours to remove: it will be claimed.
  if (fence.code() != StatusCode::kFenced || !*made) return fence;
  if (Status bad = queue_files_.take_back(peer, ground_.server); !bad.ok()) return bad;
  return fence;
}

Status ServerReplication::load_all(std::vector<Stored>& all) const {
  const auto names = ground_.files.list(ground_.layout.peers());
  if (!names.ok()) return names.status();
  Status first;
  for (const std::string& name : *names) {
    Stored& stored = all.emplace_back(Stored{.id = ClusterLayout::decode_name(name)});
    load(stored);
    // A damaged peer must not keep the server from its regions.
    const bool is_damaged = stored.status.code() == StatusCode::kCorruption;
    if (first.ok() && !is_damaged) first = stored.status;
  }
  return first;
}

void ServerReplication::read_all(Done done) {
  next_reading_ = tasks_.now() + kReadEvery;
  const auto all = std::make_shared<std::vector<Stored>>();
  ground_.work.run([this, all, done = std::move(done), post = tasks_.poster()] {
    const Status status = load_all(*all);
    post([this, all, status, done] {
      take_all(all, status);
      done(status);
    });
  });
}

void ServerReplication::take_all(const StoredPeers& all, const Status& status) {
  for (const Stored& stored : *all) {
    if (stored.row || !stored.status.ok()) take(stored, [](const Status&) {});
  }
  if (!status.ok()) return;
  std::vector<std::string> gone;
  for (const auto& [id, peer] : peers_) {
    const auto stored = std::ranges::find(*all, id, &Stored::id);
    if (stored == all->end() || (stored->status.ok() && !stored->row)) gone.push_back(id);
  }
  // Whoever removed it removes the queues too.
  for (const std::string& id : gone) forget(id, [](const Status&) {});
}

void ServerReplication::take(const Stored& stored, const Done& done) {
  if (!stored.status.ok()) {
    log(ground_.say, LogLevel::kWarning,
        "peer " + stored.id + " cannot be read: " + stored.status.to_string());
    return done(stored.status);
  }
  if (!stored.row) return forget(stored.id, done);
  Peer& peer = peers_[stored.id];
  if (Status bad = connect(peer, *stored.row); !bad.ok()) {
    log(ground_.say, LogLevel::kWarning, "peer " + stored.id + ": " + bad.to_string());
    return done(Status());
  }
  const bool is_changed = peer.row != *stored.row;
  peer.row = *stored.row;
  if (is_changed) {
    for (const auto& [owner, shipper] : peer.queues) shipper->configure(peer.row);
  }
  for (const StoredQueue& queue : stored.queues) add_shipper(peer, queue);
  when_current(peer, [done] { done(Status()); });
}

Status ServerReplication::connect(Peer& peer, const PeerRow& row) {
  if (peer.client != nullptr) return {};
  if (peer.looks == nullptr && ground_.make_peer_queue) {
    auto looks = ground_.make_peer_queue(row.id);
    if (!looks.ok()) return looks.status();
    peer.looks = *std::move(looks);
  }
  // Each server and peer has other pauses, and the same ones in the same run of a simulation.
  const std::uint64_t seed = hash128(to_string(ground_.server) + " " + row.id).first | 1;
  auto client = ClusterClient::open(
      {.find_master =
           [&files = ground_.files, path = ClusterLayout(row.config.cluster).master_address()] {
             return files.read(path);
           },
       .transport = ground_.transport,
       .clock = ground_.clock,
       .seed = seed});
  if (!client.ok()) return client.status();
  peer.client = *std::move(client);
  return {};
}

void ServerReplication::forget(const std::string& id, const Done& done) {
  if (const auto found = peers_.find(id); found != peers_.end()) {
    const auto peer = leaving_.insert(leaving_.end(), std::move(found->second));
    peers_.erase(found);
    for (const auto& [owner, shipper] : peer->queues) shipper->stop();
    when_current(*peer, [this, peer] {
      bury(*peer);
      leaving_.erase(peer);
    });
  }
  when_left(id, done);
}

void ServerReplication::bury(Peer& peer) {
  // Neither ends on the loop: they have threads, which may hang with the peer's directory.
  WorkQueue& ends = ground_.peer_ends != nullptr ? *ground_.peer_ends : ground_.work;
  ends.run([looks = std::shared_ptr<WorkQueue>(std::move(peer.looks)),
            client = std::shared_ptr<ClusterClient>(std::move(peer.client))] {});
}

void ServerReplication::when_left(const std::string& id, const Done& done) {
  const auto leaving =
      std::ranges::find(leaving_, id, [](const Peer& peer) { return peer.row.id; });
  if (leaving == leaving_.end()) return done(Status());
  // It is erased before this is called, because forget() has asked first.
  when_current(*leaving, [this, id, done] { when_left(id, done); });
}

void ServerReplication::add_shipper(Peer& peer, const StoredQueue& queue) {
  // One that is there reads by itself what a claim has made of its position.
  if (peer.queues.contains(queue.owner)) return;
  QueueShipper::DurableEnd durable_end;
  if (queue.owner == ground_.server) {
    durable_end = [&log = ground_.log] { return log.durable_end(); };
  }
  WorkQueue& looks = peer.looks != nullptr ? *peer.looks : ground_.work;
  const ShipperGround ground{tasks_,         ground_.work,   looks,       ground_.files,
                             ground_.layout, ground_.server, ground_.log, ground_.check_lease};
  const auto shipper = std::make_shared<QueueShipper>(
      ground, queue, *peer.client, std::move(durable_end),
      [this, id = queue.peer](const ServerName& owner) {
        if (const auto found = peers_.find(id); found != peers_.end()) {
          found->second.queues.erase(owner);
        }
      });
  peer.queues[queue.owner] = shipper;
  shipper->configure(peer.row);
}

void ServerReplication::when_current(const Peer& peer, const std::function<void()>& done) {
  const auto left = std::make_shared<std::size_t>(peer.queues.size() + 1);
  const auto one_less = [left, done] {
    if (--*left == 0) done();
  };
  for (const auto& [owner, shipper] : peer.queues) shipper->when_current(one_less);
  one_less();
}

}  // namespace pv2::cluster
