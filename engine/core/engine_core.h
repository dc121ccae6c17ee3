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

/// What a critical section has decided and Publisher::perform() does after it.
struct Effects {
  CommitList commits;
  std::vector<std::unique_ptr<GarbageCommit>> garbage;  ///< Each commits its next chunk.
  /// Answers by engine code (a latch). They run at once, on the thread that performs the effects.
  TaskList answers;
  /// Answers and callbacks by the host's code. They run on the pool.
  TaskList pool_tasks;
  /// Requests that are durable already and are to be published now.
  CommitList durable;
  /// To be destroyed: the scheduler has forgotten them, and no pointer to them is left.
  std::vector<std::unique_ptr<Execution>> retired;
  std::vector<std::unique_ptr<RollbackPlan>> retired_plans;
  std::vector<TreeWork*> to_sort;  ///< The publisher sorts what they collected; then they go on.
  std::vector<std::pair<LogLevel, std::string>> log_lines;
  /// Another timer has become the earliest.
  bool timers_moved = false;

  Effects() = default;
  Effects(const Effects&) = delete;
  Effects& operator=(const Effects&) = delete;

  void log(LogLevel level, std::string line) { log_lines.emplace_back(level, std::move(line)); }
  /// Gives the answer `value` where `reply` says. Does nothing if `reply` is empty.
  template <class T>
  void reply(Reply<T> reply, std::type_identity_t<T> value) {
    if (!reply) return;
    auto call = [tell = std::move(reply.tell), value = std::move(value)]() mutable {
      tell(std::move(value));
    };
    (reply.on == ReplyOn::kPool ? pool_tasks : answers).emplace_back(std::move(call));
  }
};

/// A nonce in memory.
struct NonceEntry {
  ProcedureId id;
  Fingerprint fingerprint;
};

/// Rows of one tree that are being deleted.
struct PendingGarbage {
  /// How many GarbageCommits are under way or queued. Each deletes its rows chunk after chunk. They
  /// follow each other, so a member's rows go before those of its parent.
  std::size_t chains = 0;
  bool under_way = false;                            ///< The first chain has begun.
  std::vector<std::unique_ptr<GarbageCommit>> next;  ///< The queued chains.
  /// Acknowledgements of the root's result. They wait for the last chain, because rows of members
  /// without their root would look like a torn tree.
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
  /// By root: rows of members that left before the end of their tree. They are deleted when they
  /// are many, or with the other rows of the tree. Each entry is a chain of that root's garbage.
  FlatMap<ProcedureId, std::unique_ptr<GarbageCommit>> dropped;
  /// At most one per tree.
  std::vector<WaitingOrder> waiting_orders;
  /// How many children are in records on the way. They count as live already.
  std::size_t spawning = 0;
  /// Aborts on the way, by root. One per tree: a second abort joins the first.
  FlatMap<ProcedureId, MessageCommit*> aborting;
  /// Acknowledgements on the way. One per result: a second one joins the first. Otherwise the
  /// second could delete the nonce of a procedure that was submitted after the first.
  FlatMap<ProcedureId, AcknowledgeCommit*> acknowledging;
  Retention retention;  ///< Of the results that are kept.
  /// Records that open() has set aside: they are in the store, and not live.
  std::map<ProcedureId, UnreadableRecord> unreadable;
  TimerQueue timers;
  std::list<TreeWorks> tree_works;     ///< Their first works take turns, a section each.
  std::list<TreeWorks> works_outside;  ///< Their first works are being sorted without the mutex.
  /// Paused walks other than those of works. A cursor is moved off a member that leaves.
  std::vector<TreeCursor*> walks;
  EntryList to_settle;  ///< Given to the scheduler before the mutex is released.
  SpareCommits<StepCommit> spare_steps;
  SpareCommits<InsertCommit> spare_inserts;
  SpareCommits<AcknowledgeCommit> spare_acknowledges;
  /// User objects that another thread than a worker dropped. The next worker that takes the mutex
  /// destroys them.
  std::vector<std::unique_ptr<Procedure>> dead_objects;
  std::vector<std::shared_ptr<AwaitSlot>> dead_slots;

  /// Offloaded work to be told to stop after the mutex was released, because that calls user code.
  std::vector<std::shared_ptr<PieceOfWork>> work_to_stop;

  bool loaded = false;  ///< The whole store was read: `next_id` is right and may be written.
  std::uint64_t next_id = 1;
  std::uint64_t first_id = 1;           ///< `next_id` when the store was loaded.
  std::uint64_t durable_watermark = 0;  ///< Only ids below it may be issued.
  bool watermark_on_the_way = false;
  /// Schema rows (schema_rows.h) that the next watermark takes along.
  std::vector<std::pair<std::string, std::string>> schemas_to_write;
  std::uint64_t next_ticket = 1;
  /// The store may have rows of nonces that are not in `nonces`, so admission asks it. Never reset:
  /// that a submission does not run twice must not depend on a count.
  bool store_knows_more_nonces = false;
  /// Used only for the limit of keyed results. Without that limit, nonces of earlier runs are not
  /// counted.
  std::size_t nonces_on_disk_only = 0;
  std::uint64_t evictions = 0;
  bool started = false;            ///< Workers, or the host's thread, take what is queued.
  std::vector<TypeCounts> counts;  ///< By ProcedureType::index; no name: none of that type yet.
  bool stopping = false;
  bool stopped = false;                             ///< No thread of the engine runs any more.
  std::vector<std::function<void()>> stop_waiters;  ///< Engine code; called when `stopped` is set.
  Status store_failure;
  /// The limits that OperatorConsole::set_limit() has made durable.
  std::map<ResourceKey, std::uint32_t> limits;
  bool resolves_deadlocks = false;    ///< Set when open() has ended.
  bool deadlock_task_posted = false;  ///< A search is expected and has not ended.
  std::deque<ProcedureNews> news;     ///< For the listeners, in order of publication.
  std::uint64_t news_missed = 0;      ///< Dropped since the last entry, because `news` was full.
  bool news_task_posted = false;      ///< The task is on the pool and has not ended.
  std::uint64_t sections = 0;         ///< That have published; counted in debug builds only.
};

