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
//   queue again that another one has claimed. So a claim keeps the smaller one, also under the
//   hands of a shipper: record() and finish() leave a position alone that is before the one from
//   which they were told to go on, and return it.
// - A position that cannot be read is unknown, and perhaps the smaller one: a claim keeps it, and
//   its queue is not shipped. Other queues do not notice.
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
  Status problem{};  ///< Not OK: the position is not known, and why.
};

/// How far a shipper has come. A plain value.
struct QueueProgress {
  LogPosition from{};  ///< The stored position, as the shipper knows it.
  LogPosition to{};    ///< Everything before it was acknowledged.
};

/// Thread-safe as its FileTree; but one server makes its changes one after the other. `files`
/// outlives it.
class QueueFiles {
 public:
  QueueFiles(const FileTree& files, ClusterLayout layout)
      : files_(files), layout_(std::move(layout)) {}

  /// Makes the queue of a server's own logs. False: it is there already, and stays as it is.
  Result<bool> make(const std::string& peer, const ServerName& server, LogPosition position) const;
  /// Takes back what make() has made, and the directory if nothing else is in it.
  Status take_back(const std::string& peer, const ServerName& server) const;
  /// Records the progress, and returns the position that is stored then: `to`, or one before `from`
  /// that a claim has brought and that stays. kNotFound: the queue was claimed, or the peer was
  /// removed.
  [[nodiscard]] Result<LogPosition> record(const std::string& peer, const ServerName& server,
                                           const ServerName& owner,
                                           const QueueProgress& progress) const;
  /// Removes the queue, which is shipped to its end. Returns a position before `from` that a claim
  /// has brought, and leaves the queue as it is; otherwise nothing. Not there: OK.
  [[nodiscard]] Result<std::optional<LogPosition>> finish(const std::string& peer,
                                                          const ServerName& server,
                                                          const ServerName& owner,
                                                          LogPosition from) const;
  /// The server has no queue for the peer any more.
  Status remove_all(const std::string& peer, const ServerName& server) const;
  /// Moves all queues of the dead server to `claimer`, which has made its own queue before. Of a
  /// queue that it has already, the smaller position stays.
  Status claim(const std::string& peer, const ServerName& dead, const ServerName& claimer) const;

  /// The stored position; nothing: there is no such queue. kCorruption names the file.
  [[nodiscard]] Result<std::optional<LogPosition>> position(const std::string& peer,
                                                            const ServerName& server,
                                                            const ServerName& owner) const;
  /// The queues that a server ships to a peer, also those whose position cannot be read.
  [[nodiscard]] Result<std::vector<StoredQueue>> queues(const std::string& peer,
                                                        const ServerName& server) const;
  /// Every server that has a directory of queues for a peer, with that peer.
  [[nodiscard]] Result<std::vector<std::pair<std::string, ServerName>>> directories() const;
  /// All queues of all servers. One that is claimed meanwhile may be missing.
  [[nodiscard]] Result<std::vector<StoredQueue>> all() const;

 private:
  [[nodiscard]] Result<std::optional<LogPosition>> read(const std::string& path) const;
  Status remove(const std::string& path) const;
  Status move(const std::string& from, const std::string& to) const;

  const FileTree& files_;
  const ClusterLayout layout_;
};

}  // namespace pv2::cluster
