// SPDX-License-Identifier: Apache-2.0
//
// LevelDbProcedureStore::Impl: a Committer in front of a step log, and a database behind it, to
// which the log's rows go when a segment is full. leveldb_store_open.cc has what happens until the
// store is open, leveldb_store.cc what happens until it is closed.
//
//     commit() --Committer--> unit --StepLog--> segment  --Checkpointer--> LevelDbRows
//                                               get(), scan(): Overlay first, then LevelDbRows

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
#include "log/watched_files.h"
#include "pv2/base/assert.h"
#include "pv2/base/mutex.h"
#include "pv2/store/leveldb_procedure_store.h"
#include "store_lock.h"

namespace pv2 {

/// As thread-safe as the store. One thread at a time writes.
class LevelDbProcedureStore::Impl final : public UnitWriter, private CheckpointWriter {
 public:
  Impl(std::string path, LevelDbOptions options);
  ~Impl() {
    committer_.reset();
    checkpointer_.stop();
  }

  Status recover_lease(CommitSink& sink);
  Result<std::optional<std::string>> get(Space space, std::string_view key);
  Status scan(Space space, std::string_view prefix, const RowVisitor& visit);
  void close() noexcept;
  Status write(const CommitList& unit) override;
  void writing_ended() noexcept override { checkpointer_.stop_soon(); }
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
  Status start_committer(CommitSink& sink);
  Status open_files();
  Status create_files(LevelDbDirectory::Contents contents);
  Status look_at_files(std::vector<ShownFile>& shown);
  Status recover();
  Status compare_with_mark() const;
  [[nodiscard]] Status log_is_damaged(const RecoveredLog::Damage& damage) const;
  Status move_log_into_database();
  Status sync_log() const;
  Status write_checkpoint(const Overlay::Checkpoint& checkpoint, SegmentNumber next) override;
  Status look_at_directory() const;
  Status closed() const;

  const LevelDbOptions options_;
  const LevelDbDirectory directory_;
  DurableMark mark_;  // used by write(), and by close() after the last write
  StoreLock lock_;
  LevelDbRows rows_;
  Overlay overlay_;
  mutable WatchedFiles log_files_;  // const members open its files, too
  SegmentPool pool_;
  Checkpointer checkpointer_;
  StepLog log_;
  RecoveredLog recovered_;  // its segments are in the overlay
  bool accepts_lost_commits_ = false;
  std::optional<RecoveredLog::Damage> left_out_;  // of the database's log
  SalvagePlan salvage_plan_;                      // if it does
  bool is_older_format_ = false;                  // until it is taken over
  bool is_taken_over_ = false;

  Mutex closing_mutex_;  // whoever closes what is behind the committer has it, to the end
  Mutex readers_mutex_;
  CondVar no_readers_;
  bool readable_ PV2_GUARDED_BY(readers_mutex_) = false;
  std::size_t readers_ PV2_GUARDED_BY(readers_mutex_) = 0;

  std::unique_ptr<Committer> committer_;  // last: its thread uses what stands above
};

}  // namespace pv2
