// SPDX-License-Identifier: Apache-2.0
//
// ProcedureExecutor: accepts procedures, runs them to their end or undoes them, and reports on
// them. One executor owns one store. Its life: open() takes the store over and loads what the last
// process left; start() lets the workers run; stop(), or the destructor, ends it. Procedures that
// were accepted and have not finished go on when the store is opened again.
//
// How it fails: a store failure ends the run (nothing is written after it, every caller is told,
// the host's callback is called); the failure of one procedure is that procedure's result and
// no other's.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pv2/engine/abort_options.h"
#include "pv2/engine/chore.h"
#include "pv2/engine/procedure_class.h"
#include "pv2/engine/procedure_listener.h"
#include "pv2/engine/procedure_result.h"
#include "pv2/engine/submit_options.h"

namespace pv2 {

struct ExecutorOptions;
class AsyncExecutor;
enum class CallbackThread : std::uint8_t;
class Engine;
class Inspection;
class OperatorConsole;
class Recovery;
struct PersistedImage;
struct SectionLooks;

/// Thread-safe, except that open, start and destruction happen once and not concurrently with other
/// calls.
class ProcedureExecutor {
 public:
  /// Takes over the store and loads it, unless ExecutorOptions::load says later. Fails when a type
  /// is wrong, when the fields of live procedures mean something else than when they were written
  /// (ExecutorOptions::accept_field_changes), when another program has the store open, or when the
  /// store cannot be read; nothing on disk is changed then.
  static Result<std::unique_ptr<ProcedureExecutor>> open(ExecutorOptions options);

  /// Stops (see stop()). Destruction on a thread of this executor ends the process, because that
  /// thread would go on without the executor.
  ~ProcedureExecutor();
  ProcedureExecutor(const ProcedureExecutor&) = delete;
  ProcedureExecutor& operator=(const ProcedureExecutor&) = delete;

  /// Lets the workers run what was loaded and what is submitted. A second call, or one after
  /// stop(), does nothing.
  void start();

  /// OK when everything that the store has is loaded: at once, unless it is loaded in the
  /// background (Load::kInBackground). Otherwise why that did not come to its end: the store could
  /// not be read or has failed, or the executor stops (kStopping). Not on a thread of this executor
  /// (kFailedPrecondition).
  Status wait_until_loaded();
  /// Whether the store is still being loaded in the background. Then nothing runs, and calls about
  /// procedures wait.
  [[nodiscard]] bool is_loading() const noexcept;

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
    return submit_erased(P::kType, std::make_unique<P>(std::move(procedure)), std::move(options));
  }

  /// submit(), wait() and acknowledge() in one, for a caller that is told the result here or never:
  /// returns the result when the procedure has ended. The deletion of the result and its nonce is
  /// on its way then.
  ///
  /// The result is kept like that of submit() if the process ends or the executor stops before that
  /// deletion is durable. With a nonce a caller that comes again waits for the same procedure, or
  /// gets its kept result; only after the deletion the nonce begins a new one. A caller that must
  /// not lose a result in a crash uses AsyncExecutor::execute() with a nonce: there the result
  /// stays until the callback has returned. Others who know id or nonce are told the result for
  /// certain only if they wait before the end. With workers = 0 another thread has to be in
  /// run_until_idle().
  ///
  /// Fails like submit() and wait(). kStopping: the executor stops; the message says whether this
  /// call has started a procedure, which goes on later.
  template <class P>
  Result<ProcedureResult> execute(P procedure, SubmitOptions options = {}) {
    internal::require_procedure<P, internal::mistake_in_class<P>()>();
    return execute_erased(P::kType, std::make_unique<P>(std::move(procedure)), std::move(options));
  }

  /// Finds what was submitted with a nonce, without submitting anything. The id that it returns is
  /// durable. kNotFound: the nonce is not known; it was not used, or is forgotten. Not on a thread
  /// of this executor (kFailedPrecondition).
  Result<ProcedureId> find(const Nonce& nonce);

