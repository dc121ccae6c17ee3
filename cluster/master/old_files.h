// SPDX-License-Identifier: Apache-2.0
//
// OldFiles: removes what nobody reads any more: logs in oldwals/ that no replication queue has to
// ship, and store files in archive/ that no region refers to. It decides by what the files say, and
// removes a file only after it has been of no use for a while, in every sweep meanwhile.
//
// Why a log that a queue needs stays:
// - A sweep lists the logs first, and the queues then. A queue that is made later begins at a
//   position beyond every log that was in oldwals/ before, or its server passes over those, because
//   the peer was not promised them (log_reader.h, server_replication.h).
// - A queue that changes hands during the sweep may be missed. So the sweep lists the queues twice,
//   and removes nothing if they differ. Two moves of one queue within a sweep are not possible: for
//   the second one the first claimer's crash has to be recovered, whose fence and whose list of
//   peers need the queue of work that the sweep runs on.
// - A queue whose position cannot be read needs all logs of its owner.
//
// Why a store file that a region needs stays: the master alone makes references and archives files.
// It does so on the queue of work on which the archive is swept, and servers only drop references.
// Logs are swept on another queue: archiving a table takes long, and no fence waits for it.
//
// A region server may have renamed a position or a list of files and have died before its sync. A
// power cut then brings back the one before, which needs what a sweep has removed. So a sweep makes
// durable what it has read before it removes anything.
//
// Every removal may be cut off by a crash; the next sweep goes on. What one sweep has seen is kept
// for the next one in memory only, so the first sweep of a new master knows nothing of earlier
// ones.

#pragma once

#include <pv2/base/status.h>
#include <pv2/base/time.h>
#include <pv2/procedures/table.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replication/queue_files.h"
#include "storage/cluster_layout.h"
#include "storage/file_tree.h"
#include "storage/table_directories.h"

namespace pv2::cluster {

struct OldFilesOptions {
  Duration logs_kept = std::chrono::minutes(10);     ///< After nobody needs them.
  Duration archive_kept = std::chrono::minutes(10);  ///< After nobody needs it.
  std::size_t removals_max = 256;                    ///< In one sweep, of each kind.
};

/// Used by one thread at a time: that of the master's work on recoveries for logs and queues, and
/// that of its work on tables for the archive. `files` outlives it.
class OldFiles {
 public:
  OldFiles(const FileTree& files, const ClusterLayout& layout, OldFilesOptions options)
      : files_(files),
        layout_(layout),
        queues_(files, layout),
        tables_(files, layout),
        options_(options) {}

  /// What a sweep has removed, and what went wrong; then some files stay until a later sweep.
  struct Sweep {
    std::size_t removed = 0;  ///< Logs, or regions of which the archive had files.
    Status status{};
  };
  /// Goes through all old logs.
  Sweep sweep_logs(SteadyTime now);
  /// Goes through one table of the archive: another one each time.
  Sweep sweep_archive(SteadyTime now);
  /// Every server that has a directory of queues for a peer, with that peer.
  [[nodiscard]] Result<std::vector<std::pair<std::string, ServerName>>> queue_directories() const {
    return queues_.directories();
  }

 private:
  using Since = std::map<std::string, SteadyTime>;  ///< By path: since when nobody needs it.
  struct Needed {
    std::map<ServerName, std::uint64_t> first_logs{};  ///< By owner: what some queue needs.
    Status problem{};                                  ///< Of a single queue.
  };

  /// No value: queues change hands just now.
  [[nodiscard]] Result<std::optional<Needed>> first_needed() const;
  [[nodiscard]] Result<std::optional<TableName>> next_table();
  /// Makes durable which queues there are and their positions.
  [[nodiscard]] Status sync_queues() const;
  /// Makes durable which regions the table has and their lists of files.
  [[nodiscard]] Status sync_regions(const TableName& table) const;
  /// Those of `unneeded` that nobody has needed for `kept`, but no more than one sweep removes.
  /// Afterwards `since` has the paths of `unneeded`.
  [[nodiscard]] std::vector<std::string> too_old(Since& since,
                                                 const std::vector<std::string>& unneeded,
                                                 SteadyTime now, Duration kept) const;

  const FileTree& files_;
  const ClusterLayout layout_;
  const QueueFiles queues_;
  const TableDirectories tables_;
  const OldFilesOptions options_;
  Since logs_since_;
  std::map<TableName, Since> archive_since_;
  std::optional<TableName> last_table_;
};

}  // namespace pv2::cluster
