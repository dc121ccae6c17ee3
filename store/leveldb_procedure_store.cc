// SPDX-License-Identifier: Apache-2.0
//
// LevelDbProcedureStore: a Committer in front of a step log, and a database behind it, to which the
// log's rows go when a segment is full. This file holds what happens between opening and closing;
// whether a directory may be opened at all is LevelDbDirectory's question.
//
//     commit() --Committer--> unit --StepLog--> segment  --Checkpointer--> LevelDbRows
//                                               get(), scan(): Overlay first, then LevelDbRows

#include "pv2/store/leveldb_procedure_store.h"

#include <fmt/format.h>
#include <leveldb/env.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "committer.h"
#include "durable_mark.h"
#include "leveldb_directory.h"
#include "leveldb_rows.h"
#include "leveldb_salvage.h"
#include "log/checkpointer.h"
#include "log/log_recovery.h"
#include "log/overlay.h"
#include "log/segment_pool.h"
#include "log/step_log.h"
#include "pv2/base/assert.h"
#include "pv2/base/mutex.h"
#include "row_table.h"
#include "store_lock.h"

namespace pv2 {
namespace {

// The first file of the log; each next one is four times as large, up to the limit of the options.
constexpr std::size_t kFirstSegmentBytes = std::size_t{64} << 10;
constexpr std::size_t kSegmentBytesMax = std::size_t{1} << 30;
constexpr std::size_t kSegmentsMin = 2;  // one that is written, and one that is moved away

Status check_options(const LevelDbOptions& options) {
  const auto refused = [](std::string why) {
    return Status(StatusCode::kInvalidArgument, "LevelDbOptions: " + std::move(why));
  };
  if (options.segments < kSegmentsMin) {
    return refused(fmt::format("the log has {} segments; it needs at least {}", options.segments,
                               kSegmentsMin));
  }
  if (options.segment_bytes == 0 || options.segment_bytes > kSegmentBytesMax) {
    return refused(fmt::format("segments of {} bytes; 1 to {} are possible", options.segment_bytes,
                               kSegmentBytesMax));
  }
  if (options.limits.batch_bytes > kSegmentBytesMax) {
    return refused(fmt::format("batches of {} bytes; at most {} are possible",
                               options.limits.batch_bytes, kSegmentBytesMax));
  }
  return Status();
}

leveldb::Env& env_of(const LevelDbOptions& options) {
  if (!options.env.has_value()) return *leveldb::Env::Default();
  auto* const* const env = std::any_cast<leveldb::Env*>(&options.env);
  PV2_ASSERT(env != nullptr && *env != nullptr,
             "LevelDbOptions::env holds a leveldb::Env*, not a pointer to a class derived from it");
  PV2_ASSERT(options.segment_files != nullptr, "a file system of a test has both halves");
  return **env;
}

constexpr SegmentNumber kNoSegment{1};  // of a database that was never behind a log

// So that no row can look like a frame of the log (unit_frame.h).
SegmentNumber random_segment() {
  std::random_device system;
  return {kNoSegment.value + 1 + (((std::uint64_t{system()} << 32) | system()) >> 2)};
}

SegmentFiles& segment_files_of(const LevelDbOptions& options) {
  return options.segment_files == nullptr ? system_segment_files() : *options.segment_files;
}

}  // namespace

class LevelDbProcedureStore::Impl final : public UnitWriter {
 public:
  Impl(std::string path, LevelDbOptions options)
      : options_(std::move(options)),
        directory_(std::move(path),
                   LevelDbFiles(env_of(options_), options_.sync_directory
                                                      ? options_.sync_directory
                                                      : DirectorySync(&pv2::sync_directory))),
        mark_(directory_.files(), directory_.mark_file()),
        rows_(directory_, {.write_buffer_bytes = options_.write_buffer_bytes,
                           .block_cache_bytes = options_.block_cache_bytes}),
        pool_(segment_files_of(options_), directory_.files().directory_sync(), directory_.path(),
              {.bytes_min = kFirstSegmentBytes,
               .bytes_max = options_.segment_bytes,
               .files_max = options_.segments}),
        checkpointer_(overlay_, pool_, rows_,
                      is_pumped() ? Checkpointer::Thread::kCaller : Checkpointer::Thread::kOwn),
        log_(segment_files_of(options_), directory_.path(), overlay_, checkpointer_) {}
  ~Impl() {
    committer_.reset();
    checkpointer_.stop();
  }

  Status recover_lease(CommitSink& sink);
  Result<std::optional<std::string>> get(Space space, std::string_view key);
  Status scan(Space space, std::string_view prefix, const RowVisitor& visit);
  void close() noexcept;
  Status write(const CommitList& unit) override;
  /// For salvage: opens what can be kept,
  void accept_lost_commits() noexcept { accepts_lost_commits_ = true; }
  [[nodiscard]] const LevelDbDirectory& directory() const noexcept { return directory_; }
  [[nodiscard]] const SalvagePlan& salvage_plan() const noexcept { return salvage_plan_; }
  /// and makes it what the store holds.
  Status take_over();

