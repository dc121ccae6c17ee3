// SPDX-License-Identifier: Apache-2.0
//
// Workers: the threads that run steps. A worker polls a run of procedures, takes them under the
// state mutex, runs their steps without any lock, and hands all their records to the store at once.
// It does not wait for the store while there is work. When there is none, it writes its records
// itself instead of waking the store's thread and sleeping, and publishes them: with few procedures
// in flight a step wakes no thread. When the store answers "durable at once" (Noop), the worker
// publishes too, and goes on at once with procedures that are alone (go_on()).
//
// With a store that keeps records a worker whose steps are short takes up to 64 procedures though
// other workers sleep, because their records then share a sync (RunPace::own()).
//
// A step that takes long delays other procedures by two milliseconds at most while a worker is
// idle: idle workers take the procedures that wait behind it out of its worker's run. One of them,
// the watcher, looks at all runs every millisecond, and helps in those in which something waits
// since the last look. If the steps of a worker take so long that its run is worth sharing
// (RunPace), it wakes an idle worker when the run begins. A reserved worker helps with work of the
// top classes, and with what that work waits for. See WorkerRun.
//
// The invariant: a step begins only if, at the last look of its worker, the engine was not
// stopping, its store had not failed, no domain around the procedure had failed or was aborted (or
// the procedure had its turn to be undone), and no higher class had work. The worker looks before
// each step: at EngineCore::recalls and ProcedureScheduler::is_overtaken(), two loads. A thread
// that stops the engine, or makes a tree fail or abort, increments `recalls` under the state mutex
// before it tells anyone. So after a caller was told of a stop, a failure or an abort, no step
// begins except those that a worker was just entering. Only when a look finds a change does the
// worker take the state mutex and go through the procedures that have not begun (call_back()):
//
//     its tree failed             it leaves flight; the last member to leave begins the rollback
//     the engine stops, or its    it leaves flight and stays as its last record says
//     store failed
//     more urgent work waits      all procedures of the run that have not begun leave flight and go
//                                 back to their queues, with their locks as they were; but a worker
//                                 always begins the first step of its own run
//
// A job is in one place at a time: in one run, or with the one thread that took it from there and
// adds it to its own run with the same marks. So no look misses it.

#pragma once

#include <algorithm>
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
#include "steps/run_pace.h"
#include "steps/wake_port.h"

namespace pv2 {

/// One thread calls make_threads() and stop(); the workers call the rest. In an executor without
/// threads, the host's thread calls run_once() and bury().
class Workers {
 public:
  Workers(EngineCore& core, Publisher& publisher, WakeTarget& wake_target)
      : core_(core), publisher_(publisher), wake_target_(wake_target) {}
  ~Workers() { stop(); }

  /// Makes `count` threads, which begin when `gate` is open. `reserved` of them run only work of
  /// the top classes. kResourceExhausted: some threads could not be made; stop() ends the others.
  Status make_threads(unsigned count, unsigned reserved, StartGate& gate);
  /// Waits for the running steps. Idempotent. The scheduler has to be stopped before, and the gate
  /// has to be open or abandoned.
  void stop();

  struct Round {
    std::size_t steps = 0;
    bool polled = false;  ///< Something was polled, even if none of it may begin.
  };
  /// One run on the calling thread, of at most `max_steps` steps. For executors without threads.
  Round run_once(std::size_t max_steps, Random& random);

  /// Destroys user objects whose procedures ended on a thread that is no worker.
  void bury();

 private:
  static constexpr std::size_t kRun = WorkerRun::kMost;
  // How many looks without a run in which something waits the watcher makes before it sleeps.
  static constexpr unsigned kQuietLooks = 20;
  // How large the buffer of a worker may stay after a step.
  static constexpr std::size_t kScratchKept = std::size_t{64} << 10;
  using Work = WorkerRun::Work;

