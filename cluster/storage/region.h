// SPDX-License-Identifier: Apache-2.0
//
// Region: the rows of one range of a table while a server has it open. A write is:
//
//     order and values (under the region's write mutex) -> log, in that order -> durable, and the
//     server not fenced -> visible -> answer
//
// Invariants:
// - A read sees exactly the writes that were durable and acknowledged, or about to be; all cells of
//   a write at once.
// - A write is computed from all writes before it, durable or not, and is in the log after them.
// - A store file has only visible writes. So a late flush of a fenced server tells no news.
// - Whatever the region was told to write durably counts from the moment that the list of files is
//   replaced (region_files.h), and at each such moment list and logs together have every visible
//   write.
// - After a failure of the log, or when a later opening is found, the region refuses everything:
//   what it has in memory is not what is durable.

#pragma once

#include <pv2/base/hash128.h>
#include <pv2/base/ids.h>
#include <pv2/base/mutex.h>
#include <pv2/base/status.h>
#include <pv2/base/time.h>
#include <pv2/procedures/region.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/cluster/cell.h"
#include "storage/cluster_layout.h"
#include "storage/file_tree.h"
#include "storage/mem_store.h"
#include "storage/nonce_cell.h"
#include "storage/region_files.h"
#include "storage/server_log.h"
#include "storage/store_file.h"
#include "storage/work_queue.h"

namespace pv2::cluster {

struct RegionOptions {
  std::vector<std::string> families{};
  /// Of each family: the version of the table's descriptor that it came with; empty: 0 for all.
  std::vector<std::uint64_t> since{};
  /// The version of the table's descriptor.
  std::uint64_t descriptor = 0;
  /// The number of the order to open: higher than that of every earlier order to open this region.
  /// Not 0.
  std::uint64_t opening = 0;
  /// The cells that one scan looks at, shown or not. 200 000: about a tenth of a second.
  std::uint64_t looks_max = 200'000;
};

/// The nonce of a write, to be remembered with its effect.
struct WriteNonce {
  Nonce nonce;
  Hash128 fingerprint;
  std::optional<WallTime> expires_at{};
};

/// One write: all mutations or none.
struct RegionWrite {
  std::vector<Mutation> mutations;
  std::optional<WriteNonce> nonce{};
  WallTime now{};  ///< The time of the write by the server's clock.
  /// Of a replicated write (wal_entry.h).
  std::vector<std::string> origins{};
};

/// Which nonces a compaction forgets: those of operations done before `done_before` whose promise,
/// if any, ended before `expired_before`.
struct CompactOptions {
  WallTime done_before = WallTime::min();
  WallTime expired_before = WallTime::min();
};

/// Thread-safe. Shared by the server and by the work and completions that it has under way.
class Region : public std::enable_shared_from_this<Region> {
 public:
  using WriteDone = std::function<void(Result<WriteResult>)>;
  /// The sequence up to which every write is in store files: for ServerLog::flushed().
  using FlushDone = std::function<void(Result<std::uint64_t>)>;

  /// Opens the store files, replays the recovered files and makes their content durable in a store
  /// file. Blocks on disk. `files` and `work` outlive the region.
  ///
  /// kFenced: a later order opened the region already. kUnavailable: another opening is under way.
  [[nodiscard]] static Result<std::shared_ptr<Region>> open(const FileTree& files,
                                                            const ClusterLayout& layout,
                                                            WorkQueue& work, RegionInfo info,
                                                            RegionOptions options);
  ~Region();

  /// Does the write and calls `done`. The values are computed, and the order is fixed, in this
  /// call; it reads the disk for kAppend, kIncrement and kDeleteRow.
  ///
  /// `done` gets the failure within this call if nothing was done: kInvalidArgument (a mutation, a
  /// family, a cell that is not a number or a number that would leave 64 bits),
  /// kFailedPrecondition (a row of another region), kUnavailable (closing). Otherwise it is called
  /// when `log` calls; then a failure is that of the log, and the outcome is unknown.
  void write(RegionWrite write, EntryLog& log, WriteDone done) PV2_EXCLUDES(write_mutex_);

