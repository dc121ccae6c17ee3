// SPDX-License-Identifier: Apache-2.0
//
// EngineCore: what the parts of the engine share. The parts are Admission, StepRunner (with its
// Workers), Publisher, Rollback, Results, Recovery and Timers; data flows through them in one
// direction:
//
//     Admission -> store -> Publisher -> scheduler -> Workers/StepRunner -> store -> Publisher ->
//     ...
//
// One mutex guards everything that relates executions to each other. It is held for short batches
// only, and never while user code, the store or the log is called: what has to be done outside is
// collected in Effects and done after it was released. Lock order: state_mutex, then the
// scheduler's own (docs/concurrency.md).

#pragma once

#include <pv2/base/mutex.h>
#include <pv2/base/random.h>

#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/completed_results.h"
#include "core/live_table.h"
#include "core/retention.h"
#include "core/running_steps.h"
#include "core/task_pool.h"
#include "core/waiting_order.h"
#include "core/worker_run.h"
#include "model/engine_age.h"
#include "model/looks.h"
#include "model/requests.h"
#include "model/timer_queue.h"
#include "model/tree_work.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/procedure_listener.h"

namespace pv2 {

/// What a critical section decided and somebody has to do after it: see Publisher::perform().
struct Effects {
  CommitList commits;
  std::vector<std::unique_ptr<GarbageCommit>> garbage;  ///< Each commits its next chunk.
  /// Engine code that answers somebody (a latch): runs at once.
  TaskList answers;
  /// The host's code: runs on the pool.
  TaskList pool_tasks;
  /// Durable, and not published until now.
  CommitList durable;
  /// The scheduler has forgotten them; nobody points at them any more.
  std::vector<std::unique_ptr<Execution>> retired;
  std::vector<std::unique_ptr<RollbackPlan>> retired_plans;
  std::vector<TreeWork*> to_sort;  ///< What they collected, by the publisher; then they go on.
  std::vector<std::pair<LogLevel, std::string>> log_lines;
  /// A timer became the earliest.
  bool timers_moved = false;

  Effects() = default;
  Effects(const Effects&) = delete;
  Effects& operator=(const Effects&) = delete;

  void log(LogLevel level, std::string line) { log_lines.emplace_back(level, std::move(line)); }
  /// Has `value` told to whom `reply` says, if to anybody.
  template <class T>
  void reply(Reply<T> reply, std::type_identity_t<T> value) {
    if (!reply) return;
    auto call = [tell = std::move(reply.tell), value = std::move(value)]() mutable {
      tell(std::move(value));
    };
    (reply.on == ReplyOn::kPool ? pool_tasks : answers).emplace_back(std::move(call));
  }
};

/// A nonce that is known in memory.
struct NonceEntry {
  ProcedureId id;
  Fingerprint fingerprint;
};

/// Rows of one tree that are being deleted.
struct PendingGarbage {
  std::size_t chains = 0;  ///< Each deletes chunk after chunk, one chain after the other: a
                           ///< member's rows go before those of whom it was spawned by.
  bool under_way = false;  ///< The first of them.
  std::vector<std::unique_ptr<GarbageCommit>> next;
  /// Of the root's result, which wait for the last of them: rows without their root would look like
  /// a torn tree.
  std::vector<Reply<Status>> acknowledgements;
};

template <class Key, class Value>
using FlatMap = boost::unordered_flat_map<Key, Value, std::hash<Key>>;

/// Everything that EngineCore::state_mutex guards.
struct EngineState {
  explicit EngineState(const ExecutorOptions& options)
      : completed(options.max_results_in_memory, options.max_result_bytes_in_memory),
        retention(options.retention, options.store->keeps_records()) {}

