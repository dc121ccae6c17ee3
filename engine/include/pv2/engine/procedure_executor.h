// SPDX-License-Identifier: Apache-2.0
//
// ProcedureExecutor: accepts procedures, runs them to their end or undoes them, and reports on
// them. One executor owns one store. Its life: open() takes the store over and loads what the last
// process left; start() lets the workers run; stop(), or the destructor, ends it. Procedures that
// were accepted and have not finished go on when the store is opened again.
//
// How it fails: a store failure ends the run (nothing is written after it, every caller is told,
// the host's callback is called); the failure of one procedure is that procedure's result and
// nobody else's.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/log.h>
#include <pv2/base/procedure_state.h>
#include <pv2/base/status.h>
#include <pv2/scheduler/procedure_scheduler.h>
#include <pv2/store/procedure_store.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/engine/explanation.h"
#include "pv2/engine/procedure_info.h"
#include "pv2/engine/procedure_listener.h"
#include "pv2/engine/procedure_registry.h"
#include "pv2/engine/repair.h"
#include "pv2/engine/submit_options.h"

namespace pv2 {

/// How long a step that answers retry() waits before its next attempt.
struct RetryPolicy {
  Duration base = std::chrono::seconds(1);  ///< Before the second attempt; doubles each time.
  Duration cap = std::chrono::minutes(10);  ///< Never more than this.
  /// Up to this much is added, so that the retries of a herd spread. At most 100.
  std::uint32_t jitter_percent = 10;
  /// A step that has failed this often (retry(), unsure()) parks its procedure, until an operator
  /// has it tried again, skips it, or has the tree undone. 0: never. The class (kMaxAttempts) and
  /// the row of the step table take precedence.
  std::uint32_t max_attempts = 0;
  /// An undo that has failed this often parks its tree: after a bit more than an hour with the
  /// defaults. If making an object from its record fails this often, in a row and in one run (a
  /// constructor or fields() throws), its procedure is parked too.
  std::uint32_t undo_attempts = 16;
};

/// What happens to procedures that wait for each other in a circle.
enum class DeadlockPolicy : std::uint8_t {
  kReport,  ///< Logged and listed by deadlocks(); the procedures wait until somebody acts.
  /// The circle is logged, and of its trees that can be undone the one with the highest root id
  /// fails. If none can, a member that waits to be undone is parked, with an error that names the
  /// circle; and if nobody in it is being undone, a waiting member of the youngest tree is.
  kFailYoungest,
};

/// How long the result of a root is kept, and how many results and bytes are kept at most. Nothing
/// is forgotten early: at a limit new submissions with a nonce are refused (kResourceExhausted).
struct RetentionPolicy {
  /// A result is kept this long after the end of its root, or until it is acknowledged. Then it and
  /// its nonce are forgotten, and the same submission would run again: a nonce promises "at most
  /// once" for this long. Measured by the monotonic clock while executors run; time in which none
  /// ran counts once the wall clock is beyond doubt (docs/crash-safety.md), so it may be longer,
  /// never shorter. 0: kept until acknowledged. Otherwise at least 30 minutes, longer than any
  /// client retries.
  Duration ttl{};
  /// How many submissions with a nonce may, at once, be live or have a result that is kept. 0: any
  /// number. Those that steps submit count, but are not refused.
  std::size_t max_keyed_results = 0;
  /// About how many bytes kept results may take. The results of procedures that are live when this
  /// is reached come on top. 0: any number.
  std::size_t max_bytes = 0;
};

/// A lock key guards the host rows whose key begins with `prefix`.
struct RowBinding {
  std::string prefix;
  ResourceKey key;
};

/// What open() does with a procedure when it cannot read the engine's own part of its records: its
/// id, its tree, where it is, what it holds. (If only the user's part is unreadable, or a type
/// unknown, the tree is quarantined, whatever is chosen here.)
enum class UnreadableRecords : std::uint8_t {
  kRefuse,  ///< open() fails and names it; nothing is changed. Restore a backup.
  /// The last resort: open() goes on without the procedure. It does not run, its rows stay as they
  /// are, its id is not issued again, and a submission with its nonce still gets that id. Whatever
  /// is seen to belong to its tree is quarantined, locks included. But what the procedure itself
  /// had locked is free, and a tree that it belonged to unseen goes on without it. Each such
  /// procedure is logged as an error and listed by unreadable(). A later open() may choose
  /// differently.
  kSetAside,
};

/// Everything an executor is made of. `store` and `registry` are required.
struct ExecutorOptions {
  std::unique_ptr<ProcedureStore> store;
  ProcedureRegistry registry;
  /// MasterProcedureScheduler unless given.
  std::unique_ptr<ProcedureScheduler> scheduler{};
  /// Threads that run steps. 0: none; the host's thread runs everything in run_until_idle().
  unsigned workers = 2;
  /// This many of the workers run only work of the scheduler's top classes, and what the top
  /// classes wait for: such work finds a thread however much other work runs. Fewer than `workers`.
  unsigned reserved_workers = 0;
  /// kFailYoungest: otherwise procedures that wait in a circle would wait for ever.
  DeadlockPolicy deadlock_policy = DeadlockPolicy::kFailYoungest;
  /// Threads for offloaded work and chores; callbacks use all but one of them. Two more threads are
  /// there, one for callbacks alone and one for listeners alone. So each of the three goes on while
  /// the others block. With workers = 0 all of it runs in run_until_idle().
  unsigned pool_threads = 4;
  /// The system's clock unless given. Shared because the host goes on using it.
  std::shared_ptr<Clock> clock{};
  /// Seeds the jitter and StepContext::random().
  std::uint64_t seed = 0x5eed;
  RetryPolicy retry{};
  /// Submissions beyond this number of live procedures are refused (kResourceExhausted). 10 million
  /// take about 7 GB. A finished child that is kept in memory, because its tree may still have to
  /// undo it, counts as live too.
  std::size_t max_live_procedures = 10'000'000;
  /// Finished results kept in memory. Older ones are read from the store or, with a store that
  /// keeps no records, forgotten.
  std::size_t max_results_in_memory = 100'000;
  /// Like max_results_in_memory, in bytes, about. The newest result stays in memory however large
  /// it is.
  std::size_t max_result_bytes_in_memory = std::size_t{64} << 20;
  /// For results in the store and in memory.
  RetentionPolicy retention{};
  /// A step that changes a host row with such a prefix (the longest counts) without holding the key
  /// exclusively, itself or through an ancestor, fails before anything is written.
  std::vector<RowBinding> row_bindings{};
  /// A step that has run this long is reported once: logged, and given to `on_stuck`. So is
  /// offloaded work, and again if it is silent this long after a heartbeat. 0: never. 10 seconds: a
  /// step must not block, so this is a thousand times what the slowest should take.
  Duration stuck_after = std::chrono::seconds(10);
  /// Called on a pool thread for each step, or piece of offloaded work, that is reported.
  std::function<void(const RunningProcedure&)> on_stuck{};
  UnreadableRecords unreadable = UnreadableRecords::kRefuse;
  /// Names of types of which live procedures may have been written by a program in which a number
  /// of fields() meant something else: another kind or unit, state instead of an argument. If such
  /// a type is not named here, open() refuses (kFailedPrecondition, and the message says both
  /// meanings), because the bytes would silently be read as another value. If it is named, the
  /// bytes are read as this program means them. Adding, removing and renaming fields, and what
  /// docs/fields.md allows, needs none of this.
  std::vector<std::string> accept_field_changes{};
  /// Bounds on the signals that one procedure has not consumed: their number, and the bytes of
  /// their names and payloads. A signal beyond them is refused (kResourceExhausted).
  std::size_t max_signals = 1024;
  std::size_t max_signal_bytes = std::size_t{1} << 20;
  LogSink log = default_log_sink();
  /// Called once, on a pool thread, when the store fails. The executor has stopped accepting work
  /// by then.
  std::function<void(const Status&)> on_store_failure{};
};

/// What goes with an abort.
struct AbortOptions {
  /// Why, for the result and the log. Cut at 1 KiB.
  std::string reason{};
  /// Who asks; named in the result. Cut at 256 bytes.
  std::string who{};
};

/// The answer to a submission.
struct Submitted {
  ProcedureId id;
  bool replayed = false;  ///< The nonce was known: nothing new was started.
};

/// How a procedure ended.
struct ProcedureResult {
  ProcedureId id;
  ProcedureState state = ProcedureState::kSuccess;  ///< kSuccess or kRolledBack.
  Status status;                                    ///< Why it was undone; OK for a success.
  std::string result;                               ///< What the procedure gave to done().
  /// kRolledBack, but not everything was undone: an operator ended the tree as it stood (bypass()),
  /// or sent it back from beyond a point of no return (fail_and_roll_back()). If that happened to a
  /// child whose failure was reported, audit() of the root says so, and this does not.
  bool bypassed = false;
  WallTime submitted{};
  WallTime finished{};
};

/// How many procedures of one type there have been in this run, children included.
struct TypeCounts {
  std::string type;
  std::uint64_t submitted = 0;  ///< Submitted or spawned, and durable.
  std::uint64_t succeeded = 0;  ///< Counted when their tree has ended, once each.
  std::uint64_t undone = 0;     ///< Counted likewise, including those that never began.
};

class Engine;
struct PersistedImage;
struct SectionLooks;

/// Thread-safe, except that open, start and destruction happen once and not concurrently with other
/// calls. A caller that does not want the answer of an asynchronous verb gives an empty `done`.
class ProcedureExecutor {
 public:
  /// Takes over the store and loads it. Fails when a type is wrong, when the fields of live
  /// procedures mean something else than when they were written
  /// (ExecutorOptions::accept_field_changes), when the store belongs to somebody else, or when it
  /// cannot be read; nothing on disk is changed then.
  static Result<std::unique_ptr<ProcedureExecutor>> open(ExecutorOptions options);

