// SPDX-License-Identifier: Apache-2.0
//
// How procedures get into the hands of a worker, under the state mutex, and out of them without
// having run.

#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/effects.h"
#include "core/state_lock.h"
#include "core/worker_run.h"
#include "steps/workers.h"
#include "tree/domains.h"
#include "tree/failure.h"
#include "tree/flight.h"
#include "tree/member_step.h"

namespace pv2 {
namespace {

// What becomes of a procedure that was polled.
enum class Fate : std::uint8_t {
  kTaken,        // Its step may begin.
  kLeaves,       // Its domain failed after it was polled: it leaves flight.
  kStays,        // The engine stops or its store failed: it stays as its last record says.
  kStopped,      // A domain around it has failed, and will stop it with its other members.
  kMakesWay,     // An order waits to end its domain: its turn to be undone is put back.
  kWaitsForEnd,  // A record that fails its domain is on the way: no point of no return begins.
};

Fate fate_of(Execution& execution, bool halted) {
  const Domain& tree = execution.root()->domain;
  if (execution.phase == Phase::kDropping) return Fate::kLeaves;
  PV2_ASSERT(execution.phase == Phase::kQueued, "a procedure that is polled was queued");
  if (halted) return Fate::kStays;
  const bool failed = failing_domain(execution) != nullptr || tree.failing() != nullptr;
  if (failed && !execution.has_turn()) return Fate::kStopped;
  if (makes_way_for_order(execution)) return Fate::kMakesWay;
  const bool may_not_return = execution.no_return_mark != NoReturn::kNone;
  if (may_not_return && stands_before_no_return(execution) && is_about_to_fail(execution)) {
    return Fate::kWaitsForEnd;
  }
  PV2_ASSERT(!tree.is_stopped() || execution.has_turn(),
             "a procedure that is polled in a failed tree has its undo turn");
  return Fate::kTaken;
}

// A lock grant that came with the poll counts as recorded if the store keeps no records.
StepJob take_one(EngineCore& core, Execution& execution) PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(execution.wait.timer_index == Wait::kNoTimer,
             "a procedure that is taken has no timer");
  execution.phase.move_to(Phase::kInFlight);
  execution.wait.wake_pending = false;
  if (execution.granted_by_poll() && !core.keeps_records) execution.record.holds_locks = true;
  enter_flight(execution);
  return {&execution, core.state.spares.steps.take(core.seat()).release()};
}

// Does what `fate`, which is not kTaken, says. A lock grant that came with the poll is in no record
// yet, so such locks go back.
void turn_away(EngineCore& core, Execution& execution, Fate fate, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  if (fate == Fate::kStays) return;
  // kWaiting: the failure ends all waits.
  execution.phase.move_to(fate == Fate::kWaitsForEnd ? Phase::kWaiting : Phase::kIdle);
  if (execution.granted_by_poll()) core.settle(execution, Disposition::kParkUnlock);
  if (fate == Fate::kLeaves) left_flight(core, execution, effects);
  if (fate == Fate::kStopped) core.abandon_waits(execution);
  if (fate == Fate::kMakesWay) put_turn_back(core, execution);
}

}  // namespace

void Workers::take(Polled& polled, Taken& taken, Effects& effects) {
  std::vector<std::unique_ptr<Procedure>> dead_objects;
  std::vector<Ref<AwaitSlot>> dead_slots;
  taken.work = core_.scheduler.is_top_work(*polled.entries.front()) ? Work::kTop : Work::kAny;
  {
    StateLock lock(core_, Width::kNarrow);  // no worker goes on with a member of these trees
    dead_objects.swap(core_.state.leftovers.objects);
    dead_slots.swap(core_.state.leftovers.slots);
    const bool halted = !core_.unavailable().ok();
    PV2_ASSERT(halted || !core_.loading.runs(), "nothing runs before the store is loaded");
    taken.marks = {core_.recalls.load(std::memory_order_relaxed), polled.lifts};
    for (SchedulerEntry* entry : std::span(polled.entries).first(polled.count)) {
      auto& execution = static_cast<Execution&>(*entry);
      const Fate fate = fate_of(execution, halted);
      if (fate == Fate::kTaken) {
        taken.add(take_one(core_, execution));
      } else {
        turn_away(core_, execution, fate, effects);
      }
    }
  }
}

// Under the state mutex a job is in its run or nowhere, so a thread that looks for it in the runs
// finds it, unless another worker has just taken it over and not filled its own run. The jobs leave
// flight after all of them are settled, because the last one may begin a rollback.
bool Workers::call_back(WorkerRun& run, Which which) {
  std::array<StepJob, kRun> jobs;
  std::size_t count = 0;
  Effects effects;
  {
    StateLock lock(core_);
    const bool halted = !core_.unavailable().ok();
    const auto stays = [&](Execution& execution) {
      return which == Which::kForbidden && !halted && may_begin(execution);
    };
    count = run.sift(jobs, core_.recalls.load(std::memory_order_relaxed), stays);
    // Backwards: the scheduler puts each returned entry in front of those returned before it.
    for (std::size_t i = count; i-- > 0;) put_back(jobs[i], halted);
    core_.flush();
    for (const StepJob& job : std::span(jobs).first(count)) {
      left_flight(core_, *job.execution, effects);
    }
  }
  publisher_.perform(effects);
  return count != 0;
}

void Workers::put_back(const StepJob& job, bool halted) {
  Execution& execution = *job.execution;
  PV2_ASSERT(execution.phase == Phase::kInFlight, "a procedure that is called back was taken");
  if (execution.granted_by_poll() && !core_.keeps_records) execution.record.holds_locks = false;
  core_.state.spares.steps.give_back(std::unique_ptr<StepCommit>(job.commit), core_.seat());
  if (!may_begin(execution)) return drop_from_flight(core_, execution);
  execution.phase.move_to(Phase::kQueued);
  if (!halted) core_.settle(execution, Disposition::kReturn);
}

}  // namespace pv2
