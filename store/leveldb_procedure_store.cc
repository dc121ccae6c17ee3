// SPDX-License-Identifier: Apache-2.0
//
// LevelDbProcedureStore: a Committer in front of LevelDB. This file holds what happens between
// opening and closing; whether a directory may be opened at all is LevelDbDirectory's question.

#include "pv2/store/leveldb_procedure_store.h"

#include <fmt/format.h>
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>
#include <leveldb/iterator.h>
#include <leveldb/write_batch.h>

#include <memory>
#include <utility>

#include "committer.h"
#include "deferred_env.h"
#include "durable_mark.h"
#include "durable_names_env.h"
#include "leveldb_directory.h"
#include "leveldb_salvage.h"
#include "little_endian.h"
#include "pv2/base/assert.h"
#include "pv2/base/mutex.h"
#include "row_table.h"
#include "store_lock.h"

namespace pv2 {
namespace {

// The store's own row. Its space is not a letter and sorts before all letters, so future spaces
// cannot collide with it, and no scan of a space meets it. Its value is only the sequence that
// begins every value: that of the last commit of the unit that wrote the row.
constexpr std::string_view kSequenceKey = "!sequence";
constexpr std::size_t kSequenceBytes = 8;

// A bloom filter of 10 bits per key answers 99 % of the look-ups of unused nonces without reading a
// table.
constexpr int kFilterBitsPerKey = 10;

leveldb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(const leveldb::Slice& slice) { return {slice.data(), slice.size()}; }

leveldb::Env& env_of(const LevelDbOptions& options) {
  if (!options.env.has_value()) return *leveldb::Env::Default();
  auto* const* const env = std::any_cast<leveldb::Env*>(&options.env);
  PV2_ASSERT(env != nullptr && *env != nullptr,
             "LevelDbOptions::env holds a leveldb::Env*, not a pointer to a class derived from it");
  return **env;
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
        durable_names_(directory_.files().env(), directory_.files().directory_sync()),
        env_(durable_names_) {}
  // Changes that were not taken over are dropped before the database is destroyed.
  ~Impl() {
    committer_.reset();
    env_.discard();
  }

  Status recover_lease(CommitSink& sink);
  Result<std::optional<std::string>> get(Space space, std::string_view key);
  Status scan(Space space, std::string_view prefix, const RowVisitor& visit);
  void close() noexcept;
  Status write(const CommitList& unit) override;

  [[nodiscard]] std::string name() const { return "leveldb at " + directory_.path(); }
  [[nodiscard]] Committer& committer() const {
    PV2_ASSERT(committer_ != nullptr, "a store takes its lease before anything else");
    return *committer_;
  }
  [[nodiscard]] const LevelDbOptions& options() const noexcept { return options_; }
  [[nodiscard]] CommitSequence last_at_open() const noexcept { return last_at_open_; }
  // For salvage: opens what is there, whatever the mark says was there.
  void accept_lost_commits() noexcept { accepts_lost_commits_ = true; }

 private:
  // Keeps the database open during a read; close() waits for the last reader.
  class Reading {
   public:
    explicit Reading(Impl& impl) PV2_EXCLUDES(impl.readers_mutex_) : impl_(impl) {
      MutexLock lock(impl_.readers_mutex_);
      if (!impl_.readable_) return;
      ++impl_.readers_;
      db_ = impl_.db_.get();
    }
    ~Reading() PV2_EXCLUDES(impl_.readers_mutex_) {
      if (db_ == nullptr) return;
      MutexLock lock(impl_.readers_mutex_);
      if (--impl_.readers_ == 0) impl_.no_readers_.notify_all();
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    [[nodiscard]] leveldb::DB* db() const noexcept { return db_; }

   private:
    Impl& impl_;
    leveldb::DB* db_ = nullptr;
  };

  Status acquire();
  Status open_database(bool create);
  Status read_last_sequence();
  Status compare_with_mark() const;
  Status take_over();
  Status look_at_directory() const;
  Status visit_rows(leveldb::Iterator& rows, std::string_view prefix,
                    const RowVisitor& visit) const;
  Status with_damaged_file(const Status& failure, std::string_view act) const;
  Status closed() const;
  Status too_short(std::string_view key) const;

  const LevelDbOptions options_;
  const LevelDbDirectory directory_;
  DurableMark mark_;  // used by write(), and by close() after the last write
  DurableNamesEnv durable_names_;
  DeferredEnv env_;  // LevelDB's Env; outlives the database
  StoreLock lock_;
  std::unique_ptr<const leveldb::FilterPolicy> filter_;
  std::unique_ptr<leveldb::Cache> cache_;
  std::unique_ptr<leveldb::DB> db_;
  CommitSequence last_at_open_;
  bool accepts_lost_commits_ = false;
  bool is_older_format_ = false;  // until it is taken over

  Mutex readers_mutex_;
  CondVar no_readers_;
  bool readable_ PV2_GUARDED_BY(readers_mutex_) = false;
  std::size_t readers_ PV2_GUARDED_BY(readers_mutex_) = 0;

  // Used by write() only, and kept so that a unit allocates nothing once they have grown.
  leveldb::WriteBatch batch_;
  std::string key_;
  std::string value_;

  std::unique_ptr<Committer> committer_;  // last: its thread uses what stands above
};

Status LevelDbProcedureStore::Impl::recover_lease(CommitSink& sink) {
  PV2_ASSERT(committer_ == nullptr, "recover_lease is called once");
  Status status = acquire();
  if (!status.ok()) {
    env_.discard();
    db_.reset();
    lock_.release();
    return status;
  }
  {
    MutexLock lock(readers_mutex_);
    readable_ = true;
  }
  const bool pumped = options_.committer == LevelDbOptions::Committer::kPump;
  committer_ = std::make_unique<Committer>(
      name(), *this, sink, last_at_open_,
      Committer::Options{.thread = pumped ? Committer::Thread::kCaller : Committer::Thread::kOwn,
                         .limits = options_.limits,
                         .unit_size = options_.unit_size});
  status = committer_->started();
  return status;
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
  if (status.ok()) status = create ? directory_.mark_unfinished() : directory_.verify();
  if (status.ok() && *contents == Contents::kUnfinished) {
    leveldb::Options remove;
    remove.env = &directory_.files().env();
    status = translate(leveldb::DestroyDB(directory_.path(), remove));
  }
  if (status.ok() && !create) env_.defer();  // until write(): by then the caller found it good
  if (status.ok()) status = open_database(create);
  if (status.ok() && create) status = directory_.mark_complete();
  if (status.ok()) status = read_last_sequence();
  if (status.ok() && !create && !accepts_lost_commits_) status = compare_with_mark();
  return status;
}

Status LevelDbProcedureStore::Impl::open_database(bool create) {
  filter_.reset(leveldb::NewBloomFilterPolicy(kFilterBitsPerKey));
  cache_.reset(leveldb::NewLRUCache(options_.block_cache_bytes));
  leveldb::Options options;
  options.env = &env_;
  options.create_if_missing = create;
  options.paranoid_checks = true;
  options.write_buffer_size = options_.write_buffer_bytes;
  options.block_cache = cache_.get();
  options.filter_policy = filter_.get();
  options.compression = leveldb::kNoCompression;

  leveldb::DB* opened = nullptr;
  const Status status = translate(leveldb::DB::Open(options, directory_.path(), &opened));
  db_.reset(opened);
  const bool locked = status.code() == StatusCode::kIoError &&
                      status.message().find("/LOCK") != std::string_view::npos;
  if (locked) {
    return Status(StatusCode::kBusy, fmt::format("store {} is in use by another program: {}",
                                                 directory_.path(), status.message()));
  }
  return status.with_context("opening store " + directory_.path());
}

Status LevelDbProcedureStore::Impl::read_last_sequence() {
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  std::string value;
  const leveldb::Status found = db_->Get(options, slice(kSequenceKey), &value);
  if (found.IsNotFound()) return Status();  // nothing was ever committed
  if (!found.ok()) return with_damaged_file(translate(found), "opening");
  if (value.size() < kSequenceBytes) return too_short(kSequenceKey);
  last_at_open_.value = read_fixed64(value.data());
  return Status();
}

// A log that was cut short looks like one that a crash left; so does a database whose last table
// and log are both gone.
Status LevelDbProcedureStore::Impl::compare_with_mark() const {
  const auto durable = mark_.read();
  if (durable.status().code() == StatusCode::kCorruption) {
    return directory_.damaged(std::string(LevelDbDirectory::kMark),
                              std::string(durable.status().message()));
  }
  if (!durable.ok()) return durable.status().with_context("opening store " + directory_.path());
  if (*durable <= last_at_open_) return Status();
  return directory_.damaged(
      directory_.newest_log(),
      fmt::format(
          "its end is missing: {} says that commit {} was durable, and the last one that is "
          "there is {}",
          LevelDbDirectory::kMark, durable->value, last_at_open_.value));
}

// The first commit calls it: by then the caller that opened the store has read what it needs, and
// found it good. Afterwards the store has the format of this version.
Status LevelDbProcedureStore::Impl::take_over() {
  Status applied = translate(env_.apply());
  PV2_ASSERT(!applied.ok() || !env_.defers(), "what is taken over is changed at once from now on");
  if (applied.ok() && is_older_format_) applied = directory_.mark_complete();
  return applied.with_context("taking over store " + directory_.path());
}

// Commits would go on in a directory that was removed, where nobody would find them.
Status LevelDbProcedureStore::Impl::look_at_directory() const {
  if (!options_.env.has_value()) return lock_.check(directory_.lock_file(), directory_.path());
  return directory_.has_marker() ? Status() : store_is_gone(directory_.path(), "its marker is");
}

Status LevelDbProcedureStore::Impl::write(const CommitList& unit) {
  if (env_.defers()) {
    if (Status taken = take_over(); !taken.ok()) return taken;
  }
  batch_.Clear();
  CommitSequence last;
  unit.for_each([&](const CommitRequest& request) {
    last = request.sequence;
    value_.clear();
    append_fixed64(value_, request.sequence.value);
    request.batch.for_each(
        [&](RowOperation operation, Space space, std::string_view key, std::string_view value) {
          key_.assign(1, static_cast<char>(space)).append(key);
          if (operation == RowOperation::kDelete) {
            batch_.Delete(key_);
            return;
          }
          value_.resize(kSequenceBytes);
          value_.append(value);
          batch_.Put(key_, value_);
        });
  });
  value_.clear();
  append_fixed64(value_, last.value);
  batch_.Put(slice(kSequenceKey), value_);

  leveldb::WriteOptions options;
  options.sync = true;
  Status written = translate(db_->Write(options, &batch_));
  if (written.ok()) written = look_at_directory();
  if (written.ok()) written = mark_.raise(last);
  if (written.ok()) return Status();
  return written.with_context(
      fmt::format("leveldb commit of {} batches to {} failed", unit.size(), directory_.path()));
}

// LevelDB says that a block is damaged, but not in which file; so the tables are read until the
// damaged one is found, provided that none has been changed yet.
Status LevelDbProcedureStore::Impl::with_damaged_file(const Status& failure,
                                                      std::string_view act) const {
  const bool is_damaged = failure.code() == StatusCode::kCorruption;
  Status where = is_damaged && env_.defers() ? directory_.verify_tables() : Status();
  return where.ok() ? failure.with_context(fmt::format("{} store {}", act, directory_.path()))
                    : where;
}

Status LevelDbProcedureStore::Impl::scan(Space space, std::string_view prefix,
                                         const RowVisitor& visit) {
  const Reading reading(*this);
  if (reading.db() == nullptr) return closed();
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;  // a scan reads each block once; the cache is for get()
  const std::unique_ptr<leveldb::Iterator> rows(reading.db()->NewIterator(options));
  const Status status = visit_rows(*rows, full_key(space, prefix), visit);
  const Status read = translate(rows->status());
  return read.ok() ? status : with_damaged_file(read, "reading");
}

Status LevelDbProcedureStore::Impl::visit_rows(leveldb::Iterator& rows, std::string_view prefix,
                                               const RowVisitor& visit) const {
  for (rows.Seek(slice(prefix)); rows.Valid(); rows.Next()) {
    const std::string_view key = view(rows.key());
    const std::string_view value = view(rows.value());
    if (!key.starts_with(prefix)) break;
    if (value.size() < kSequenceBytes) return too_short(key);
    Status status =
        visit(StoredRow{static_cast<Space>(key.front()), key.substr(1),
                        value.substr(kSequenceBytes), CommitSequence{read_fixed64(value.data())}});
    if (!status.ok()) return status;
  }
  return Status();
}

Result<std::optional<std::string>> LevelDbProcedureStore::Impl::get(Space space,
                                                                    std::string_view key) {
  const Reading reading(*this);
  if (reading.db() == nullptr) return closed();
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  const std::string full = full_key(space, key);
  std::string value;
  const leveldb::Status found = reading.db()->Get(options, full, &value);
  if (found.IsNotFound()) return std::optional<std::string>();
  if (!found.ok()) {
    return translate(found).with_context(
        fmt::format("reading {} of store {}", describe_key(full), directory_.path()));
  }
  if (value.size() < kSequenceBytes) return too_short(full);
  value.erase(0, kSequenceBytes);
  return std::optional<std::string>(std::move(value));
}

void LevelDbProcedureStore::Impl::close() noexcept {
  if (committer_ == nullptr) return;
  committer_->close();
  MutexLock lock(readers_mutex_);
  readable_ = false;
  while (readers_ != 0) no_readers_.wait(readers_mutex_);
  // If this mark does not reach the disk, an older one remains, which is true as well.
  if (db_ != nullptr) static_cast<void>(mark_.sync().ok());
  env_.discard();
  db_.reset();
  lock_.release();
}

Status LevelDbProcedureStore::Impl::closed() const {
  return Status(StatusCode::kStopping,
                fmt::format("{} is closed: nothing is read any more", name()));
}

Status LevelDbProcedureStore::Impl::too_short(std::string_view key) const {
  return Status(StatusCode::kCorruption,
                fmt::format("store {}: the value of {} is shorter than its commit sequence; it was "
                            "not written by a store",
                            directory_.path(), describe_key(key)));
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
  const LevelDbDirectory directory(
      path, LevelDbFiles(*leveldb::Env::Default(), DirectorySync(&pv2::sync_directory)));
  auto cut = cut_damaged_logs(directory);
  if (!cut.ok()) return cut.status();

  class NoSink final : public CommitSink {
    void on_committed(CommitList) noexcept override {}
  } sink;
  LevelDbProcedureStore store(path);
  store.impl_->accept_lost_commits();
  Status status = store.recover_lease(sink);
  const CommitSequence last = store.impl_->last_at_open();
  if (status.ok()) status = give_up_later_commits(directory, last, *cut);
  store.close();
  if (!status.ok()) {
    return cut->changed
               ? status.with_context("after the salvage (copies are in " + cut->copies + ")")
               : status;
  }
  Salvaged salvaged{
      .changed = cut->changed, .last_kept = last, .copies = cut->copies, .report = {}};
  if (!cut->changed) {
    salvaged.report = fmt::format("store {} needs no salvage: its logs are undamaged", path);
    return salvaged;
  }
  salvaged.report = fmt::format(
      "store {}: {}. Every commit up to {} is kept; every later one is gone. The damaged files are "
      "in {}",
      path, cut->what, salvaged.last_kept.value, cut->copies);
  return salvaged;
}

std::unique_ptr<ProcedureStore> leveldb(std::string path, LevelDbOptions options) {
  return std::make_unique<LevelDbProcedureStore>(std::move(path), std::move(options));
}

}  // namespace pv2
