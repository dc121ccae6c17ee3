// SPDX-License-Identifier: Apache-2.0
//
// DeterministicExecutor: an executor that runs on the test's own thread, on a store that can crash
// at any commit, with a MemoryCluster that outlives it. Time passes only when nothing else can
// happen. It tests nothing by itself; procedures that do not end are left as they are, for the test
// to look at.

#pragma once

#include <pv2/engine/async_executor.h>
#include <pv2/engine/executor_options.h>
#include <pv2/engine/inspection.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/engine/procedure_registry.h>
#include <pv2/procedures/memory_cluster.h>
#include <pv2/store/memory_procedure_store.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pv2/testing/fault_store.h"
#include "support/catch.h"

namespace pv2::testing {

/// Owned by one thread.
class DeterministicExecutor {
 public:
  using MakeStore = std::function<std::unique_ptr<ProcedureStore>()>;

  explicit DeterministicExecutor(MemoryCluster& cluster)
      : DeterministicExecutor(cluster, [disk = std::make_shared<MemoryDisk>()] {
          return std::make_unique<MemoryProcedureStore>(disk);
        }) {}
  /// `make_store` gives a store on the same disk each time, without a thread of its own.
  DeterministicExecutor(MemoryCluster& cluster, MakeStore make_store)
      : cluster_(cluster), make_store_(std::move(make_store)) {}

  /// A step that has failed this often parks its procedure, from the next life on. 0: never.
  std::uint32_t max_attempts = 0;

  /// Begins a life. `arrange` may tell the store where it ends.
  void open(const std::function<void(FaultStore&)>& arrange = {}) {
    executor_.reset();
    auto faults = std::make_unique<FaultStore>(make_store_());
    faults_ = faults.get();
    if (arrange) arrange(*faults);
    ProcedureRegistry types;
    add_cluster_procedures(types, cluster_.ports());
    auto opened = ProcedureExecutor::open({
        .store = std::move(faults),
        .registry = types,
        .workers = 0,
        .clock = clock_,
        .retry = {.cap = std::chrono::seconds(4),
                  .jitter_percent = 0,
                  .max_attempts = max_attempts},
        .log = [](LogLevel, std::string_view) {},
    });
    REQUIRE(opened.status().to_string() == "OK");
    executor_ = *std::move(opened);
    executor_->start();
  }
  /// Ends this life of the executor as a crash does: commits that are still queued are lost, and
  /// closing the executor writes nothing.
  void crash() {
    // From the next commit on nothing is written, so closing the executor changes nothing on disk.
    faults_->crash_before(faults_->commits() + 1, FaultStore::AfterCrash::kFail);
    executor_.reset();
  }

  [[nodiscard]] ProcedureExecutor& operator*() const { return *executor_; }
  [[nodiscard]] ProcedureExecutor* operator->() const { return executor_.get(); }
  [[nodiscard]] FaultStore& faults() const { return *faults_; }

  /// Runs everything that can run without time passing.
  void settle() const {
    do {
      executor_->run_until_idle();
    } while (cluster_.deliver_all() + cluster_.deliver_reports(*executor_) > 0);
  }
  /// Lets time pass, and runs nothing.
  void let_pass(std::chrono::seconds time) const { clock_->advance(time); }
  /// Lets time pass.
  void advance(std::chrono::seconds time) const {
    let_pass(time);
    settle();
  }
  /// Runs until nothing is live, the store has failed, or two simulated minutes have passed.
  void run() const {
    settle();
    for (int second = 0; second < 120 && executor_->inspect().live_procedures() > 0; ++second) {
      if (!executor_->health().ok()) return;
      advance(std::chrono::seconds(1));
    }
  }

  /// Submits without waiting for the store, which may be about to crash. The id, or why there is
  /// none yet.
  template <class P>
  Result<ProcedureId> submit(P procedure, Nonce nonce = {}) const {
    auto answer = std::make_shared<std::optional<Result<Submitted>>>();
    executor_->async().submit(std::move(procedure), {.nonce = nonce, .owner = {}},
                              [answer](Result<Submitted> result) { *answer = std::move(result); });
    executor_->run_until_idle(0);
    if (!*answer) executor_->run_until_idle(1);
    if (!*answer) return Status(StatusCode::kUnknownOutcome, "the store did not answer");
    if (!(*answer)->ok()) return (*answer)->status();
    return (**answer)->id;
  }
  /// How many records this life has made: batches that insert or update a procedure, or end it.
  [[nodiscard]] std::size_t records() const {
    std::set<std::size_t> batches;
    for (const FaultStore::Passed& row : faults_->trace()) {
      const bool is_record = row.space == Space::kProcedure || row.space == Space::kResult;
      if (is_record && row.operation != RowOperation::kDelete) {
        batches.insert(row.commit);
      }
    }
    return batches.size();
  }
  /// How an ended procedure ended.
  [[nodiscard]] ProcedureResult result(ProcedureId id) const {
    auto result = executor_->wait(id, std::chrono::milliseconds(0));
    REQUIRE(result.status().to_string() == "OK");
    return *result;
  }

 private:
  MemoryCluster& cluster_;
  MakeStore make_store_;
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  std::unique_ptr<ProcedureExecutor> executor_;
  FaultStore* faults_ = nullptr;
};

/// Says what is wrong with a cluster, for CHECK_THAT-like comparisons: "" when nothing is.
inline std::string disorder(const ClusterSnapshot& snapshot) {
  std::string text;
  for (const std::string& finding : find_disorder(snapshot)) text += finding + '\n';
  return text;
}
inline std::string disorder(const MemoryCluster& cluster) { return disorder(cluster.snapshot()); }

/// The table of the stories: "default:t" with family "f1".
inline TableDescriptor table_t() { return {{"default", "t"}, {"f1"}}; }

}  // namespace pv2::testing
