// SPDX-License-Identifier: Apache-2.0
//
// Each call as work on a queue.

#include "master/peer_storage_port.h"

#include <fmt/format.h>

#include <utility>

#include "storage/peer_silence.h"

namespace pv2::cluster {
namespace {

Status no_answer(const std::string& root) {
  return {StatusCode::kUnavailable, silence_of_peer(root, "abort this change of the peer")};
}

Status no_turn(const std::string& root) {
  return {StatusCode::kUnavailable,
          fmt::format("the directory {} of the peer was not read within 10 s: reads in directories "
                      "of other clusters hang, and come first; mend the file systems that those "
                      "are on, or abort this change of the peer",
                      root)};
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
  tasks_.after(kPeerAnswerMax, [this, root, done] { give_up(root, done); });
  const auto [read, is_new] = under_way_.try_emplace(root);
  Waiting& waiting = read->second.waiting;
  std::erase_if(waiting, [](const auto& one) { return !one.is_awaited(); });
  waiting.push_back(done);
  // A file system that hangs does not collect reads.
  if (!is_new) return;
  peer_reads_.run([this, peers = peers_, root, post = tasks_.poster()] {
    post([this, root] { under_way_.at(root).begun = tasks_.now(); });
    post([this, root, is_own = peers.is_own_cluster(root)] {
      const auto ended = under_way_.extract(root);
      for (const auto& one : ended.mapped().waiting) one(is_own);
    });
  });
}

// Of a completion only the first call counts.
void PeerStoragePort::give_up(const std::string& root, const Completion<Result<bool>>& done) {
  const auto read = under_way_.find(root);
  if (read == under_way_.end() || !done.is_awaited()) return;
  const std::optional<SteadyTime> begun = read->second.begun;
  if (!begun) return done(no_turn(root));
  const Duration left = *begun + kPeerAnswerMax - tasks_.now();
  if (left <= Duration::zero()) return done(no_answer(root));
  tasks_.after(left, [root, done] { done(no_answer(root)); });
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
