// SPDX-License-Identifier: Apache-2.0
//
// Workers: the threads that run steps. A worker polls a run of procedures, takes them under the
// state mutex, runs their steps without any lock, and hands all their records to the store at once.
// It never waits for the store. When the store answers "durable at once" (Noop), the worker
// publishes too.
//
// A step that takes long holds nothing up while a worker is idle: idle workers take procedures from
// the runs of others, where they wait behind that step. A reserved worker does so for work of the
// top classes, and for what that work waits for. See WorkerRun.
//
// The invariant: a step begins only if, at the last look of its worker, the engine was not
// stopping, its store had not failed, nothing around the procedure had failed or was aborted (or it
// was its turn to be undone), and no class above its own had work. The worker looks before each
// step: at EngineCore::recalls and ProcedureScheduler::is_overtaken(), two loads. Whoever stops the
// engine, or has a tree fail or abort, counts `recalls` up under the state mutex before it tells
// anybody. So a caller that was told of a stop, a failure or an abort sees no step begin after
// that, except those that a worker was just entering. Only when a look finds something new does the
// worker take the state mutex and go through what has not begun (call_back()):
//
//     its tree failed            it leaves flight; the last member to do so begins the rollback
//     the engine stops, or its   it leaves flight and stays as its last record says
//     store failed
//     something more urgent      the whole run, except for its first step, leaves flight and goes
//                                back to where it was polled from, with its locks as they were
//
// A job is in one place at a time: in one run, or with the one thread that has taken it from there
// and puts it into its own run with the same marks. So no look misses it.

#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "core/engine_core.h"
#include "core/publisher.h"
#include "core/start_gate.h"
#include "core/worker_run.h"
#include "steps/wake_port.h"

namespace pv2 {

/// make_threads() and stop() are called by one thread; the rest is called by the workers. An
/// executor without threads calls run_once() and bury() from the thread of the host.
class Workers {
 public:
  Workers(EngineCore& core, Publisher& publisher, std::shared_ptr<WakeTarget> wake_target)
      : core_(core), publisher_(publisher), wake_target_(std::move(wake_target)) {}
  ~Workers() { stop(); }

  /// Makes `count` threads, which begin when `gate` is open. `reserved` of them run only work of
  /// the top classes. kResourceExhausted: not all could be made; stop() ends those that were.
  Status make_threads(unsigned count, unsigned reserved, StartGate& gate);
  /// Waits for the steps that are running. Idempotent. The scheduler has to be stopped before, and
  /// the gate has to be open or abandoned.
  void stop();

  struct Round {
    std::size_t steps = 0;
    bool polled = false;  ///< Something was polled, even if none of it may begin.
  };
  /// One run on the calling thread, of at most `max_steps` steps. For executors without threads.
  Round run_once(std::size_t max_steps, Random& random);

  /// Destroys user objects whose procedures ended on another thread than a worker.
  void bury();

 private:
  static constexpr std::size_t kRun = WorkerRun::kMost;
  using Work = WorkerRun::Work;

  /// One worker: that of a thread, or that of a host which runs the engine itself.
  struct Worker {
    WorkerRun* run;
    WorkerActivity& activity;
    Random& random;
    Work work = Work::kAny;  ///< kTop: a reserved worker.
    /// ProcedureScheduler::lifts() when the worker last looked through all runs.
    std::uint64_t looked_through = 0;
  };
  [[nodiscard]] Worker worker(std::size_t index, Random& random, Work work) noexcept {
    return {&core_.runs[index], core_.running.of(index), random, work};
  }
  /// What a worker has polled, and ProcedureScheduler::lifts() before that.
  struct Polled {
    std::array<SchedulerEntry*, kRun> entries{};
    std::size_t count = 0;
    std::uint64_t lifts = 0;
  };
  /// What of that may begin: the jobs of the run that follows.
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
  /// What becomes of a procedure that was polled.
  enum class Fate : std::uint8_t {
    kTaken,          ///< Its step may begin.
    kLeaves,         ///< Its domain failed after it was polled: it leaves flight.
    kStays,          ///< The engine stops or its store failed: it stays as its last record says.
    kStopped,        ///< A domain around it has failed: the stop of that domain takes it over.
    kMakesWay,       ///< An order waits to end its domain: its turn to be undone is put back.
    kWaitsForAbort,  ///< An abort was accepted: its point of no return does not begin.
  };
  [[nodiscard]] static Fate fate_of(Execution& execution, bool halted);
  void carry_out(Fate fate, Execution& execution, Taken& taken, Effects& effects)
      PV2_REQUIRES(core_.state_mutex);
  void do_not_begin(Execution& execution, Phase phase) PV2_REQUIRES(core_.state_mutex);
  std::size_t run(Taken& taken, const Worker& worker);
  void let_others_help(const Worker& worker, const WorkerRun::Next& next, Work work);
  /// Takes out of a run what has not begun: all of it, or what may not begin any more. Whether
  /// there was any.
  enum class Which : std::uint8_t { kForbidden, kAll };
  bool call_back(WorkerRun& run, Which which);
  void hand_over(FinishedSteps finished);
  void put_back(const StepJob& job, bool halted) PV2_REQUIRES(core_.state_mutex);
  /// The commit that the step has filled. nullptr: there is none for the store, because the tree
  /// was quarantined, or because work that the procedure has offloaded has to end first.
  StepCommit* run_step(StepJob job, const Worker& worker);
  void quarantine(Execution& execution, const Status& why);

  EngineCore& core_;
  Publisher& publisher_;
  // Shared with every completion that steps hand out, which may outlive the executor.
  std::shared_ptr<WakeTarget> wake_target_;
  std::vector<std::thread> threads_;
};

}  // namespace pv2
