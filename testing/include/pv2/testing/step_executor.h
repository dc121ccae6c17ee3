// SPDX-License-Identifier: Apache-2.0
//
// StepExecutor: an executor for tests that does nothing by itself. The test runs one step at a
// time, looks at state and rows in between, moves the clock, and crashes the machine at any moment;
// the disk, the clock and whatever the procedures act on outlive every crash. A request that cannot
// be met gets a Status; no test framework is needed.
//
//     StepExecutor steps([&](ProcedureRegistry& types) { types.add<PlaceOrder>(shop); });
//     auto id = steps.submit(PlaceOrder(shop, "o-42"));
//     steps.step();                    // RESERVE ran, and is durable
//     steps.step_and_crash();          // CHARGE ran, but its record is lost
//     steps.describe(*id)->step_name;  // "CHARGE": it will run again

#pragma once

#include <pv2/engine/executor_options.h>
#include <pv2/engine/inspection.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/store/memory_procedure_store.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pv2/testing/fault_store.h"

namespace pv2::testing {

/// Owned by one thread.
class StepExecutor {
 public:
  using AddTypes = std::function<void(ProcedureRegistry&)>;
  /// Changes the options of every life (retries, limits). Store, registry, clock and threads are
  /// set after it and cannot be changed.
  using Configure = std::function<void(ExecutorOptions&)>;

  /// Opens an empty store. `add_types` is called for every life; what it refers to outlives this.
  explicit StepExecutor(AddTypes add_types, Configure configure = {});
  ~StepExecutor();
  StepExecutor(const StepExecutor&) = delete;
  StepExecutor& operator=(const StepExecutor&) = delete;

  /// OK, or why the store could not be opened the last time; then nothing else may be called.
  [[nodiscard]] const Status& opened() const noexcept { return opened_; }

  /// Submits the procedure and makes it durable. No step runs.
  template <ProcedureClass P>
  Result<ProcedureId> submit(P procedure, SubmitOptions options = {}) {
    auto submitted = executor_->submit(std::move(procedure), std::move(options));
    if (!submitted.ok()) return submitted.status();
    return submitted->id;
  }

  /// Runs one step, or one undo, and makes its record durable. A lock grant that needs a record of
  /// its own counts as a step. False when nothing can run: everything has ended, or waits for time
  /// or an answer.
  bool step();
  /// Like step(), but the machine crashes before the record is durable: the step will run once
  /// more.
  bool step_and_crash();
  /// Like step(), but the machine crashes right after the record is durable, before the engine
  /// hears of it.
  bool step_and_crash_after();
  /// Runs everything that can run without time passing. Returns how many steps ran.
  std::size_t run();
  /// Moves the clock, and lets timers queue what is due. Runs no step.
  void advance(Duration time);
  /// Lets time pass, `at_once` each time, until nothing is live; at most a thousand times.
  /// kDeadlineExceeded, with what is left, if something is still live then.
  Status run_to_the_end(Duration at_once = std::chrono::minutes(10));
  /// Crashes the machine now. What is not durable is lost; the next life begins.
  void crash();

  /// A live procedure, as of its last record, with its fields as JSON.
  [[nodiscard]] Result<ProcedureInfo> describe(ProcedureId id) const {
    return executor_->inspect().describe(id);
  }
  /// How the procedure ended; kUnavailable while it has not.
  [[nodiscard]] Result<ProcedureResult> result(ProcedureId id);
  /// A row of the host, as it is on the disk.
  [[nodiscard]] std::optional<std::string> row(std::string_view key) const;

  [[nodiscard]] ProcedureExecutor& executor() noexcept { return *executor_; }
  [[nodiscard]] FaultStore& faults() noexcept { return *faults_; }
  [[nodiscard]] ManualClock& clock() noexcept { return *clock_; }
  [[nodiscard]] MemoryDisk& disk() noexcept { return *disk_; }

 private:
  void open();

  AddTypes add_types_;
  Configure configure_;
  // Shared with the executor and the store of each life.
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
  FaultStore* faults_ = nullptr;  // in executor_
  std::unique_ptr<ProcedureExecutor> executor_;
  Status opened_;
};

}  // namespace pv2::testing
