// SPDX-License-Identifier: Apache-2.0
//
// An executor without threads on a memory store behind a FaultStore. A crash loses everything from
// the next commit on.

#include "pv2/testing/step_executor.h"

#include <pv2/engine/executor_options.h>
#include <pv2/engine/inspection.h>

#include "pv2/testing/listing_words.h"
#include "watch/state_audit.h"

namespace pv2::testing {

StepExecutor::StepExecutor(AddTypes add_types, Configure configure)
    : add_types_(std::move(add_types)), configure_(std::move(configure)) {
  open();
}

StepExecutor::~StepExecutor() = default;

void StepExecutor::open() {
  executor_.reset();
  ExecutorOptions options;
  options.log = {};
  if (configure_) configure_(options);
  auto faults = std::make_unique<FaultStore>(memory(disk_));
  FaultStore* const armed = faults.get();
  options.store = std::move(faults);
  add_types_(options.registry);
  options.workers = 0;
  options.clock = clock_;
  auto opened = ProcedureExecutor::open(std::move(options));
  opened_ = opened.status();
  if (!opened_.ok()) return;
  faults_ = armed;
  executor_ = *std::move(opened);
  executor_->start();
}

bool StepExecutor::step() { return executor_->run_until_idle(1) == 1; }

bool StepExecutor::step_and_crash() {
  faults_->crash_before(faults_->commits() + 1, FaultStore::AfterCrash::kFail);
  const bool ran = step();
  open();
  return ran;
}

bool StepExecutor::step_and_crash_after() {
  faults_->crash_after(faults_->commits() + 1, FaultStore::AfterCrash::kFail);
  const bool ran = step();
  if (!faults_->crashed()) {  // the step began a wait, which makes no record
    faults_->crash_before(faults_->commits() + 1, FaultStore::AfterCrash::kFail);
  }
  open();
  return ran;
}

std::size_t StepExecutor::run() { return executor_->run_until_idle(); }

void StepExecutor::advance(Duration time) { clock_->advance(time); }

Status StepExecutor::run_to_the_end(Duration at_once) {
  constexpr int kTurnsMax = 1000;
  run();
  for (int i = 0; i < kTurnsMax && executor_->inspect().live_procedures() != 0; ++i) {
    advance(at_once);
    run();
  }
  if (const auto contradictions = StateAudit::of(*executor_); !contradictions.empty()) {
    return Status(StatusCode::kInternal,
                  "the engine contradicts itself: " + contradictions.front());
  }
  if (executor_->inspect().live_procedures() == 0) return Status();
  std::string left = "these do not end:";
  for (const std::string& words : in_words(executor_->inspect().list())) left += "\n  " + words;
  return Status(StatusCode::kDeadlineExceeded, left);
}

void StepExecutor::crash() {
  faults_->crash_before(faults_->commits() + 1, FaultStore::AfterCrash::kFail);
  open();
}

Result<ProcedureResult> StepExecutor::result(ProcedureId id) {
  if (executor_->inspect().describe(id).ok()) {
    return Status(StatusCode::kUnavailable,
                  "procedure " + std::to_string(id.value) + " has not ended");
  }
  return executor_->wait(id);  // the procedure is not live, so wait() returns at once
}

std::optional<std::string> StepExecutor::row(std::string_view key) const {
  return disk_->get(Space::kHost, key);
}

}  // namespace pv2::testing