  LiveTable live;
  FlatMap<Nonce, NonceEntry> nonces;
  CompletedResults completed;
  /// Roots, live or ended, whose descendants' rows are being deleted.
  FlatMap<ProcedureId, PendingGarbage> garbage;
  /// Rows of members that left before the end of their tree, by root: deleted when they are many,
  /// or with the others of the tree. Each is a chain of that root's garbage.
  FlatMap<ProcedureId, std::unique_ptr<GarbageCommit>> dropped;
  /// At most one for each tree.
  std::vector<WaitingOrder> waiting_orders;
  /// Children of steps that are on the way: they will be live.
  std::size_t spawning = 0;
  /// Aborts on the way, by root. One per tree: a second one joins it.
  FlatMap<ProcedureId, MessageCommit*> aborting;
  /// Acknowledgements on the way. One per result: a second one joins it, so that none can delete
  /// the nonce of a procedure that was submitted after the first.
  FlatMap<ProcedureId, AcknowledgeCommit*> acknowledging;
  Retention retention;  ///< Of the results that are kept.
  /// What open() has set aside: in the store, and not live.
  std::map<ProcedureId, UnreadableRecord> unreadable;
  TimerQueue timers;
  std::list<TreeWorks> tree_works;     ///< The first one goes on for a section, then the next one.
  std::list<TreeWorks> works_outside;  ///< The first of each is sorted, without the mutex.
  std::vector<TreeCursor*> walks;  ///< That are paused, beside those of works: let_go() moves them.
  EntryList to_settle;             ///< For the scheduler, before the mutex is released.
  SpareCommits<StepCommit> spare_steps;
  SpareCommits<InsertCommit> spare_inserts;
  SpareCommits<AcknowledgeCommit> spare_acknowledges;
  /// User objects that ended elsewhere than on a worker: destroyed by the next worker that comes
  /// by.
  std::vector<std::unique_ptr<Procedure>> dead_objects;
  std::vector<std::shared_ptr<AwaitSlot>> dead_slots;

  /// Offloaded work that is to be told to stop, which calls user code.
  std::vector<std::shared_ptr<PieceOfWork>> work_to_stop;

  bool loaded = false;  ///< The store was read whole, so `next_id` is true and may be written.
  std::uint64_t next_id = 1;
  std::uint64_t first_id = 1;           ///< What `next_id` was when the store was loaded.
  std::uint64_t durable_watermark = 0;  ///< Only ids below it may be issued.
  bool watermark_on_the_way = false;
  /// Rows of Space::kEngine that the next watermark takes along: what the fields of types mean.
  std::vector<std::pair<std::string, std::string>> schemas_to_write;
  std::uint64_t next_ticket = 1;
  /// The store may have rows of nonces that are not in `nonces`, so it is asked. Once true it stays
  /// so: no count has to be right for a submission not to run twice.
  bool store_knows_more_nonces = false;
  /// For the limit of keyed results, and nothing else: where there is none, those of earlier runs
  /// are not counted.
  std::size_t nonces_on_disk_only = 0;
  std::uint64_t evictions = 0;
  bool started = false;            ///< Somebody takes what is queued.
  std::vector<TypeCounts> counts;  ///< By ProcedureType::index; without a name: there were none.
  bool stopping = false;
  bool stopped = false;                             ///< Nothing of the engine runs any more.
  std::vector<std::function<void()>> stop_waiters;  ///< Engine code; called when it is.
  Status store_failure;
  /// What OperatorConsole::set_limit() has made durable.
  std::map<ResourceKey, std::uint32_t> limits;
  bool resolves_deadlocks = false;    ///< Since open() has ended.
  bool deadlock_task_posted = false;  ///< A search is expected, and has not ended.
  std::deque<ProcedureNews> news;     ///< For the listeners, in the order of publication.
  std::uint64_t news_missed = 0;      ///< Since the last of them, as there were too many.
  bool news_task_posted = false;      ///< On the pool, and not ended.
  std::uint64_t sections = 0;         ///< That have published, in a debug build.
};

class Admission;
class Offloads;

struct EngineCore {
  explicit EngineCore(ExecutorOptions executor_options);