  /// The cells of a row; `families` empty: all.
  [[nodiscard]] Result<std::vector<Cell>> get(const std::string& row,
                                              const std::vector<std::string>& families = {}) const;
  /// One page. It may end, even without a cell, after RegionOptions::looks_max cells: so a scan
  /// over many deleted cells is no long call. Then it may divide a row.
  [[nodiscard]] Result<ScanPage> scan(const Scan& scan) const;

  /// Calls `done`, in this call or on the log's thread, when every write that was begun before this
  /// call is visible, or has failed: a scan after it misses none that may become durable yet.
  void when_visible(std::function<void()> done) PV2_EXCLUDES(state_mutex_);

  /// Moves what is in memory to a store file, on the work queue; writes go on meanwhile.
  void flush(FlushDone done);
  /// Merges all store files, references too, into one file of this region, without tombstones,
  /// older versions, removed families and forgotten nonces. On the work queue.
  void compact(CompactOptions options, std::function<void(Status)> done);
  /// Refuses writes from now on, waits for those under way, flushes, and then refuses reads too.
  /// When it failed the region refuses everything as well, and its logs are needed.
  void close(FlushDone done);
  /// For a server that is destroyed: drops every callback that still waits, without a call. Such a
  /// callback may keep the region, which keeps the callback. No work of the region runs any more.
  void abandon() PV2_EXCLUDES(state_mutex_);

  [[nodiscard]] const RegionInfo& info() const noexcept { return info_; }
  /// Above the sequence of every write of earlier openings, and above their open sequences.
  [[nodiscard]] std::uint64_t open_sequence() const noexcept { return open_sequence_; }
  /// The nonces of all visible writes of this region's rows, for ServerNonceManager::replay().
  [[nodiscard]] Result<std::vector<NonceCell>> nonces() const;
  /// A row that divides the bytes of the region about evenly; no value: it has too few rows.
  /// Reads the whole region.
  [[nodiscard]] Result<std::optional<std::string>> split_point() const;

  [[nodiscard]] bool has_references() const;
  [[nodiscard]] std::size_t memory_bytes() const;
  [[nodiscard]] std::uint64_t file_bytes() const;
  [[nodiscard]] std::size_t file_count() const;
  [[nodiscard]] std::uint64_t visible_sequence() const;
  /// OK, or why the region refuses.
  [[nodiscard]] Status status() const;

 private:
  struct OpenFile {
    StoreFileEntry entry;
    std::shared_ptr<StoreFile> file;
    StoreFile::Part part{};  ///< What counts of it.
  };
  using OpenFiles = std::vector<OpenFile>;
  struct NextList {
    OpenFiles files;
    std::uint64_t max_sequence = 0;
  };
  /// What a read looks at; it stays as it is while the region goes on.
  struct View {
    std::shared_ptr<const MemStore> active;
    std::shared_ptr<const MemStore> flushing;  ///< May be absent.
    std::shared_ptr<const OpenFiles> files;
    std::uint64_t visible = 0;
  };
  enum class Phase : std::uint8_t { kOpen, kClosing, kClosed };
  /// One piece of work on the files. One runs at a time, in order.
  struct Job {
    enum class Kind : std::uint8_t { kFlush, kCompact, kClose };
    Kind kind = Kind::kFlush;
    CompactOptions compaction{};
    FlushDone done{};
  };
  class Opening;

  Region(const FileTree& files, ClusterLayout layout, WorkQueue& work, RegionInfo info,
         RegionOptions options);

  // region.cc
  [[nodiscard]] Status check_row(std::string_view row) const;
  [[nodiscard]] Status check_families(const std::vector<std::string>& families) const;
  [[nodiscard]] View view() const PV2_REQUIRES(state_mutex_);
  [[nodiscard]] Result<View> view_for_read() const PV2_EXCLUDES(state_mutex_);
  [[nodiscard]] static std::unique_ptr<CellCursor> cursor_over(const View& view);
  /// The least key of `row` and of the region; the least key at or after `row` or the region's end.
  [[nodiscard]] std::string lower_bound(CellSpace space, std::string_view row) const;
  [[nodiscard]] std::string first_key(const Scan& scan) const;
  [[nodiscard]] Result<ScanPage> scan_within(const Scan& scan, std::uint64_t looks_max) const;
  [[nodiscard]] std::string upper_bound(CellSpace space, std::string_view row) const;
  [[nodiscard]] Status refusal() const PV2_REQUIRES(state_mutex_);

