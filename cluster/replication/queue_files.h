// SPDX-License-Identifier: Apache-2.0
//
// QueueFiles: the replication queues of servers as files. A queue is how far the logs of one
// server, its owner, were shipped to one peer: everything before the position has been acknowledged
// by the other cluster. It lies in the directory of the server that ships it: at first the owner
// itself.
//
//     queues/<peer>/<server>/<owner>     a LogPosition in a frame
//
// Invariants:
// - A queue is in one directory at a time. claim() moves it with a rename, so of two servers that
//   claim it one has it.
// - Only make() makes a directory. So a server whose queues were claimed can record nothing any
//   more (kNotFound): its directory is gone.
// - Of two positions of one queue the smaller one is safe to go on from. One that was recorded
//   always is; one that make() has written is not, if a server that was taken for dead makes the
//   queue again that another one has claimed. So a claim keeps the smaller one.
// - Every operation may be repeated after a crash at any point of it.

#pragma once

#include <pv2/base/status.h>
#include <pv2/procedures/server.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/cluster_layout.h"
#include "storage/file_tree.h"
#include "storage/log_position.h"

namespace pv2::cluster {

/// A queue, and where it lies.
struct StoredQueue {
  std::string peer;
  ServerName server;  ///< Who ships it.
  ServerName owner;   ///< Whose logs they are.
  LogPosition position{};
};

/// Thread-safe as its FileTree. `files` outlives it.
class QueueFiles {
 public:
  QueueFiles(const FileTree& files, ClusterLayout layout)
      : files_(files), layout_(std::move(layout)) {}

  /// Makes the queue of a server's own logs. False: it is there already, and stays as it is.
  Result<bool> make(const std::string& peer, const ServerName& server, LogPosition position) const;
  /// Takes back what make() has made, and the directory if nothing else is in it.
  Status take_back(const std::string& peer, const ServerName& server) const;
  /// Notes that everything before the position was acknowledged. kNotFound: the server's queues
  /// were claimed, or the peer was removed.
  Status record(const std::string& peer, const ServerName& server, const ServerName& owner,
                LogPosition position) const;
  /// The queue is shipped to its end. Not there: OK.
  Status remove(const std::string& peer, const ServerName& server, const ServerName& owner) const;
  /// The server has no queue for the peer any more.
  Status remove_all(const std::string& peer, const ServerName& server) const;
  /// Moves all queues of the dead server to `claimer`, which has made its own queue before. Of a
  /// queue that it has already, the smaller position stays.
  Status claim(const std::string& peer, const ServerName& dead, const ServerName& claimer) const;

  /// The queues that a server ships to a peer. kCorruption names the file that cannot be read.
  [[nodiscard]] Result<std::vector<StoredQueue>> queues(const std::string& peer,
                                                        const ServerName& server) const;
  /// Every server that has a directory of queues for a peer, with that peer.
  [[nodiscard]] Result<std::vector<std::pair<std::string, ServerName>>> directories() const;
  /// All queues of all servers. One that is claimed meanwhile may be missing.
  [[nodiscard]] Result<std::vector<StoredQueue>> all() const;

 private:
  [[nodiscard]] Result<std::optional<LogPosition>> read(const std::string& path) const;
  Status move(const std::string& from, const std::string& to) const;

  const FileTree& files_;
  const ClusterLayout layout_;
};

}  // namespace pv2::cluster
