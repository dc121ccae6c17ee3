// SPDX-License-Identifier: Apache-2.0
//
// The public face: every verb is one call into the part that does it. Blocking verbs wait on a
// latch of their own.

#include "pv2/engine/procedure_executor.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <semaphore>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "check_limits.h"
#include "engine.h"
#include "explain.h"
#include "listing.h"
#include "recovery.h"
#include "row_bindings.h"
#include "stuck_detector.h"

namespace pv2 {
namespace {

// What a blocking call waits for. Shared by the caller and the thread that answers, which may still
// be inside release() when the caller has gone on.
template <class T>
struct Latch {
  std::counting_semaphore<> arrived{0};
  std::optional<T> value;
  std::atomic<bool> has_value{false};  // release and acquire: `value` is visible to who sees it

  void set(T result) {
    value.emplace(std::move(result));
    has_value.store(true, std::memory_order_release);
    arrived.release();
  }
  void wait() {
    while (!has_value.load(std::memory_order_acquire)) arrived.acquire();
  }
};

// As the engine counts; what is too long for that is the longest that there is.
Duration to_duration(std::chrono::milliseconds time) {
  constexpr auto kLongest = std::chrono::floor<std::chrono::milliseconds>(Duration::max());
  if (time > kLongest) return Duration::max();
  return std::max(time, std::chrono::milliseconds::zero());
}

// Waits until the value is there or `timeout`, which is not negative, has passed by `clock`; false
// then. A manual clock says when it was moved, and who waits for it looks.
template <class T>
bool arrives_in_time(const std::shared_ptr<Latch<T>>& latch, Clock& clock, Duration timeout) {
  const SteadyTime due = later(clock.steady_now(), timeout);
  if (!clock.is_manual()) {
    // A semaphore waits by nanoseconds, of which a time that is far away has too many.
    constexpr Duration kAtOnce = std::chrono::hours(24);
    for (SteadyTime now = clock.steady_now();
         now < due && !latch->has_value.load(std::memory_order_acquire); now = clock.steady_now()) {
      (void)latch->arrived.try_acquire_for(std::min(due - now, kAtOnce));
    }
    return latch->has_value.load(std::memory_order_acquire);
  }
  const std::uint64_t subscription = clock.subscribe([latch] { latch->arrived.release(); });
  while (!latch->has_value.load(std::memory_order_acquire) && clock.steady_now() < due) {
    latch->arrived.acquire();
  }
  clock.unsubscribe(subscription);
  return latch->has_value.load(std::memory_order_acquire);
}

Status check_retry(const RetryPolicy& retry) {
  const auto refused = [](const std::string& what) {
    return Status(StatusCode::kInvalidArgument, "ExecutorOptions.retry: RetryPolicy::" + what);
  };
  if (retry.base < Duration::zero()) return refused("base is negative; give the first delay");
  if (retry.cap < Duration::zero()) return refused("cap is negative; give the longest delay");
  if (retry.jitter_percent > 100) {
    return refused("jitter_percent is " + std::to_string(retry.jitter_percent) +
                   "; at most as much again as the delay itself (100) is added");
  }
  return Status();
}

Status stop_on_engine_thread() {
  return Status(StatusCode::kFailedPrecondition,
                "stop() was called on a thread of the executor, which it would wait for; call it "
                "elsewhere");
}

// Why it takes so long to stop.
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
  if (who.empty()) who = core.store_name + " has not written yet what is queued; ";
  return Status(StatusCode::kDeadlineExceeded,
                "the executor has not stopped yet: " + who +
                    "it stops as soon as that is over, and stop() may be called again");
}

// Whom to tell, or nobody.
template <class Answer>
std::function<void(Answer)> or_nobody(std::function<void(Answer)> done) {
  if (done) return done;
  return [](const auto& /*answer*/) {};
}

Status on_engine_thread(std::string_view verb) {
  return Status(
      StatusCode::kFailedPrecondition,
      std::string(verb) +
          " would block a thread of the executor, which may be the one that it waits for; use the "
          "asynchronous form");
}

}  // namespace

