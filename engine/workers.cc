// SPDX-License-Identifier: Apache-2.0
//
// The workers' loop. Read run(): take procedures under the state mutex, run their steps without it,
// hand their records over.

#include "workers.h"

#include <pv2/base/thread.h>

#include <algorithm>
#include <array>
#include <string>
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
  same.unsure = execution.unsure;
  same.awaits = execution.awaits;
  core.go_on_waiting(execution, same);
  same.result = execution.result.view();
  same.holds_locks = true;
  same.now = core.clock.wall_now();
  if (execution.failure) same.error = execution.failure->error;
  if (execution.undo_step != 0) same.undo = UndoChange::kPush;  // its turn is to come
  update_state(execution, same, execution.undo_step, commit.batch);
}

}  // namespace

Status Workers::make_threads(unsigned count, unsigned reserved, StartGate& gate) {
  for (unsigned i = 0; i < count; ++i) {
    auto thread = start_thread("worker " + std::to_string(i + 1) + " of " + std::to_string(count),
                               [this, i, top = i < reserved, &gate] {
                                 if (gate.pass()) work(i, top);
                               });
    if (!thread.ok()) return thread.status();
    threads_.push_back(*std::move(thread));
  }
  return Status();
}

void Workers::stop() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Workers::work(std::size_t index, bool reserved) {
  const EngineThread mark(&core_);
  Random random = core_.random_of_life(index);
  const Worker me = worker(index, random);
  std::array<SchedulerEntry*, kRun> polled{};
  for (;;) {
    const std::size_t count = reserved ? core_.scheduler.poll_top(polled, kPatience)
                                       : core_.scheduler.poll(polled, std::chrono::milliseconds(0));
    if (count != 0) {
      take_and_run(std::span(polled).first(count), me);
    } else if (!reserved && idle(me, polled)) {
      continue;
    } else {
      bury();
      StateLock lock(core_);
      if (!core_.unavailable().ok()) return;
    }
  }
}

// Whoever adds to his run looks at `idle_workers` after that; whoever is idle counts himself before
// he looks at the runs. So either the one sees the other or the other way round, and what is added
// to a run while somebody sleeps is followed by a nudge.
bool Workers::idle(const Worker& worker, std::span<SchedulerEntry*> polled) {
  core_.idle_workers.fetch_add(1);
  if (help_out(worker)) return true;
  const std::size_t count = core_.scheduler.poll(polled, kPatience);
  cease_to_be_idle();
  if (count != 0) take_and_run(polled.first(count), worker);
  return count != 0;
}

// What the committer has left to somebody idle comes before anything that may take long.
void Workers::cease_to_be_idle() {
  core_.idle_workers.fetch_sub(1);
  publisher_.publish_committed();
}

bool Workers::help_out(const Worker& worker) {
  std::array<StepJob, kRun> jobs;
  for (std::size_t i = 0; i < core_.running.size(); ++i) {
    WorkerRun& other = core_.runs[i];
    FinishedSteps finished = other.take_finished();
    const std::size_t count = other.take_waiting(jobs);
    if (count == 0 && finished.empty()) continue;
    cease_to_be_idle();
    hand_over(std::move(finished));
    run(std::span(jobs).first(count), worker);
    return true;
  }
  return false;
}

std::size_t Workers::run_once(std::size_t max_steps, Random& random) {
  const EngineThread mark(&core_);
  std::array<SchedulerEntry*, kRun> polled{};
  const std::size_t limit = std::min(max_steps, kRun);
  const std::size_t count =
      core_.scheduler.poll(std::span(polled).first(limit), std::chrono::milliseconds(0));
  if (count == 0) return 0;
  Worker host = worker(0, random);
  // A step may run the engine itself where it has no threads: then this is a run within a run.
  WorkerRun inner;
  if (host.run->is_active()) host.run = &inner;
  return take_and_run(std::span(polled).first(count), host);
}

std::size_t Workers::take_and_run(std::span<SchedulerEntry*> polled, const Worker& worker) {
  Effects effects;
  std::array<StepJob, kRun> jobs;
  const std::size_t taken = take(polled, jobs, effects);
  publisher_.perform(effects);
  run(std::span(jobs).first(taken), worker);
  return taken;
}

void Workers::run(std::span<StepJob> jobs, const Worker& worker) {
  worker.run->fill(jobs);
  StepCommit* ended = nullptr;
  for (;;) {
    WorkerRun::Next next = worker.run->next(ended);
    if (!next.job) break;
    if ((next.others_wait || next.others_ended) && core_.idle_workers.load() != 0) {
      hand_over(worker.run->take_finished());
      if (next.others_wait) core_.scheduler.nudge();
    }
    ended = run_step(*next.job, worker);
  }
  hand_over(worker.run->take_finished());
}

void Workers::hand_over(FinishedSteps finished) {
  if (!finished.with_record.empty() &&
      core_.store.commit_all(finished.with_record) == CommitAnswer::kDurable) {
    publisher_.publish(std::move(finished.with_record));
  }
  publisher_.publish(std::move(finished.without_record));
}

std::size_t Workers::take(std::span<SchedulerEntry*> polled, std::span<StepJob> jobs,
                          Effects& effects) {
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
        left_flight(core_, execution, effects);
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
      enter_flight(execution);
      jobs[taken++] = {&execution, core_.state.spare_steps.take().release()};
    }
  }
  return taken;
}

StepCommit* Workers::run_step(StepJob job, const Worker& worker) {
  Execution& execution = *job.execution;
  std::unique_ptr<StepCommit> owned(job.commit);
  StepCommit& commit = *owned;
  commit.execution = &execution;
  if (execution.granted_by_poll() && core_.keeps_records) {
    fill_grant(core_, execution, commit);
    return owned.release();
  }
  StepRun step(core_, execution, commit, worker.random, wake_target_);
  worker.activity.begin(execution.id, *execution.type, step.step(), step.is_undo(), step.now());
  const bool made = step.run();
  worker.activity.end();
  if (made) return owned.release();

  Effects effects;
  {
    StateLock lock(core_);
    execution.phase = Phase::kIdle;
    quarantine_tree(core_, *execution.root, step.error(), effects);
    left_flight(core_, execution, effects);
  }
  publisher_.perform(effects);
  return nullptr;
}

void Workers::bury() {
  std::vector<std::unique_ptr<Procedure>> dead_objects;
  std::vector<std::shared_ptr<AwaitSlot>> dead_slots;
  StateLock lock(core_);
  dead_objects.swap(core_.state.dead_objects);
  dead_slots.swap(core_.state.dead_slots);
}

}  // namespace pv2
