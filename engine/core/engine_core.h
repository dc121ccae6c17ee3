// SPDX-License-Identifier: Apache-2.0
//
// EngineCore: what the rooms above core share: submission, tree, recovery, steps, orders, watch and
// executor. Data flows between them in one direction:
//
//     submission/Admission -> store -> core/Publisher -> scheduler -> steps/Workers
//                               ^            |                             |
//                               |            v                             |
//                               |      published(), in tree and orders     |
//                               +------------------------------------------+
//
// One mutex guards everything that relates executions to each other. It is held for short sections
// only, and never while user code, the store or the log is called. What a section decides to do
// outside is collected in Effects and done after the mutex was released. Lock order: state_mutex,
// then the scheduler's own mutex (docs/concurrency.md).

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/mutex.h>
#include <pv2/base/random.h>
#include <pv2/base/waiting_threads.h>
#include <pv2/store/procedure_store.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/engine_state.h"
#include "core/loading.h"
#include "core/running_steps.h"
#include "core/short_runs.h"
#include "core/task_pool.h"
#include "model/engine_age.h"
#include "model/execution.h"
#include "model/looks.h"
#include "model/requests.h"

namespace pv2 {

class Admission;
class Offloads;
class WorkerRun;
struct Effects;
struct ExecutorOptions;
struct ProcedureType;

struct EngineCore {
  explicit EngineCore(ExecutorOptions executor_options);
  ~EngineCore();
  EngineCore(const EngineCore&) = delete;
  EngineCore& operator=(const EngineCore&) = delete;

  /// Behind a pointer, so that this header only declares ExecutorOptions.
  const std::unique_ptr<ExecutorOptions> owned_options;
  /// Not assigned after open(). The store, scheduler and clock in it change themselves.
  ExecutorOptions& options;
  ProcedureStore& store;
  const StoreLimits store_limits;  ///< Asked for once; they do not change.
  ProcedureScheduler& scheduler;
  Clock& clock;
  std::unique_ptr<TaskPool> pool;
  const bool keeps_records;
  RunningSteps running;  ///< One per worker; with workers = 0 one for the host's thread.
  const std::unique_ptr<WorkerRun[]> runs;  ///< Like `running`.
  /// Set once, before any thread runs; not set without workers.
  std::function<void()> expect_deadlock_search;
  std::function<void()> tell_news;  ///< Set once, before any thread runs.
  /// Tells the pieces in `leftovers.work` to stop. Called without the mutex. Set once, before any
  /// thread runs.
  std::function<void()> tell_work_to_stop;
  /// For tests: called without a lock when a work on a tree pauses. Set before any thread runs.
  std::function<void()> between_sections;
  Admission* admission = nullptr;  ///< Set once, before any thread runs.
  Offloads* offloads = nullptr;    ///< Set once, before any thread runs.
  /// How many workers look for other workers to help, or sleep after they found none. Workers
  /// reserved for the top classes are counted in `idle_reserved` instead.
  std::atomic<std::size_t> idle_workers{0};
  std::atomic<std::size_t> idle_reserved{0};
  /// The runs after which a worker publishes what the store has given back. Reserved workers do not
  /// count; with a store that keeps no records there are none.
  ShortRuns short_runs;
  /// Whether one of the idle workers looks at all runs again and again.
  std::atomic<bool> watched{false};
  /// Counts the events that a worker has to know of before it begins a step that it has taken: the
  /// engine stops, the store failed, a tree failed or was aborted. Changed under the state mutex;
  /// read before each step without it. A hint: a worker that reads a new number takes the mutex and
  /// looks through its run.
  std::atomic<std::uint64_t> recalls{0};
  /// Whether the engine stops or its store has failed. Set by halt().
  std::atomic<bool> is_halted{false};
  /// Set by a thread that begins a tree work or makes way for a WaitingOrder. The thread that
  /// clears it goes on with all works and waiting orders.
  std::atomic<bool> tree_work_waits{false};
  /// A hint: while false, no type has a limit and the mutex is not taken to look for one.
  std::atomic<bool> limits_types{false};
  Loading loading;               ///< Whether the store is still being loaded.
  const std::string store_name;  ///< For messages made under the state mutex.
  EngineAge age;                 ///< Dates results, and decides when they expire.
  const WallTime opened;         ///< The wall clock when this life began.

  WaitingThreads waiting_for_state;  ///< Those that wait for the state mutex.

  /// A worker holds its share while it publishes a procedure without the state mutex. A wide
  /// section holds all shares, too; see core/state_lock.h. One per worker; none if the store keeps
  /// records.
  struct alignas(64) Share {
    Mutex share_mutex;
  };
  const std::unique_ptr<Share[]> shares;
  const std::size_t share_count;

  /// On a cache line of its own: who waits for it writes that line again and again.
  alignas(64) Mutex state_mutex;
  EngineState state PV2_GUARDED_BY(state_mutex);
  bool has_shares PV2_GUARDED_BY(state_mutex) = false;  ///< The section is wide.
  Looks looks PV2_GUARDED_BY(state_mutex);

  /// The seat of the calling thread.
  [[nodiscard]] std::size_t seat() const noexcept { return EngineThread::seat_in(this); }
  /// Its seat in the scheduler. With a store that keeps records there is only one for all: two
  /// workers with half of the procedures each would also divide their syncs.
  [[nodiscard]] std::size_t scheduler_seat() const noexcept { return keeps_records ? 0 : seat(); }

