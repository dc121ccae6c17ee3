// SPDX-License-Identifier: Apache-2.0
//
// The executor's life: open, start and stop. Every other verb is one call into the part that does
// it.

#include "pv2/engine/procedure_executor.h"

#include <algorithm>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "core/effects.h"
#include "core/state_lock.h"
#include "executor/blocking_call.h"
#include "executor/check_options.h"
#include "executor/engine.h"
#include "model/names.h"
#include "orders/bypass.h"
#include "pv2/engine/async_executor.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/inspection.h"
#include "pv2/engine/operator_console.h"
#include "pv2/engine/procedure_registry.h"
#include "recovery/recovery.h"
#include "watch/listing.h"
#include "watch/stuck_detector.h"

namespace pv2 {
namespace {

// Converts to the unit of the engine. A time that is too long for it becomes Duration::max().
Duration to_duration(std::chrono::milliseconds time) {
  constexpr auto kLongest = std::chrono::floor<std::chrono::milliseconds>(Duration::max());
  if (time > kLongest) return Duration::max();
  return std::max(time, std::chrono::milliseconds::zero());
}

Status stop_on_engine_thread() {
  return Status(StatusCode::kFailedPrecondition,
                "stop() was called on a thread of the executor, which it would wait for; call it "
                "elsewhere");
}

// What the stop waits for.
Status what_still_runs(const EngineCore& core) {
  constexpr std::size_t kNamesMax = 8;
  std::string who;
  const std::vector<RunningProcedure> steps = running_procedures(core);
  for (std::size_t i = 0; i < std::min(steps.size(), kNamesMax); ++i) {
    who += in_words(steps[i]) + "; ";
  }
  if (steps.size() > kNamesMax) {
    who += "so have " + std::to_string(steps.size() - kNamesMax) + " others; ";
  }
  if (const std::size_t tasks = core.pool->unfinished(); tasks != 0) {
    who += std::to_string(tasks) + (tasks == 1 ? " piece" : " pieces") +
           " of offloaded work, chores or callbacks not ended; ";
  }
  if (core.loading.is_at_work()) who += core.store_name + " is still being loaded; ";
  if (who.empty()) who = core.store_name + " has not written yet what is queued; ";
  return Status(StatusCode::kDeadlineExceeded,
                "the executor has not stopped yet: " + who +
                    "it stops as soon as that is over, and stop() may be called again");
}

// Ids are issued only below a durable bound; this also proves that the store can be written, before
// anything goes on. Rows that do not fit into its batch follow in further ones.
Status write_first_bound(EngineCore& core, Publisher& publisher) {
  Status written;
  for (bool more = true; more && written.ok();) {
    written = block<Status>(core, "open()", [&](Reply<Status> reply) {
      Effects bound;
      {
        StateLock lock(core);
        core.state.ids.write_watermark(core.state.ids.next_bound(), std::move(reply), bound);
        more = core.state.ids.has_more_to_take_along();
      }
      publisher.perform(bound);
    });
  }
  return written;
}

}  // namespace

Result<std::unique_ptr<ProcedureExecutor>> ProcedureExecutor::open(ExecutorOptions options) {
  if (Status refused = check_options(options); !refused.ok()) return refused;
  auto engine = std::make_unique<Engine>(std::move(options));
  if (Status status = engine->core.pool->started(); !status.ok()) return status;
  if (Status status = engine->core.store.recover_lease(engine->publisher); !status.ok())
    return status;
  std::unique_ptr<ProcedureExecutor> executor(new ProcedureExecutor(std::move(engine)));
  EngineCore& core = executor->engine_->core;
  auto recovery = std::make_unique<Recovery>(core);
  Effects effects;
  // The threads wait at their gates. They are made first: after load() there is work for the store,
  // and an open() that fails writes nothing.
  Status status = executor->engine_->make_threads();
  if (status.ok()) status = recovery->begin();
  const bool later = status.ok() && core.options.load == Load::kInBackground &&
                     recovery->let_submissions_in(effects);
  if (status.ok() && !later) status = recovery->load(effects);
  if (status.ok() && later) status = executor->make_loading_thread(std::move(recovery));
  if (!status.ok()) return status;
  const Status written = write_first_bound(core, executor->engine_->publisher);
  // Also after a failure: the store then returns what recovery wants to commit, so it is freed.
  executor->engine_->publisher.perform(effects);
  if (!written.ok()) return written;
  if (later) {
    executor->engine_->background_load.begin();
  } else {
    StateLock lock(core);
    core.state.deadlock_search.is_on = true;
  }
  executor->engine_->host_random = core.random_of_life(0);
  return executor;
}

ProcedureExecutor::ProcedureExecutor(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

ProcedureExecutor::~ProcedureExecutor() {
  PV2_ASSERT(
      !EngineThread::belongs_to(&engine_->core),
      "an executor is not destroyed on a thread of its own (a step, a callback), which would "
      "go on without it");
  stop();
  if (engine_->stopping.joinable()) engine_->stopping.join();
  EngineCore& core = engine_->core;
  std::vector<std::unique_ptr<Execution>> left;
  {
    StateLock lock(core);
    left.reserve(core.state.live.size());
    for (Execution& execution : core.state.live) left.emplace_back(&execution);
    core.state.live.clear();
    core.state.submissions.nonces.clear();  // they belong to the executions
  }
  // Children before parents: the scheduler's entries point upwards.
  std::reverse(left.begin(), left.end());
  EntryList entries;
  for (const auto& execution : left) {
    core.scheduler.withdraw(*execution);
    entries.push_back(*execution, Disposition::kComplete);
  }
  core.scheduler.settle(std::move(entries));
}

Status ProcedureExecutor::make_loading_thread(std::unique_ptr<Recovery> recovery) {
  return engine_->background_load.make_thread(std::move(recovery), [this] { let_threads_begin(); });
}

void ProcedureExecutor::start() {
  EngineCore& core = engine_->core;
  {
    StateLock lock(core);
    if (core.state.life.stopping || std::exchange(core.state.life.started, true)) return;
    if (!core.loading.is_complete()) return;  // they begin when the store is loaded
  }
  if (core.options.workers != 0) let_threads_begin();
}

bool ProcedureExecutor::is_loading() const noexcept { return engine_->core.loading.runs(); }

void ProcedureExecutor::let_threads_begin() {
  engine_->timers.start();
  engine_->gate.open();
}

Status ProcedureExecutor::wait_until_loaded() {
  EngineCore& core = engine_->core;
  if (EngineThread::belongs_to(&core)) return on_engine_thread("wait_until_loaded()");
  core.loading.wait();
  StateLock lock(core, Width::kNarrow);
  return core.loading.was_given_up() ? core.unavailable() : Status();
}

Result<Submitted> ProcedureExecutor::submit_erased(std::string_view type,
                                                   std::unique_ptr<Procedure> procedure,
                                                   SubmitOptions options) {
  return block<Result<Submitted>>(engine_->core, "submit()", [&](Reply<Result<Submitted>> reply) {
    engine_->admission.submit(type, std::move(procedure), std::move(options),
                              {.reply = std::move(reply)});
  });
}

Result<ProcedureResult> ProcedureExecutor::execute_erased(std::string_view type,
                                                          std::unique_ptr<Procedure> procedure,
                                                          SubmitOptions options) {
  using Answer = Result<ProcedureResult>;
  Answer answer = block<Answer>(engine_->core, "execute()", [&](Reply<Answer> reply) {
    engine_->admission.submit(type, std::move(procedure), std::move(options),
                              {.taker = std::move(reply)});
  });
  if (answer.ok()) engine_->results.acknowledge_told(answer->id);
  return answer;
}

Result<ProcedureId> ProcedureExecutor::find(const Nonce& nonce) {
  const auto found = block<Result<Submitted>>(
      engine_->core, "find()",
      [&](Reply<Result<Submitted>> reply) { engine_->admission.find(nonce, std::move(reply)); });
  if (!found.ok()) return found.status();
  return found->id;
}

Result<ProcedureResult> ProcedureExecutor::wait(ProcedureId id,
                                                std::optional<std::chrono::milliseconds> timeout) {
  if (EngineThread::belongs_to(&engine_->core)) return on_engine_thread("wait()");
  const auto latch = std::make_shared<Latch<Result<ProcedureResult>>>();
  const std::uint64_t ticket = engine_->results.wait(
      id,
      {[latch](Result<ProcedureResult> result) { latch->set(std::move(result)); }, ReplyOn::kHere});
  if (timeout && ticket != 0 &&
      !arrives_in_time(latch, engine_->core.clock, to_duration(*timeout))) {
    if (engine_->results.withdraw(id, ticket)) {
      return Status(StatusCode::kDeadlineExceeded, name_of(id) + " had not ended after " +
                                                       std::to_string(timeout->count()) +
                                                       " ms; it goes on");
    }
  }
  latch->wait();
  return *std::move(latch->value);
}

Status ProcedureExecutor::acknowledge(ProcedureId id) {
  return block<Status>(engine_->core, "acknowledge()", [&](Reply<Status> reply) {
    engine_->results.acknowledge(id, std::move(reply));
  });
}

Status ProcedureExecutor::abort(ProcedureId id, AbortOptions options) {
  return block<Status>(engine_->core, "abort()", [&](Reply<Status> reply) {
    engine_->messages.abort(id, std::move(options), std::move(reply));
  });
}

Status ProcedureExecutor::signal(ProcedureId id, std::string name, std::string payload) {
  return block<Status>(engine_->core, "signal()", [&](Reply<Status> reply) {
    engine_->messages.signal(id, std::move(name), std::move(payload), std::move(reply));
  });
}

AsyncExecutor ProcedureExecutor::async() noexcept { return async(CallbackThread::kPool); }

AsyncExecutor ProcedureExecutor::async(CallbackThread callbacks) noexcept {
  return {*engine_, callbacks};
}

OperatorConsole ProcedureExecutor::operate() noexcept { return OperatorConsole(*engine_); }

// What this thread has submitted in a callback is shown.
Inspection ProcedureExecutor::inspect() const {
  engine_->publisher.publish_kept();
  block_until_loaded(engine_->core);
  return Inspection(*engine_);
}

Result<Subscription> ProcedureExecutor::listen(ProcedureListener listener) {
  const Result<std::uint64_t> id = engine_->listeners->add(std::move(listener));
  if (!id.ok()) return id.status();
  return Subscription(internal::Registration(engine_->listeners, *id));
}

Result<Chore> ProcedureExecutor::add_chore(std::string name, Duration period,
                                           std::function<void()> work) {
  const Result<std::uint64_t> id = engine_->chores->add(std::move(name), period, std::move(work));
  if (!id.ok()) return id.status();
  return Chore(internal::Registration(engine_->chores, *id));
}

Status ProcedureExecutor::health() const {
  StateLock lock(engine_->core);
  return engine_->core.state.life.store_failure;
}

std::size_t ProcedureExecutor::run_until_idle(std::size_t max_steps) {
  const unsigned workers = engine_->core.options.workers;
  if (workers != 0) {
    log(engine_->core.options.log, LogLevel::kError,
        "run_until_idle() did nothing: this executor has " + std::to_string(workers) +
            " workers, which run everything by themselves; open one with workers = 0 to run it on "
            "your own thread");
    return 0;
  }
  const bool is_in_engine = EngineThread::belongs_to(&engine_->core);
  HostThread& host = engine_->host_thread;
  const HostThread::Entry entry = host.enter();
  if (entry == HostThread::Entry::kOccupied) {
    log(engine_->core.options.log, LogLevel::kError,
        "run_until_idle() did nothing: another thread is in it; an executor without workers is run "
        "by one thread at a time");
  }
  if (entry == HostThread::Entry::kOccupied || entry == HostThread::Entry::kTooLate) return 0;
  Random& random = engine_->host_random;
  std::size_t steps = 0;
  for (bool progress = true; progress && steps < max_steps && !host.is_stopping();) {
    progress = engine_->publisher.publish_kept();  // if a callback is in this call
    const Workers::Round round = engine_->workers.run_once(max_steps - steps, random);
    steps += round.steps;
    progress = round.polled || progress;
    progress = engine_->core.store.pump() || progress;
    progress = engine_->core.pool->run_one() || progress;
    progress = engine_->timers.fire_due() != 0 || progress;
    if (!progress) progress = engine_->deadlocks.search_at_idle();
  }
  engine_->publisher.publish_kept();
  engine_->workers.bury();
  if (entry == HostThread::Entry::kFirst && host.leave()) {
    // A callback of the store's thread may be in this call, and the end waits for that thread.
    is_in_engine ? run_on_stopping_thread([this] { shut_down(); }) : shut_down();
  }
  return steps;
}

void ProcedureExecutor::stop() {
  const ExecutorOptions& options = engine_->core.options;
  if (EngineThread::belongs_to(&engine_->core)) {
    log(options.log, LogLevel::kError, stop_on_engine_thread().message());
    return;
  }
  const bool looks = options.stuck_after > Duration::zero();
  const Duration patience = looks ? options.stuck_after : Duration::max();
  for (Status late = stop_within(patience); !late.ok(); late = stop_within(patience)) {
    log(options.log, LogLevel::kWarning, late.message());
  }
}

Status ProcedureExecutor::stop(std::chrono::milliseconds timeout) {
  if (EngineThread::belongs_to(&engine_->core)) return stop_on_engine_thread();
  return stop_within(to_duration(timeout));
}

Status ProcedureExecutor::stop_within(Duration timeout) {
  EngineCore& core = engine_->core;
  const auto latch = std::make_shared<Latch<Status>>();
  bool first = false;
  {
    StateLock lock(engine_->core);
    if (engine_->core.state.life.stopped) return Status();
    first = !std::exchange(engine_->core.state.life.stopping, true);
    engine_->core.halt();
    engine_->stop_waiters.emplace_back([latch] { latch->set(Status()); });
  }
  if (first) begin_to_stop();
  return arrives_in_time(latch, core.clock, timeout) ? Status() : what_still_runs(core);
}

// Stops on a thread of its own: a step, offloaded work or the disk may take longer than the caller
// wants to wait. In an executor without threads nothing goes on while its host waits.
void ProcedureExecutor::begin_to_stop() {
  if (engine_->core.options.workers == 0) {
    tell_of_stop();
    if (engine_->host_thread.stop()) shut_down();
    return;
  }
  run_on_stopping_thread([this] {
    tell_of_stop();
    shut_down();
  });
}

void ProcedureExecutor::run_on_stopping_thread(const std::function<void()>& stop) {
  try {
    engine_->stopping = std::thread(stop);
  } catch (const std::system_error&) {  // the machine has no thread left
    stop();
  }
}

// Does not block.
void ProcedureExecutor::tell_of_stop() {
  EngineCore& core = engine_->core;
  const EngineThread mark(&core);
  // No caller can begin to wait from now on. The present waiters are answered here, because what
  // they wait for may take as long as a step does.
  {
    Effects effects;
    {
      StateLock lock(core);
      core.give_up_loading(effects);
    }
    engine_->publisher.perform(effects);
  }
  engine_->results.answer_all(goes_on_in_next_life());
  {
    Effects effects;
    {
      StateLock lock(core);
      refuse_waiting_orders(core, core.unavailable(), effects);
    }
    engine_->publisher.perform(effects);
  }
  engine_->offloads.stop_all();
}

void ProcedureExecutor::shut_down() {
  EngineCore& core = engine_->core;
  const EngineThread mark(&core);
  engine_->background_load.join();  // it ends soon, and perhaps opens the gate
  engine_->gate.abandon();          // if start() was never called
  engine_->timers.stop();
  core.scheduler.stop();
  engine_->workers.stop();
  core.age.look();  // all dates of this life are before the gap that follows it
  {
    Effects effects;
    {
      StateLock lock(core);
      if (core.state.ids.has_bound() && core.state.life.store_failure.ok()) {
        core.state.ids.write_watermark(core.state.ids.next(), {}, effects);
        core.state.garbage.delete_dropped(effects);
      }
    }
    engine_->publisher.perform(effects);
  }
  core.store.close();  // drains: what was handed over is published
  engine_->wake_port->close();
  core.pool->drain_and_stop();
  engine_->workers.bury();
  std::vector<std::function<void()>> waiters;
  {
    StateLock lock(engine_->core);
    engine_->core.state.life.stopped = true;
    waiters.swap(engine_->stop_waiters);
  }
  for (const auto& answer : waiters) answer();
}

}  // namespace pv2
