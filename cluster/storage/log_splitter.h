// SPDX-License-Identifier: Apache-2.0
//
// split_log: divides one log of a fenced server by regions: the entries of each region become the
// file recovered/<log> in the region's directory, which the next opening of the region replays.
//
// Invariants:
// - When it returned OK, every entry of the log that a region lacks is in a recovered file. So the
//   caller may archive the log then, and not before.
// - Every entry in a recovered file is durable in the log too. For that the server's last log is
//   replaced by a copy, and what the server still appends to the old file is lost, which is right.
// - It may be repeated, also by two workers at a time: with the same `log.size` the files have the
//   same bytes. With another size they differ only in entries that were never acknowledged. Two
//   splits of one log in one process would share drafts; a server runs them one after the other.
// - It skips entries that the region's store files have, and regions without a directory: those
//   were removed, which needs a clean close or the end of the table.

#pragma once

#include <pv2/base/status.h>
#include <pv2/procedures/region.h>
#include <pv2/procedures/server.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "storage/cluster_layout.h"
#include "storage/file_tree.h"
#include "storage/log_directories.h"
#include "storage/wal_entry.h"

namespace pv2::cluster {

/// What a split found.
struct SplitCount {
  std::size_t entries = 0;  ///< In the log.
  std::size_t kept = 0;     ///< In recovered files.
  std::size_t regions = 0;  ///< With a recovered file.
};

/// Splits the first `log.size` bytes. kNotFound: the log is not there; it may be archived already.
/// kCorruption: an entry that was acknowledged is damaged; nothing was written.
[[nodiscard]] Result<SplitCount> split_log(const FileTree& files, const ClusterLayout& layout,
                                           const ServerName& server, const LogFile& log);

/// A recovered file that was there when the region's directory was listed.
struct RecoveredFile {
  std::string path;
  std::vector<WalEntry> entries;
};
/// The recovered files of a region. kUnavailable: one vanished meanwhile; another opening of the
/// region has removed it, and its entries are in that opening's files.
[[nodiscard]] Result<std::vector<RecoveredFile>> read_recovered(const FileTree& files,
                                                                const ClusterLayout& layout,
                                                                const TableName& table,
                                                                std::string_view region_id);

}  // namespace pv2::cluster
