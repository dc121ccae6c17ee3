// SPDX-License-Identifier: Apache-2.0
//
// What an open LevelDbProcedureStore does: the first commit takes over what was there, each commit
// is appended to the log, and a read looks into the log before it asks the database.

#include "leveldb_store.h"

#include <fmt/format.h>
#include <leveldb/iterator.h>

#include <random>
#include <utility>

#include "row_table.h"

namespace pv2 {
namespace {

constexpr SegmentNumber kNoSegment{1};  // of a database that was never behind a log
// One write takes over at most so much of a log: all that a store has with the default options.
constexpr std::size_t kTakenOverAtOnce = std::size_t{64} << 20;

// So that no row can look like a frame of the log (unit_frame.h).
SegmentNumber random_segment() {
  std::random_device system;
  return {kNoSegment.value + 1 + (((std::uint64_t{system()} << 32) | system()) >> 2)};
}

}  // namespace

// The first commit calls it: by then the caller that opened the store has read what it needs, and
// found it good. Afterwards the store has the format of this version.
Status LevelDbProcedureStore::Impl::take_over() {
  Status status = look_at_directory();
  if (status.ok()) status = rows_.take_over();
  if (recovered_.next == kNoSegment) recovered_.next = random_segment();
  // From here on LevelDB's log holds checkpoints, and no commits.
  if (status.ok() && is_older_format_) status = directory_.mark_complete();
  if (status.ok()) status = move_log_into_database();
  if (!status.ok()) return status.with_context("taking over store " + directory_.path());
  for (SegmentPool::File& file : recovered_.files) pool_.add(std::move(file));
  log_.begin_with(recovered_.next);
  is_taken_over_ = true;
  return status;
}

// This process has read commits that the last one perhaps never synced. The system may have them in
// its memory alone, and after a failed sync a later sync may not bring them to the disk. So this
// process appends nothing to that log, and writes what it holds again.
//
// Normally one write takes over one segment, because LevelDB replays the last write if this process
// ends soon. But LevelDB may stop a later write until a compaction ends. It never stops the first
// one. So if it may stop one, the first write takes over all segments.
Status LevelDbProcedureStore::Impl::move_log_into_database() {
  Status status;
  SegmentNumber next = rows_.next_segment();
  const std::size_t at_once = rows_.may_stop_within(overlay_.size()) ? kTakenOverAtOnce : 1;
  while (status.ok() && !overlay_.empty()) {
    const Overlay::Checkpoint checkpoint = overlay_.begin_take_over(at_once);
    next.value = checkpoint.segment.value + 1;
    status = rows_.write_checkpoint(checkpoint, next);
    if (status.ok()) overlay_.end_checkpoint(checkpoint);
  }
  // No file may have a frame of the segment that comes next: the first of a store has a number that
  // nobody knows, and a salvage gives up frames that are still in the files.
  if (status.ok() && next < recovered_.next) {
    Overlay::Checkpoint nothing;
    nothing.last = nothing.needs = recovered_.last;
    status = rows_.write_checkpoint(nothing, recovered_.next);
  }
  return status.ok() && !recovered_.files.empty() ? sync_log() : status;
}

// A process that was killed may have left a file that it had filled in part and not synced, and
// names that it had not synced. A commit that goes past the page cache syncs only its own blocks.
Status LevelDbProcedureStore::Impl::sync_log() const {
  for (const SegmentPool::File& known : recovered_.files) {
    const auto file = log_files_.open(directory_.file(known.name));
    if (!file.ok()) return file.status();
    if (Status synced = (*file)->sync(); !synced.ok()) return synced;
  }
  return directory_.files().sync_directory(directory_.path());
}

// LevelDB opens files by their names, too, when a write makes it begin a log.
Status LevelDbProcedureStore::Impl::write_checkpoint(const Overlay::Checkpoint& checkpoint,
                                                     SegmentNumber next) {
  Status there = look_at_directory();
  return there.ok() ? rows_.write_checkpoint(checkpoint, next) : there;
}

// Commits would go on in a directory that was removed, where nobody would find them. A directory
// that was put in its place has other files under the same names: so this is called before a file
// is opened. It is called after a write as well, because the directory may go at any moment.
Status LevelDbProcedureStore::Impl::look_at_directory() const {
  if (!options_.env.has_value()) return lock_.check(directory_.lock_file(), directory_.path());
  const auto marked = directory_.has_marker();
  if (!marked.ok()) return marked.status();
  return *marked ? Status() : store_is_gone(directory_.path(), "its marker is");
}

Status LevelDbProcedureStore::Impl::write(const CommitList& unit) {
  Status written = is_taken_over_ ? Status() : take_over();
  if (written.ok()) written = log_.append(unit);
  // If it was removed or moved, that is why something else has failed, too.
  if (Status there = look_at_directory(); !there.ok()) {
    written = written.ok() ? std::move(there)
                           : Status(there.code(), fmt::format("{}. What failed first: {}",
                                                              there.message(), written.message()));
  }
  if (written.ok()) written = mark_.raise({unit.front()->sequence.value + unit.size() - 1});
  if (written.ok()) return Status();
  return not_absent(written).with_context(
      fmt::format("leveldb commit of {} batches to {} failed", unit.size(), directory_.path()));
}

Status LevelDbProcedureStore::Impl::scan(Space space, std::string_view prefix,
                                         const RowVisitor& visit) {
  const Reading reading(*this);
  if (!reading.is_open()) return closed();
  const std::string begin = full_key(space, prefix);
  std::unique_ptr<leveldb::Iterator> stored;
  const Overlay::Snapshot newer = overlay_.collect(begin, [&] { stored = rows_.rows(); });

  stored->Seek(begin);
  const auto is_stored = [&] {
    return stored->Valid() && stored->key().starts_with(leveldb::Slice(begin));
  };
  auto row = newer.rows.begin();
  Status status;
  while (status.ok() && (is_stored() || row != newer.rows.end())) {
    const int order = row == newer.rows.end() ? -1
                      : !is_stored()
                          ? 1
                          : stored->key().compare({row->full_key.data(), row->full_key.size()});
    if (order < 0) {
      status = rows_.visit(*stored, visit);
    } else if (!row->row.deleted) {
      status = visit(StoredRow{space, row->full_key.substr(1), row->row.value, row->row.sequence});
    }
    if (order <= 0) stored->Next();
    if (order >= 0) ++row;
  }
  return stored->status().ok() ? status : rows_.explain(stored->status(), "reading");
}

Result<std::optional<std::string>> LevelDbProcedureStore::Impl::get(Space space,
                                                                    std::string_view key) {
  const Reading reading(*this);
  if (!reading.is_open()) return closed();
  const std::string full = full_key(space, key);
  auto newer = overlay_.get(full);
  if (!newer) return rows_.get(full);
  if (newer->deleted) return std::optional<std::string>();
  return std::optional<std::string>(std::move(newer->value));
}

void LevelDbProcedureStore::Impl::close() noexcept {
  if (committer_ == nullptr) return;
  committer_->close();
  MutexLock closing(closing_mutex_);
  checkpointer_.stop();
  MutexLock lock(readers_mutex_);
  const bool was_open = std::exchange(readable_, false);
  while (readers_ != 0) no_readers_.wait(readers_mutex_);
  // If this mark does not reach the disk, an older one remains, which is true as well.
  if (was_open) static_cast<void>(mark_.sync().ok());
  rows_.close();
  lock_.release();
}

Status LevelDbProcedureStore::Impl::closed() const {
  return Status(StatusCode::kStopping,
                fmt::format("{} is closed: nothing is read any more", name()));
}

}  // namespace pv2
