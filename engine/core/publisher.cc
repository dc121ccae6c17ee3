// SPDX-License-Identifier: Apache-2.0
//
// One critical section publishes a bounded number of requests. What must happen outside of it is in
// Effects.

#include "core/publisher.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/effects.h"
#include "core/host_calls.h"
#include "core/next_poll.h"
#include "core/state_lock.h"
#include "model/tree_work.h"
#include "pv2/engine/executor_options.h"

namespace pv2 {
namespace {

// A list of this length takes longer to publish than a worker takes to wake up.
constexpr std::size_t kWorthAnotherThread = 256;
// If the committer has more to write: a shorter list is published before another thread could have
// taken it.
constexpr std::size_t kWorthLeaving = 8;
// How many requests one critical section publishes at most. Other threads wait for the mutex, and
// workers for the steps that the section queues.
constexpr std::size_t kSection = 128;
// Callbacks of the host that take no longer than the run of a worker.
constexpr std::size_t kCallsFew = 64;
// How many rows one batch deletes after a tree has ended: cheap compared with the sync.
constexpr std::size_t kGarbageChunk = 512;

}  // namespace

// A worker looks for something committed after it has begun to count as idle, after it has ceased
// to, and after it has ceased to count as one in a short run. So either the worker finds this list,
// or this thread sees what the worker counts as.
void Publisher::receive(CommitList finished, bool more_follows) noexcept {
  const EngineThread mark(&core_);
  const bool may_be_left = finished.size() >= (more_follows ? kWorthLeaving : kWorthAnotherThread);
  bool is_first = false;  // no earlier list waits
  bool in_vain = false;   // one waits that was left to a worker
  {
    MutexLock lock(committed_mutex_);
    is_first = committed_.empty();
    in_vain = !is_first && !publishing_;
    committed_.splice_back(std::move(finished));
    more_follows_ = more_follows;
    note_committed();
  }
  if (in_vain) core_.short_runs.forget();
  if (may_be_left && is_first) {
    if (core_.idle_workers.load() != 0) return core_.scheduler.nudge();
    if (more_follows && core_.short_runs.any()) return;
  }
  publish_committed();
}

void Publisher::publish_committed() {
  for (;;) {
    CommitList taken;
    {
      MutexLock lock(committed_mutex_);
      if (publishing_ || committed_.empty()) return;
      publishing_ = true;
      taken = std::exchange(committed_, {});
      note_committed();
    }
    publish(std::move(taken));
    MutexLock lock(committed_mutex_);
    publishing_ = false;
    note_committed();
    if (more_follows_) return;  // a worker does not publish for as long as the store writes
  }
}

// The callbacks that this function calls may make further requests durable. It publishes these
// after those of `finished`, and calls the callbacks that follow from them. After `caused_most` of
// these callbacks the pool calls the rest, so this thread comes back from callbacks that cause each
// other without an end.
void Publisher::publish(CommitList finished) {
  std::size_t own = finished.size();  // of the first requests, how many are left
  const std::size_t caused_most = std::max(kCausedCallsMost, 4 * own);
  std::size_t caused = 0;
  std::vector<TreeWork*> sorted;
  // Works begin when every tree goes on, so not before the store is loaded.
  bool works = !core_.loading.runs() && core_.tree_work_waits.load() &&
               core_.tree_work_waits.exchange(false);
  while (!finished.empty() || works) {
    Effects effects;
    const bool are_caused = own == 0;
    {
      StateLock lock(core_, Width::kNarrow);
      const bool may_work = !core_.loading.runs();
      for (TreeWork* const work : sorted) hooks_.go_on_with_sorted(core_, *work);
      sorted.clear();
      for (std::size_t i = 0; i < kSection && !finished.empty() && core_.looks.have_room(); ++i) {
        apply(static_cast<EngineRequest&>(*finished.pop_front()), effects);
        if (own != 0) --own;
        if (may_work) hooks_.do_tree_works(core_, effects);
      }
      works = may_work && hooks_.do_tree_works(core_, effects);
      hooks_.carry_out_waiting_orders(core_, effects);
      hooks_.audit_now_and_then(core_);
    }
    if (are_caused) caused += effects.host_calls.size();
    finished.splice_back(act_on(
        effects, caused > caused_most ? HostIsCalledBy::kPool : HostIsCalledBy::kThisThread));
    if (!effects.to_sort.empty()) works = true;
    if (!works) continue;
    give_up_next_poll();
    core_.store.wake_writer();  // what this thread has queued does not wait for the rest
    for (TreeWork* const work : effects.to_sort) hooks_.sort_collected(*work);
    sorted = std::move(effects.to_sort);
    if (core_.between_sections) core_.between_sections();
    core_.waiting_for_state.give_way();
  }
}

void Publisher::perform(Effects& effects) {
  CommitList durable = act_on(effects, HostIsCalledBy::kThisThread);
  if (!durable.empty() && is_in_callback()) return publish_after_callback(std::move(durable));
  publish(std::move(durable));
}

bool Publisher::is_in_callback() const noexcept { return kept_for_publication(&core_) != nullptr; }

void Publisher::publish_after_callback(CommitList requests) {
  CommitList* const kept = kept_for_publication(&core_);
  PV2_ASSERT(kept != nullptr, "this thread is in a callback of the host");
  kept->splice_back(std::move(requests));
}

bool Publisher::publish_kept() {
  CommitList* const kept = kept_for_publication(&core_);
  if (kept == nullptr || kept->empty()) return false;
  publish(std::exchange(*kept, {}));
  return true;
}

CommitList Publisher::call_host(std::span<Task> calls) {
  LeftByHost left;
  pv2::call_host(&core_, calls, left);
  if (!left.calls.empty()) call_host_on_pool(std::move(left.calls));
  return std::move(left.durable);
}

void Publisher::call_host_on_pool(TaskList calls) {
  core_.pool->post([this, calls = std::make_unique<TaskList>(std::move(calls))] {
    publish(call_host(*calls));  // as this thread would have done
  });
}

// In one critical section of the scheduler, and without the state mutex.
void Publisher::admit_entered(Effects& effects) {
  EntryList roots;
  effects.entered.for_each([&](CommitRequest& request) {
    roots.push_back(*static_cast<InsertCommit&>(request).execution);
  });
  core_.scheduler.admit(std::move(roots));
  effects.entered.for_each([](CommitRequest& request) {
    auto& commit = static_cast<InsertCommit&>(request);
    commit.holds_locks = commit.execution->holds_locks();
  });
  effects.commits.splice_back(std::move(effects.entered));
}

void Publisher::give_up_next_poll() {
  if (NextPoll::gives_up(&core_)) core_.scheduler.wake_for_ready();
}

// Returns the requests that are durable at once, by the answer of the store.
CommitList Publisher::act_on(Effects& effects, HostIsCalledBy who) {
  if (effects.timers_moved) hooks_.timers_moved();
  for (auto& garbage : effects.garbage) {
    const std::size_t most = core_.store_limits.batch_operations / 2;
    garbage->fill(std::clamp<std::size_t>(most, 1, kGarbageChunk));
    effects.commits.push_back(*garbage.release());
  }
  if (!effects.entered.empty()) admit_entered(effects);
  if (!effects.commits.empty()) {
    effects.commits.for_each([&](const CommitRequest& request) {
      PV2_ASSERT(core_.store_limits.allow(request.batch),
                 "a batch of the engine fits the limits of its store");
    });
  }
  CommitList durable = std::move(effects.durable);
  if (!effects.commits.empty()) {
    const CommitAnswer answer = effects.caller_writes ? core_.store.queue_all(effects.commits)
                                                      : core_.store.commit_all(effects.commits);
    if (answer == CommitAnswer::kDurable) durable.splice_back(std::move(effects.commits));
  }
  for (Task& answer : effects.answers) answer();
  if (!effects.pool_tasks.empty()) core_.pool->post_all(effects.pool_tasks);
  // Code of the host may block. What this thread has queued in the store, and not begun to write,
  // does not wait. What it has left to itself to run waits only for a few callbacks, which must not
  // take long.
  const bool may_block = !effects.crowds.empty() || !effects.log_lines.empty();
  if (may_block || !effects.host_calls.empty()) core_.store.wake_writer();
  if (may_block || effects.host_calls.size() > kCallsFew) give_up_next_poll();
  if (!effects.crowds.empty()) durable.splice_back(call_host(effects.crowds));
  if (!effects.host_calls.empty()) {
    if (who == HostIsCalledBy::kPool) {
      call_host_on_pool(std::move(effects.host_calls));
    } else {
      durable.splice_back(call_host(effects.host_calls));
    }
  }
  for (const auto& [level, line] : effects.log_lines) log(core_.options.log, level, line);
  return durable;
}

void Publisher::apply(EngineRequest& request, Effects& effects) {
  Looks::one();
  if (!request.is_narrow()) core_.widen();
  if (!request.status.ok()) return store_failed(request, effects);
  request.published(core_, effects);
}

// The first failure ends the run: from here on no caller is told that something is durable.
void Publisher::store_failed(EngineRequest& request, Effects& effects) {
  core_.widen();
  // A store that stop() has closed has not failed. One that was closed otherwise has.
  const bool closed = core_.state.life.stopping && request.status.code() == StatusCode::kStopping;
  if (!closed) {
    end_run(request.status.with_context(
                "the store failed and nothing more is written; restart to go on from what is on "
                "disk"),
            effects);
  }
  const Status unknown =
      closed ? request.status
             : Status(StatusCode::kUnknownOutcome, "whether it is durable is not known: " +
                                                       std::string(request.status.message()));
  const Status not_written = closed ? request.status : core_.state.life.store_failure;
  request.failed(core_, {unknown, not_written}, effects);
}

void Publisher::end_run(Status why) {
  Effects effects;
  {
    StateLock lock(core_);
    if (core_.state.life.stopping) {
      if (why.code() != StatusCode::kStopping) effects.log(LogLevel::kError, why.to_string());
    } else {
      end_run(std::move(why), effects);
    }
  }
  perform(effects);
}

void Publisher::end_run(Status why, Effects& effects) {
  PV2_ASSERT(!why.ok(), "a run ends for a reason");
  if (!core_.state.life.store_failure.ok()) return;
  core_.widen();
  core_.state.life.store_failure = std::move(why);
  core_.halt();
  core_.scheduler.stop();
  core_.give_up_loading(effects);
  effects.log(LogLevel::kError, core_.state.life.store_failure.to_string());
  if (core_.options.on_store_failure) {
    // By reference: a copy would call code of the host under the mutex.
    effects.pool_tasks.push_back(
        [&callback = core_.options.on_store_failure, status = core_.state.life.store_failure] {
          call_back(callback, status);
        });
  }
  hooks_.store_failed(core_, effects);
}

}  // namespace pv2
