// SPDX-License-Identifier: Apache-2.0
//
// PeerStoragePort: the port PeerStorage over the files of peers.

#pragma once

#include <pv2/procedures/peer_storage.h>

#include "storage/peer_files.h"
#include "storage/work_queue.h"

namespace pv2::cluster {

/// Thread-safe. `peers` and `queue` outlive it and what it has put in the queue.
class PeerStoragePort final : public PeerStorage {
 public:
  PeerStoragePort(const PeerFiles& peers, WorkQueue& queue) : peers_(peers), queue_(queue) {}

  void read_peer(std::string id, Completion<Result<std::optional<PeerRow>>> done) override;
  void list_peers(Completion<Result<std::vector<std::string>>> done) override;
  void write_peer(PeerRow peer, std::string effect_key, Completion<Status> done) override;
  void remove_peer(std::string id, std::string effect_key, Completion<Status> done) override;
  void is_own_cluster(std::string root, Completion<Result<bool>> done) override;
  void has_queues(std::string id, Completion<Result<bool>> done) override;
  void remove_queues(std::string id, std::string effect_key, Completion<Status> done) override;

 private:
  const PeerFiles& peers_;
  WorkQueue& queue_;
};

}  // namespace pv2::cluster