  /// Stops (see stop()). Destruction on a thread of this executor ends the process, because that
  /// thread would go on without the executor.
  ~ProcedureExecutor();
  ProcedureExecutor(const ProcedureExecutor&) = delete;
  ProcedureExecutor& operator=(const ProcedureExecutor&) = delete;

  /// Lets the workers run what was loaded and what is submitted. A second call, or one after
  /// stop(), does nothing.
  void start();

  /// Accepts a procedure for execution and returns its id.
  ///
  /// When this returns OK the procedure is on stable storage: it will finish or be undone even if
  /// the process dies on the next line. Blocks for one store commit. A nonce that was used before
  /// returns the earlier id, marked as replayed; with another type or other arguments it fails with
  /// kKeyReused. On a thread of this executor it fails (kFailedPrecondition): a step that blocks
  /// would stop the engine.
  template <class P>
  Result<Submitted> submit(P procedure, SubmitOptions options = {}) {
    internal::require_procedure<P, internal::mistake_in_class<P>()>();
    return submit_and_wait(P::kType, std::make_unique<P>(std::move(procedure)), std::move(options));
  }

  using SubmitCallback = std::function<void(Result<Submitted>)>;
  /// Like submit(), without blocking: `done` is called once, on a pool thread, when the submission
  /// is durable or refused.
  template <class P>
  void submit_async(P procedure, SubmitOptions options, SubmitCallback done) {
    internal::require_procedure<P, internal::mistake_in_class<P>()>();
    submit_erased(P::kType, std::make_unique<P>(std::move(procedure)), std::move(options),
                  std::move(done));
  }

