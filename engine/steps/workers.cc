// SPDX-License-Identifier: Apache-2.0
//
// The workers' loop. Read run() first. A worker takes procedures under the state mutex
// (workers_take.cc), runs their steps without it, and hands their records over. What it does when
// there is nothing to take is in workers_idle.cc.

#include "steps/workers.h"

#include <pv2/base/prefetch.h>
#include <pv2/base/thread.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/effects.h"
#include "core/next_poll.h"
#include "core/state_lock.h"
#include "core/worker_run.h"
#include "records/procedure_rows.h"
#include "steps/offloads.h"
#include "steps/step_run.h"
#include "tree/failure.h"
#include "tree/flight.h"
#include "tree/member_step.h"
#include "tree/take_over.h"

namespace pv2 {
namespace {

// The scheduler granted its locks to a queued procedure, or has in its turn to take them: fills the
// record that makes the grant durable.
void fill_grant(EngineCore& core, const Execution& execution, StepCommit& commit) {
  PV2_ASSERT(execution.holds_locks(), "a procedure that was granted its locks holds them");
  commit.kind = StepCommit::Kind::kGrant;
  Transition& same = commit.next;
  same = as_it_is(core, execution);
  same.holds_locks = true;
  if (execution.record.failure() != nullptr) {
    same.set_error(execution.record.failure()->error);
    same.set_undo_error(execution.record.failure()->undo);
  }
  if (execution.takes_locks()) {
    same.history =
        HistoryEntry{0, same.attempt, Outcome::Kind::kUndone, same.updated, /*undo=*/true};
  }
  if (execution.turn_step() != 0) {  // its undo has yet to run
    same.step = 0;
    same.undo = UndoChange::kPush;
    same.undo_is_unfinished = true;
  }
  update_state(execution, same, execution.turn_step(), commit.batch);
}

}  // namespace

Status Workers::make_threads(unsigned count, unsigned reserved, StartGate& gate) {
  for (unsigned i = 0; i < count; ++i) {
    const Work kind = i < reserved ? Work::kTop : Work::kAny;
    auto thread = start_thread("pv2-worker-" + std::to_string(i + 1),
                               "worker " + std::to_string(i + 1) + " of " + std::to_string(count),
                               [this, i, kind, &gate] {
                                 if (gate.pass()) work(i, kind);
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

void Workers::work(std::size_t index, Work work) {
  // A reserved worker does not poll for all that it makes runnable.
  const EngineThread mark(&core_, work == Work::kTop ? EngineThread::kNoSeat : index + 1);
  Random random = core_.random_of_life(index);
  Worker me = worker(index, random, work);
  me.has_thread = true;
  me.may_write = work == Work::kAny;
  Polled polled;
  for (;;) {
    if (poll(me, std::chrono::milliseconds(0), polled)) {
      if (std::exchange(me.has_queued, false)) core_.store.wake_writer();
      take_and_run(polled, me);
    } else if (writes_queued(me)) {
      // Records are durable and published: perhaps there is work again.
    } else if (idle(me, polled)) {
      continue;
    } else {
      bury();
      StateLock lock(core_, Width::kNarrow);
      if (!core_.unavailable().ok()) return;
    }
  }
}

bool Workers::writes_queued(Worker& worker) {
  if (!std::exchange(worker.has_queued, false)) return false;
  const NextPoll polls_next(&core_, polls_soon(worker) ? own(worker) : 0);
  const Written written = core_.store.write_queued();
  worker.has_queued = written == Written::kSome;
  return written != Written::kNothing;
}

// lifts() is read before the poll, so work that becomes urgent in between is noticed before the
// second step.
bool Workers::poll(const Worker& worker, std::chrono::milliseconds patience, Polled& polled) {
  polled.lifts = core_.scheduler.lifts();
  polled.count = worker.work == Work::kTop
                     ? core_.scheduler.poll_top(polled.entries, patience)
                     : core_.scheduler.poll(polled.entries, patience,
                                            {.own = own(worker), .seat = core_.scheduler_seat()});
  return polled.count != 0;
}

Workers::Round Workers::run_once(std::size_t max_steps, Random& random) {
  const EngineThread mark(&core_);
  Polled polled;
  polled.lifts = core_.scheduler.lifts();
  polled.count = core_.scheduler.poll(std::span(polled.entries).first(std::min(max_steps, kRun)),
                                      std::chrono::milliseconds(0));
  if (polled.count == 0) return {};
  Worker host = worker(0, random, Work::kAny);
  // In an engine without threads a step may run the engine: this is then a run within a run.
  std::optional<WorkerRun> inner;
  if (host.run->is_active()) host.run = &inner.emplace();
  return {take_and_run(polled, host, max_steps), true};
}

std::size_t Workers::take_and_run(Polled& polled, Worker& worker, std::size_t max_steps,
                                  WasIdle was_idle) {
  Effects effects;
  Taken taken;
  take(polled, taken, effects);
  const bool some_stay_away = taken.count != polled.count;
  begin_run(taken, worker, some_stay_away || something_waits_for_publisher());
  if (was_idle == WasIdle::kYes) cease_to_be_idle(worker);
  publisher_.perform(effects);
  return run(taken, worker, max_steps);
}

// Whether a thread that publishes now may be kept for long.
bool Workers::something_waits_for_publisher() const {
  return core_.tree_work_waits.load(std::memory_order_relaxed) || publisher_.has_committed();
}

// From here on idle workers see the jobs of `taken`. If the worker publishes something before it
// runs them, which may take long, one of them takes a half at once.
void Workers::begin_run(Taken& taken, Worker& worker, bool publishes) {
  worker.pace.begin_run();
  begin_round(taken, worker, publishes);
  pass_on_watch(worker);
}

class Workers::ShortRun {
 public:
  ShortRun(EngineCore& core, const Worker& worker, std::size_t jobs)
      : runs_(core.keeps_records && polls_soon(worker) && worker.pace.ends_soon(jobs)
                  ? &core.short_runs
                  : nullptr) {
    if (runs_ != nullptr) entered_ = runs_->enter();
  }
  ~ShortRun() {
    if (runs_ != nullptr) runs_->leave(entered_);
  }
  ShortRun(const ShortRun&) = delete;
  ShortRun& operator=(const ShortRun&) = delete;

 private:
  ShortRuns* const runs_;
  ShortRuns::Epoch entered_ = 0;
};

std::size_t Workers::run(Taken& taken, Worker& worker, std::size_t max_steps) {
  std::size_t steps = 0;
  {
    const ShortRun ends_soon(core_, worker, taken.count);
    steps = run_rounds(taken, worker, max_steps);
  }
  publish_what_was_left(worker);
  return steps;
}

// The committer may have left a list to this worker because of ShortRun.
void Workers::publish_what_was_left(Worker& worker) {
  if (!polls_soon(worker) || !publisher_.has_committed()) return;
  if (std::exchange(worker.has_queued, false)) core_.store.wake_writer();
  publisher_.publish_committed();
}

// With a store that keeps no records, a worker goes on with the procedures that can go on, round
// after round. With any other store there is one round: the next step waits for the disk.
std::size_t Workers::run_rounds(Taken& taken, Worker& worker, std::size_t max_steps) {
  std::size_t steps = 0;
  do {
    steps += run_round(taken, worker);
    if (!may_go_on(worker, max_steps - steps)) {
      hand_over_at_end(worker);
      return steps;
    }
  } while (go_on(taken, worker));
  return steps;
}

// Procedures of the same class wait for a run that goes on, and for a long one nobody waits. A
// reserved worker does not go on: what it has need not be top work any more. The host's thread has
// other work that the scheduler does not know of.
bool Workers::may_go_on(const Worker& worker, std::size_t steps_left) const {
  if (core_.share_count == 0 || worker.work == Work::kTop || steps_left < kRun) return false;
  if (!worker.pace.is_long()) return true;
  return worker.has_thread && worker.pace.may_be_longer() && !core_.scheduler.has_ready();
}

// Hands over the records of a round. The procedures that only go on become the jobs of the next
// one: they stay in flight, and neither the scheduler nor another thread hears of them. A recall
// that concerns one of them is made with this worker's share held: so it is seen here, or at the
// next look. The next round begins before the other records are published, which may take long: so
// idle workers see its jobs. Returns whether there is a next round.
bool Workers::go_on(Taken& taken, Worker& worker) {
  FinishedSteps finished = worker.run->take_finished();
  CommitList others;
  taken.count = 0;
  if (!finished.with_record.empty() &&
      core_.store.commit_all(finished.with_record) == CommitAnswer::kDurable) {
    EngineCore::Share& share = core_.shares[worker.index];
    const MutexLock lock(share.share_mutex);
    taken.marks.recalls = core_.recalls.load(std::memory_order_relaxed);
    while (CommitRequest* const request = finished.with_record.pop_front()) {
      auto& commit = static_cast<StepCommit&>(*request);
      Execution& execution = *commit.execution;
      if (!only_goes_on(core_, share, commit) || !SpareCommits<StepCommit>::is_small(commit) ||
          core_.scheduler.is_overtaken(execution, taken.marks.lifts)) {
        others.push_back(commit);
        continue;
      }
      take_over_record(execution, commit);
      commit.reset();
      taken.add({&execution, &commit});
    }
  }
  const bool goes_on = taken.count != 0;
  const bool publishes = !others.empty() || !finished.without_record.empty() ||
                         core_.tree_work_waits.load(std::memory_order_relaxed);
  if (goes_on) begin_round(taken, worker, publishes);
  const NextPoll polls_next(&core_, !goes_on && polls_soon(worker) ? own(worker) : 0);
  publisher_.publish(std::move(others));
  publisher_.publish(std::move(finished.without_record));
  return goes_on;
}

void Workers::begin_round(Taken& taken, Worker& worker, bool publishes) {
  worker.pace.begin_round();
  const bool shared =
      publishes || taken.work == Work::kTop || worker.pace.is_worth_sharing(taken.count);
  worker.run->fill(taken.all(), taken.marks, taken.work, shared);
  // The first job begins at once, unless this worker has something else to do before.
  const std::size_t begins = publishes ? 0 : std::min<std::size_t>(taken.count, 1);
  tell_idle_workers(worker, taken.count - begins, shared);
}

// Returns the number of steps that have begun.
std::size_t Workers::run_round(Taken& taken, Worker& worker) {
  std::size_t steps = 0;
  StepCommit* ended = nullptr;
  for (;;) {
    const WallTime now = core_.clock.wall_now();
    const bool are_due =
        worker.pace.records_are_due(now) || (taken.work == Work::kTop && somebody_is_idle());
    const std::uint64_t recalls = core_.recalls.load(std::memory_order_relaxed);
    WorkerRun::Next next =
        worker.run->next(std::exchange(ended, nullptr), recalls, core_.scheduler, are_due);
    if (next.has_records) {
      hand_over(worker.run->take_finished());
      continue;
    }
    if (next.recalled || next.overtaken) {
      // The rollback of a failed tree also waits for the records in this run.
      hand_over(worker.run->take_finished());
      call_back(*worker.run, next.overtaken ? Which::kAll : Which::kForbidden);
      continue;
    }
    if (!next.job) break;
    if (taken.work == Work::kTop && next.others_wait) call_for_help();
    ++steps;
    // With thousands in flight it is in no cache of this processor any more.
    if (steps + 2 < taken.count) prefetch(taken.jobs[steps + 2].execution);
    ended = run_step(*next.job, now, worker);
  }
  return steps;
}

// The worker writes the records itself, if it then has no other work. A reserved worker does not:
// work of the top classes may come while it writes.
void Workers::hand_over_at_end(Worker& worker) {
  FinishedSteps finished = worker.run->take_finished();
  if (!worker.may_write) return hand_over(std::move(finished));
  if (core_.store.queue_all(finished.with_record) == CommitAnswer::kDurable) {
    publisher_.publish(std::move(finished.with_record));
  } else {
    worker.has_queued = true;
  }
  publisher_.publish(std::move(finished.without_record));
}

void Workers::hand_over(FinishedSteps finished) {
  if (!finished.with_record.empty() &&
      core_.store.commit_all(finished.with_record) == CommitAnswer::kDurable) {
    publisher_.publish(std::move(finished.with_record));
  }
  publisher_.publish(std::move(finished.without_record));
}

StepCommit* Workers::run_step(StepJob job, WallTime now, Worker& worker) {
  Execution& execution = *job.execution;
  std::unique_ptr<StepCommit> owned(job.commit);
  StepCommit& commit = *owned;
  PV2_ASSERT(execution.phase == Phase::kInFlight, "a step that runs was taken by a worker");
  PV2_ASSERT(execution.type != nullptr, "the type of a procedure that runs is known");
  PV2_ASSERT(execution.holds_locks(), "a step that runs holds its locks");
  commit.execution = &execution;
  if (execution.takes_locks() || (execution.granted_by_poll() && core_.keeps_records)) {
    fill_grant(core_, execution, commit);
    return owned.release();
  }
  StepRun step(core_, execution, commit, worker.random, worker.scratch, now, wake_target_);
  worker.pace.begin_step(now);
  worker.activity.begin(execution.id, *execution.type, step.step(), step.is_undo(), now);
  const Status ran = step.run();
  if (worker.scratch.capacity() > kScratchKept) worker.scratch = std::string();
  worker.activity.end();
  if (!ran.ok()) {
    quarantine(execution, ran);
    return nullptr;
  }
  if (execution.work() != nullptr) core_.offloads->hold_back(owned);
  return owned.release();
}

void Workers::quarantine(Execution& execution, const Status& why) {
  Effects effects;
  {
    StateLock lock(core_);
    execution.phase.move_to(Phase::kIdle);
    quarantine_tree(core_, *execution.root(), why, effects);
    left_flight(core_, execution, effects);
  }
  publisher_.perform(effects);
}

void Workers::bury() {
  std::vector<std::unique_ptr<Procedure>> dead_objects;
  std::vector<Ref<AwaitSlot>> dead_slots;
  StateLock lock(core_, Width::kNarrow);
  dead_objects.swap(core_.state.leftovers.objects);
  dead_slots.swap(core_.state.leftovers.slots);
}

}  // namespace pv2
