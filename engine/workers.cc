// SPDX-License-Identifier: Apache-2.0
//
// The workers' loop. Read run(): take procedures under the state mutex, run their steps without it,
// hand their records over.

#include "workers.h"

#include <algorithm>
#include <array>
#include <utility>

#include "record_codec.h"
#include "step_run.h"
#include "tree.h"

namespace pv2 {
namespace {

// How long an idle worker sleeps before it looks again; a wake ends it at once.
constexpr std::chrono::milliseconds kPatience{1000};

// Makes a lock grant durable that the scheduler gave while the procedure was queued.
void fill_grant(EngineCore& core, const Execution& execution, StepCommit& commit) {
  commit.is_grant = true;
  Transition& same = commit.next;
  same.state = execution.state;
  same.step = execution.step;
  same.attempt = execution.attempt;
  same.no_return = execution.no_return;
  same.parked = execution.parked;
  same.awaits = execution.awaits;
  same.deadline = execution.deadline;
  same.patience = execution.patience;
  same.result = execution.result.view();
  same.holds_locks = true;
  same.now = core.clock.wall_now();
  if (execution.failure) same.error = execution.failure->error;
  if (execution.undo_step != 0) same.undo = UndoChange::kPush;  // its turn is to come
  update_state(execution, same, execution.undo_step, commit.batch);
}

}  // namespace

void Workers::start(unsigned count, unsigned reserved) {
  for (unsigned i = 0; i < count; ++i) {
    threads_.emplace_back(
        [this, i, top = i < reserved] { work(core_.options.seed + i, top, core_.running.of(i)); });
  }
}

void Workers::stop() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Workers::work(std::uint64_t seed, bool reserved, WorkerActivity& activity) {
  const EngineThread mark(&core_);
  Random random(seed);
  std::array<SchedulerEntry*, kRun> polled{};
  for (;;) {
    const std::size_t count = reserved ? core_.scheduler.poll_top(polled, kPatience)
                                       : core_.scheduler.poll(polled, kPatience);
    if (count != 0) {
      run(std::span(polled).first(count), random, activity);
      continue;
    }
    bury();
    StateLock lock(core_);
    if (!core_.unavailable().ok()) return;
  }
}

std::size_t Workers::run_once(std::size_t max_steps, Random& random) {
  const EngineThread mark(&core_);
  std::array<SchedulerEntry*, kRun> polled{};
  const std::size_t limit = std::min(max_steps, kRun);
  const std::size_t count =
      core_.scheduler.poll(std::span(polled).first(limit), std::chrono::milliseconds(0));
  return count == 0 ? 0 : run(std::span(polled).first(count), random, core_.running.of(0));
}

std::size_t Workers::run(std::span<SchedulerEntry*> polled, Random& random,
                         WorkerActivity& activity) {
  Effects effects;
  std::array<Job, kRun> jobs;
  const std::size_t taken = take(polled, jobs, effects, activity);
  publisher_.perform(effects);

  CommitList with_record;
  CommitList without_record;
  for (std::size_t i = 0; i < taken; ++i) {
    Job& job = jobs[i];
    if (!fill(job, random, activity, i)) continue;
    StepCommit& commit = *job.commit.release();
    (commit.needs_record ? with_record : without_record).push_back(commit);
  }
  activity.handed_over();
  if (!with_record.empty() && core_.store.commit_all(with_record) == CommitAnswer::kDurable) {
    publisher_.publish(std::move(with_record));
  }
  publisher_.publish(std::move(without_record));
  return taken;
}

std::size_t Workers::take(std::span<SchedulerEntry*> polled, std::span<Job> jobs, Effects& effects,
                          WorkerActivity& activity) {
  std::vector<std::unique_ptr<Procedure>> dead_objects;
  std::vector<std::shared_ptr<AwaitSlot>> dead_slots;
  std::size_t taken = 0;
  {
    StateLock lock(core_);
    dead_objects.swap(core_.state.dead_objects);
    dead_slots.swap(core_.state.dead_slots);
    const bool halted = !core_.unavailable().ok();
    for (SchedulerEntry* entry : polled) {
      auto& execution = static_cast<Execution&>(*entry);
      if (execution.phase == Phase::kDropping) {
        execution.phase = Phase::kIdle;
        if (execution.granted_by_poll()) core_.settle(execution, Disposition::kParkUnlock);
        left_flight(core_, *execution.root, effects);
        continue;
      }
      PV2_ASSERT(execution.phase == Phase::kQueued, "what is polled was queued");
      if (halted) continue;  // it stays as its last record says
      if (execution.root->tree.abort_accepted && stands_before_no_return(execution)) {
        execution.phase = Phase::kWaiting;  // for the abort, which ends all its waits
        if (execution.granted_by_poll()) core_.settle(execution, Disposition::kParkUnlock);
        continue;
      }
      execution.phase = Phase::kInFlight;
      execution.wake_pending = false;
      ++execution.root->tree.in_flight;
      Job& job = jobs[taken];
      job.execution = &execution;
      job.commit = core_.state.spare_steps.take();
      activity.took(taken++, execution.id);
    }
  }
  return taken;
}

bool Workers::fill(Job& job, Random& random, WorkerActivity& activity, std::size_t index) {
  Execution& execution = *job.execution;
  StepCommit& commit = *job.commit;
  commit.execution = &execution;
  if (execution.granted_by_poll() && core_.keeps_records) {
    fill_grant(core_, execution, commit);
  } else {
    StepRun step(core_, execution, commit, random, wake_target_);
    activity.begin(index, *execution.type, step.step(), step.is_undo(), step.now());
    const bool made = step.run();
    activity.end();
    if (!made) {
      Effects effects;
      {
        StateLock lock(core_);
        execution.phase = Phase::kIdle;
        quarantine_tree(core_, *execution.root, step.error(), effects);
        left_flight(core_, *execution.root, effects);
      }
      publisher_.perform(effects);
      return false;
    }
  }
  return true;
}

void Workers::bury() {
  std::vector<std::unique_ptr<Procedure>> dead_objects;
  std::vector<std::shared_ptr<AwaitSlot>> dead_slots;
  StateLock lock(core_);
  dead_objects.swap(core_.state.dead_objects);
  dead_slots.swap(core_.state.dead_slots);
}

}  // namespace pv2