  ExecutorOptions options;  // immutable after open(), apart from what its members do themselves
  ProcedureStore& store;
  ProcedureScheduler& scheduler;
  Clock& clock;
  std::unique_ptr<TaskPool> pool;
  const bool keeps_records;
  RunningSteps running;  ///< One per worker; with workers = 0 that of the host's thread.
  const std::unique_ptr<WorkerRun[]> runs;  ///< Likewise.
  /// Set once, before anything runs; without workers it is not.
  std::function<void()> expect_deadlock_search;
  std::function<void()> tell_news;  ///< Set once, before anything runs.
  /// Has those told that stop_work() has noted; called without the mutex. Set once likewise.
  std::function<void()> tell_work_to_stop;
  /// For tests: called without a lock when a work on a tree pauses. Set before anything runs.
  std::function<void()> between_sections;
  Admission* admission = nullptr;  ///< Set once, before anything runs.
  Offloads* offloads = nullptr;    ///< Set once, before anything runs.
  /// Workers that look for others to help, or sleep after they found none; those that are reserved
  /// for the top classes by themselves.
  std::atomic<std::size_t> idle_workers{0};
  std::atomic<std::size_t> idle_reserved{0};
  /// How often something happened that a worker has to know before it begins what it has taken: the
  /// engine stops, the store failed, a tree failed or was aborted. Changed under the state mutex;
  /// read before each step, without. A hint: whoever sees a new number looks under the mutex.
  std::atomic<std::uint64_t> recalls{0};
  /// A hint that spares making news that nobody would hear.
  const std::atomic<bool>* has_listeners = nullptr;
  /// Set by whoever begins a tree work, or makes way for a WaitingOrder; whoever clears it sees to
  /// those that there are.
  std::atomic<bool> tree_work_waits{false};
  /// A hint that spares the mutex; the answer is read under it.
  std::atomic<bool> limits_types{false};
  const std::string store_name;  ///< For messages that are made under the state mutex.
  EngineAge age;                 ///< By which results are dated and forgotten.
  const WallTime opened;         ///< As the wall clock said when this life began.

  /// Threads that sleep until they get the state mutex, and how many have. For give_way().
  std::atomic<std::size_t> sleepers{0};
  std::atomic<std::size_t> let_in{0};

  Mutex state_mutex;
  EngineState state PV2_GUARDED_BY(state_mutex);
  Looks looks PV2_GUARDED_BY(state_mutex);

