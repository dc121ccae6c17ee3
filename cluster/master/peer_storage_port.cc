// SPDX-License-Identifier: Apache-2.0
//
// Each call as work on a queue.

#include "master/peer_storage_port.h"

#include <chrono>
#include <utility>

namespace pv2::cluster {
namespace {

// A file system that answers at all reads a small file in less, also one that is far away and busy.
constexpr Duration kAnswerMax = std::chrono::seconds(10);

Status no_answer(const std::string& root) {
  return {
      StatusCode::kUnavailable,
      "the directory " + root +
          " of the peer has not answered for 10 s; mend the file system that it is on, or abort "
          "this change of the peer"};
}

}  // namespace

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
  tasks_.post([this, root = std::move(root), done] { read_id(root, done); });
}

void PeerStoragePort::read_id(const std::string& root, const Completion<Result<bool>>& done) {
  // Of a completion only the first call counts.
  tasks_.after(kAnswerMax, [root, done] { done(no_answer(root)); });
  const auto [read, is_new] = under_way_.try_emplace(root);
  std::erase_if(read->second, [](const auto& waiting) { return !waiting.is_awaited(); });
  read->second.push_back(done);
  // A file system that hangs does not collect reads.
  if (!is_new) return;
  peer_reads_.run([this, peers = peers_, root, post = tasks_.poster()] {
    post([this, root, is_own = peers.is_own_cluster(root)] {
      const auto ended = under_way_.extract(root);
      for (const auto& waiting : ended.mapped()) waiting(is_own);
    });
  });
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