// Blocks until the answer is there; with a store that has no thread of its own, by doing its work.
template <class Latch>
auto ProcedureExecutor::await(Latch& latch) {
  while (engine_->core.store.pump() && !latch.has_value.load(std::memory_order_acquire)) {
  }
  latch.wait();
  return *std::move(latch.value);
}

Result<std::unique_ptr<ProcedureExecutor>> ProcedureExecutor::open(ExecutorOptions options) {
  if (!options.store) {
    return Status(StatusCode::kInvalidArgument,
                  "ExecutorOptions.store is missing; pv2::leveldb(path) or pv2::noop() makes one");
  }
  if (!options.registry.status().ok()) return options.registry.status();
  if (options.retention.ttl != Duration::zero() &&
      options.retention.ttl < std::chrono::minutes(30)) {
    return Status(StatusCode::kInvalidArgument,
                  "ExecutorOptions.retention.ttl is shorter than 30 minutes: a client that still "
                  "retries would have its work done twice");
  }
  if (Status status = check_retry(options.retry); !status.ok()) return status;
  if (options.deadlock_policy > DeadlockPolicy::kFailYoungest) {
    return Status(StatusCode::kInvalidArgument,
                  "ExecutorOptions.deadlock_policy has a value that DeadlockPolicy does not have");
  }
  if (options.unreadable > UnreadableRecords::kSetAside) {
    return Status(StatusCode::kInvalidArgument,
                  "ExecutorOptions.unreadable has a value that UnreadableRecords does not have");
  }
  if (options.stuck_after < Duration::zero()) {
    return Status(StatusCode::kInvalidArgument,
                  "ExecutorOptions.stuck_after is negative; 0 means that no step is reported");
  }
  if (Status status = check_row_bindings(options.row_bindings); !status.ok()) return status;
  if (Status status = check_limits_of(options); !status.ok()) return status;
  if (options.reserved_workers != 0 && options.reserved_workers >= options.workers) {
    return Status(StatusCode::kInvalidArgument,
                  "ExecutorOptions.reserved_workers is " +
                      std::to_string(options.reserved_workers) + " of " +
                      std::to_string(options.workers) +
                      " workers; at least one has to be left for other work");
  }
  auto engine = std::make_unique<Engine>(std::move(options));
  if (Status status = engine->core.pool->started(); !status.ok()) return status;
  if (Status status = engine->core.store.recover_lease(engine->publisher); !status.ok())
    return status;
  Effects effects;
  const Status status = Recovery(engine->core).load(effects);
  std::unique_ptr<ProcedureExecutor> executor(new ProcedureExecutor(std::move(engine)));
  if (!status.ok()) return status;
  if (Status made = executor->engine_->make_threads(); !made.ok()) return made;
  // Ids are issued only below a durable bound; this also proves that the store can be written,
  // before anything goes on.
  const auto latch = std::make_shared<Latch<Status>>();
  EngineCore& core = executor->engine_->core;
  Effects bound;
  {
    StateLock lock(core);
    core.write_watermark(
        core.state.next_id + kIdBlock, [latch](const Status& written) { latch->set(written); },
        bound);
  }
  executor->engine_->publisher.perform(bound);
  const Status written = executor->await(*latch);
  // Also when it failed: the store gives back, and so frees, what recovery wants to commit.
  executor->engine_->publisher.perform(effects);
  if (!written.ok()) return written;
  {
    StateLock lock(core);
    core.state.resolves_deadlocks = true;
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
    for (const auto& [id, execution] : core.state.live) left.emplace_back(execution);
    core.state.live.clear();
  }
  // Children before parents: the scheduler's entries point upwards.
  std::sort(left.begin(), left.end(), [](const auto& a, const auto& b) { return a->id > b->id; });
  EntryList entries;
  for (const auto& execution : left) {
    core.scheduler.withdraw(*execution);
    entries.push_back(*execution, Disposition::kComplete);
  }
  core.scheduler.settle(std::move(entries));
}

void ProcedureExecutor::start() {
  {
    StateLock lock(engine_->core);
    if (engine_->core.state.stopping || std::exchange(engine_->core.state.started, true)) return;
  }
  if (engine_->core.options.workers == 0) return;
  engine_->timers.start();
  engine_->gate.open();
}