  /// Waits until the procedure has ended. A procedure that is being undone, or is parked, has not
  /// ended. `timeout` is by the executor's clock; a negative one is over at once.
  /// kDeadlineExceeded: the procedure still goes on. kNotFound: there never was one. kExpired: its
  /// result was forgotten.
  Result<ProcedureResult> wait(ProcedureId id,
                               std::optional<std::chrono::milliseconds> timeout = {});

  /// Says that the result of a finished root was received. When this returns OK, its rows and its
  /// nonce are deleted, durably. kFailedPrecondition: the root still goes on. kNotFound, kExpired:
  /// there is no result.
  Status acknowledge(ProcedureId id);

  /// Has the tree of a root undone as if a step of it had failed, whatever it waits for. When this
  /// returns OK the abort is on stable storage: the tree is undone even if the process dies on the
  /// next line, and its result is kAborted with who and why. If a step's failure was durable before
  /// the abort, the tree is undone for that failure, and the result is the failure. Another abort
  /// of the same tree returns OK and changes nothing.
  ///
  /// kFailedPrecondition: the root has ended or failed, or is parked or quarantined; something in
  /// its tree has begun or passed its point of no return; or the root ended while the abort was on
  /// its way. The message says which, and nothing was changed. kUnavailable: the root is just being
  /// submitted, or a part of its tree that has begun a point of no return ends or fails; try again.
  /// kInvalidArgument: `id` is a child; the message names the root. kNotFound: there never was one.
  /// kExpired: it has ended and is forgotten. Not on a thread of this executor
  /// (kFailedPrecondition).
  Status abort(ProcedureId id, AbortOptions options = {});

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

  /// submit(), wait(), acknowledge(), abort() and signal() without blocking, with a callback
  /// (async_executor.h).
  [[nodiscard]] AsyncExecutor async() noexcept;
  [[nodiscard]] AsyncExecutor async(CallbackThread callbacks) noexcept;
  /// Orders about procedures that do not go on by themselves, and limits (operator_console.h).
  [[nodiscard]] OperatorConsole operate() noexcept;
  /// Listings, explanations and counts (inspection.h). Waits until the store is loaded, except on a
  /// thread of this executor.
  [[nodiscard]] Inspection inspect() const;

  /// Until the subscription ends, `listener` is told of procedures: one call at a time, in the
  /// order in which things became durable, on a thread that is only there for listeners. A listener
  /// may block: only the other listeners wait for it, and news beyond ProcedureNews::kWaitingMax is
  /// missed. Its exceptions are logged. kInvalidArgument: it is empty.
  Result<Subscription> listen(ProcedureListener listener);
  /// Calls `work` on the pool until the Chore ends or the executor stops: first after `period`,
  /// then each time `period` after the previous call has ended. Kept in memory only: a host adds
  /// its chores at each start. Exceptions of `work` are logged. `name` is for the log.
  /// kInvalidArgument: `work` is empty, or `period` is not positive.
  Result<Chore> add_chore(std::string name, Duration period, std::function<void()> work);

  /// OK, or why the store failed; then nothing runs any more.
  [[nodiscard]] Status health() const;

  /// With workers = 0: runs steps, commits, pool tasks and due timers on this thread until none is
  /// left, and returns how many steps ran. It does not wait for a store that writes on a thread of
  /// its own (LevelDB, unless its committer is kPump). `max_steps` bounds that number. A step may
  /// call it. With workers, or while another thread is in it, it does nothing, logs an error and
  /// returns 0. When another thread calls stop(), it returns after the step that is running, and
  /// has stopped the executor.
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
  Result<Submitted> submit_erased(std::string_view type, std::unique_ptr<Procedure> procedure,
                                  SubmitOptions options);
  Result<ProcedureResult> execute_erased(std::string_view type,
                                         std::unique_ptr<Procedure> procedure,
                                         SubmitOptions options);

  Status make_loading_thread(std::unique_ptr<Recovery> recovery);
  void let_threads_begin();
  Status stop_within(Duration timeout);
  void begin_to_stop();
  void run_on_stopping_thread(const std::function<void()>& stop);
  void tell_of_stop();
  void shut_down();

  std::unique_ptr<Engine> engine_;
};

}  // namespace pv2
