// SPDX-License-Identifier: Apache-2.0
//
// EngineWorld: a machine that a test controls completely. The executor has no threads, the clock
// stands still until the test moves it, and the store is a memory store behind a FaultStore. The
// disk, the clock and the World of scripted jobs outlive every crash. A failed expectation about
// the helper itself fails the test that uses it.

#pragma once

#include <pv2/engine/async_executor.h>
#include <pv2/engine/executor_options.h>
#include <pv2/engine/inspection.h>
#include <pv2/engine/operator_console.h>
#include <pv2/store/memory_procedure_store.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pv2/testing/fault_store.h"
#include "pv2/testing/listing_words.h"
#include "support/catch.h"
#include "support/scripted_job.h"

namespace pv2::testing {

/// Opens an executor, which has to succeed. It is not started.
inline std::unique_ptr<ProcedureExecutor> open_executor(ExecutorOptions options) {
  auto opened = ProcedureExecutor::open(std::move(options));
  REQUIRE(opened.status().to_string() == "OK");
  return *std::move(opened);
}

/// Owned by one thread.
class EngineWorld {
 public:
  World world;
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>();
  /// To be changed before open(), by a test that wants other values.
  RetryPolicy retry{};
  std::size_t max_live_procedures = 1000;
  std::size_t max_results_in_memory = 1000;
  MemoryStoreOptions store_options;
  std::vector<std::string> log_lines;
  std::vector<Status> store_failures;  ///< The failures that the host was told of.

  /// The options that open() gives the executor. The store is put behind a FaultStore.
  [[nodiscard]] ExecutorOptions options() {
    ExecutorOptions options;
    auto faults = std::make_unique<FaultStore>(memory(disk, store_options));
    faults_ = faults.get();
    options.store = std::move(faults);
    add_job_types(options.registry, world);
    options.workers = 0;
    options.clock = clock;
    options.retry = retry;
    options.max_live_procedures = max_live_procedures;
    options.max_results_in_memory = max_results_in_memory;
    options.log = [this](LogLevel, std::string_view line) { log_lines.emplace_back(line); };
    options.on_store_failure = [this](const Status& status) { store_failures.push_back(status); };
    return options;
  }
  ProcedureExecutor& open() { return open(options()); }
  ProcedureExecutor& open(ExecutorOptions options) {
    close();
    executor_ = open_executor(std::move(options));
    executor_->start();
    return *executor_;
  }
  /// Ends the executor as a host would: commits that are queued for the store are written.
  void close() { executor_.reset(); }
  /// Loses what is not on the disk now, and begins a new life on the rest.
  ProcedureExecutor& crash_and_open() {
    faults_->crash_before(faults_->commits() + 1, FaultStore::AfterCrash::kFail);
    return open();
  }

  [[nodiscard]] ProcedureExecutor& executor() { return *executor_; }
  [[nodiscard]] FaultStore& faults() { return *faults_; }
  [[nodiscard]] MemoryProcedureStore& store() {
    return static_cast<MemoryProcedureStore&>(faults_->inner());
  }

  template <class J = Job>
  ProcedureId submit(const std::string& name, SubmitOptions options = {}) {
    auto submitted = executor_->submit(J(world, name), std::move(options));
    REQUIRE(submitted.status().to_string() == "OK");
    return submitted->id;
  }
  /// Runs everything that can happen without time passing.
  void run() { executor_->run_until_idle(); }
  void advance(Duration step) {
    clock->advance(step);
    run();
  }
  /// Lets time pass, ten minutes at a time, until no procedure is live.
  void run_to_the_end() {
    run();
    for (int i = 0; i < 100 && executor_->inspect().live_procedures() != 0; ++i) {
      advance(std::chrono::minutes(10));
    }
    REQUIRE(executor_->inspect().live_procedures() == 0);
  }
  /// The result of a procedure that has ended.
  ProcedureResult result(ProcedureId id) {
    // Shared: if the procedure does not end, the answer comes only after this test has failed.
    const auto answer = std::make_shared<std::optional<Result<ProcedureResult>>>();
    executor_->async().wait(id,
                            [answer](Result<ProcedureResult> r) { answer->emplace(std::move(r)); });
    run();
    REQUIRE(answer->has_value());
    REQUIRE((*answer)->status().to_string() == "OK");
    return ***answer;
  }
  [[nodiscard]] ProcedureInfo describe(ProcedureId id) {
    auto info = executor_->inspect().describe(id);
    REQUIRE(info.status().to_string() == "OK");
    return *std::move(info);
  }
  [[nodiscard]] std::vector<std::string> journal() const { return world.journal.entries(); }
  /// The labels of the journal's "undo" entries: "name.step".
  [[nodiscard]] std::vector<std::string> undone() const {
    std::vector<std::string> labels;
    for (const std::string& entry : journal()) {
      if (entry.starts_with("undo ")) labels.push_back(entry.substr(5));
    }
    return labels;
  }

 private:
  FaultStore* faults_ = nullptr;  // in executor_
  std::unique_ptr<ProcedureExecutor> executor_;
};

/// A second executor for the world's disk and jobs: two workers, a store with a thread of its own,
/// no log. nullptr: the real clock.
inline std::unique_ptr<ProcedureExecutor> open_with_threads(EngineWorld& engine,
                                                            std::shared_ptr<Clock> clock) {
  ExecutorOptions options = engine.options();
  options.workers = 2;
  options.store = memory(engine.disk, {.mode = MemoryStoreOptions::Mode::kThread});
  options.clock = std::move(clock);
  options.log = {};
  auto executor = open_executor(std::move(options));
  executor->start();
  return executor;
}

}  // namespace pv2::testing
