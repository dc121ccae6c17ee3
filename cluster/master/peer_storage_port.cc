// SPDX-License-Identifier: Apache-2.0
//
// Each call as work on the queue.

#include "master/peer_storage_port.h"

#include <utility>

namespace pv2::cluster {

void PeerStoragePort::read_peer(std::string id, Completion<Result<std::optional<PeerRow>>> done) {
  queue_.run([this, id = std::move(id), done] { done(peers_.read(id)); });
}

void PeerStoragePort::list_peers(Completion<Result<std::vector<std::string>>> done) {
  queue_.run([this, done] { done(peers_.ids()); });
}

void PeerStoragePort::write_peer(PeerRow peer, std::string /*effect_key*/,
                                 Completion<Status> done) {
  queue_.run([this, peer = std::move(peer), done] { done(peers_.write(peer)); });
}

void PeerStoragePort::remove_peer(std::string id, std::string /*effect_key*/,
                                  Completion<Status> done) {
  queue_.run([this, id = std::move(id), done] { done(peers_.remove(id)); });
}

void PeerStoragePort::is_own_cluster(std::string root, Completion<Result<bool>> done) {
  queue_.run([this, root = std::move(root), done] { done(peers_.is_own_cluster(root)); });
}

void PeerStoragePort::has_queues(std::string id, Completion<Result<bool>> done) {
  queue_.run([this, id = std::move(id), done] {
    const Result<std::vector<ServerName>> servers = peers_.queues(id);
    done(servers.ok() ? Result<bool>(!servers->empty()) : Result<bool>(servers.status()));
  });
}

void PeerStoragePort::remove_queues(std::string id, std::string /*effect_key*/,
                                    Completion<Status> done) {
  queue_.run([this, id = std::move(id), done] { done(peers_.remove_queues(id)); });
}

}  // namespace pv2::cluster
