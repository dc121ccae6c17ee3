// SPDX-License-Identifier: Apache-2.0
//
// A piece is left by one thread: the one that runs it, or the one that finds it cancelled. That one
// destroys the callable, outside every lock, and then says that the piece has ended.

#include "offloads.h"

#include <algorithm>
#include <string>
#include <utility>

#include "procedure_rows.h"
#include "tree.h"

namespace pv2 {
namespace {

bool is_of_visit(const PieceOfWork& piece, const PlaceOfWork& place) {
  return piece.step == place.step && piece.undo == place.undo && piece.visit == place.visit;
}

// Whether its procedure gives something back with this record, for good.
bool leaves(const StepCommit& commit) {
  if (!commit.needs_record || commit.kind == StepCommit::Kind::kGrant) return false;
  return commit.next.state == ProcedureState::kSuccess || commit.next.undo == UndoChange::kPop;
}

// Whether it would hold no locks as it stands, had it not had work outstanding when it began to
// wait.
bool keeps_locks_for_work(Execution& execution) {
  const LockScope scope = execution.locks.scope();
  if (scope == LockScope::kOperation || execution.locks.empty() || !execution.holds_locks()) {
    return false;
  }
  if (is_parked_in_undo(execution)) {
    return execution.phase == Phase::kIdle && scope == LockScope::kVisit;
  }
  if (execution.turn.step != 0 || failing_domain(execution) != nullptr) return false;
  if (execution.phase == Phase::kIdle) return execution.record.parked && scope == LockScope::kVisit;
  if (execution.phase != Phase::kWaiting) return false;
  // Children may hold the same keys, as these locks cover them: two of them, exclusively.
  if (execution.record.state == ProcedureState::kWaiting) return false;
  if (scope == LockScope::kStep) return true;
  return execution.record.state == ProcedureState::kWaitingTimeout && execution.record.backs_off();
}

// The record says what it said, but for the locks. Until it is durable nobody touches the
// procedure; then it waits on (Publisher::gave_back).
void give_back_locks(EngineCore& core, Execution& execution, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(execution.phase != Phase::kInFlight, "a procedure has one record on the way");
  PV2_ASSERT(execution.record.holds_locks && !has_work(execution),
             "locks that a record names are given back when no work needs them");
  auto commit = core.state.spare_steps.take();
  commit->execution = &execution;
  commit->kind = StepCommit::Kind::kGiveBack;
  Transition& same = commit->next;
  same = as_it_is(core, execution);
  same.holds_locks = false;
  // A step that runs under locks which an earlier one's work has kept makes no record when it
  // waits. Without its locks a restart would take it for one that never began.
  if (execution.started && execution.record.step != 0 && execution.turn.step == 0 &&
      !may_have_begun(execution, same.holds_locks)) {
    same.history = HistoryEntry{execution.record.step, execution.record.attempt,
                                Outcome::Kind::kWait, same.updated};
  }
  if (execution.record.failure) same.error = execution.record.failure->shown();
  update_state(execution, same, 0, commit->batch);
  core.state.timers.cancel(execution);
  execution.phase.move_to(Phase::kInFlight);
  enter_flight(execution);
  effects.commits.push_back(*commit.release());
}

// The time for which a result is kept begins when its end is recorded, not when its step answered.
void date_held_back(const EngineCore& core, StepCommit& commit) {
  if (commit.next.ended_age == Progress::kNotDated) return;
  const Execution& execution = *commit.execution;
  redate_end(execution, commit.next, core.age.now(),
             commit.is_undo() ? execution.turn.step : execution.record.step, commit.batch);
}

// Has its root know whether it has work outstanding.
void note_work(Execution& member, bool has_some) {
  std::unique_ptr<MembersById>& at_work = member.root->domain.at_work;
  if (!at_work) at_work = std::make_unique<MembersById>();
  has_some ? void(at_work->emplace(member.id, &member)) : void(at_work->erase(member.id));
}

void one_less_to_await(Execution& head, Effects& effects) {
  OutstandingWork& work = *head.work;
  PV2_ASSERT(work.last_order && work.last_order_awaits > 0,
             "whoever is ended by an order is counted");
  if (--work.last_order_awaits == 0) effects.durable.push_back(*work.last_order.release());
}

}  // namespace

OutstandingWork::OutstandingWork() = default;
OutstandingWork::~OutstandingWork() = default;

bool OutstandingWork::has(const PlaceOfWork& place) const noexcept {
  return std::any_of(pieces.begin(), pieces.end(), [&](const auto& piece) {
    return is_of_visit(*piece, place) && piece->index == place.index;
  });
}

void OutstandingWork::stop(std::vector<std::shared_ptr<PieceOfWork>>& told,
                           const PlaceOfWork* visit) {
  for (const auto& piece : pieces) {
    if (visit != nullptr && !is_of_visit(*piece, *visit)) continue;
    if (std::exchange(piece->told_to_stop, true)) continue;
    auto queued = PieceOfWork::State::kQueued;
    // Acquire and release: who finds it cancelled destroys what was made by who offloaded it.
    piece->state.compare_exchange_strong(queued, PieceOfWork::State::kCancelled,
                                         std::memory_order_acq_rel);
    told.push_back(piece);
  }
}

void work_looked_after(EngineCore& core, Execution& execution, Kept locks, Effects& effects) {
  if (has_work(execution)) return;
  PV2_ASSERT(!execution.work->held_back, "a record is held back only while work is outstanding");
  if (execution.phase == Phase::kInFlight || execution.work->ends) return;
  execution.work.reset();
  if (locks == Kept::kNo || !keeps_locks_for_work(execution)) return;
  if (execution.record.holds_locks) return give_back_locks(core, execution, effects);
  core.settle(execution, Disposition::kParkUnlock);
}

bool waits_for_work(StepCommit& last_order) {
  Execution& head = *last_order.execution;
  PV2_ASSERT(head.is_head(), "an order ends all of a domain");
  PV2_ASSERT(head.domain.ending == EndingOrder::kDurable,
             "what waits to be published is durable, and known to be");
  std::size_t awaited = 0;
  for_each_at_work(head, [&](Execution& member) {
    PV2_ASSERT(member.work->ended_with == nullptr || member.work->ended_with == &head,
               "a member is ended by one order");
    member.work->ended_with = &head;
    ++awaited;
  });
  if (awaited == 0) return false;
  if (!head.work) head.work = std::make_unique<OutstandingWork>();
  head.work->ends = true;
  PV2_ASSERT(!head.work->last_order, "what is ended by an order takes no other");
  head.work->last_order.reset(&last_order);
  head.work->last_order_awaits = awaited;
  return true;
}

bool Offloads::may_start(Execution& execution, const PlaceOfWork& place) {
  if (execution.work == nullptr) return true;
  StateLock lock(core_);
  if (!execution.work->has(place)) return true;
  execution.work->put_off_epoch = execution.wait.epoch;
  return false;
}

Status Offloads::start(Execution& execution, const PlaceOfWork& place,
                       std::unique_ptr<internal::OffloadedWork> work) {
  // Shared by its procedure, the pool and who tells it to stop: each may be the last to look.
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
  {
    StateLock lock(core_);
    PV2_ASSERT(execution.phase == Phase::kInFlight, "work is offloaded by a step that runs");
    if (!execution.work) execution.work = std::make_unique<OutstandingWork>();
    OutstandingWork& outstanding = *execution.work;
    PV2_ASSERT(!outstanding.held_back, "a procedure whose record is held back runs no step");
    if (outstanding.pieces.size() >= OutstandingWork::kPiecesMax) {
      return Status(StatusCode::kResourceExhausted,
                    "procedure " + std::to_string(execution.id.value) + " has " +
                        std::to_string(OutstandingWork::kPiecesMax) +
                        " pieces of offloaded work that have not ended and may not add another");
    }
    if (outstanding.pieces.empty()) {
      enter_flight(execution);
      note_work(execution, true);
    }
    piece->place = outstanding.pieces.insert(outstanding.pieces.end(), piece);
    if (!place.undo && failing_domain(execution) != nullptr) core_.stop_work(execution);
  }
  core_.pool->post_blocking([this, piece = std::move(piece)] { run(piece); });
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
  PV2_ASSERT(execution.phase == Phase::kInFlight, "a run that has ended is in flight");
  PV2_ASSERT(!execution.work->held_back, "a procedure has one record on the way");
  execution.work->held_back = std::move(commit);
}

void Offloads::stop(Execution& execution, const PlaceOfWork& visit) {
  StateLock lock(core_);
  PV2_ASSERT(execution.work != nullptr, "what is told to stop was offloaded");
  execution.work->stop(core_.state.work_to_stop, &visit);
}

void Offloads::tell_later() {
  core_.pool->post([this] { tell(); });
}

// What it calls is the host's: stop callbacks, and the destructors of callables that never ran.
void Offloads::tell() {
  std::vector<std::shared_ptr<PieceOfWork>> told;
  {
    StateLock lock(core_);
    told.swap(core_.state.work_to_stop);
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
    Execution* const found = core_.find(piece.id);
    PV2_ASSERT(found != nullptr, "a procedure stays as long as it has work outstanding");
    Execution& execution = *found;
    PV2_ASSERT(has_work(execution), "what ends was counted");
    OutstandingWork& outstanding = *execution.work;
    PV2_ASSERT(piece.place->get() == &piece, "a piece knows its place");
    outstanding.pieces.erase(piece.place);
    if (outstanding.pieces.empty()) note_work(execution, false);
    if (core_.unavailable().ok()) {  // else nobody runs any more
      core_.wake(piece.id, piece.epoch);
      if (const auto epoch = std::exchange(outstanding.put_off_epoch, std::nullopt)) {
        core_.wake(piece.id, *epoch);
      }
    }
    if (outstanding.pieces.empty()) {
      if (Execution* const head = std::exchange(outstanding.ended_with, nullptr)) {
        one_less_to_await(*head, effects);
      }
      if (outstanding.held_back) {
        released = std::move(outstanding.held_back);
      } else if (is_done_but_for_work(execution) && failing_domain(execution) == nullptr) {
        children_finished(core_, execution, effects);
      } else {
        work_looked_after(core_, execution, Kept::kMaybe, effects);
      }
      left_flight(core_, execution, effects);
    }
  }
  if (released) {  // its procedure stays in flight: nobody else touches it
    date_held_back(core_, *released);
    effects.commits.push_back(*released.release());
  }
  publisher_.perform(effects);
}

}  // namespace pv2