  /// One worker: a thread of the executor, or the host's thread in an executor without threads.
  struct Worker {
    WorkerRun* run;
    WorkerActivity& activity;
    Random& random;
    RunPace pace;
    Work work = Work::kAny;  ///< kTop: a reserved worker.
    /// ProcedureScheduler::lifts() when the worker last looked through all runs.
    std::uint64_t looked_through = 0;
    std::size_t index = 0;
    /// Of each worker, the run in which something waited at the last look; 0: none.
    std::vector<std::uint64_t> seen{};
    std::string scratch{};     ///< A buffer for encoded fields.
    bool is_idle = false;      ///< It is counted as idle.
    bool watches = false;      ///< It is the watcher.
    unsigned quiet_looks = 0;  ///< Looks in a row in which no run had anything that waits.
    bool has_thread = false;   ///< It is a thread of the executor, not the host's.
    bool may_write = false;    ///< It may write what it has queued in the store.
    bool has_queued = false;   ///< It has queued records, and woken nobody to write them.
  };
  [[nodiscard]] Worker worker(std::size_t index, Random& random, Work work) {
    using Dividing = RunPace::Dividing;
    const RunPace pace(core_.keeps_records ? Dividing::kCostsSync : Dividing::kCostsWake);
    Worker made{&core_.runs[index], core_.running.of(index), random, pace, work};
    made.index = index;
    made.seen.resize(core_.running.size());
    return made;
  }
  /// What a worker has polled, and the value of ProcedureScheduler::lifts() before the poll.
  struct Polled {
    std::array<SchedulerEntry*, kRun> entries;  ///< The first `count` are set.
    std::size_t count = 0;
    std::uint64_t lifts = 0;
  };
  /// The jobs of the next run.
  struct Taken : StepJobs {
    RunMarks marks;
    Work work = Work::kAny;
  };

  void work(std::size_t index, Work work);
  /// Writes what the worker has queued. False: it has queued nothing, or the store sees to it.
  bool writes_queued(Worker& worker);
  bool poll(const Worker& worker, std::chrono::milliseconds patience, Polled& polled);
  /// Whether the worker polls for any work as soon as its run is over. The host's thread may have
  /// done enough.
  static bool polls_soon(const Worker& worker) {
    return worker.has_thread && worker.work == Work::kAny;
  }
  /// How many procedures the worker takes for itself, though others sleep, when it polls.
  static std::size_t own(const Worker& worker) { return std::min(worker.pace.own(), kRun); }
  /// Helps other workers, or waits for work; false when there was none.
  bool idle(Worker& worker, Polled& polled);
  bool help_out(Worker& worker);
  [[nodiscard]] bool something_waits_in_runs(Worker& worker);
  [[nodiscard]] bool keeps_watch(Worker& worker);
  bool look_through_runs(Worker& worker);
  void cease_to_be_idle(Worker& worker);
  void tell_idle_workers(const Worker& worker, std::size_t waiting, bool shared);
  void pass_on_watch(const Worker& worker);
  [[nodiscard]] bool are_others_idle(const Worker& worker) const;
  [[nodiscard]] std::atomic<std::size_t>& idle_count(Work work) noexcept;
  enum class WasIdle : std::uint8_t { kNo, kYes };
  std::size_t take_and_run(Polled& polled, Worker& worker, std::size_t max_steps = SIZE_MAX,
                           WasIdle was_idle = WasIdle::kNo);
  void take(Polled& polled, Taken& taken, Effects& effects);
  [[nodiscard]] bool something_waits_for_publisher() const;
  void begin_run(Taken& taken, Worker& worker, bool publishes);
  /// Runs the steps of `taken`, which has begun, and those that follow at once, at most
  /// `max_steps`.
  std::size_t run(Taken& taken, Worker& worker, std::size_t max_steps);
  std::size_t run_rounds(Taken& taken, Worker& worker, std::size_t max_steps);
  void publish_what_was_left(Worker& worker);
  void begin_round(Taken& taken, Worker& worker, bool publishes);
  std::size_t run_round(Taken& taken, Worker& worker);
  /// In its scope the worker counts as one that soon comes out of its run, if it does.
  class ShortRun;
  [[nodiscard]] bool may_go_on(const Worker& worker, std::size_t steps_left) const;
  bool go_on(Taken& taken, Worker& worker);
  void hand_over_at_end(Worker& worker);
  [[nodiscard]] bool somebody_is_idle() const;
  void call_for_help();
  /// Takes procedures that have not begun out of a run: all of them, or those that may not begin
  /// any more. Returns whether there were any.
  enum class Which : std::uint8_t { kForbidden, kAll };
  bool call_back(WorkerRun& run, Which which);
  void hand_over(FinishedSteps finished);
  void put_back(const StepJob& job, bool halted) PV2_REQUIRES(core_.state_mutex);
  /// Runs a step that begins now. Returns the commit that it has filled. nullptr: the store gets
  /// none, because the tree was quarantined, or because the procedure's offloaded work has to end
  /// first.
  StepCommit* run_step(StepJob job, WallTime now, Worker& worker);
  void quarantine(Execution& execution, const Status& why);

  EngineCore& core_;
  Publisher& publisher_;
  // Engine::wake_port, which outlives this. The slots for which steps hand out completions share
  // it, because they may outlive the executor.
  WakeTarget& wake_target_;
  std::vector<std::thread> threads_;
};

}  // namespace pv2
