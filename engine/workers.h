// SPDX-License-Identifier: Apache-2.0
//
// Workers: the threads that run steps. A worker polls a run of procedures, takes them under the
// state mutex, runs their steps without any lock, and hands all their records to the store at once.
// It never waits for the store. When the store answers "durable at once" (Noop), the worker
// publishes too.

#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "engine_core.h"
#include "publisher.h"
#include "wake_port.h"

namespace pv2 {

/// start() and stop() from one thread; the rest is the workers' own.
class Workers {
 public:
  Workers(EngineCore& core, Publisher& publisher, std::shared_ptr<WakeTarget> wake_target)
      : core_(core), publisher_(publisher), wake_target_(std::move(wake_target)) {}
  ~Workers() { stop(); }

  /// `reserved` of the `count` threads run only work of the top classes.
  void start(unsigned count, unsigned reserved);
  /// Waits for the steps that are running. Idempotent. The scheduler has to be stopped first.
  void stop();

  /// One run on the calling thread; returns how many steps it ran. For executors without threads.
  std::size_t run_once(std::size_t max_steps, Random& random);

  /// Destroys user objects that ended elsewhere.
  void bury();

 private:
  static constexpr std::size_t kRun = WorkerActivity::kRun;

  struct Job {
    Execution* execution = nullptr;
    std::unique_ptr<StepCommit> commit;
  };

  void work(std::uint64_t seed, bool reserved, WorkerActivity& activity);
  std::size_t run(std::span<SchedulerEntry*> polled, Random& random, WorkerActivity& activity);
  std::size_t take(std::span<SchedulerEntry*> polled, std::span<Job> jobs, Effects& effects,
                   WorkerActivity& activity);
  /// False: the record does not become a step; its tree was quarantined.
  bool fill(Job& job, Random& random, WorkerActivity& activity, std::size_t index);

  EngineCore& core_;
  Publisher& publisher_;
  // Shared with every completion that steps hand out.
  std::shared_ptr<WakeTarget> wake_target_;
  std::vector<std::thread> threads_;
};

}  // namespace pv2