  /// Waits until the procedure has ended. A procedure that is being undone, or is parked, has not
  /// ended. `timeout` is by the executor's clock; a negative one is over at once.
  /// kDeadlineExceeded: the procedure still goes on. kNotFound: there never was one. kExpired: its
  /// result was forgotten.
  Result<ProcedureResult> wait(ProcedureId id,
                               std::optional<std::chrono::milliseconds> timeout = {});

  using ResultCallback = std::function<void(Result<ProcedureResult>)>;
  /// Like wait(), without blocking: `done` is called once, on a pool thread.
  void wait_async(ProcedureId id, ResultCallback done);

  /// Says that the result of a finished root was received. When `done` is called, its rows and its
  /// nonce are deleted, durably. kFailedPrecondition: the root still goes on. kNotFound, kExpired:
  /// there is no result.
  void acknowledge_async(ProcedureId id, std::function<void(Status)> done);
  Status acknowledge(ProcedureId id);

  /// Has the tree of a root undone as if a step of it had failed, whatever it waits for. When this
  /// returns OK the abort is on stable storage: the tree is undone even if the process dies on the
  /// next line, and its result is kAborted with who and why. Another abort of the same tree returns
  /// OK and changes nothing.
  ///
  /// kFailedPrecondition: the root has ended or failed, or is parked or quarantined; something in
  /// its tree has begun or passed its point of no return; or the root ended while the abort was on
  /// its way. The message says which, and nothing was changed. kUnavailable: the root is just being
  /// submitted, or a part of its tree that has begun a point of no return ends or fails; try again.
  /// kInvalidArgument: `id` is a child; the message names the root. kNotFound: there never was one.
  /// kExpired: it has ended and is forgotten. Not on a thread of this executor
  /// (kFailedPrecondition).
  Status abort(ProcedureId id, AbortOptions options = {});
  /// Like abort(), without blocking: `done` is called once, on a pool thread.
  void abort_async(ProcedureId id, AbortOptions options, std::function<void(Status)> done);

