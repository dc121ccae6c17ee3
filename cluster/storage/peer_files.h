// SPDX-License-Identifier: Apache-2.0
//
// PeerFiles: the replication peers and the queues of servers for them, as files.
//
//     peers/<peer>/config            PeerRow; what makes the peer exist
//     queues/<peer>/<server>/        a server's queue: what it still has to ship (replication/)
//
// Invariant: a peer exists exactly if its config is there, also one that is damaged or that cannot
// be read just now. The config is written last and removed first.

#pragma once

#include <pv2/base/status.h>
#include <pv2/procedures/peer.h>
#include <pv2/procedures/server.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/cluster_layout.h"
#include "storage/file_tree.h"

namespace pv2::cluster {

/// What list() finds. A plain value.
struct PeerList {
  std::vector<PeerRow> peers{};  ///< In order of id.
  /// Those that cannot be read: id -> why.
  std::map<std::string, Status> unreadable{};
};

/// Thread-safe as long as two callers work on different peers. `files` outlives it.
class PeerFiles {
 public:
  PeerFiles(const FileTree& files, ClusterLayout layout)
      : files_(files), layout_(std::move(layout)) {}

  [[nodiscard]] Result<std::optional<PeerRow>> read(const std::string& id) const;
  /// All of them: a peer that cannot be read hides no other one.
  [[nodiscard]] Result<PeerList> list() const;
  /// In order, also of peers that cannot be read: all that may exist.
  [[nodiscard]] Result<std::vector<std::string>> ids() const;
  Status write(PeerRow peer) const;
  /// Not there: OK.
  Status remove(const std::string& id) const;

  /// Whether the cluster in `root` is this one, which has an id. False also if no id can be read
  /// there.
  [[nodiscard]] Result<bool> is_own_cluster(const std::string& root) const;

  /// The servers that have a queue for the peer.
  [[nodiscard]] Result<std::vector<ServerName>> queues(const std::string& id) const;
  /// Every server that has a queue, with the peer, which need not be stored.
  [[nodiscard]] Result<std::vector<std::pair<std::string, ServerName>>> all_queues() const;
  Status remove_queues(const std::string& id) const;

 private:
  [[nodiscard]] std::string config(const std::string& id) const;

  const FileTree& files_;
  const ClusterLayout layout_;
};

}  // namespace pv2::cluster
