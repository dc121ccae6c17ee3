// SPDX-License-Identifier: Apache-2.0
//
// Workers: the threads that run steps. A worker polls a run of procedures, takes them under the
// state mutex, runs their steps without any lock, and hands all their records to the store at once.
// It never waits for the store. When the store answers "durable at once" (Noop), the worker
// publishes too.
//
// Nothing is held up by a step that takes long while a worker has nothing to do: who is idle helps
// out, and takes from the runs of the others what waits there. A reserved worker does so for work
// of the top classes, and for what that waits for. See WorkerRun.
//
// The invariant: a step begins only if, when its worker looked last, the engine was not stopping,
// its store had not failed, nothing around it had failed or was aborted (or it is its turn to be
// undone), and no class above its own had work. The worker looks before each step: at
// EngineCore::recalls and ProcedureScheduler::is_overtaken(), two loads. Whatever makes a recall
// counts up under the state mutex before it tells anybody; so who was told, of a stop, a failure or
// an abort, sees no step begin but those that a worker was just entering. Only when a look finds
// something new the state mutex is taken, and what has not begun is sifted (call_back()):
//
//     its tree failed            it leaves flight; the last one to do so begins the rollback
//     the engine stops, or its   it leaves flight and stays as its last record says
//     store failed
//     something more urgent      it leaves flight and goes back to where it was polled from, its
//                                locks as they were; all of the run but a first step
//
// A job is in one place at a time: in one run, or with the one thread that took it from there and
// puts it into its own with the marks of the other. So no look misses it.

#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
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

  struct Round {
    std::size_t steps = 0;
    bool polled = false;  ///< There was something, if nothing that might begin.
  };
  /// One run on the calling thread, of at most so many steps. For executors without threads.
  Round run_once(std::size_t max_steps, Random& random);

  /// Destroys user objects that ended elsewhere.
  void bury();

 private:
  static constexpr std::size_t kRun = WorkerRun::kMost;
  using Work = WorkerRun::Work;

  /// One worker: its thread's, or that of a host who runs the engine himself.
  struct Worker {
    WorkerRun* run;
    WorkerActivity& activity;
    Random& random;
    Work work = Work::kAny;  ///< kTop: it is reserved for that.
    /// ProcedureScheduler::lifts() when it last looked into the runs of all for what became urgent.
    std::uint64_t looked_through = 0;
  };
  [[nodiscard]] Worker worker(std::size_t index, Random& random, Work work) noexcept {
    return {&core_.runs[index], core_.running.of(index), random, work};
  }
  /// What a worker has polled, and what it had seen before that.
  struct Polled {
    std::array<SchedulerEntry*, kRun> entries{};
    std::size_t count = 0;
    std::uint64_t lifts = 0;
  };
  struct Taken {
    std::array<StepJob, kRun> jobs;
    std::size_t count = 0;
    RunMarks marks;
    Work work = Work::kAny;
  };

  void work(std::size_t index, Work work);
  bool poll(const Worker& worker, std::chrono::milliseconds patience, Polled& polled);
  /// Waits for work, helping out meanwhile; false when there was none.
  bool idle(Worker& worker, Polled& polled);
  bool help_out(Worker& worker);
  bool look_through_runs(Worker& worker);
  void cease_to_be_idle(const Worker& worker);
  [[nodiscard]] std::atomic<std::size_t>& idle_count(Work work) noexcept;
  std::size_t take_and_run(Polled& polled, const Worker& worker);
  void take(Polled& polled, Taken& taken, Effects& effects);
  std::size_t run(Taken& taken, const Worker& worker);
  void let_others_help(const Worker& worker, const WorkerRun::Next& next, Work work);
  /// Takes what has not begun out of a run: all of it, or what may not begin any more.
  enum class Which : std::uint8_t { kForbidden, kAll };
  bool call_back(WorkerRun& run, Which which);
  void hand_over(FinishedSteps finished);
  /// Null: nothing goes to the store: its tree was quarantined, or work that it has offloaded has
  /// to end first.
  StepCommit* run_step(StepJob job, const Worker& worker);

  EngineCore& core_;
  Publisher& publisher_;
  // Shared with every completion that steps hand out.
  std::shared_ptr<WakeTarget> wake_target_;
  std::vector<std::thread> threads_;
};

}  // namespace pv2