  /// Like state_mutex.lock(); counts among those that wait until it has it.
  void lock_state() PV2_ACQUIRE(state_mutex);
  void unlock_state() PV2_RELEASE(state_mutex);
  /// Makes the section wide, if it is not: it waits for the workers that hold their shares.
  void widen() PV2_REQUIRES(state_mutex);
  /// The random numbers of a worker in this life. They differ between workers and between lives, so
  /// a step does not draw the same numbers after a restart. Determined by options, store and clock.
  /// To be called after the store was loaded.
  [[nodiscard]] Random random_of_life(std::size_t worker) PV2_EXCLUDES(state_mutex);
  /// Makes every worker look through the steps that it has taken and not begun. Called in a wide
  /// section if a root that is alone in its tree may be in flight: a worker that goes on with it
  /// then reads this number and the domain as they were before, or as they are afterwards.
  void recall_runs() PV2_REQUIRES(state_mutex) { recalls.fetch_add(1, std::memory_order_relaxed); }
  /// The engine stops, or its store has failed. Called in a wide section.
  void halt() PV2_REQUIRES(state_mutex) {
    PV2_ASSERT(has_shares, "a worker with its share sees whether the engine has halted");
    is_halted.store(true, std::memory_order_relaxed);
    recall_runs();
  }
  /// The engine has halted: whoever waits until the store is loaded is answered with that.
  void give_up_loading(Effects& effects) PV2_REQUIRES(state_mutex);
  /// OK, or why the engine accepts nothing any more.
  Status unavailable() const PV2_REQUIRES(state_mutex);
  /// OK, or why a procedure that the store may have is not in the tables.
  Status why_not_loaded() const PV2_REQUIRES(state_mutex);
  /// The counters of a type.
  TypeCounts& counts_of(const ProcedureType& type) PV2_REQUIRES(state_mutex);
  /// nullptr: the procedure is not live, or has ended and is about to leave the table.
  [[nodiscard]] Execution* find(ProcedureId id) PV2_REQUIRES(state_mutex);
  /// Notes what becomes of an execution. flush() tells the scheduler, at the latest before the
  /// state mutex is released. So an execution that is kQueued when a thread takes that mutex is in
  /// a queue, or polled. At most one settle() per execution between two flushes.
  void settle(Execution& execution, Disposition disposition) PV2_REQUIRES(state_mutex);
  /// Like settle(); also ends a reported wait and sets the phase to kQueued.
  void queue(Execution& execution, Disposition disposition) PV2_REQUIRES(state_mutex);
  void flush() PV2_REQUIRES(state_mutex);
  /// What `id` waited for in this epoch has arrived: the procedure runs again. If its record is
  /// still on the way, it runs again when that record is published. Ignored if that wait is over.
  void wake(ProcedureId id, std::uint32_t epoch) PV2_REQUIRES(state_mutex);
  /// Tells the scheduler that `waiter`, which is in no line for a lock, waits for `producer`. That
  /// is the procedure that completes what `waiter` awaits, or the head of the domain in whose
  /// rollback `waiter` waits for its turn. queue(), abandon_waits() and end_reported_wait() end the
  /// wait.
  void report_wait(Execution& waiter, Execution& producer, WaitLink::Why why)
      PV2_REQUIRES(state_mutex);
  void end_reported_wait(Execution& waiter) PV2_REQUIRES(state_mutex);
  /// Whether the caller has to call expect_deadlock_search() after it has released the mutex.
  [[nodiscard]] bool claim_deadlock_task() PV2_REQUIRES(state_mutex);
  /// Puts a limit, or the end of one, into effect.
  void set_limit(const ResourceKey& key, std::optional<std::uint32_t> limit)
      PV2_REQUIRES(state_mutex);
  /// If the type of a new execution has a limit, adds the type to the lock set of the execution.
  void count_for_its_type(Execution& execution) PV2_EXCLUDES(state_mutex);
  /// Ends the waits and the timer of an execution and drops its object. Later wakes are stale, and
  /// offloaded work is told to stop.
  void abandon_waits(Execution& execution) PV2_REQUIRES(state_mutex);
  /// If `next` is the end of a root, dates it and decides whether its rows move to Space::kResult.
  /// They do if they fit into one batch with `beside` bytes of other rows. If `next` is no end,
  /// clears the date and that decision.
  void date_end(const Execution& execution, Transition& next, std::size_t beside = 0) const;
  /// The outstanding work of the procedure is not needed any more. Pieces that run are told to stop
  /// after the mutex was released; pieces that have not begun never begin.
  void stop_work(Execution& execution) PV2_REQUIRES(state_mutex);
  /// Fills in a timed wait that begins now: deadline and patience for the record, and when it is
  /// due in this run.
  void begin_wait(Duration patience, Transition& next) const;
  /// Fills in what is left of the timed wait of `execution`, for a record that is made during the
  /// wait. Without such a wait, `next` waits for nothing.
  void go_on_waiting(const Execution& execution, Transition& next) const;
  /// As above, with a deadline that passes at `due`.
  void go_on_waiting(SteadyTime due, Transition& next) const;
  /// Arms the timer for execution.wait.due.
  void arm_timer(Execution& execution, Effects& effects) PV2_REQUIRES(state_mutex);
};

/// What is left of a timed wait after a restart: the time until `deadline` by the wall clock, at
/// most what was left when the record was made, and at least zero.
[[nodiscard]] Duration left_after_restart(WallTime deadline, Duration patience,
                                          WallTime now) noexcept;

}  // namespace pv2