  /// Sends a signal to a live procedure, root or child, for a step that asks for it with
  /// StepContext::signal(). When this returns OK the signal is on stable storage: it is delivered,
  /// at least once, and consumed by exactly one record, unless the procedure ends without asking
  /// for it. A signal that is sent twice, even because the answer to the first was lost, is two
  /// signals.
  ///
  /// kResourceExhausted: the procedure has too many signals that are not consumed (max_signals,
  /// max_signal_bytes). kFailedPrecondition: it has ended, perhaps while the signal was on its way.
  /// kUnavailable: it is just being submitted; try again. kNotFound: there never was one. kExpired:
  /// it has ended and is forgotten. kInvalidArgument: the name is empty or longer than 256 bytes,
  /// or the signal alone is larger than max_signal_bytes. Not on a thread of this executor
  /// (kFailedPrecondition).
  Status signal(ProcedureId id, std::string name, std::string payload = {});
  /// Like signal(), without blocking: `done` is called once, on a pool thread.
  void signal_async(ProcedureId id, std::string name, std::string payload,
                    std::function<void(Status)> done);

  /// Carries out the order of an operator: see RepairVerb. When this returns OK the order is on
  /// stable storage, together with its audit entry, and has taken effect; a crash leaves all of it
  /// or nothing.
  ///
  /// kBypass waits for the steps of the tree that are under way, and no other step begins
  /// meanwhile. So it may take as long as they do. Until they have ended, nothing of the order is
  /// durable.
  ///
  /// kUnavailable: nothing was changed, try again. A step that the order concerns is running (not
  /// for kBypass); work that the step has offloaded runs (for kSkipStep); another order about the
  /// same procedures is on its way, or an abort (for kFailAndRollBack); a bypass of what the order
  /// concerns waits, or (for kBypass) a bypass of any part of its tree, or 64 bypasses wait.
  /// kStopping: the executor stopped while the order waited. kFailedPrecondition: the procedure is
  /// not in the condition that the order is for; the message says why. kInvalidArgument: there is
  /// no such order; its note lacks who or why; or its note names a next step where none is taken,
  /// or one that the type does not have. kNotFound, kExpired: as abort(). Not on a thread of this
  /// executor (kFailedPrecondition).
  Status repair(ProcedureId id, RepairVerb verb, RepairNote note);
  /// Like repair(), without blocking: `done` is called once, on a pool thread.
  void repair_async(ProcedureId id, RepairVerb verb, RepairNote note,
                    std::function<void(Status)> done);
  /// Ends a timed wait or a back-off of `id` now. If `id`, or the tree of root `id`, is parked at
  /// an undo, at a step that has used up its attempts, or at one that failed beyond a point of no
  /// return, tries that again, with fresh attempts. A tree goes on when all that failed in it were
  /// retried or skipped.
  Status retry_now(ProcedureId id, RepairNote note) {
    return repair(id, RepairVerb::kRetryNow, std::move(note));
  }
  /// The undo or the step at which the tree is parked counts as done. A step is followed by the
  /// next row of the step table, or by the step that the note names.
  Status skip_step(ProcedureId id, RepairNote note) {
    return repair(id, RepairVerb::kSkipStep, std::move(note));
  }
  /// The tree of `id`, root or child, is undone: abort() of its root. A tree that is parked beyond
  /// a point of no return is undone as far as it can be.
  Status fail_and_roll_back(ProcedureId id, RepairNote note) {
    return repair(id, RepairVerb::kFailAndRollBack, std::move(note));
  }
  /// Ends the tree of `id` if it is parked, quarantined or being undone, or if a member of it has
  /// used up its attempts: nothing more of it is undone, its locks are released, its result says
  /// bypassed. Ask preview() what that leaves inconsistent.
  Status bypass(ProcedureId id, RepairNote note) {
    return repair(id, RepairVerb::kBypass, std::move(note));
  }
  /// What an order would do and leave inconsistent, in words, one line each; or why it would be
  /// refused. Changes nothing.
  [[nodiscard]] Result<std::vector<std::string>> preview(ProcedureId id, RepairVerb verb) const;
  /// The orders carried out on the tree of `id`, oldest first, until its result is acknowledged; an
  /// abort() is listed as kFailAndRollBack. If the tree has ended, `id` is the root, or a child
  /// that an order named; kExpired: `id` is another child, or the tree is forgotten. kNotFound:
  /// there never was one. Reads the store.
  [[nodiscard]] Result<std::vector<AuditEntry>> audit(ProcedureId id) const;

