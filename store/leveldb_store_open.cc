// SPDX-License-Identifier: Apache-2.0
//
// How a LevelDbProcedureStore is opened: by reading only, unless it is new. Whether a directory may
// be opened at all is LevelDbDirectory's question.

#include <fmt/format.h>
#include <leveldb/db.h>
#include <leveldb/env.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "leveldb_store.h"
#include "system_env.h"

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
  if (!options.env.has_value()) return system_env();
  auto* const* const env = std::any_cast<leveldb::Env*>(&options.env);
  PV2_ASSERT(env != nullptr && *env != nullptr,
             "LevelDbOptions::env holds a leveldb::Env*, not a pointer to a class derived from it");
  PV2_ASSERT(options.segment_files != nullptr, "a file system of a test has both halves");
  return **env;
}

SegmentFiles& segment_files_of(const LevelDbOptions& options) {
  return options.segment_files == nullptr ? system_segment_files() : *options.segment_files;
}

}  // namespace

LevelDbProcedureStore::Impl::Impl(std::string path, LevelDbOptions options)
    : options_(std::move(options)),
      directory_(std::move(path),
                 LevelDbFiles(env_of(options_), options_.sync_directory
                                                    ? options_.sync_directory
                                                    : DirectorySync(&pv2::sync_directory))),
      mark_(directory_.files(), segment_files_of(options_), directory_.mark_file()),
      rows_(directory_, {.write_buffer_bytes = options_.write_buffer_bytes,
                         .block_cache_bytes = options_.block_cache_bytes}),
      log_files_(segment_files_of(options_), [this] { return look_at_directory(); }),
      pool_(log_files_, directory_.files().directory_sync(), directory_.path(),
            {.bytes_min = kFirstSegmentBytes,
             .bytes_max = options_.segment_bytes,
             .files_max = options_.segments}),
      checkpointer_(overlay_, pool_, *this,
                    is_pumped() ? Checkpointer::Thread::kCaller : Checkpointer::Thread::kOwn),
      log_(log_files_, directory_.path(), overlay_, checkpointer_) {}

Status LevelDbProcedureStore::Impl::recover_lease(CommitSink& sink) {
  PV2_ASSERT(committer_ == nullptr, "recover_lease is called once");
  Status status = check_options(options_);
  if (status.ok()) status = acquire();
  if (status.ok()) status = checkpointer_.start();
  if (status.ok()) status = start_committer(sink);
  if (!status.ok()) {
    checkpointer_.stop();
    rows_.close();
    lock_.release();
    return status;
  }
  MutexLock lock(readers_mutex_);
  readable_ = true;
  return status;
}

Status LevelDbProcedureStore::Impl::start_committer(CommitSink& sink) {
  auto committer = std::make_unique<Committer>(
      name(), *this, sink, recovered_.last,
      Committer::Options{
          .thread = is_pumped() ? Committer::Thread::kCaller : Committer::Thread::kOwn,
          .limits = options_.limits,
          .unit_size = {
              .batch_operations = options_.unit_size.batch_operations,
              .batch_bytes = std::min(options_.unit_size.batch_bytes, kSegmentBytesMax)}});
  Status started = committer->started();
  if (started.ok()) committer_ = std::move(committer);
  return started;
}

// Looks at the directory, locks it, looks again (another process may have been faster), and only
// then changes something in it.
Status LevelDbProcedureStore::Impl::acquire() {
  using Contents = LevelDbDirectory::Contents;
  auto contents = directory_.examine();
  if (!contents.ok()) return contents.status();
  const bool nothing = *contents == Contents::kMissing || *contents == Contents::kEmpty;
  if (nothing && !options_.create_if_missing) return directory_.no_store(*contents);
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
  if (*contents == Contents::kUnfinished) {
    if (Status status = directory_.verify_unfinished(); !status.ok()) return status;
  }
  if (create && !options_.create_if_missing) return directory_.no_store(*contents);
  return not_absent(create ? create_files(*contents) : open_files());
}