  [[nodiscard]] std::string name() const { return "leveldb at " + directory_.path(); }
  [[nodiscard]] Committer& committer() const {
    PV2_ASSERT(committer_ != nullptr, "a store takes its lease before anything else");
    return *committer_;
  }
  [[nodiscard]] const LevelDbOptions& options() const noexcept { return options_; }
  [[nodiscard]] const RecoveredLog& recovered() const noexcept { return recovered_; }

 private:
  // Keeps the database open during a read; close() waits for the last reader.
  class Reading {
   public:
    explicit Reading(Impl& impl) PV2_EXCLUDES(impl.readers_mutex_) : impl_(impl) {
      MutexLock lock(impl_.readers_mutex_);
      is_open_ = impl_.readable_;
      if (is_open_) ++impl_.readers_;
    }
    ~Reading() PV2_EXCLUDES(impl_.readers_mutex_) {
      if (!is_open_) return;
      MutexLock lock(impl_.readers_mutex_);
      if (--impl_.readers_ == 0) impl_.no_readers_.notify_all();
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    [[nodiscard]] bool is_open() const noexcept { return is_open_; }

   private:
    Impl& impl_;
    bool is_open_ = false;
  };

  [[nodiscard]] bool is_pumped() const noexcept {
    return options_.committer == LevelDbOptions::Committer::kPump;
  }
  Status acquire();
  Status look_at_logs(std::vector<ShownLog>& shown);
  Status recover();
  Status compare_with_mark() const;
  Status move_log_into_database();
  Status look_at_directory() const;
  Status closed() const;

  const LevelDbOptions options_;
  const LevelDbDirectory directory_;
  DurableMark mark_;  // used by write(), and by close() after the last write
  StoreLock lock_;
  LevelDbRows rows_;
  Overlay overlay_;
  SegmentPool pool_;
  Checkpointer checkpointer_;
  StepLog log_;
  RecoveredLog recovered_;  // its segments are in the overlay
  bool accepts_lost_commits_ = false;
  std::optional<RecoveredLog::Damage> left_out_;  // of the database's log
  SalvagePlan salvage_plan_;                      // if it does
  bool is_older_format_ = false;                  // until it is taken over
  bool is_taken_over_ = false;

  Mutex readers_mutex_;
  CondVar no_readers_;
  bool readable_ PV2_GUARDED_BY(readers_mutex_) = false;
  std::size_t readers_ PV2_GUARDED_BY(readers_mutex_) = 0;