  /// As state_mutex.lock(), seen by give_way().
  void lock_state() PV2_ACQUIRE(state_mutex);
  /// Between two sections of a work that takes the mutex again and again: who sleeps until it is
  /// free needs longer to wake up than this thread to take it back. Waits for one of them, a while.
  void give_way() const PV2_EXCLUDES(state_mutex);
  /// What a worker draws from, in this life: another one with each worker and each life, so that
  /// nothing that a step has drawn comes again after a restart. With the same options, store and
  /// clock the same. After the store was loaded.
  [[nodiscard]] Random random_of_life(std::size_t worker) PV2_EXCLUDES(state_mutex);
  /// Takes `count` ids in a row; kUnavailable when they are not covered by the durable watermark
  /// (yet).
  Result<ProcedureId> allocate_ids(std::size_t count) PV2_REQUIRES(state_mutex);
  /// Raises the watermark when less than half a block of ids is left.
  void reserve_ids(Effects& effects) PV2_REQUIRES(state_mutex);
  /// Queues a watermark; no id at or above it will be issued by this or any later run before
  /// another one is durable.
  void write_watermark(std::uint64_t next_id, Reply<Status> reply, Effects& effects)
      PV2_REQUIRES(state_mutex);
  /// Has every worker look through what it has taken and not begun.
  void recall_runs() PV2_REQUIRES(state_mutex) { recalls.fetch_add(1, std::memory_order_relaxed); }
  /// Has the rows deleted, after those of the same tree that are being deleted.
  void delete_rows(std::unique_ptr<GarbageCommit> garbage, Effects& effects)
      PV2_REQUIRES(state_mutex);
  /// Why nothing is accepted any more, or OK.
  Status unavailable() const PV2_REQUIRES(state_mutex);
  /// The counters of a type.
  TypeCounts& counts_of(const ProcedureType& type) PV2_REQUIRES(state_mutex);
  /// nullptr: it does not exist, or has ended and is about to leave the table.
  [[nodiscard]] Execution* find(ProcedureId id) PV2_REQUIRES(state_mutex);
  /// Tells the scheduler what becomes of an execution, at the latest when the state mutex is
  /// released (flush): so whoever finds it kQueued under that mutex knows that it is in a queue, or
  /// polled. At most one settle() of an execution between two flushes.
  void settle(Execution& execution, Disposition disposition) PV2_REQUIRES(state_mutex);
  /// The same, and it is kQueued from now on.
  void queue(Execution& execution, Disposition disposition) PV2_REQUIRES(state_mutex);
  void flush() PV2_REQUIRES(state_mutex);
  /// What `id` waited for in this epoch is there: it runs again. If its record is still on the way,
  /// when that is published. Dropped if the wait is over.
  void wake(ProcedureId id, std::uint32_t epoch) PV2_REQUIRES(state_mutex);
  /// Tells the scheduler whom an execution waits for that is in no line for a lock: `producer` is
  /// to complete what it awaits, or the head of a domain in whose rollback it waits for its turn.
  /// The wait ends with queue() or abandon_waits().
  void report_wait(Execution& waiter, Execution& producer, WaitLink::Why why)
      PV2_REQUIRES(state_mutex);
  void end_reported_wait(Execution& waiter) PV2_REQUIRES(state_mutex);
  /// Whether the caller has to call expect_deadlock_search(), after the mutex was released.
  [[nodiscard]] bool claim_deadlock_task() PV2_REQUIRES(state_mutex);
  /// Remembers for the listeners, if there are any, what has become durable.
  void tell(ProcedureNews::Kind kind, const Execution& execution, Status error = {})
      PV2_REQUIRES(state_mutex);
  /// Whether the caller has to post tell_news() to the pool, after the mutex was released.
  [[nodiscard]] bool claim_news_task() PV2_REQUIRES(state_mutex);
  /// Puts a limit, or the end of one, into effect.
  void set_limit(const ResourceKey& key, std::optional<std::uint32_t> limit)
      PV2_REQUIRES(state_mutex);
  /// Adds its type to the lock set of a new execution if the type has a limit.
  void count_for_its_type(Execution& execution) PV2_EXCLUDES(state_mutex);
  /// Forgets its waits, object and timer: what comes for them later is stale.
  void abandon_waits(Execution& execution) PV2_REQUIRES(state_mutex);
  /// If `next` is the end of a root, dates it and says whether its rows move to Space::kResult:
  /// they do where one batch takes them with the `beside` bytes that are in it too. Otherwise takes
  /// an earlier date and answer back.
  void date_end(const Execution& execution, Transition& next, std::size_t beside = 0) const;
  /// Nobody will take the values of what it has outstanding on the pool: that is told to stop, and
  /// what has not begun never does.
  void stop_work(Execution& execution) PV2_REQUIRES(state_mutex);
  /// A timed wait that begins now: what its record says, and when it is due in this run.
  void begin_wait(Duration patience, Transition& next) const;
  /// The timed wait of `execution`, if it has one, goes on: a record that is made now says what is
  /// left of it.
  void go_on_waiting(const Execution& execution, Transition& next) const;
  /// Arms the timer for execution.wait.due.
  void arm_timer(Execution& execution, Effects& effects) PV2_REQUIRES(state_mutex);
};

/// Holds the state mutex for a scope and settles with the scheduler at its end.
class PV2_SCOPED_CAPABILITY StateLock {
 public:
  explicit StateLock(EngineCore& core) PV2_ACQUIRE(core.state_mutex) : core_(core) {
    core_.lock_state();
    outer_ = core_.looks.begin();
  }
  ~StateLock() PV2_RELEASE() {
    core_.flush();
    PV2_ASSERT(core_.state.to_settle.empty(), "a section ends when the scheduler knows all of it");
    const bool look_at_deadlocks = core_.claim_deadlock_task();
    const bool tell_news = core_.claim_news_task();
    const bool stops_work = !core_.state.work_to_stop.empty();
    core_.looks.end(outer_);
    core_.state_mutex.unlock();
    if (stops_work) core_.tell_work_to_stop();
    if (look_at_deadlocks) core_.expect_deadlock_search();
    if (tell_news) core_.pool->post_news(core_.tell_news);
  }
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;

 private:
  EngineCore& core_;
  Looks* outer_ = nullptr;
};

/// What is left of a timed wait after a restart: what the wall clock says, but never more than was
/// left of it when its record was made, nor less than nothing.
[[nodiscard]] Duration left_after_restart(WallTime deadline, Duration patience,
                                          WallTime now) noexcept;

/// How many ids one watermark covers. A crash skips at most so many; half of them are left when the
/// next block is reserved, which is far more than can be issued during one sync.
inline constexpr std::uint64_t kIdBlock = 1'000'000;

}  // namespace pv2
