// SPDX-License-Identifier: Apache-2.0
//
// The small verbs that several rooms need.

#include "core/engine_core.h"

#include <pv2/scheduler/master_procedure_scheduler.h>

#include <algorithm>

#include "core/effects.h"
#include "core/next_poll.h"
#include "core/state_lock.h"
#include "core/worker_run.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/limits.h"
#include "pv2/engine/procedure_registry.h"
#include "records/header_codec.h"
#include "records/state_codec.h"

namespace pv2 {
namespace {

ExecutorOptions with_defaults(ExecutorOptions options) {
  if (!options.clock) options.clock = std::make_shared<SystemClock>();
  if (!options.scheduler) {
    options.scheduler = std::make_unique<MasterProcedureScheduler>(*options.clock);
  }
  return options;
}

}  // namespace

EngineCore::EngineCore(ExecutorOptions executor_options)
    : owned_options(std::make_unique<ExecutorOptions>(with_defaults(std::move(executor_options)))),
      options(*owned_options),
      store(*options.store),
      store_limits(store.limits()),
      scheduler(*options.scheduler),
      clock(*options.clock),
      pool(TaskPool::make(options.workers == 0 ? 0 : std::max(1U, options.pool_threads), this)),
      keeps_records(options.store->keeps_records()),
      running(std::max(1U, options.workers)),
      runs(std::make_unique<WorkerRun[]>(running.size())),
      store_name(options.store->name()),
      age(clock),
      opened(clock.wall_now()),
      shares(keeps_records ? nullptr : std::make_unique<Share[]>(running.size())),
      share_count(keeps_records ? 0 : running.size()),
      state(options, age) {}

EngineCore::~EngineCore() = default;

// Two lives that share their first id have issued none between them; they differ in `opened`.
Random EngineCore::random_of_life(std::size_t worker) {
  Random seed(options.seed);
  const auto mix = [&seed](std::uint64_t fact) { seed = Random(seed.next() ^ fact); };
  {
    StateLock lock(*this);
    mix(state.ids.first());
  }
  mix(static_cast<std::uint64_t>(opened.time_since_epoch().count()));
  mix(worker);
  return seed;
}

TypeCounts& EngineCore::counts_of(const ProcedureType& type) {
  if (type.index >= state.counts.size()) state.counts.resize(type.index + 1);
  TypeCounts& counts = state.counts[type.index];
  if (counts.type.empty()) counts.type = type.name;
  PV2_ASSERT(counts.type == type.name, "each type has counters of its own");
  return counts;
}

Status EngineCore::unavailable() const {
  if (!state.life.store_failure.ok()) return state.life.store_failure;
  if (state.life.stopping) {
    return Status(StatusCode::kStopping, "the executor on " + store_name + " is stopping");
  }
  return Status();
}

void EngineCore::give_up_loading(Effects& effects) {
  PV2_ASSERT(is_halted.load(std::memory_order_relaxed), "loading is given up after a halt");
  if (!loading.runs()) return;
  loading.become(Loading::State::kGivenUp);
  effects.answers.emplace_back([this] { loading.release(); });
}

Status EngineCore::why_not_loaded() const {
  if (loading.is_complete()) return Status();
  if (Status stopped = unavailable(); !stopped.ok()) return stopped;
  return Status(StatusCode::kUnavailable, store_name + " is still being loaded; try again");
}

Execution* EngineCore::find(ProcedureId id) {
  Execution* const found = state.live.find(id);
  if (found == nullptr) return nullptr;
  PV2_ASSERT(found->id == id, "a procedure is in the table under its id");
  return found->leaves() ? nullptr : found;
}

void EngineCore::settle(Execution& execution, Disposition disposition) {
#ifdef PV2_AUDITS_ITSELF
  constexpr std::size_t kFew = 256;  // so that a debug build does not take too long
  PV2_ASSERT(state.to_settle.size() > kFew || !state.to_settle.contains(execution),
             "an execution is settled once between two flushes");
#endif
  state.to_settle.push_back(execution, disposition);
}

void EngineCore::lock_state() PV2_NO_THREAD_SAFETY_ANALYSIS { waiting_for_state.lock(state_mutex); }

void EngineCore::widen() PV2_NO_THREAD_SAFETY_ANALYSIS {
  if (std::exchange(has_shares, true)) return;
  looks.count_wide();
  for (std::size_t i = 0; i < share_count; ++i) shares[i].share_mutex.lock();
}

void EngineCore::unlock_state() PV2_NO_THREAD_SAFETY_ANALYSIS {
  if (std::exchange(has_shares, false)) {
    for (std::size_t i = 0; i < share_count; ++i) shares[i].share_mutex.unlock();
  }
  state_mutex.unlock();
}

void EngineCore::report_wait(Execution& waiter, Execution& producer, WaitLink::Why why) {
  PV2_ASSERT(&waiter != &producer, "no procedure waits for itself");
  flush();  // the scheduler looks for a cycle at once, in what it has been told
  scheduler.report_wait(waiter, producer, why);
  waiter.wait.is_reported = true;
}

void EngineCore::end_reported_wait(Execution& waiter) {
  if (!waiter.wait.is_reported) return;
  waiter.wait.is_reported = false;
  scheduler.end_reported_wait(waiter);
}

void EngineCore::queue(Execution& execution, Disposition disposition) {
  PV2_ASSERT(execution.wait.timer_index == Wait::kNoTimer, "a queued procedure has no timer");
  PV2_ASSERT(!is_finished(execution.record.state), "a procedure that has ended is not queued");
  end_reported_wait(execution);
  execution.phase.move_to(Phase::kQueued);
  settle(execution, disposition);
}

void EngineCore::flush() {
  if (state.to_settle.empty()) return;
  const SchedulerCaller caller{.own = NextPoll::takes_up_to(this), .seat = scheduler_seat()};
  NextPoll::take(this, scheduler.settle(std::move(state.to_settle), caller));
}

void EngineCore::wake(ProcedureId id, std::uint32_t epoch) {
  Execution* const execution = find(id);
  if (execution == nullptr) return;
  if (execution->phase == Phase::kInFlight) widen();  // a worker may go on with it
  if (execution->wait.epoch != epoch) return;
  switch (execution->phase) {
    case Phase::kWaiting:
      state.timers.cancel(*execution);
      flush();  // a settle() in this section may have given back its locks
      queue(*execution, execution->holds_locks() ? Disposition::kFront : Disposition::kBack);
      return;
    case Phase::kInFlight:
      execution->wait.wake_pending = true;  // seen when the record is published: never lost
      return;
    case Phase::kInserting:
    case Phase::kQueued:  // it runs anyway
    case Phase::kIdle:
    case Phase::kDropping:
      return;
  }
}

bool EngineCore::claim_deadlock_task() {
  if (!state.deadlock_search.is_on || state.deadlock_search.is_expected ||
      !expect_deadlock_search) {
    return false;
  }
  if (!scheduler.suspects_cycles() && !scheduler.has_new_cycles()) return false;
  // A stopped engine leaves cycles to the next run. Otherwise it would search without an end.
  if (!unavailable().ok()) return false;
  return state.deadlock_search.is_expected = true;
}

void EngineCore::set_limit(const ResourceKey& key, std::optional<std::uint32_t> limit) {
  if (limit) {
    state.limits.insert_or_assign(key, *limit);
  } else {
    state.limits.erase(key);
  }
  if (limit && key.cls == ResourceClass::kType) limits_types.store(true, std::memory_order_relaxed);
  scheduler.set_limit(key, limit);
}

void EngineCore::count_for_its_type(Execution& execution) {
  if (execution.type == nullptr || !limits_types.load(std::memory_order_relaxed)) return;
  ResourceKey key{ResourceClass::kType, execution.type->name};
  StateLock lock(*this, Width::kNarrow);
  if (state.limits.contains(key)) execution.edit_locks().key(std::move(key), LockMode::kShared);
}

void EngineCore::stop_work(Execution& execution) {
  if (execution.work() != nullptr) execution.work()->stop(state.leftovers.work);
}

void EngineCore::abandon_waits(Execution& execution) {
  stop_work(execution);
  state.timers.cancel(execution);
  PV2_ASSERT(execution.wait.timer_index == Wait::kNoTimer, "a cancelled timer has left the queue");
  end_reported_wait(execution);
  ++execution.wait.epoch;
  execution.wait.wake_pending = false;
  execution.wait.timed_out = false;
  if (execution.rare_of_run.is_made()) execution.rare_of_run.edit().interrupted_due = kNotDue;
  if (execution.inbox) execution.inbox->wanted.clear();
  if (execution.object) state.leftovers.objects.push_back(std::move(execution.object));
  for (AwaitSlot* const slot : execution.slots) state.leftovers.slots.emplace_back(slot);
  execution.slots.clear();
}

void EngineCore::arm_timer(Execution& execution, Effects& effects) {
  PV2_ASSERT(execution.record.deadline.has_value(), "a timer needs a deadline");
  PV2_ASSERT(execution.phase == Phase::kWaiting,
             "a timer is armed only for a procedure that waits");
  PV2_ASSERT(execution.wait.due != kNotDue, "a wait with a deadline has a due time");
  if (state.timers.arm(execution, execution.wait.due)) effects.timers_moved = true;
  PV2_ASSERT(state.timers.has(execution), "an armed timer is in the queue");
}

void EngineCore::date_end(const Execution& execution, Transition& next, std::size_t beside) const {
  if (!execution.is_root() || !is_finished(next.state)) return next.clear_end();
  next.ended_age = age.now();
  next.audited = execution.audited;
  next.in_results = false;
  if (!keeps_records) return;  // a store without records keeps no rows to move
  const std::size_t bytes = header_bytes_max(execution) + state_bytes_max(execution, next) +
                            beside + limits::kLaterRecordBytes;
  // The rows of a quarantined tree may be damaged; they stay where they are. A worker does not look
  // at the domain, which others change under the mutex: what it has in flight was taken before.
  const bool is_damaged = execution.phase != Phase::kInFlight && execution.is_quarantined();
  const bool may_move = bytes <= store_limits.batch_bytes && !is_damaged;
  // A result that is in Space::kResult already did fit, and it hardly grows.
  next.in_results = execution.record.in_results || may_move;
}

void EngineCore::begin_wait(Duration patience, Transition& next) const {
  next.patience = std::max(patience, Duration::zero());
  next.due = later(clock.steady_now(), next.patience);
  PV2_ASSERT(next.due != kNotDue, "a wait that begins has a due time");
  next.deadline = later(clock.wall_now(), next.patience);
}

void EngineCore::go_on_waiting(const Execution& execution, Transition& next) const {
  if (!execution.record.deadline) return next.stop_waiting();
  go_on_waiting(execution.wait.due, next);
}

void EngineCore::go_on_waiting(SteadyTime due, Transition& next) const {
  PV2_ASSERT(due != kNotDue, "a wait with a deadline has a due time");
  const SteadyTime now = clock.steady_now();
  next.patience = due > now ? due - now : Duration::zero();
  PV2_ASSERT(next.patience >= Duration::zero(), "the patience of a wait is not negative");
  next.due = due;
  next.deadline = later(clock.wall_now(), next.patience);
}

Duration left_after_restart(WallTime deadline, Duration patience, WallTime now) noexcept {
  const Duration most = std::max(patience, Duration::zero());
  if (deadline <= now) return Duration::zero();
  // `deadline - now` may overflow a Duration, so `most` is compared first.
  return later(now, most) <= deadline ? most : deadline - now;
}

}  // namespace pv2
