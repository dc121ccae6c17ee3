// SPDX-License-Identifier: Apache-2.0
//
// LogDirectories: the directories of all servers' logs, as the master sees them: it fences a server
// by renaming its directory, has the logs split one by one, and archives each when it is split.
//
// Invariant: after fence() returned OK, the server acknowledges no write any more, in no case: not
// even a server that had made no directory yet.

#pragma once

#include <pv2/base/status.h>
#include <pv2/procedures/server.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "storage/cluster_layout.h"
#include "storage/file_tree.h"
#include "storage/server_log.h"

namespace pv2::cluster {

/// One log of a fenced server. `size` is the part to split: what the server appends after the fence
/// was never acknowledged, and must not come back in a later attempt.
struct LogFile {
  std::string name;  ///< "u3"
  std::uint64_t size = 0;

  void fields(auto& f) {
    f(1, "name", name);
    f(2, "size", size);
  }
  friend bool operator==(const LogFile&, const LogFile&) = default;
};

/// Thread-safe as its FileTree. `files` outlives it.
class LogDirectories {
 public:
  LogDirectories(const FileTree& files, ClusterLayout layout)
      : files_(files), layout_(std::move(layout)) {}

  /// Ends the server's writing for ever. May be repeated.
  Status fence(const ServerName& server) const;
  /// The logs of a fenced server that are not archived yet, oldest first. The sizes grow if the
  /// server still appends, so a caller that repeats a split keeps the first answer. None also when
  /// their directory is removed. kUnavailable: the server is not fenced.
  [[nodiscard]] Result<std::vector<LogFile>> logs(const ServerName& server, LogKind kind) const;
  /// Moves one log of a fenced server to oldwals/: it is split. Its name there says how much of it
  /// was: what follows must not be read by replication either. An archived one is OK.
  Status archive(const ServerName& server, const LogFile& log) const;
  /// Removes the directory of a fenced server whose logs are all archived. The fence goes with it:
  /// a server that has made no directory yet could start afterwards. It would get no region,
  /// because the master opens none on a dead server. kFailedPrecondition: logs are left.
  Status remove(const ServerName& server) const;
  /// Removes the directory that a server has made anew after its own was fenced and removed: it had
  /// not noticed yet. Or one that a second fence has made. Nothing in it was acknowledged. Only for
  /// a server that is retired.
  Status remove_ghost(const ServerName& server) const;
  /// Every server that has a directory.
  [[nodiscard]] Result<std::vector<ClusterLayout::LogDirectory>> servers() const;

 private:
  [[nodiscard]] Status check_is_fenced(const ServerName& server) const;

  const FileTree& files_;
  const ClusterLayout layout_;
};

}  // namespace pv2::cluster