Status LevelDbProcedureStore::Impl::open_files() {
  std::vector<ShownFile> shown;
  Status status = look_at_files(shown);
  if (status.ok()) status = rows_.open(std::move(shown));
  return status.ok() ? recover() : status;
}

Status LevelDbProcedureStore::Impl::create_files(LevelDbDirectory::Contents contents) {
  const bool is_unfinished = contents == LevelDbDirectory::Contents::kUnfinished;
  Status status = is_unfinished ? Status() : directory_.verify_empty();
  if (status.ok() && !options_.env.has_value()) status = look_at_directory();
  if (status.ok()) status = directory_.mark_unfinished();
  if (status.ok() && is_unfinished) {
    leveldb::Options remove;
    remove.env = &directory_.files().env();
    status = translate(leveldb::DestroyDB(directory_.path(), remove));
  }
  if (status.ok()) status = rows_.create();
  // Whoever made the directory may have died, or may not know, that its name has to be synced.
  if (status.ok()) status = directory_.sync_name();
  if (status.ok()) status = directory_.mark_complete();
  return status.ok() ? recover() : status;
}

// `shown`: the files that LevelDB is to see without their ends.
Status LevelDbProcedureStore::Impl::look_at_files(std::vector<ShownFile>& shown) {
  if (accepts_lost_commits_) {
    auto plan = plan_salvage(directory_, /*has_step_log=*/!is_older_format_);
    if (!plan.ok()) return plan.status();
    salvage_plan_ = *std::move(plan);
    shown = salvage_plan_.shown;
    return Status();
  }
  auto verified = directory_.verify(/*has_step_log=*/!is_older_format_);
  if (!verified.ok()) return verified.status();
  if (verified->log) left_out_ = {verified->log->file, verified->log->why};
  for (const auto& file : {verified->manifest, verified->log}) {
    if (file) shown.push_back(*file);
  }
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
  if (recovered_.damage && !accepts_lost_commits_) return log_is_damaged(*recovered_.damage);
  for (auto& segment : recovered_.segments) overlay_.add(std::move(segment));
  recovered_.segments.clear();
  Status status = accepts_lost_commits_ ? Status() : compare_with_mark();
  // What was not there, a log or the marks, is absent only if the directory is still the store's.
  return status.ok() ? look_at_directory() : status;
}

// If the step log does not begin where the database ends, the end of the database's log may be what
// is lost: a checkpoint that seemed to have been never synced, or one that was cut off.
Status LevelDbProcedureStore::Impl::log_is_damaged(const RecoveredLog::Damage& damage) const {
  const bool begins = !recovered_.newest.empty();
  if (left_out_ && !begins) return directory_.damaged(left_out_->file, left_out_->what);
  std::string what = damage.what;
  if (left_out_) {
    what += fmt::format("; or {} has lost more than its last write: {}", left_out_->file,
                        left_out_->what);
  } else if (const std::string log = directory_.newest_log(); !begins && log != damage.file) {
    what += fmt::format("; or the end of {} is missing", log);
  }
  return directory_.damaged(damage.file, what);
}

// A log that was cut short looks like one that a crash left; so does a store whose files are gone.
Status LevelDbProcedureStore::Impl::compare_with_mark() const {
  const auto durable = read_marks(directory_.files(), directory_.mark_file());
  if (durable.status().code() == StatusCode::kCorruption) {
    return directory_.damaged(std::string(LevelDbDirectory::kMark),
                              std::string(durable.status().message()));
  }
  if (!durable.ok()) return durable.status().with_context("opening store " + directory_.path());
  if (*durable <= recovered_.last) return Status();
  return log_is_damaged(
      {recovered_.newest.empty() ? directory_.newest_log() : recovered_.newest,
       fmt::format("its end is missing: {} says that commit {} was durable, and the last one that "
                   "is there is {}",
                   LevelDbDirectory::kMark, durable->value, recovered_.last.value)});
}

}  // namespace pv2