Result<Submitted> ProcedureExecutor::submit_and_wait(std::string_view type,
                                                     std::unique_ptr<Procedure> procedure,
                                                     SubmitOptions options) {
  if (EngineThread::belongs_to(&engine_->core)) return on_engine_thread("submit()");
  const auto latch = std::make_shared<Latch<Result<Submitted>>>();
  engine_->admission.submit(
      type, std::move(procedure), std::move(options),
      {.answer = [latch](Result<Submitted> result) { latch->set(std::move(result)); },
       .on_pool = false});
  return await(*latch);
}

void ProcedureExecutor::submit_erased(std::string_view type, std::unique_ptr<Procedure> procedure,
                                      SubmitOptions options, SubmitCallback done) {
  engine_->admission.submit(type, std::move(procedure), std::move(options),
                            {.answer = or_nobody(std::move(done))});
}

Result<ProcedureResult> ProcedureExecutor::wait(ProcedureId id,
                                                std::optional<std::chrono::milliseconds> timeout) {
  if (EngineThread::belongs_to(&engine_->core)) return on_engine_thread("wait()");
  const auto latch = std::make_shared<Latch<Result<ProcedureResult>>>();
  const std::uint64_t ticket = engine_->results.wait(
      id, [latch](Result<ProcedureResult> result) { latch->set(std::move(result)); }, false);
  if (timeout && ticket != 0 &&
      !arrives_in_time(latch, engine_->core.clock, to_duration(*timeout))) {
    if (engine_->results.withdraw(id, ticket)) {
      return Status(StatusCode::kDeadlineExceeded,
                    "procedure " + std::to_string(id.value) + " had not ended after " +
                        std::to_string(timeout->count()) + " ms; it goes on");
    }
  }
  latch->wait();
  return *std::move(latch->value);
}

void ProcedureExecutor::wait_async(ProcedureId id, ResultCallback done) {
  if (done) engine_->results.wait(id, std::move(done), true);
}

void ProcedureExecutor::acknowledge_async(ProcedureId id, std::function<void(Status)> done) {
  engine_->results.acknowledge(id, {.answer = or_nobody(std::move(done))});
}

Status ProcedureExecutor::acknowledge(ProcedureId id) {
  if (EngineThread::belongs_to(&engine_->core)) return on_engine_thread("acknowledge()");
  const auto latch = std::make_shared<Latch<Status>>();
  engine_->results.acknowledge(
      id, {.answer = [latch](const Status& status) { latch->set(status); }, .on_pool = false});
  return await(*latch);
}

Status ProcedureExecutor::abort(ProcedureId id, AbortOptions options) {
  if (EngineThread::belongs_to(&engine_->core)) return on_engine_thread("abort()");
  const auto latch = std::make_shared<Latch<Status>>();
  engine_->messages.abort(id, std::move(options),
                          [latch](const Status& status) { latch->set(status); });
  return await(*latch);
}

void ProcedureExecutor::abort_async(ProcedureId id, AbortOptions options,
                                    std::function<void(Status)> done) {
  engine_->messages.abort(id, std::move(options),
                          [this, done = or_nobody(std::move(done))](const Status& status) {
                            engine_->core.pool->post([done, status] { done(status); });
                          });
}

Status ProcedureExecutor::signal(ProcedureId id, std::string name, std::string payload) {
  if (EngineThread::belongs_to(&engine_->core)) return on_engine_thread("signal()");
  const auto latch = std::make_shared<Latch<Status>>();
  engine_->messages.signal(id, std::move(name), std::move(payload),
                           [latch](const Status& status) { latch->set(status); });
  return await(*latch);
}

void ProcedureExecutor::signal_async(ProcedureId id, std::string name, std::string payload,
                                     std::function<void(Status)> done) {
  engine_->messages.signal(id, std::move(name), std::move(payload),
                           [this, done = or_nobody(std::move(done))](const Status& status) {
                             engine_->core.pool->post([done, status] { done(status); });
                           });
}

