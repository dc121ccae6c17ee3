// SPDX-License-Identifier: Apache-2.0
//
// FaultStore: wraps any store and makes the n-th commit fail, wait, or be the last one before a
// crash. It counts the commits and keeps a trace of them. Except for these faults it keeps
// the contract: order, one list per sync, answers at once where the inner store gives them. A
// failing request travels through the inner store as an empty batch, so its failure comes back
// where its success would have. Part of pv2::testing: users wrap their own store with it.

#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/base/mutex.h"
#include "pv2/store/procedure_store.h"

namespace pv2::testing {

/// Thread-safe. Commits are numbered from 1, over the life of this object.
class FaultStore final : public ProcedureStore, private CommitSink {
 public:
  /// What happens to requests after the crash point.
  enum class AfterCrash {
    /// They get no answer before close(), as when the process is gone. An executor's open() waits
    /// for the answers of its first commits: to crash at those, use kFail.
    kDrop,
    kFail,  ///< They come back, in order, with a failure.
  };
  /// One row operation of a commit.
  struct Passed {
    std::size_t commit = 0;
    RowOperation operation{};
    Space space{};
    std::string key;
    std::size_t value_bytes = 0;
  };

  explicit FaultStore(std::unique_ptr<ProcedureStore> inner);
  ~FaultStore() override;

  /// Commits from `n` on fail and are not written.
  void fail_commit(std::size_t n, Status failure);
  /// Commits from `n` on wait here until release(), and those before it do not, also if they come
  /// in one list.
  void hold_commit(std::size_t n);
  void release();
  /// Commits from `n` on are not written.
  void crash_before(std::size_t n, AfterCrash then = AfterCrash::kDrop);
  /// Commit `n` is written, but its answer is lost (with kFail it comes back as a failure although
  /// it was written, like an unknown outcome); all later ones are not written.
  void crash_after(std::size_t n, AfterCrash then = AfterCrash::kDrop);

  /// Calls `observer` with every commit from now on, before anything else happens to it, on the
  /// thread that commits. The observer must not commit, and must not call this store.
  using Observer = std::function<void(std::size_t n, const RowBatch& batch)>;
  void observe(Observer observer);

  [[nodiscard]] bool crashed() const;
  [[nodiscard]] std::size_t commits() const;
  [[nodiscard]] std::size_t held() const;
  [[nodiscard]] std::size_t rows(Space space, RowOperation operation) const;
  [[nodiscard]] std::vector<Passed> trace() const;
  [[nodiscard]] ProcedureStore& inner() noexcept { return *inner_; }

  // ProcedureStore
  [[nodiscard]] std::string name() const override { return inner_->name(); }
  Status recover_lease(CommitSink& sink) override;
  CommitAnswer commit(CommitRequest& request) override;
  CommitAnswer commit_all(CommitList& requests) override;
  CommitAnswer queue_all(CommitList& requests) override;
  Written write_queued() override { return inner_->write_queued(); }
  void wake_writer() override { inner_->wake_writer(); }
  Result<std::optional<std::string>> get(Space space, std::string_view key) override {
    return inner_->get(space, key);
  }
  Status scan(Space space, std::string_view prefix, const RowVisitor& visit) override {
    return inner_->scan(space, prefix, visit);
  }
  [[nodiscard]] bool keeps_records() const noexcept override { return inner_->keeps_records(); }
  [[nodiscard]] StoreLimits limits() const noexcept override { return inner_->limits(); }
  bool pump() override { return inner_->pump(); }
  /// What was dropped, and what is held, comes back as failed: whoever has it frees it. A later
  /// commit fails with kStopping, as with any store.
  void close() noexcept override;

 private:
  struct Stand;                   // takes the place of a failing request in the inner store
  enum class Wake { kYes, kNo };  // whether the inner store is told to write

  void on_committed(CommitList finished) noexcept override;
  static CommitAnswer refuse_closed(CommitRequest& request);
  void drop(CommitRequest& request) PV2_REQUIRES(faults_mutex_);
  CommitAnswer commit_list(CommitList& requests, Wake wake) PV2_EXCLUDES(faults_mutex_);
  CommitAnswer pass(CommitRequest& request, Wake wake) PV2_REQUIRES(faults_mutex_);
  CommitAnswer pass_failing(CommitRequest& request, const Status& failure, Wake wake)
      PV2_REQUIRES(faults_mutex_);
  CommitAnswer send(CommitRequest& request, Wake wake);
  std::size_t number(const CommitRequest& request) PV2_REQUIRES(faults_mutex_);
  void note(const CommitRequest& request) PV2_REQUIRES(faults_mutex_);

  CommitSink* sink_ = nullptr;

  // Held across the inner commit(), which only queues, so that the numbers agree with the order.
  mutable Mutex faults_mutex_;
  Observer observer_ PV2_GUARDED_BY(faults_mutex_);
  std::size_t commits_ PV2_GUARDED_BY(faults_mutex_) = 0;
  std::size_t fail_from_ PV2_GUARDED_BY(faults_mutex_) = SIZE_MAX;
  Status failure_ PV2_GUARDED_BY(faults_mutex_);
  std::size_t hold_from_ PV2_GUARDED_BY(faults_mutex_) = SIZE_MAX;
  std::size_t crash_from_ PV2_GUARDED_BY(faults_mutex_) = SIZE_MAX;  // the first one not written
  std::size_t silent_ PV2_GUARDED_BY(faults_mutex_) = SIZE_MAX;      // written, answer lost
  AfterCrash after_crash_ PV2_GUARDED_BY(faults_mutex_) = AfterCrash::kDrop;
  bool crashed_ PV2_GUARDED_BY(faults_mutex_) = false;
  bool closed_ PV2_GUARDED_BY(faults_mutex_) = false;
  const CommitRequest* silenced_ PV2_GUARDED_BY(faults_mutex_) = nullptr;
  CommitList held_ PV2_GUARDED_BY(faults_mutex_);
  CommitList dropped_ PV2_GUARDED_BY(faults_mutex_);
  std::vector<Passed> trace_ PV2_GUARDED_BY(faults_mutex_);
  std::map<const CommitRequest*, std::unique_ptr<Stand>> stands_ PV2_GUARDED_BY(faults_mutex_);

  std::unique_ptr<ProcedureStore> inner_;  // last: its thread uses the members above
};

}  // namespace pv2::testing