  // region_write.cc
  [[nodiscard]] Status check_write(const RegionWrite& write) const PV2_EXCLUDES(state_mutex_);
  /// Computes the write, gives it a sequence and puts it into the log. Makes `done` empty if it
  /// was handed on.
  Status begin_write(RegionWrite& write, EntryLog& log, WriteDone& done) PV2_REQUIRES(write_mutex_);
  void committed(std::uint64_t sequence, const Status& status) PV2_EXCLUDES(state_mutex_);

  // region_files_work.cc
  void enqueue(Job job) PV2_EXCLUDES(state_mutex_);
  void schedule() PV2_REQUIRES(state_mutex_);
  void run_next();
  /// False: the job waits for a write of its snapshot to become visible.
  [[nodiscard]] bool snapshot_is_visible(const Job& job);
  Result<std::uint64_t> run(const Job& job);
  Result<std::uint64_t> flush_snapshot();
  Status compact_now(const CompactOptions& options);
  Result<OpenFile> write_file(CellCursor& cells, std::uint64_t& written,
                              const std::function<bool(const DecodedCell&)>& keep);
  /// Makes `files` the files of the region, and removes those that are not among them. After a
  /// failure write_next_list() goes on with it.
  Status replace_files(OpenFiles files, std::uint64_t max_sequence) PV2_EXCLUDES(state_mutex_);
  /// OK also if there is none.
  Status write_next_list() PV2_EXCLUDES(state_mutex_);
  void remove_unlisted(const OpenFiles& before, const OpenFiles& listed);
  void fail(const Status& status) PV2_EXCLUDES(state_mutex_);

  const FileTree& files_;
  const ClusterLayout layout_;
  WorkQueue& work_;
  const RegionInfo info_;
  const RegionOptions options_;
  std::uint64_t open_sequence_ = 0;
  /// Touched by open() and then by the one job that runs.
  std::uint64_t next_number_ = 1;
  /// A list that is being written. When the write has failed, the list may be there all the same,
  /// and the logs of this server may have been split by it. So there is no way back: the next job
  /// first writes this list again.
  std::optional<NextList> next_list_;

  /// Held from the choice of a sequence until the log has the entry. The disk is read under it,
  /// because the next write is computed from this one.
  Mutex write_mutex_ PV2_ACQUIRED_BEFORE(state_mutex_);
  mutable Mutex state_mutex_;
  Phase phase_ PV2_GUARDED_BY(state_mutex_) = Phase::kOpen;
  Status failure_ PV2_GUARDED_BY(state_mutex_);
  std::uint64_t assigned_ PV2_GUARDED_BY(state_mutex_) = 0;
  std::uint64_t visible_ PV2_GUARDED_BY(state_mutex_) = 0;
  /// Those of when_visible(), with the sequence that each waits for, in order.
  std::deque<std::pair<std::uint64_t, std::function<void()>>> waiting_ PV2_GUARDED_BY(state_mutex_);
  std::uint64_t flushed_ PV2_GUARDED_BY(state_mutex_) = 0;
  std::uint64_t snapshot_sequence_ PV2_GUARDED_BY(state_mutex_) = 0;
  std::shared_ptr<MemStore> active_ PV2_GUARDED_BY(state_mutex_);
  std::shared_ptr<MemStore> flushing_ PV2_GUARDED_BY(state_mutex_);
  std::shared_ptr<const OpenFiles> open_files_ PV2_GUARDED_BY(state_mutex_);
  std::deque<Job> jobs_ PV2_GUARDED_BY(state_mutex_);
  /// A job runs, or is about to.
  bool running_ PV2_GUARDED_BY(state_mutex_) = false;
};

}  // namespace pv2::cluster