Status ProcedureExecutor::repair(ProcedureId id, RepairVerb verb, RepairNote note) {
  if (EngineThread::belongs_to(&engine_->core)) return on_engine_thread(to_string(verb));
  const auto latch = std::make_shared<Latch<Status>>();
  engine_->repairs.repair(id, verb, std::move(note),
                          [latch](const Status& status) { latch->set(status); });
  return await(*latch);
}

void ProcedureExecutor::repair_async(ProcedureId id, RepairVerb verb, RepairNote note,
                                     std::function<void(Status)> done) {
  engine_->repairs.repair(id, verb, std::move(note),
                          [this, done = or_nobody(std::move(done))](const Status& status) {
                            engine_->core.pool->post([done, status] { done(status); });
                          });
}

Result<std::vector<std::string>> ProcedureExecutor::preview(ProcedureId id, RepairVerb verb) const {
  return engine_->repairs.preview(id, verb);
}

Result<std::vector<AuditEntry>> ProcedureExecutor::audit(ProcedureId id) const {
  return engine_->repairs.audit(id);
}

Result<ProcedureInfo> ProcedureExecutor::describe(ProcedureId id) const {
  return describe_procedure(engine_->core, id);
}

ProcedurePage ProcedureExecutor::list(const ListFilter& filter, ProcedureId after,
                                      std::size_t limit) const {
  return list_procedures(engine_->core, filter, after, limit);
}

std::vector<ProcedureInfo> ProcedureExecutor::list() const {
  return list({}, {}, SIZE_MAX).procedures;
}

Result<std::vector<HistoryEntry>> ProcedureExecutor::history(ProcedureId id) const {
  return history_of(engine_->core, id);
}

std::vector<RunningProcedure> ProcedureExecutor::running() const {
  return running_procedures(engine_->core);
}

Result<ListenerId> ProcedureExecutor::add_listener(ProcedureListener listener) {
  return engine_->listeners.add(std::move(listener));
}

void ProcedureExecutor::remove_listener(ListenerId listener) {
  engine_->listeners.remove(listener);
}

Result<ChoreId> ProcedureExecutor::add_chore(std::string name, Duration period,
                                             std::function<void()> work) {
  return engine_->chores.add(std::move(name), period, std::move(work));
}

void ProcedureExecutor::remove_chore(ChoreId chore) { engine_->chores.remove(chore); }

Result<Explanation> ProcedureExecutor::explain(ProcedureId id) const {
  return pv2::explain(engine_->core, id);
}

std::vector<UnreadableRecord> ProcedureExecutor::unreadable() const {
  StateLock lock(engine_->core);
  std::vector<UnreadableRecord> records;
  for (const auto& [id, record] : engine_->core.state.unreadable) records.push_back(record);
  return records;
}

std::size_t ProcedureExecutor::live_procedures() const {
  StateLock lock(engine_->core);
  return engine_->core.state.live.size();
}

std::vector<LockInfo> ProcedureExecutor::locks() const {
  std::vector<LockInfo> infos = engine_->core.scheduler.locks();
  std::vector<LockInfo::Party*> parties;
  for (LockInfo& info : infos) {
    for (auto* const list : {&info.holders, &info.waiters}) {
      for (LockInfo::Party& party : *list) parties.push_back(&party);
    }
  }
  // In sections, like the listing itself: nobody waits for the state mutex for long.
  constexpr std::size_t kSectionMax = 1024;
  for (std::size_t begin = 0; begin < parties.size(); begin += kSectionMax) {
    const std::size_t count = std::min(kSectionMax, parties.size() - begin);
    StateLock lock(engine_->core);
    for (LockInfo::Party* const party : std::span(parties).subspan(begin, count)) {
      const Execution* const execution = engine_->core.find(party->id);
      if (execution != nullptr) party->type = execution->name_of_type();
    }
  }
  return infos;
}

std::vector<TypeCounts> ProcedureExecutor::counts() const {
  StateLock lock(engine_->core);
  std::vector<TypeCounts> counts = engine_->core.state.counts;
  std::erase_if(counts, [](const TypeCounts& each) { return each.type.empty(); });
  return counts;
}

std::vector<WaitCycle> ProcedureExecutor::deadlocks() const {
  return engine_->core.scheduler.cycles();
}

