// SPDX-License-Identifier: Apache-2.0
//
// LogReader: reads the user logs of one server from a position on, in bounded parts: those of this
// server while it appends to them, or those of a dead server, which are in oldwals/ by then.
//
// Invariants:
// - It reads only what the regions of the source have as well: of a growing log what is before
//   ServerLog::durable_end(); of a dead server's log what was split (its name says how much).
// - It passes over a log that is not there only if a later one is: then a log was removed that
//   nobody had to ship (old_files.h says when that may be). Logs of a fenced server are not there
//   for a while, until they are split; so nothing is read of one.

#pragma once

#include <pv2/base/status.h>
#include <pv2/procedures/server.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/cluster_layout.h"
#include "storage/file_tree.h"
#include "storage/log_position.h"
#include "storage/wal_entry.h"

namespace pv2::cluster {

/// What was read at once.
struct LogPart {
  std::vector<WalEntry> entries;
  LogPosition next{};   ///< The first position that was not read.
  bool is_end = false;  ///< There is nothing behind `next`: of a dead server, for ever.
};

struct LogReaderLimits {
  std::size_t bytes_max = std::size_t{1} << 20;  ///< One entry may exceed it.
  std::size_t entries_max = 4096;
};

/// Thread-safe as its FileTree. `files` outlives it.
class LogReader {
 public:
  LogReader(const FileTree& files, ClusterLayout layout, ServerName owner,
            LogReaderLimits limits = {})
      : files_(files), layout_(std::move(layout)), owner_(std::move(owner)), limits_(limits) {}

  /// `durable_end`: of the owner's log, if the owner is this server; no value: it is dead.
  /// kUnavailable: the logs of the dead server are not all split yet, or the server is fenced.
  /// kCorruption: an entry that was synced is damaged.
  [[nodiscard]] Result<LogPart> read(LogPosition from,
                                     const std::optional<LogPosition>& durable_end) const;
  /// How many bytes of logs are behind the position.
  [[nodiscard]] Result<std::uint64_t> bytes_behind(
      LogPosition from, const std::optional<LogPosition>& durable_end) const;

 private:
  struct File {
    std::string path;
    std::uint64_t bytes = 0;  ///< To read.
  };
  using Files = std::map<std::uint64_t, File>;  ///< By number.

  /// The logs from `first` on that are there. `most`: kOne may leave out later ones.
  enum class Most { kOne, kAll };
  [[nodiscard]] Result<Files> list(std::uint64_t first,
                                   const std::optional<LogPosition>& durable_end, Most most) const;
  Status add_names(const std::string& directory, Files& found, std::uint64_t first) const;
  Result<LogPosition> read_file(const File& file, LogPosition from, LogPart& part) const;

  const FileTree& files_;
  const ClusterLayout layout_;
  const ServerName owner_;
  const LogReaderLimits limits_;
};

}  // namespace pv2::cluster
