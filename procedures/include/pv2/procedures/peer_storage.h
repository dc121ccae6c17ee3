// SPDX-License-Identifier: Apache-2.0
//
// PeerStorage: the port to where replication peers are stored. Region servers read it too: when
// they start, and when a RefreshPeer asks them to. So a peer is stored first and servers are told
// after, and a server that starts meanwhile has read what is stored.

#pragma once

#include <pv2/base/status.h>
#include <pv2/engine/completion.h>

#include <optional>
#include <string>
#include <vector>

#include "pv2/procedures/peer.h"

namespace pv2 {

/// Thread-safe. Every call returns at once; its completion is called once, from any thread.
/// kUnavailable or kIoError may pass. What an OK says is durable.
class PeerStorage {
 public:
  virtual ~PeerStorage() = default;

  /// kCorruption: the peer is there, and its configuration cannot be read; asking again mends
  /// nothing.
  virtual void read_peer(std::string id, Completion<Result<std::optional<PeerRow>>> done) = 0;
  /// The ids of all peers, in order, also of those whose configuration cannot be read: one damaged
  /// peer must not hide the others.
  virtual void list_peers(Completion<Result<std::vector<std::string>>> done) = 0;
  /// Adds or replaces a peer. Its configuration is written last, so a peer that is half written is
  /// not there.
  virtual void write_peer(PeerRow peer, std::string effect_key, Completion<Status> done) = 0;
  /// Removes a peer, its configuration first. Not there: OK.
  virtual void remove_peer(std::string id, std::string effect_key, Completion<Status> done) = 0;
  /// Whether the root directory of a cluster is that of this one, by whatever path: the clusters'
  /// ids tell. False also if nothing can be read there yet.
  virtual void is_own_cluster(std::string root, Completion<Result<bool>> done) = 0;
  /// Whether some server still keeps a queue of edits for the peer.
  virtual void has_queues(std::string id, Completion<Result<bool>> done) = 0;
  /// Removes all queues of a peer that is not stored any more.
  virtual void remove_queues(std::string id, std::string effect_key, Completion<Status> done) = 0;
};

}  // namespace pv2