Status ProcedureExecutor::set_limit(const ResourceKey& key, std::optional<std::uint32_t> limit) {
  if (EngineThread::belongs_to(&engine_->core)) return on_engine_thread("set_limit()");
  if (Status status = check_key(key); !status.ok()) return status.with_context("set_limit()");
  const auto latch = std::make_shared<Latch<Status>>();
  auto commit = std::make_unique<LimitCommit>();
  commit->key = key;
  commit->limit = limit;
  commit->answer = [latch](const Status& status) { latch->set(status); };
  if (limit) {
    std::string row;
    encode_limit(*limit, row);
    commit->batch.put(Space::kEngine, limit_key(key), row);
  } else {
    commit->batch.erase(Space::kEngine, limit_key(key));
  }
  Effects effects;
  {
    StateLock lock(engine_->core);
    if (Status status = engine_->core.unavailable(); !status.ok()) return status;
    const auto& limited = engine_->core.state.limits;
    if (limit && limited.size() >= limits::kLimitedKeys && !limited.contains(key)) {
      return Status(StatusCode::kResourceExhausted,
                    std::to_string(limited.size()) +
                        " keys and types have a limit, and more are "
                        "not kept; end one with nullopt first");
    }
    effects.commits.push_back(*commit.release());
  }
  engine_->publisher.perform(effects);
  return await(*latch);
}

Status ProcedureExecutor::set_type_limit(std::string_view type,
                                         std::optional<std::uint32_t> limit) {
  if (engine_->core.options.registry.find(type) == nullptr) {
    return Status(StatusCode::kInvalidArgument,
                  "procedure type '" + shortened(type) + "' is not registered");
  }
  return set_limit({ResourceClass::kType, std::string(type)}, limit);
}

Status ProcedureExecutor::health() const {
  StateLock lock(engine_->core);
  return engine_->core.state.store_failure;
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
    const Workers::Round round = engine_->workers.run_once(max_steps - steps, random);
    steps += round.steps;
    progress = round.polled;
    progress = engine_->core.store.pump() || progress;
    progress = engine_->core.pool->run_one() || progress;
    progress = engine_->timers.fire_due() != 0 || progress;
    if (!progress) progress = engine_->deadlocks.search_at_idle();
  }
  engine_->workers.bury();
  if (entry == HostThread::Entry::kFirst && host.leave()) shut_down();
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
    StateLock lock(core);
    if (core.state.stopped) return Status();
    first = !std::exchange(core.state.stopping, true);
    core.recall_runs();
    core.state.stop_waiters.emplace_back([latch] { latch->set(Status()); });
  }
  if (first) begin_to_stop();
  return arrives_in_time(latch, core.clock, timeout) ? Status() : what_still_runs(core);
}

// On a thread of its own, as a step, offloaded work or the disk may take longer than the caller
// wants to wait. An executor without threads has nothing that goes on while its host does not.
void ProcedureExecutor::begin_to_stop() {
  const auto stop = [this] {
    tell_of_stop();
    shut_down();
  };
  if (engine_->core.options.workers == 0) {
    tell_of_stop();
    if (engine_->host_thread.stop()) shut_down();
    return;
  }
  try {
    engine_->stopping = std::thread(stop);
  } catch (const std::system_error&) {  // the machine has no thread left
    stop();
  }
}

// Waits for nobody.
void ProcedureExecutor::tell_of_stop() {
  EngineCore& core = engine_->core;
  const EngineThread mark(&core);
  // Nobody can begin to wait any more, and what they wait for may take as long as a step does.
  engine_->results.answer_all(
      Status(StatusCode::kStopping,
             "the executor is stopping; the procedure goes on when its store is opened again, "
             "unless it has just ended"));
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
  engine_->gate.abandon();  // where start() was never called
  engine_->timers.stop();
  core.scheduler.stop();
  engine_->workers.stop();
  {
    Effects effects;
    {
      StateLock lock(core);
      if (core.state.loaded && core.state.store_failure.ok()) {
        core.write_watermark(core.state.next_id, {}, effects);
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
    StateLock lock(core);
    core.state.stopped = true;
    waiters.swap(core.state.stop_waiters);
  }
  for (const auto& answer : waiters) answer();
}

}  // namespace pv2
