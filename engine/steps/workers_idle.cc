// SPDX-License-Identifier: Apache-2.0
//
// What workers without work do: they sleep, or watch the runs of the others and help; and what a
// worker with work does to be helped.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "core/worker_run.h"
#include "steps/workers.h"

namespace pv2 {
namespace {

// How long an idle worker sleeps before it looks again; a wake ends the sleep at once.
constexpr std::chrono::milliseconds kPatience{1000};
// How long the watcher sleeps between two looks at the runs.
constexpr std::chrono::milliseconds kWatch{1};

}  // namespace

std::atomic<std::size_t>& Workers::idle_count(Work work) noexcept {
  return work == Work::kTop ? core_.idle_reserved : core_.idle_workers;
}

// No run in which something waits is forgotten while a worker is idle. A worker begins its run,
// then reads the idle count, then `watched`, and wakes an idle worker if there are some and none
// watches, and if something waits in this run or in another one: it may be itself the worker that
// was woken for the other one. An idle worker counts itself, then looks at the runs, and watches if
// something waits there and nobody else watches. A watcher that gives up sets `watched` to false
// and then looks once more; one that has found work wakes another idle worker, if there is one.
bool Workers::idle(Worker& worker, Polled& polled) {
  idle_count(worker.work).fetch_add(1);
  worker.is_idle = true;
  // The committer adds a list before it looks for an idle worker.
  if (worker.work == Work::kAny && publisher_.has_committed()) {
    cease_to_be_idle(worker);
    return true;
  }
  for (;;) {
    if (help_out(worker)) return true;
    const bool watches = keeps_watch(worker);
    const bool found = poll(worker, watches ? kWatch : kPatience, polled);
    if (found || !watches) {
      if (found) {
        take_and_run(polled, worker, SIZE_MAX, WasIdle::kYes);
      } else {
        cease_to_be_idle(worker);
      }
      return found;
    }
    if (publisher_.has_committed()) {  // it was nudged for that, and it may take long
      cease_to_be_idle(worker);
      return true;
    }
  }
}

// The committer may have left a long list to an idle worker, which publishes it before it begins
// anything that may take long. The committer leaves nothing to reserved workers.
void Workers::cease_to_be_idle(Worker& worker) {
  // In this order: a worker that has seen `watched` and does not watch is counted as idle here.
  const bool watched = std::exchange(worker.watches, false);
  if (watched) core_.watched.store(false);
  const bool others = idle_count(worker.work).fetch_sub(1) > 1;
  worker.is_idle = false;
  if (worker.work == Work::kTop) return;
  if (watched && others) core_.scheduler.nudge();
  publisher_.publish_committed();
}

// Whether `worker`, which is idle and has just looked at the runs, looks again soon.
bool Workers::keeps_watch(Worker& worker) {
  if (worker.work == Work::kTop) return false;
  const auto saw_something = [&] {
    return std::any_of(worker.seen.begin(), worker.seen.end(), [](auto run) { return run != 0; });
  };
  worker.quiet_looks = saw_something() ? 0 : worker.quiet_looks + 1;
  if (worker.watches) {
    if (worker.quiet_looks < kQuietLooks) return true;
    worker.watches = false;
    core_.watched.store(false);
    if (!something_waits_in_runs(worker)) return false;
  } else if (!saw_something()) {
    return false;
  }
  worker.quiet_looks = 0;
  return worker.watches = !core_.watched.exchange(true);
}

bool Workers::something_waits_in_runs(Worker& worker) {
  bool waits = false;
  for (std::size_t i = 0; i < core_.running.size(); ++i) {
    worker.seen[i] = core_.runs[i].number_if_something_waits();
    waits = waits || worker.seen[i] != 0;
  }
  return waits;
}

bool Workers::help_out(Worker& worker) {
  if (worker.work == Work::kTop && look_through_runs(worker)) {
    cease_to_be_idle(worker);
    return true;
  }
  Taken taken;
  for (std::size_t i = 0; i < core_.running.size(); ++i) {
    WorkerRun::Help help = core_.runs[i].help_out(taken.jobs, worker.work, worker.seen[i]);
    worker.seen[i] = help.number;
    if (help.jobs == 0 && help.finished.empty()) continue;
    taken.count = help.jobs;
    taken.marks = help.marks;
    taken.work = help.work;
    const bool publishes = !help.finished.empty() || something_waits_for_publisher();
    begin_run(taken, worker, publishes);
    cease_to_be_idle(worker);
    hand_over(std::move(help.finished));
    run(taken, worker, SIZE_MAX);
    return true;
  }
  return false;
}

// `worker` has begun a round in which `waiting` jobs wait. If it has just found them, it is still
// counted as idle itself.
void Workers::tell_idle_workers(const Worker& worker, std::size_t waiting, bool shared) {
  if (waiting == 0 || worker.work == Work::kTop || !are_others_idle(worker)) return;
  if (shared || !core_.watched.load()) core_.scheduler.nudge();
}

// Work of a higher class has begun to wait for a procedure that is in a worker's run, perhaps
// behind a step that takes long. So all procedures that wait in the runs go back to the scheduler,
// which knows which of them are now work of the top classes. The records in the runs are handed
// over: one of them may end the last step of a lock's holder.
bool Workers::look_through_runs(Worker& worker) {
  const std::uint64_t lifts = core_.scheduler.lifts();
  if (std::exchange(worker.looked_through, lifts) == lifts) return false;
  bool found = false;
  for (std::size_t i = 0; i < core_.running.size(); ++i) {
    found = call_back(core_.runs[i], Which::kAll) || found;
    FinishedSteps finished = core_.runs[i].take_finished();
    found = found || !finished.empty();
    hand_over(std::move(finished));
  }
  return found;
}

// A worker that was nudged because something waits in a run may find other work first, and does not
// look at the runs then.
void Workers::pass_on_watch(const Worker& worker) {
  if (worker.work == Work::kTop || core_.watched.load() || !are_others_idle(worker)) return;
  for (std::size_t i = 0; i < core_.running.size(); ++i) {
    if (i == worker.index || core_.runs[i].number_if_something_waits() == 0) continue;
    return core_.scheduler.nudge();
  }
}

bool Workers::are_others_idle(const Worker& worker) const {
  return core_.idle_workers.load() > (worker.is_idle ? 1U : 0U);
}

bool Workers::somebody_is_idle() const {
  return core_.idle_workers.load() != 0 || core_.idle_reserved.load() != 0;
}

// Work of the top classes does not wait for the watcher.
void Workers::call_for_help() {
  if (core_.idle_workers.load() != 0) return core_.scheduler.nudge();
  if (core_.idle_reserved.load() != 0) core_.scheduler.nudge_top();
}

}  // namespace pv2