  std::unique_ptr<Committer> committer_;  // last: its thread uses what stands above
};

Status LevelDbProcedureStore::Impl::recover_lease(CommitSink& sink) {
  PV2_ASSERT(committer_ == nullptr, "recover_lease is called once");
  Status status = check_options(options_);
  if (status.ok()) status = acquire();
  if (status.ok()) status = checkpointer_.start();
  if (!status.ok()) {
    rows_.close();
    lock_.release();
    return status;
  }
  {
    MutexLock lock(readers_mutex_);
    readable_ = true;
  }
  committer_ = std::make_unique<Committer>(
      name(), *this, sink, recovered_.last,
      Committer::Options{
          .thread = is_pumped() ? Committer::Thread::kCaller : Committer::Thread::kOwn,
          .limits = options_.limits,
          .unit_size = {
              .batch_operations = options_.unit_size.batch_operations,
              .batch_bytes = std::min(options_.unit_size.batch_bytes, kSegmentBytesMax)}});
  return committer_->started();
}

// Looks at the directory, locks it, looks again (another process may have been faster), and only
// then changes something in it.
Status LevelDbProcedureStore::Impl::acquire() {
  using Contents = LevelDbDirectory::Contents;
  auto contents = directory_.examine();
  if (!contents.ok()) return contents.status();
  const bool nothing = *contents == Contents::kMissing || *contents == Contents::kEmpty;
  if (nothing && !options_.create_if_missing) {
    return Status(StatusCode::kNotFound, fmt::format("there is no store at {}", directory_.path()));
  }
  if (*contents == Contents::kMissing) {
    Status status = directory_.create();
    if (!status.ok()) return status;
  }
  if (!options_.env.has_value()) {
    Status status = lock_.acquire(directory_.lock_file(), directory_.path());
    if (!status.ok()) return status;
  }
  contents = directory_.examine();
  if (!contents.ok()) return contents.status();

  is_older_format_ = *contents == Contents::kOlderStore;
  const bool create = *contents != Contents::kStore && !is_older_format_;
  Status status;
  if (*contents == Contents::kUnfinished) status = directory_.verify_unfinished();
  std::vector<ShownLog> shown;
  if (status.ok()) status = create ? directory_.mark_unfinished() : look_at_logs(shown);
  if (status.ok() && *contents == Contents::kUnfinished) {
    leveldb::Options remove;
    remove.env = &directory_.files().env();
    status = translate(leveldb::DestroyDB(directory_.path(), remove));
  }
  if (status.ok()) status = create ? rows_.create() : rows_.open(std::move(shown));
  // Whoever made the directory may have died, or may not know, that its name has to be synced.
  if (status.ok() && create) status = directory_.sync_name();
  if (status.ok() && create) status = directory_.mark_complete();
  return status.ok() ? recover() : status;
}

// `shown`: the logs that LevelDB is to see without their ends.
Status LevelDbProcedureStore::Impl::look_at_logs(std::vector<ShownLog>& shown) {
  if (accepts_lost_commits_) {
    auto plan = plan_salvage(directory_);
    if (!plan.ok()) return plan.status();
    salvage_plan_ = *std::move(plan);
    shown = salvage_plan_.shown;
    return Status();
  }
  auto verified = directory_.verify(/*has_step_log=*/!is_older_format_);
  if (!verified.ok()) return verified.status();
  shown = *std::move(verified);
  if (!shown.empty()) left_out_ = {shown.front().file, shown.front().why};
  return Status();
}

Status LevelDbProcedureStore::Impl::recover() {
  auto log = recover_log(directory_.files(), directory_.path(), rows_.next_segment(), rows_.last(),
                         accepts_lost_commits_ ? Checkpointed::kReadIfWhole : Checkpointed::kSkip);
  if (!log.ok()) return log.status().with_context("opening store " + directory_.path());
  recovered_ = *std::move(log);
  const bool is_whole = rows_.needs() <= recovered_.last;
  if (!is_whole && accepts_lost_commits_ && !recovered_.with_checkpointed) {
    return Status(StatusCode::kNotSupported,
                  fmt::format("store {}: rows of the commits up to {} are in the lost part of the "
                              "log alone; a salvage would leave a state that never was",
                              directory_.path(), rows_.last().value));
  }
  if (!is_whole && !recovered_.damage) {
    recovered_.damage = {
        recovered_.newest.empty() ? directory_.newest_log() : recovered_.newest,
        fmt::format("its end is missing: the database needs it up to commit {}, and the last one "
                    "that is there is {}",
                    rows_.needs().value, recovered_.last.value)};
  }
  const auto& damage = recovered_.damage;
  if (damage && !accepts_lost_commits_) {
    // The database's log seemed to end in a checkpoint that was never synced. It was synced.
    const auto& cause = left_out_ ? left_out_ : damage;
    return directory_.damaged(cause->file, cause->what);
  }
  for (auto& segment : recovered_.segments) overlay_.add(std::move(segment));
  recovered_.segments.clear();
  return accepts_lost_commits_ ? Status() : compare_with_mark();
}

// A log that was cut short looks like one that a crash left; so does a store whose files are gone.
Status LevelDbProcedureStore::Impl::compare_with_mark() const {
  const auto durable = mark_.read();
  if (durable.status().code() == StatusCode::kCorruption) {
    return directory_.damaged(std::string(LevelDbDirectory::kMark),
                              std::string(durable.status().message()));
  }
  if (!durable.ok()) return durable.status().with_context("opening store " + directory_.path());
  if (*durable <= recovered_.last) return Status();
  if (left_out_) return directory_.damaged(left_out_->file, left_out_->what);
  return directory_.damaged(
      recovered_.newest.empty() ? directory_.newest_log() : recovered_.newest,
      fmt::format(
          "its end is missing: {} says that commit {} was durable, and the last one that is "
          "there is {}",
          LevelDbDirectory::kMark, durable->value, recovered_.last.value));
}

// The first commit calls it: by then the caller that opened the store has read what it needs, and
// found it good. Afterwards the store has the format of this version.
Status LevelDbProcedureStore::Impl::take_over() {
  Status status = rows_.take_over();
  if (rows_.next_segment() == kNoSegment) recovered_.next = random_segment();
  if (status.ok()) status = move_log_into_database();
  if (status.ok() && is_older_format_) status = directory_.mark_complete();
  if (!status.ok()) return status.with_context("taking over store " + directory_.path());
  for (SegmentPool::File& file : recovered_.files) pool_.add(std::move(file));
  log_.begin_with(recovered_.next);
  is_taken_over_ = true;
  return status;
}

// A commit that this process has read, but the last one has not synced, may be in the memory of the
// system alone, and a sync of the old file may not bring it to the disk after a sync has failed. So
// nothing is appended to a log of another process, and what it holds is written again.
Status LevelDbProcedureStore::Impl::move_log_into_database() {
  Status status;
  SegmentNumber next = rows_.next_segment();
  while (status.ok() && !overlay_.empty()) {
    const Overlay::Checkpoint checkpoint = overlay_.begin_checkpoint(Overlay::Replaced::kWritten);
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
  // The names of its files may never have been synced.
  if (status.ok() && !recovered_.files.empty()) {
    status = directory_.files().sync_directory(directory_.path());
  }
  return status;
}

// Commits would go on in a directory that was removed, where nobody would find them.
Status LevelDbProcedureStore::Impl::look_at_directory() const {
  if (!options_.env.has_value()) return lock_.check(directory_.lock_file(), directory_.path());
  return directory_.has_marker() ? Status() : store_is_gone(directory_.path(), "its marker is");
}

Status LevelDbProcedureStore::Impl::write(const CommitList& unit) {
  Status written = is_taken_over_ ? Status() : take_over();
  if (written.ok()) written = log_.append(unit);
  // If it was removed or moved, that is why something else has failed, too.
  if (Status there = look_at_directory(); !there.ok()) written = std::move(there);
  if (written.ok()) written = mark_.raise({unit.front()->sequence.value + unit.size() - 1});
  if (written.ok()) return Status();
  return written.with_context(
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

LevelDbProcedureStore::LevelDbProcedureStore(std::string path, LevelDbOptions options)
    : impl_(std::make_unique<Impl>(std::move(path), std::move(options))) {}
LevelDbProcedureStore::~LevelDbProcedureStore() = default;

std::string LevelDbProcedureStore::name() const { return impl_->name(); }
Status LevelDbProcedureStore::recover_lease(CommitSink& sink) { return impl_->recover_lease(sink); }

CommitAnswer LevelDbProcedureStore::commit(CommitRequest& request) {
  return impl_->committer().commit(request);
}
CommitAnswer LevelDbProcedureStore::commit_all(CommitList& requests) {
  return impl_->committer().commit_all(requests);
}

Result<std::optional<std::string>> LevelDbProcedureStore::get(Space space, std::string_view key) {
  return impl_->get(space, key);
}
Status LevelDbProcedureStore::scan(Space space, std::string_view prefix, const RowVisitor& visit) {
  return impl_->scan(space, prefix, visit);
}

StoreLimits LevelDbProcedureStore::limits() const noexcept { return impl_->options().limits; }
bool LevelDbProcedureStore::pump() { return impl_->committer().pump(); }
void LevelDbProcedureStore::close() noexcept { impl_->close(); }

Result<LevelDbProcedureStore::Salvaged> LevelDbProcedureStore::salvage(const std::string& path) {
  class NoSink final : public CommitSink {
    void on_committed(CommitList) noexcept override {}
  } sink;
  LevelDbProcedureStore store(path, {.create_if_missing = false});
  Impl& impl = *store.impl_;
  const auto contents = impl.directory().examine();
  if (!contents.ok()) return contents.status();
  if (*contents != LevelDbDirectory::Contents::kStore &&
      *contents != LevelDbDirectory::Contents::kOlderStore) {
    return Status(StatusCode::kNotFound, "there is no store at " + path);
  }
  // Until here, and in this call, nothing is changed.
  impl.accept_lost_commits();
  if (Status opened = store.recover_lease(sink); !opened.ok()) return opened;
  const CommitSequence last = impl.recovered().last;
  SalvageReport done;
  Status status = copy_logs(impl.directory(), impl.salvage_plan(), done);
  if (status.ok()) status = give_up_damaged_log(impl.directory(), impl.recovered(), done);
  if (status.ok()) status = give_up_later_commits(impl.directory(), last, done);
  if (status.ok() && done.changed) status = impl.take_over();
  store.close();
  if (!status.ok()) {
    status = status.with_context("salvage of store " + path);
    return done.copies.empty() ? status : status.with_context("copies are in " + done.copies);
  }
  Salvaged salvaged{
      .changed = done.changed, .last_kept = last, .copies = done.copies, .report = {}};
  if (!done.changed) {
    salvaged.report = fmt::format("store {} needs no salvage: its logs are undamaged", path);
    return salvaged;
  }
  salvaged.report = fmt::format(
      "store {}: {}. Every commit up to {} is kept; every later one is gone. The damaged files are "
      "in {}",
      path, done.what, salvaged.last_kept.value, done.copies);
  return salvaged;
}

std::unique_ptr<ProcedureStore> leveldb(std::string path, LevelDbOptions options) {
  return std::make_unique<LevelDbProcedureStore>(std::move(path), std::move(options));
}

}  // namespace pv2