  /// A live procedure, as of its last record, with its fields. Makes an object of the user's class
  /// on this thread.
  [[nodiscard]] Result<ProcedureInfo> describe(ProcedureId id) const;
  /// Why a procedure does not go on, and why the procedures that it waits for do not, up to the
  /// root causes. The answer is of one moment and bounded; finding it stops nobody for longer than
  /// about a millisecond. kNotFound: the procedure is not live, and its result is not in memory.
  [[nodiscard]] Result<Explanation> explain(ProcedureId id) const;
  /// The live procedures with an id above `after` for which `filter` is true, in order of id, at
  /// most `limit`. What is not durable yet is not shown. The engine is never stopped for longer
  /// than it takes to look at a thousand procedures, however many there are; so pages, and what is
  /// in one page, are of different moments.
  [[nodiscard]] ProcedurePage list(const ListFilter& filter, ProcedureId after = {},
                                   std::size_t limit = 100) const;
  /// All live procedures, in order of id, page by page.
  [[nodiscard]] std::vector<ProcedureInfo> list() const;
  /// The last steps (8 at most) of a procedure that is live, or of a root that has ended and whose
  /// result is still in the store.
  [[nodiscard]] Result<std::vector<HistoryEntry>> history(ProcedureId id) const;
  /// The steps and the offloaded work that run at this moment, and for how long.
  [[nodiscard]] std::vector<RunningProcedure> running() const;

  /// From now on `listener` is told of procedures: one call at a time, in the order in which things
  /// became durable, on a thread that is only there for listeners. It may block: only the other
  /// listeners wait for it, and news beyond ProcedureNews::kWaitingMax are missed. What it throws
  /// is logged. kInvalidArgument: it is empty.
  Result<ListenerId> add_listener(ProcedureListener listener);
  /// When this has returned, `listener` is not called any more; on a thread of this executor (a
  /// listener that removes itself) a call that is under way may still be running.
  void remove_listener(ListenerId listener);

  /// Calls `work` on the pool until it is removed or the executor stops: first after `period`, then
  /// each time `period` after the previous call has ended. Kept in memory only: a host adds its
  /// chores at each start. What `work` throws is logged. `name` is for the log. kInvalidArgument:
  /// `work` is empty, or `period` is not positive.
  Result<ChoreId> add_chore(std::string name, Duration period, std::function<void()> work);
  /// Promises the same as remove_listener(). Both do nothing when given an id that is not there.
  void remove_chore(ChoreId chore);