class Admission;
class Offloads;

struct EngineCore {
  explicit EngineCore(ExecutorOptions executor_options);

  ExecutorOptions
      options;  // not assigned after open(); the store, scheduler and clock in it change themselves
  ProcedureStore& store;
  ProcedureScheduler& scheduler;
  Clock& clock;
  std::unique_ptr<TaskPool> pool;
  const bool keeps_records;
  RunningSteps running;  ///< One per worker; with workers = 0 one for the host's thread.
  const std::unique_ptr<WorkerRun[]> runs;  ///< Like `running`.
  /// Set once, before any thread runs; not set without workers.
  std::function<void()> expect_deadlock_search;
  std::function<void()> tell_news;  ///< Set once, before any thread runs.
  /// Tells the pieces in `work_to_stop` to stop. Called without the mutex. Set once, before any
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
  /// Counts the events that a worker has to know of before it begins a step that it has taken: the
  /// engine stops, the store failed, a tree failed or was aborted. Changed under the state mutex;
  /// read before each step without it. A hint: a worker that reads a new number takes the mutex and
  /// looks through its run.
  std::atomic<std::uint64_t> recalls{0};
  /// A hint: without listeners, no news are made.
  const std::atomic<bool>* has_listeners = nullptr;
  /// Set by a thread that begins a tree work or makes way for a WaitingOrder. The thread that
  /// clears it goes on with all works and waiting orders.
  std::atomic<bool> tree_work_waits{false};
  /// A hint: while false, no type has a limit and the mutex is not taken to look for one.
  std::atomic<bool> limits_types{false};
  const std::string store_name;  ///< For messages made under the state mutex.
  EngineAge age;                 ///< Dates results, and decides when they expire.
  const WallTime opened;         ///< The wall clock when this life began.

  /// How many threads sleep until they get the state mutex, and how many have got it. For
  /// give_way().
  std::atomic<std::size_t> sleepers{0};
  std::atomic<std::size_t> let_in{0};

  Mutex state_mutex;
  EngineState state PV2_GUARDED_BY(state_mutex);
  Looks looks PV2_GUARDED_BY(state_mutex);

  /// Like state_mutex.lock(), and counts for give_way().
  void lock_state() PV2_ACQUIRE(state_mutex);
  /// Called between two sections of a work that takes the mutex again and again. A thread that
  /// sleeps until the mutex is free needs longer to wake up than this thread needs to take it back.
  /// So this thread waits a while until one sleeper has got the mutex.
  void give_way() const PV2_EXCLUDES(state_mutex);
  /// The random numbers of a worker in this life. They differ between workers and between lives, so
  /// a step does not draw the same numbers after a restart. Determined by options, store and clock.
  /// To be called after the store was loaded.
  [[nodiscard]] Random random_of_life(std::size_t worker) PV2_EXCLUDES(state_mutex);
  /// Takes `count` consecutive ids. kUnavailable while the durable watermark does not cover them.
  Result<ProcedureId> allocate_ids(std::size_t count) PV2_REQUIRES(state_mutex);
  /// Raises the watermark when less than half a block of ids is left.
  void reserve_ids(Effects& effects) PV2_REQUIRES(state_mutex);
  /// Queues a watermark. Neither this run nor a later one issues an id at or above it before a
  /// higher one is durable.
  void write_watermark(std::uint64_t next_id, Reply<Status> reply, Effects& effects)
      PV2_REQUIRES(state_mutex);
  /// Makes every worker look through the steps that it has taken and not begun.
  void recall_runs() PV2_REQUIRES(state_mutex) { recalls.fetch_add(1, std::memory_order_relaxed); }
  /// Queues the deletion of rows, behind the deletions for the same root that are under way.
  void delete_rows(std::unique_ptr<GarbageCommit> garbage, Effects& effects)
      PV2_REQUIRES(state_mutex);
  /// OK, or why the engine accepts nothing any more.
  Status unavailable() const PV2_REQUIRES(state_mutex);
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
  /// Adds news of a durable fact for the listeners, if there are any.
  void tell(ProcedureNews::Kind kind, const Execution& execution, Status error = {})
      PV2_REQUIRES(state_mutex);
  /// Whether the caller has to post tell_news() to the pool after it has released the mutex.
  [[nodiscard]] bool claim_news_task() PV2_REQUIRES(state_mutex);
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
  /// Arms the timer for execution.wait.due.
  void arm_timer(Execution& execution, Effects& effects) PV2_REQUIRES(state_mutex);
};

/// Holds the state mutex for a scope. At its end it tells the scheduler what was settled, releases
/// the mutex, and starts what the section has made necessary.
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

/// What is left of a timed wait after a restart: the time until `deadline` by the wall clock, at
/// most what was left when the record was made, and at least zero.
[[nodiscard]] Duration left_after_restart(WallTime deadline, Duration patience,
                                          WallTime now) noexcept;

/// How many ids one watermark covers. A crash skips at most this number of ids. The next block is
/// reserved when half of them are left, which is far more than are issued during one sync.
inline constexpr std::uint64_t kIdBlock = 1'000'000;

}  // namespace pv2
