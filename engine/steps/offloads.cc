// SPDX-License-Identifier: Apache-2.0
//
// One thread ends a piece of work: the thread that runs it, or the thread that finds it cancelled.
// That thread destroys the callable, outside every lock, and then reports that the piece has ended.

#include "steps/offloads.h"

#include <fmt/format.h>

#include <utility>

#include "core/effects.h"
#include "core/state_lock.h"
#include "model/names.h"
#include "records/procedure_rows.h"
#include "tree/domains.h"
#include "tree/failure.h"
#include "tree/flight.h"
#include "tree/join.h"
#include "tree/member_step.h"
#include "tree/members_at_work.h"

namespace pv2 {
namespace {

// Whether the procedure would leave with this record: it succeeds, or one of its undos ends.
bool leaves(const StepCommit& commit) {
  if (!commit.needs_record || commit.kind == StepCommit::Kind::kGrant) return false;
  return commit.next.state == ProcedureState::kSuccess || commit.next.undo == UndoChange::kPop;
}

// The retention of a result begins when the end is recorded, not when the step answered.
void date_held_back(const EngineCore& core, StepCommit& commit) {
  if (commit.next.ended_age == Progress::kNotDated) return;
  if (!core.keeps_records) {
    commit.next.ended_age = core.age.now();
    return;
  }
  const Execution& execution = *commit.execution;
  redate_end(execution, commit.next, core.age.now(),
             commit.is_undo() ? execution.turn_step() : execution.record.step, commit.batch);
}

}  // namespace

bool Offloads::may_start(Execution& execution, const PlaceOfWork& place) {
  if (execution.work() == nullptr) return true;
  StateLock lock(core_);
  if (!execution.work()->has(place)) return true;
  execution.work()->put_off_epoch = execution.wait.epoch;
  return false;
}

Status Offloads::start(Execution& execution, const PlaceOfWork& place,
                       std::unique_ptr<internal::OffloadedWork> work) noexcept {
  // Shared by the procedure, the pool, and the thread that tells the work to stop: any of them may
  // be the last to use it.
  std::shared_ptr<PieceOfWork> piece = make_piece(execution, place, std::move(work));
  if (Status added = add(execution, piece); !added.ok()) return added;
  core_.pool->post_blocking([this, piece = std::move(piece)] { run(piece); });
  return Status();
}

std::shared_ptr<PieceOfWork> Offloads::make_piece(
    const Execution& execution, const PlaceOfWork& place,
    std::unique_ptr<internal::OffloadedWork> work) const {
  auto piece = std::make_shared<PieceOfWork>();
  piece->id = execution.id;
  piece->type = execution.type;
  piece->step = place.step;
  piece->undo = place.undo;
  piece->visit = place.visit;
  piece->index = place.index;
  piece->epoch = execution.wait.epoch;
  piece->since = core_.clock.steady_now();
  piece->work = std::move(work);
  return piece;
}

Status Offloads::add(Execution& execution, const std::shared_ptr<PieceOfWork>& piece) {
  StateLock lock(core_);
  PV2_ASSERT(execution.phase == Phase::kInFlight, "a procedure that offloads work is in flight");
  OutstandingWork& outstanding = execution.edit_work();
  PV2_ASSERT(!outstanding.held_back, "a procedure whose record is held back runs no step");
  if (outstanding.pieces.size() >= OutstandingWork::kPiecesMax) {
    return {StatusCode::kResourceExhausted,
            fmt::format("{} has {} pieces of offloaded work that have not ended and may "
                        "not add another",
                        name_of(execution.id), OutstandingWork::kPiecesMax)};
  }
  if (outstanding.pieces.empty()) work_begins(execution);
  piece->place = outstanding.pieces.insert(outstanding.pieces.end(), piece);
  if (!piece->undo && failing_domain(execution) != nullptr) core_.stop_work(execution);
  return Status();
}

void Offloads::run(const std::shared_ptr<PieceOfWork>& piece) {
  auto queued = PieceOfWork::State::kQueued;
  if (!piece->state.compare_exchange_strong(queued, PieceOfWork::State::kRuns,
                                            std::memory_order_acq_rel)) {
    return;  // cancelled: tell() ends it
  }
  piece->began = core_.clock.steady_now();
  piece->began_at = core_.clock.wall_now();
  bool stopping = false;
  {
    MutexLock lock(running_mutex_);
    running_.push_back(piece);
    stopping = stopping_;
  }
  if (stopping) piece->work->request_stop();
  piece->work->run();
  piece->work->destroy_callable();
  {
    MutexLock lock(running_mutex_);
    std::erase(running_, piece);
  }
  ended(*piece);
}

void Offloads::hold_back(std::unique_ptr<StepCommit>& commit) {
  StateLock lock(core_);
  Execution& execution = *commit->execution;
  if (!leaves(*commit) || !has_work(execution)) return;
  PV2_ASSERT(execution.phase == Phase::kInFlight, "a procedure whose run has ended is in flight");
  PV2_ASSERT(!execution.work()->held_back, "a procedure has at most one record on the way");
  execution.work()->held_back = std::move(commit);
}

void Offloads::stop(Execution& execution, const PlaceOfWork& visit) {
  StateLock lock(core_);
  PV2_ASSERT(execution.work() != nullptr, "a procedure whose work is stopped has offloaded some");
  execution.work()->stop(core_.state.leftovers.work, &visit);
}

void Offloads::tell_later() {
  core_.pool->post([this] { tell(); });
}

// Calls code of the host: stop callbacks, and the destructors of callables that never ran.
void Offloads::tell() {
  std::vector<std::shared_ptr<PieceOfWork>> told;
  {
    StateLock lock(core_);
    told.swap(core_.state.leftovers.work);
    core_.state.leftovers.work_is_claimed = false;
  }
  for (const auto& piece : told) {
    if (piece->state.load(std::memory_order_acquire) == PieceOfWork::State::kCancelled) {
      piece->work->destroy_callable();
      ended(*piece);
    } else {
      piece->work->request_stop();
    }
  }
}

void Offloads::stop_all() {
  std::vector<std::shared_ptr<PieceOfWork>> told;
  {
    MutexLock lock(running_mutex_);
    stopping_ = true;
    told = running_;
  }
  for (const auto& piece : told) piece->work->request_stop();
}

std::vector<std::shared_ptr<PieceOfWork>> Offloads::running() const {
  MutexLock lock(running_mutex_);
  return running_;
}

void Offloads::ended(PieceOfWork& piece) {
  Effects effects;
  std::unique_ptr<StepCommit> released;
  {
    StateLock lock(core_);
    Execution* const execution = core_.find(piece.id);
    PV2_ASSERT(execution != nullptr, "a procedure with outstanding work is live");
    PV2_ASSERT(has_work(*execution), "a piece of work that ends is outstanding");
    OutstandingWork& outstanding = *execution->work();
    PV2_ASSERT(piece.place->get() == &piece, "a piece of work knows its place in the list");
    outstanding.pieces.erase(piece.place);
    if (core_.unavailable().ok()) {  // else no step runs any more
      core_.wake(piece.id, piece.epoch);
      if (const auto epoch = std::exchange(outstanding.put_off_epoch, std::nullopt)) {
        core_.wake(piece.id, *epoch);
      }
    }
    if (outstanding.pieces.empty()) released = last_ended(*execution, effects);
  }
  if (released) {  // the procedure stays in flight, so no other thread touches it
    date_held_back(core_, *released);
    effects.commits.push_back(*released.release());
  }
  publisher_.perform(effects);
}

// The last piece of work has ended: resumes what waited for it. Returns the record that was held
// back until then.
std::unique_ptr<StepCommit> Offloads::last_ended(Execution& execution, Effects& effects) {
  work_ends(execution, effects);
  std::unique_ptr<StepCommit> released = std::move(execution.work()->held_back);
  if (!released) {
    if (is_done_but_for_work(execution) && failing_domain(execution) == nullptr) {
      children_finished(core_, execution, effects);
    } else {
      work_looked_after(core_, execution, Kept::kMaybe, effects);
    }
  }
  left_flight(core_, execution, effects);
  return released;
}

}  // namespace pv2