  /// What open() has set aside (UnreadableRecords::kSetAside), in order of id. wait() for one of
  /// them fails (kCorruption).
  [[nodiscard]] std::vector<UnreadableRecord> unreadable() const;

  /// How many procedures are live: submitted, and their tree has not ended. A finished child counts
  /// if it is kept in memory because the tree may still have to undo it.
  [[nodiscard]] std::size_t live_procedures() const;
  /// The counts of every type of which there were any, in order of registration. A procedure that
  /// was loaded counts only at its end; a duplicate of a submission does not count.
  [[nodiscard]] std::vector<TypeCounts> counts() const;
  /// From now on at most `limit` procedures hold `key` at once, in whatever mode; a tree counts
  /// once. nullopt ends the limit. Procedures that hold the key already go on. Durable when this
  /// returns OK, and in force in every later run. kInvalidArgument: the key has a name or class
  /// that no key has (limits.h). kResourceExhausted: limits::kLimitedKeys have a limit already. Not
  /// on a thread of this executor (kFailedPrecondition).
  Status set_limit(const ResourceKey& key, std::optional<std::uint32_t> limit);
  /// Like set_limit(), for procedures of one type. Those count that were submitted or spawned while
  /// the type had a limit.
  Status set_type_limit(std::string_view type, std::optional<std::uint32_t> limit);

  /// Procedures that wait for each other in a circle, now.
  [[nodiscard]] std::vector<WaitCycle> deadlocks() const;
  /// Everything that is locked, waited for or limited: all holders, and all waiters in the order in
  /// which they will be served.
  [[nodiscard]] std::vector<LockInfo> locks() const;
  /// OK, or why the store failed; then nothing runs any more.
  [[nodiscard]] Status health() const;

  /// With workers = 0: runs steps, commits, pool tasks and due timers on this thread until none is
  /// left, and returns how many steps ran. `max_steps` bounds that number. A step may call it. With
  /// workers, or while another thread is in it, it does nothing, logs an error and returns 0. When
  /// another thread calls stop(), it returns after the step that is running, and has stopped the
  /// executor.
  std::size_t run_until_idle(std::size_t max_steps = SIZE_MAX);

  /// Refuses new work, answers all callers that wait with kStopping, lets running steps, work on
  /// the pool and queued commits end, and closes the store. Idempotent; a second call returns when
  /// the first has ended. Steps that run for ever make it wait for ever; every `stuck_after` it
  /// logs what still runs. On a thread of the executor itself (a step, a callback) it only logs an
  /// error. An asynchronous verb that is called afterwards is answered on the calling thread.
  void stop();
  /// Like stop(), but returns after `timeout` at the latest, by the executor's clock. OK: the
  /// executor has stopped. kDeadlineExceeded: it has not stopped yet, and goes on stopping; the
  /// message names the steps that still run. Call this again, or stop(), which waits. The
  /// destructor waits too, because what still runs uses the executor. kFailedPrecondition: the
  /// caller is on a thread of the executor itself. With workers = 0 and no thread in
  /// run_until_idle() the caller does all the work, and returns when that is done, however long it
  /// takes.
  Status stop(std::chrono::milliseconds timeout);

 private:
  friend struct PersistedImage;  // what pv2::testing compares over a crash
  friend struct SectionLooks;    // how much each critical section looks at
  friend struct StateAudit;      // whether the engine's state contradicts itself
  explicit ProcedureExecutor(std::unique_ptr<Engine> engine);
  Result<Submitted> submit_and_wait(std::string_view type, std::unique_ptr<Procedure> procedure,
                                    SubmitOptions options);
  void submit_erased(std::string_view type, std::unique_ptr<Procedure> procedure,
                     SubmitOptions options, SubmitCallback done);

  template <class Latch>
  auto await(Latch& latch);
  Status stop_within(Duration timeout);
  void begin_to_stop();
  void tell_of_stop();
  void shut_down();

  std::unique_ptr<Engine> engine_;
};

}  // namespace pv2
