// SPDX-License-Identifier: Apache-2.0
//
// Workers: the threads that run steps. A worker polls a run of procedures, takes them under the
// state mutex, runs their steps without any lock, and hands all their records to the store at once.
// It never waits for the store. When the store answers "durable at once" (Noop), the worker
// publishes too.
//
// Nothing is held up by a step that takes long while a worker has nothing to do: who is idle helps
// out, and takes from the runs of the others what waits there. See WorkerRun.

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "engine_core.h"
#include "publisher.h"
#include "start_gate.h"
#include "wake_port.h"
#include "worker_run.h"

namespace pv2 {

/// make_threads() and stop() from one thread; the rest is the workers' own.
class Workers {
 public:
  Workers(EngineCore& core, Publisher& publisher, std::shared_ptr<WakeTarget> wake_target)
      : core_(core), publisher_(publisher), wake_target_(std::move(wake_target)) {}
  ~Workers() { stop(); }

  /// Makes the threads; they begin when `gate` is open. `reserved` of the `count` run only work of
  /// the top classes. kResourceExhausted: not all could be made; stop() ends those that were.
  Status make_threads(unsigned count, unsigned reserved, StartGate& gate);
  /// Waits for the steps that are running. Idempotent. The scheduler has to be stopped
  /// first, and the gate be open or abandoned.
  void stop();

  /// One run on the calling thread; returns how many steps it ran. For executors without threads.
  std::size_t run_once(std::size_t max_steps, Random& random);

  /// Destroys user objects that ended elsewhere.
  void bury();

 private:
  static constexpr std::size_t kRun = WorkerRun::kMost;

  /// One worker: its thread's, or that of a host who runs the engine himself.
  struct Worker {
    WorkerRun* run;
    WorkerActivity& activity;
    Random& random;
  };
  [[nodiscard]] Worker worker(std::size_t index, Random& random) noexcept {
    return {&core_.runs[index], core_.running.of(index), random};
  }

  void work(std::size_t index, bool reserved);
  /// Waits for work, helping out meanwhile; false when the engine has stopped.
  bool idle(const Worker& worker, std::span<SchedulerEntry*> polled);
  bool help_out(const Worker& worker);
  void cease_to_be_idle();
  std::size_t take_and_run(std::span<SchedulerEntry*> polled, const Worker& worker);
  std::size_t take(std::span<SchedulerEntry*> polled, std::span<StepJob> jobs, Effects& effects);
  void run(std::span<StepJob> jobs, const Worker& worker);
  void hand_over(FinishedSteps finished);
  /// Null: the record does not become a step; its tree was quarantined.
  StepCommit* run_step(StepJob job, const Worker& worker);

  EngineCore& core_;
  Publisher& publisher_;
  // Shared with every completion that steps hand out.
  std::shared_ptr<WakeTarget> wake_target_;
  std::vector<std::thread> threads_;
};

}  // namespace pv2
