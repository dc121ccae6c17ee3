// SPDX-License-Identifier: Apache-2.0
//
// PeerStoragePort: the port PeerStorage over the files of peers. The directory of another cluster
// may be on a file system that hangs, so it is read on a queue of its own, one read at a time for
// each directory.
//
// How it fails: a read that takes too long, or that waits too long for others, is kUnavailable for
// those who wait for it. It stays under way, and whoever asks for the same directory meanwhile gets
// its answer.

#pragma once

#include <pv2/procedures/peer_storage.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/peer_files.h"
#include "storage/work_queue.h"
#include "wire/loop_tasks.h"

namespace pv2::cluster {

/// Thread-safe. `peers` and `queue` outlive it and what it has put in the queue; `peer_reads`, and
/// the files of `peers`, outlive what it has put there, which may be longer than it lives.
class PeerStoragePort final : public PeerStorage {
 public:
  PeerStoragePort(std::shared_ptr<Transport> transport, const PeerFiles& peers, WorkQueue& queue,
                  WorkQueue& peer_reads)
      : peers_(peers), queue_(queue), peer_reads_(peer_reads), tasks_(std::move(transport)) {}

  /// From now on nobody is told what a read has found.
  void end() { tasks_.end(); }

  void read_peer(std::string id, Completion<Result<std::optional<PeerRow>>> done) override;
  void list_peers(Completion<Result<std::vector<std::string>>> done) override;
  void write_peer(PeerRow peer, std::string effect_key, Completion<Status> done) override;
  void remove_peer(std::string id, std::string effect_key, Completion<Status> done) override;
  void is_own_cluster(std::string root, Completion<Result<bool>> done) override;
  void has_queues(std::string id, Completion<Result<bool>> done) override;
  void remove_queues(std::string id, std::string effect_key, Completion<Status> done) override;

 private:
  using Waiting = std::vector<Completion<Result<bool>>>;
  struct Read {
    Waiting waiting{};
    std::optional<SteadyTime> begun{};  ///< None: it waits in the queue.
  };

  void read_id(const std::string& root, const Completion<Result<bool>>& done);
  void give_up(const std::string& root, const Completion<Result<bool>>& done);

  const PeerFiles& peers_;
  WorkQueue& queue_;
  WorkQueue& peer_reads_;
  std::map<std::string, Read> under_way_;  ///< By directory. Used on the loop.
  LoopTasks tasks_;
};

}  // namespace pv2::cluster
