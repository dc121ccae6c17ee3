// SPDX-License-Identifier: Apache-2.0
//
// Flush, compaction and close: the work on a region's files. One job runs at a time, on the work
// queue, and only that job changes the list of files.

#include <fmt/core.h>
#include <pv2/base/assert.h>

#include <algorithm>
#include <utility>

#include "storage/region.h"

namespace pv2::cluster {

void Region::flush(FlushDone done) {
  enqueue({.kind = Job::Kind::kFlush, .done = std::move(done)});
}

void Region::compact(CompactOptions options, std::function<void(Status)> done) {
  enqueue({.kind = Job::Kind::kCompact,
           .compaction = options,
           .done = [done = std::move(done)](const Result<std::uint64_t>& compacted) {
             done(compacted.status());
           }});
}

void Region::close(FlushDone done) {
  {
    MutexLock lock(state_mutex_);
    if (phase_ == Phase::kOpen) phase_ = Phase::kClosing;
  }
  enqueue({.kind = Job::Kind::kClose, .done = std::move(done)});
}

void Region::abandon() {
  // They go without the lock, and may take this region with them.
  const std::shared_ptr<Region> self = shared_from_this();
  std::deque<Job> jobs;
  decltype(waiting_) waiting;
  MutexLock lock(state_mutex_);
  jobs.swap(jobs_);
  waiting.swap(waiting_);
}

void Region::enqueue(Job job) {
  MutexLock lock(state_mutex_);
  jobs_.push_back(std::move(job));
  schedule();
}

void Region::schedule() {
  if (running_ || jobs_.empty()) return;
  running_ = true;
  work_.run([self = shared_from_this()] { self->run_next(); });
}

void Region::run_next() {
  Job job;
  {
    MutexLock lock(state_mutex_);
    PV2_ASSERT(!jobs_.empty(), "a run has a job");
    job = std::move(jobs_.front());
    jobs_.pop_front();
  }
  if (!snapshot_is_visible(job)) {
    MutexLock lock(state_mutex_);
    jobs_.push_front(std::move(job));
    running_ = false;
    // The write may have become visible after the look at it.
    if (visible_ >= snapshot_sequence_ || !failure_.ok()) schedule();
    return;
  }
  Result<std::uint64_t> result = run(job);
  const bool is_close = job.kind == Job::Kind::kClose;
  if (!result.ok() && (is_close || result.status().code() == StatusCode::kFenced))
    fail(result.status());
  if (is_close && result.ok() && status().ok()) {  // it is not closed: writes are left
    MutexLock lock(state_mutex_);
    jobs_.push_front(std::move(job));
  } else {
    job.done(std::move(result));
  }
  MutexLock lock(state_mutex_);
  running_ = false;
  schedule();
}

bool Region::snapshot_is_visible(const Job& job) {
  if (job.kind == Job::Kind::kCompact) return true;
  MutexLock order(write_mutex_);  // no write is half in the snapshot
  MutexLock lock(state_mutex_);
  if (!refusal().ok()) return true;
  // Also writes that changed nothing: their entries keep the log.
  if (!flushing_ && assigned_ > flushed_) {
    flushing_ = std::exchange(active_, std::make_shared<MemStore>());
    snapshot_sequence_ = assigned_;
  }
  return !flushing_ || visible_ >= snapshot_sequence_;
}

Result<std::uint64_t> Region::run(const Job& job) {
  {
    MutexLock lock(state_mutex_);
    if (Status bad = refusal(); !bad.ok()) return bad;
  }
  if (Status bad = write_next_list(); !bad.ok()) return bad;
  switch (job.kind) {
    case Job::Kind::kFlush:
      return flush_snapshot();
    case Job::Kind::kCompact: {
      if (Status bad = compact_now(job.compaction); !bad.ok()) return bad;
      MutexLock lock(state_mutex_);
      return flushed_;
    }
    case Job::Kind::kClose: {
      Result<std::uint64_t> flushed = flush_snapshot();
      MutexLock lock(state_mutex_);
      // Not closed yet if the snapshot was that of an earlier flush, which had failed.
      if (flushed.ok() && *flushed == assigned_) phase_ = Phase::kClosed;
      return flushed;
    }
  }
  PV2_ASSERT(false, "a job has a kind");
  return Status(StatusCode::kInternal, "a job without a kind");
}

Result<std::uint64_t> Region::flush_snapshot() {
  std::shared_ptr<const MemStore> cells;
  OpenFiles files;
  std::uint64_t sequence = 0;
  {
    MutexLock lock(state_mutex_);
    if (!flushing_) return flushed_;
    PV2_ASSERT(visible_ >= snapshot_sequence_, "only visible writes are flushed");
    cells = flushing_;
    files = *open_files_;
    sequence = snapshot_sequence_;
  }
  if (!cells->empty()) {
    const std::unique_ptr<CellCursor> cursor = MemStore::cursor(cells);
    std::uint64_t written = 0;
    Result<OpenFile> file = write_file(*cursor, written, [](const DecodedCell&) { return true; });
    if (!file.ok()) return file.status();
    PV2_ASSERT(file->file->meta().max_sequence <= sequence, "a snapshot ends at its sequence");
    files.push_back(*std::move(file));
  }
  if (Status bad = replace_files(std::move(files), sequence); !bad.ok()) return bad;
  return sequence;
}

Status Region::compact_now(const CompactOptions& options) {
  std::shared_ptr<const OpenFiles> inputs;
  std::uint64_t sequence = 0;
  {
    MutexLock lock(state_mutex_);
    inputs = open_files_;
    sequence = flushed_;
  }
  if (inputs->empty()) return {};
  const std::unique_ptr<CellCursor> cursor =
      cursor_over({std::make_shared<MemStore>(), nullptr, inputs, sequence});
  std::uint64_t written = 0;
  Result<OpenFile> merged = write_file(*cursor, written, [&](const DecodedCell& decoded) {
    // All files are merged, so nothing older is left that a tombstone would have to hide.
    const StoredCell& cell = decoded.cell;
    if (cell.kind == CellKind::kTombstone) return false;
    if (cell.space != CellSpace::kNonces) return check_families({cell.family}).ok();
    const std::optional<NonceCell> nonce = decode_nonce_cell(cell);
    if (!nonce) return true;
    const bool is_promised = nonce->expires_at && *nonce->expires_at >= options.expired_before;
    return nonce->done_at >= options.done_before || is_promised;
  });
  if (!merged.ok()) return merged.status();
  OpenFiles files;
  if (written > 0) {
    files.push_back(*merged);
  } else {
    static_cast<void>(
        files_.remove_file(layout_.store_file(info_.table, info_.id, merged->entry.name)));
  }
  return replace_files(std::move(files), sequence);
}

Result<Region::OpenFile> Region::write_file(CellCursor& cells, std::uint64_t& written,
                                            const std::function<bool(const DecodedCell&)>& keep) {
  const std::string name = ClusterLayout::store_file_name(options_.opening, next_number_++);
  const std::string path = layout_.store_file(info_.table, info_.id, name);
  Result<std::unique_ptr<StoreFileWriter>> writer = StoreFileWriter::create(files_, path);
  if (!writer.ok()) return writer.status();
  for (const CellSpace space : kCellSpaces) {
    const std::string end = upper_bound(space, {});
    std::string last;
    for (cells.seek(lower_bound(space, {})); cells.valid() && cells.key() < end; cells.next()) {
      // The first version of a cell is the newest one; nobody needs the others.
      if (prefix_of_key(cells.key()) == last) continue;
      last = prefix_of_key(cells.key());
      const std::optional<DecodedCell> decoded = decode_cell(cells.key(), cells.value());
      if (!decoded)
        return Status(StatusCode::kCorruption, path + " would have a key that is no cell");
      if (!keep(*decoded)) continue;
      if (Status bad = (*writer)->add(cells.key(), cells.value()); !bad.ok()) return bad;
    }
    if (!cells.status().ok()) return cells.status();
  }
  if (Status bad = (*writer)->finish(); !bad.ok()) return bad;
  written = (*writer)->meta().cells;
  Result<std::shared_ptr<StoreFile>> file = StoreFile::open(files_, path);
  if (!file.ok()) return file.status();
  const std::uint64_t bytes = (*file)->bytes();
  return OpenFile{
      {.name = name, .region_id = info_.id, .bytes = bytes, .descriptor = options_.descriptor},
      *std::move(file)};
}

Status Region::replace_files(OpenFiles files, std::uint64_t max_sequence) {
  PV2_ASSERT(!next_list_, "one list at a time is under way");
  next_list_ = NextList{std::move(files), max_sequence};
  return write_next_list();
}

// Before a job makes another file, so a list that cannot be written leaves one file and not many.
Status Region::write_next_list() {
  if (!next_list_) return {};
  RegionFiles list{.opening = options_.opening,
                   .max_sequence = next_list_->max_sequence,
                   .next_number = next_number_,
                   .descriptor = options_.descriptor};
  for (const OpenFile& file : next_list_->files) list.files.push_back(file.entry);
  Status bad = write_region_files(files_, layout_, info_.table, info_.id, std::move(list));
  if (!bad.ok()) return bad;
  const auto files = std::make_shared<const OpenFiles>(std::move(next_list_->files));
  const std::uint64_t max_sequence = next_list_->max_sequence;
  next_list_.reset();
  std::shared_ptr<const OpenFiles> before = files;
  {
    MutexLock lock(state_mutex_);
    PV2_ASSERT(max_sequence >= flushed_, "a list never loses writes");
    before.swap(open_files_);
    if (flushing_ && max_sequence >= snapshot_sequence_) flushing_ = nullptr;
    flushed_ = max_sequence;
  }
  remove_unlisted(*before, *files);
  return {};
}

// What a failure leaves, the next opening removes.
void Region::remove_unlisted(const OpenFiles& before, const OpenFiles& listed) {
  for (const OpenFile& file : before) {
    const std::string& name = file.entry.name;
    const bool is_listed = std::ranges::any_of(listed, [&](const OpenFile& other) {
      return other.entry.region_id == file.entry.region_id && other.entry.name == name;
    });
    if (is_listed || file.entry.region_id != info_.id) continue;
    if (!files_.remove_file(layout_.store_file(info_.table, info_.id, name)).ok()) return;
  }
}

void Region::fail(const Status& status) {
  MutexLock lock(state_mutex_);
  if (failure_.ok()) failure_ = status;
}

}  // namespace pv2::cluster
