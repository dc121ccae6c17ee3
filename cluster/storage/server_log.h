// SPDX-License-Identifier: Apache-2.0
//
// ServerLog: the write-ahead log of one server: a row of files (write_ahead_log.h), of which the
// last one grows. Entries that wait at the same time share one sync.
//
// Invariants:
// - Entries are in the files in the order of append(), and completions are called in that order.
//   So when an entry is durable, so is every earlier one: the effect of a write never survives a
//   write that it was computed from.
// - A completion with OK means: durable, and read by whoever takes this server's regions over.
// - After a failure every waiting and later append fails with the same status.
// - A file leaves the directory only when every region that has an entry in it has flushed beyond
//   that entry.

#pragma once

#include <pv2/base/mutex.h>
#include <pv2/base/status.h>
#include <pv2/procedures/server.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "storage/cluster_layout.h"
#include "storage/file_tree.h"
#include "storage/log_position.h"
#include "storage/wal_entry.h"
#include "storage/work_queue.h"
#include "storage/write_ahead_log.h"

namespace pv2::cluster {

/// Where a region's writes become durable. Thread-safe.
class EntryLog {
 public:
  using Done = std::function<void(Status)>;
  virtual ~EntryLog() = default;
  /// Makes `entry` durable and then calls `done`, never within this call. Does not block on disk.
  virtual void append(WalEntry entry, Done done) = 0;
};

/// The first letter of a log's name.
enum class LogKind : char { kUser = 'u', kMeta = 'm' };

struct ServerLogOptions {
  LogKind kind = LogKind::kUser;
  /// A file that has reached this size is followed by another. 16 MiB: a splitter has one file in
  /// memory.
  std::uint64_t file_bytes_max = std::uint64_t{16} << 20;
};

/// Thread-safe. Its completions run on the work queue.
class ServerLog final : public EntryLog {
 public:
  /// Makes the first file. The log of users makes the server's directory, too; that of the
  /// catalogue comes later, and needs it. kFenced: the server was declared dead before.
  /// `files` and `work` outlive the log; the work that waits in `work` must have run, or must never
  /// run, when the log is destroyed.
  [[nodiscard]] static Result<std::unique_ptr<ServerLog>> open(const FileTree& files,
                                                               const ClusterLayout& layout,
                                                               WorkQueue& work, ServerName server,
                                                               ServerLogOptions options = {});
  ~ServerLog() override;

  void append(WalEntry entry, Done done) override;
  /// Bytes of entries that wait: for a server that refuses writes when there are too many.
  [[nodiscard]] std::size_t waiting_bytes() const;

  /// OK when the log still belongs to this server. A read may be answered when this is OK after the
  /// read: then it was not stale. Asks the file system.
  [[nodiscard]] Status check_fence() const;

  /// The end of what is durable and was found to be not fenced: every acknowledged entry is before
  /// it, and whoever takes this server's regions over has every entry before it.
  [[nodiscard]] LogPosition durable_end() const;

  /// Every entry of the region up to `sequence` is in store files. Archives the files that nobody
  /// needs any more, on the work queue.
  void flushed(const std::string& region_id, std::uint64_t sequence);
  /// The regions that must flush so that at most `files_max` files are left.
  [[nodiscard]] std::vector<std::string> regions_to_flush(std::size_t files_max) const;
  [[nodiscard]] std::size_t file_count() const;
  /// OK, or why nothing can be appended any more.
  [[nodiscard]] Status status() const;

 private:
  struct Waiting {
    WalEntry entry;
    Done done;
    std::size_t bytes = 0;
  };
  /// One file that is in the directory, and what keeps it there.
  struct File {
    std::string name;
    std::map<std::string, std::uint64_t> highest;  ///< By region id.
  };

  ServerLog(const FileTree& files, ClusterLayout layout, WorkQueue& work, ServerName server,
            ServerLogOptions options);
  void schedule() PV2_REQUIRES(log_mutex_);
  void drain();
  Status write(std::vector<Waiting>& batch);
  Status start_file();
  void archive_unneeded();
  [[nodiscard]] bool is_unneeded(const File& file) const PV2_REQUIRES(log_mutex_);
  [[nodiscard]] std::vector<std::string> unneeded_files() const PV2_REQUIRES(log_mutex_);
  [[nodiscard]] bool is_in_a_file(const std::string& region_id) const PV2_REQUIRES(log_mutex_);

  const FileTree& files_;
  const ClusterLayout layout_;
  WorkQueue& work_;
  const ServerName server_;
  const ServerLogOptions options_;
  /// Touched by the one drain() that runs, and by nobody else.
  std::unique_ptr<WalWriter> writer_;
  std::uint64_t next_file_ = 1;

  mutable Mutex log_mutex_;
  std::vector<Waiting> waiting_ PV2_GUARDED_BY(log_mutex_);
  std::size_t waiting_bytes_ PV2_GUARDED_BY(log_mutex_) = 0;
  bool draining_ PV2_GUARDED_BY(log_mutex_) = false;
  bool archiving_ PV2_GUARDED_BY(log_mutex_) = false;
  Status failure_ PV2_GUARDED_BY(log_mutex_);
  std::string current_path_ PV2_GUARDED_BY(log_mutex_);
  LogPosition durable_end_ PV2_GUARDED_BY(log_mutex_);
  std::vector<File> log_files_ PV2_GUARDED_BY(log_mutex_);  ///< Oldest first; the last one grows.
  std::map<std::string, std::uint64_t> flushed_ PV2_GUARDED_BY(log_mutex_);
};

}  // namespace pv2::cluster
