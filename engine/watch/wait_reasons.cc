// SPDX-License-Identifier: Apache-2.0
//
// Read find(): it decides what holds a procedure up; each of the other functions adds the reason,
// or the reasons, of one kind.

#include "watch/wait_reasons.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/worker_run.h"
#include "model/rollback_plan.h"
#include "model/tree_walk.h"
#include "pv2/engine/executor_options.h"
#include "steps/offloads.h"
#include "tree/domains.h"
#include "tree/member_step.h"
#include "tree/members_at_work.h"
#include "watch/parking.h"

namespace pv2 {
namespace {

// Procedures that one reason names; each of them gets reasons of its own.
constexpr std::size_t kNamesMax = 8;

WaitReason::Kind kind_of(WaitLink::Why why) {
  using Kind = WaitReason::Kind;
  switch (why) {
    case WaitLink::Why::kHolder:
      return Kind::kLock;
    case WaitLink::Why::kAhead:
      return Kind::kLine;
    case WaitLink::Why::kLimit:
      return Kind::kLimit;
    case WaitLink::Why::kChild:
      return Kind::kChildren;
    case WaitLink::Why::kReported:
      return Kind::kProducer;
    case WaitLink::Why::kTurn:
      return Kind::kTurn;
  }
  return Kind::kLock;
}

void name(WaitReason& reason, ProcedureId id) {
  if (std::find(reason.on.begin(), reason.on.end(), id) != reason.on.end()) return;
  reason.on.size() < kNamesMax ? reason.on.push_back(id) : void(++reason.more);
}

bool is_on_the_move(const Execution& execution) {
  return execution.phase == Phase::kInFlight || execution.phase == Phase::kInserting;
}

bool wants_signals(const Execution& execution) {
  return execution.inbox && !execution.inbox->wanted.empty();
}

// Whether an operator's order ends the member as soon as its work has ended.
bool is_ended_by_order(const Execution& member) {
  return member.work() && member.work()->last_order;
}

Status find_standstill(EngineCore& core) PV2_REQUIRES(core.state_mutex) {
  Status stopped = core.unavailable();
  if (stopped.ok()) stopped = core.why_not_loaded();
  if (stopped.ok() && core.options.workers != 0 && !core.state.life.started) {
    stopped = Status(StatusCode::kFailedPrecondition, "start() was not called, so nothing runs");
  }
  return stopped;
}

// The procedures whose step a worker runs now.
std::vector<Execution*> find_running(EngineCore& core) PV2_REQUIRES(core.state_mutex) {
  std::vector<Execution*> found;
  for (std::size_t worker = 0; worker < core.running.size(); ++worker) {
    const auto running = core.running.look(worker);
    Execution* const execution = running ? core.find(running->id) : nullptr;
    if (execution != nullptr) found.push_back(execution);
  }
  return found;
}

}  // namespace

WaitReasons::WaitReasons(EngineCore& core)
    : core_(core),
      wall_(core.clock.wall_now()),
      steady_(core.clock.steady_now()),
      standstill_(find_standstill(core)),
      running_(find_running(core)) {}

std::vector<WaitReason> WaitReasons::of(Execution& execution) {
  reasons_.clear();
  find(execution);
  if (has_work(execution)) offloaded(execution);
  return std::move(reasons_);
}

void WaitReasons::find(Execution& execution) {
  Execution* const failed = failing_domain(execution);
  if (execution.is_quarantined()) {
    add(Kind::kQuarantined).error = execution.root()->domain.rare->cause;
  } else if (stands_still(execution)) {
    parked(execution);
  } else if (!standstill_.ok()) {
    add(Kind::kStopped).error = standstill_;
  } else if (is_ended_by_order(execution)) {
    if (!has_work(execution)) ended_by_order(execution);
  } else if (failed != nullptr && !is_on_the_move(execution) &&
             (!execution.has_turn() || failed->domain.makes_way())) {
    stopped_by_failure(*failed, execution);
  } else {
    by_phase(execution);
  }
}

void WaitReasons::by_phase(Execution& execution) {
  switch (execution.phase) {
    case Phase::kInserting:
      add(Kind::kSubmitting).age = age_of(execution.submitted);
      return;
    case Phase::kQueued:
      return queued(execution);
    case Phase::kInFlight:
      return in_flight(execution);
    case Phase::kWaiting:
      return waiting(execution);
    case Phase::kIdle:
    case Phase::kDropping:
      finished(execution);
      return;
  }
}

void WaitReasons::queued(const Execution& execution) {
  const QueuePlace place = core_.scheduler.place_of(execution, kNamesMax);
  if (place.where == QueuePlace::Where::kWaiting) return blockers(place);
  if (place.where == QueuePlace::Where::kOut) {  // polled: a worker is about to take it
    add(Kind::kQueued);
    return;
  }
  WaitReason& reason = add(Kind::kQueued);
  reason.ahead = place.ahead;
  reason.count = place.runnable;
}

// One reason per key and kind.
void WaitReasons::blockers(const QueuePlace& place) {
  for (const WaitLink& link : place.blockers) {
    const Kind kind = kind_of(link.why);
    auto at = std::find_if(reasons_.begin(), reasons_.end(), [&](const WaitReason& reason) {
      return reason.kind == kind && reason.key == link.key;
    });
    WaitReason& reason = at != reasons_.end() ? *at : add(kind);
    reason.key = link.key;
    reason.age = std::max(Duration::zero(), steady_ - link.since);
    if (link.awaited) name(reason, link.awaited);
  }
  if (reasons_.empty()) add(Kind::kQueued);  // its locks are granted at this moment
  reasons_.back().more += place.more;
}

void WaitReasons::in_flight(const Execution& execution) {
  if (execution.work() && execution.work()->held_back) return;  // offloaded() adds the reason
  for (std::size_t worker = 0; worker < core_.running.size(); ++worker) {
    const auto running = core_.running.look(worker);
    if (!running) continue;  // a worker between two steps delays no procedure
    if (running->id == execution.id) {
      add(Kind::kRunning).age = age_of(running->since);
      return;
    }
    const auto place = core_.runs[worker].place_of(execution.id);
    if (place == WorkerRun::Place::kNone) continue;
    name(add(place == WorkerRun::Place::kFinished ? Kind::kRun : Kind::kTaken), running->id);
    return;
  }
  add(Kind::kCommitting);
}

void WaitReasons::waiting(const Execution& execution) {
  if (is_done_but_for_work(execution)) return;  // offloaded() adds the reason
  if (execution.children().unfinished != 0 && !execution.has_turn()) return children(execution);
  if (execution.slots.empty() && !wants_signals(execution)) return only_time(execution);
  awaited(execution);
}

void WaitReasons::only_time(const Execution& execution) {
  const bool again = execution.record.backs_off();
  WaitReason& reason = add(again ? Kind::kBackOff : Kind::kTimer);
  set_deadline(reason, execution);
  reason.attempt = execution.record.attempt;
  if (execution.record.failure() == nullptr) return;
  reason.error =
      execution.has_turn() ? execution.record.failure()->undo : execution.record.failure()->error;
}

void WaitReasons::awaited(const Execution& execution) {
  std::size_t events = 0;
  for (const AwaitSlot* const slot : execution.slots) {
    if (!slot->ready()) awaited_slot(*slot, execution, events);
  }
  if (execution.inbox) {
    const std::vector<SignalWish>& wanted = execution.inbox->wanted;
    const std::size_t named = std::min(wanted.size(), kNamesMax);
    for (std::size_t i = 0; i < named; ++i) {
      WaitReason& reason = add(Kind::kSignal);
      reason.name = wanted[i].name;
      set_deadline(reason, execution);
    }
    if (named != 0) reasons_.back().count = wanted.size() - named;
  }
  const QueuePlace place = core_.scheduler.place_of(execution, kNamesMax);
  if (!place.blockers.empty()) blockers(place);
  if (!reasons_.empty()) return;
  // All has arrived. Its step saw that and waits for a time; or the procedure is being woken.
  const bool is_being_woken = std::any_of(
      execution.slots.begin(), execution.slots.end(),
      [](const AwaitSlot* slot) { return !slot->is_of_offload() && !slot->has_woken(); });
  if (execution.record.deadline && !is_being_woken) return only_time(execution);
  if (!has_work(execution)) add(Kind::kQueued);  // else offloaded() adds the reason
}

// One reason for each of the first events, the last of which counts the others; one for all values,
// and one for all offloaded work. So there are few reasons to search.
void WaitReasons::awaited_slot(const AwaitSlot& slot, const Execution& execution,
                               std::size_t& events) {
  if (const auto* const event = dynamic_cast<const EventSlot*>(&slot)) {
    if (events++ >= kNamesMax) {
      ++last_of(Kind::kEvent).count;
      return;
    }
    WaitReason& reason = add(Kind::kEvent);
    reason.name = event->event().name();
    set_deadline(reason, execution);
    return;
  }
  const bool is_value = !slot.is_of_offload();
  WaitReason& reason = find_or_add(is_value ? Kind::kValue : Kind::kOffload);
  ++reason.count;
  set_deadline(reason, execution);
}

void WaitReasons::children(const Execution& execution) {
  WaitReason& reason = add(Kind::kChildren);
  reason.count = execution.children().unfinished;
  reason.age = age_of(execution.record.updated);
  // First those that the engine lists, then those that a walk comes to, the youngest first.
  const auto see = [&](const Execution& child) {
    const bool has_ended = child.record.state == ProcedureState::kSuccess || child.record.reported;
    if (child.parent_execution() == &execution && !has_ended && reason.on.size() < kNamesMax) {
      name(reason, child.id);
    }
  };
  std::for_each(running_.begin(), running_.end(), [&](Execution* member) { see(*member); });
  for_each_listed(execution.root()->domain.rare->standing, execution, see);
  const Execution* child = execution.children().last;
  const std::size_t most = std::min<std::size_t>(reason.count, kNamesMax);
  for (; child != nullptr && reason.on.size() < most && look_at_one_more();
       child = older_of_spawn(*child)) {
    see(*child);
  }
  std::sort(reason.on.begin(), reason.on.end());
  reason.more = reason.count - std::min(reason.count, reason.on.size());
}

void WaitReasons::stopped_by_failure(Execution& head, Execution& execution) {
  const Domain& domain = head.domain;
  const bool stays =
      execution.record.state == ProcedureState::kSuccess && !is_to_be_undone(execution);
  if (execution.record.state == ProcedureState::kRolledBack || stays ||
      !execution.is_undone_with_its_tree()) {
    finished(execution);
    return;
  }
  // The last turn, and the end, wait until no member is in flight.
  const bool last_waits = domain.is_undone() && domain.rare->rollback->begun_count() == 0 &&
                          domain.rare->in_flight_inside != 0;
  if (!domain.is_undone() || domain.makes_way() || last_waits) {
    // If the member has work itself, the others wait for that, and offloaded() adds the reason.
    if (!has_work(execution)) in_flight_around(head);
    return;
  }
  WaitReason& reason = add(Kind::kTurn);
  const std::vector<Execution*> begun = domain.rare->rollback->begun(kNamesMax);
  for (const Execution* const member : begun) name(reason, member->id);
  reason.more += domain.rare->rollback->begun_count() - begun.size();
  if (reason.on.empty()) name(reason, head.id);
}

// An operator's order ends it as soon as the work under it has ended. Names members with such work.
void WaitReasons::ended_by_order(const Execution& head) {
  WaitReason& reason = add(Kind::kTreeInFlight);
  const OutstandingWork& work = *head.work();
  for_each_listed(head.root()->domain.rare->at_work, head, [&](const Execution& member) {
    if (member.work()->ended_with == &head) name(reason, member.id);
  });
  reason.more = work.last_order_awaits - std::min(work.last_order_awaits, reason.on.size());
}

// Names the members in flight: first those that run a step or have work outstanding, which the
// engine lists, then those that a walk comes to. The head counts all, so `more` is right even if
// the tree is too large for the walk. A member that an order ends is waited for only if it has
// work.
void WaitReasons::in_flight_around(Execution& head) {
  WaitReason& reason = add(Kind::kTreeInFlight);
  std::set<const Execution*> seen;
  std::size_t unseen = head.domain.rare->in_flight_inside;
  const auto see = [&](Execution& member) {
    if (!seen.insert(&member).second) return;
    const bool moves = member.phase == Phase::kInFlight || member.phase == Phase::kDropping;
    const bool works = has_work(member);
    if ((moves && !is_ended_by_order(member)) || works) name(reason, member.id);
    if (failing_domain(member) != &head) return;  // the head does not count it yet
    const std::size_t flights = (moves ? 1 : 0) + (works ? 1 : 0);
    unseen -= std::min(unseen, flights);
  };
  const auto see_listed = [&](Execution& member) {
    if (failing_domain(member) == &head) see(member);
  };
  std::for_each(running_.begin(), running_.end(), [&](Execution* member) { see_listed(*member); });
  for_each_listed(head.root()->domain.rare->at_work, head, [&](Execution& member) {
    see_listed(member);
    if (member.work()->ended_with != nullptr) see_listed(*member.work()->ended_with);
  });
  for (Execution& member : Subtree(head)) {
    if (!look_at_one_more()) {
      reason.more += unseen;
      return;
    }
    see(member);
  }
}

// Also counts work that the procedure does not await, or no longer awaits.
void WaitReasons::offloaded(const Execution& execution) {
  const auto& pieces = execution.work()->pieces;
  WaitReason& reason = find_or_add(Kind::kOffload);
  reason.count = pieces.size();
  reason.age = std::max(Duration::zero(), steady_ - pieces.front()->since);
  for (const auto& piece : pieces) {
    const auto heartbeat = piece->work->last_heartbeat();
    if (!heartbeat) continue;
    const Duration ago = std::max(Duration::zero(), steady_ - *heartbeat);
    reason.heartbeat = std::min(ago, reason.heartbeat.value_or(ago));
  }
}

// Names the member whose undo is parked, unless it is this one.
void WaitReasons::parked(Execution& execution) {
  WaitReason& reason = add(Kind::kParked);
  reason.error = why_parked(execution, parked_looks_);
  if (execution.record.parked) return;
  Execution& head = parked_head(execution);
  if (head.domain.state == DomainState::kParkedBeyond) return;
  const Execution* const parked = parked_undo(head, parked_looks_);
  parked != nullptr ? name(reason, parked->id) : void(++reason.more);
}

void WaitReasons::finished(const Execution& execution) {
  WaitReason& reason = add(Kind::kFinished);
  if (execution.record.state != ProcedureState::kSuccess && execution.record.failure()) {
    reason.error = execution.record.failure()->error;
  }
}

WaitReason& WaitReasons::add(Kind kind) {
  WaitReason& reason = reasons_.emplace_back();
  reason.kind = kind;
  return reason;
}

WaitReason& WaitReasons::find_or_add(Kind kind) {
  const auto at = std::find_if(reasons_.begin(), reasons_.end(),
                               [&](const WaitReason& reason) { return reason.kind == kind; });
  return at != reasons_.end() ? *at : add(kind);
}

WaitReason& WaitReasons::last_of(Kind kind) {
  const auto at = std::find_if(reasons_.rbegin(), reasons_.rend(),
                               [&](const WaitReason& reason) { return reason.kind == kind; });
  PV2_ASSERT(at != reasons_.rend(), "there is a reason of that kind");
  return *at;
}

// Visits members that the root of `top` lists and that may be below `top`, whose ids are higher.
template <class Visit>
void WaitReasons::for_each_listed(const std::unique_ptr<MembersById>& list, const Execution& top,
                                  Visit&& visit) {
  if (!list) return;
  for (auto at = list->lower_bound(top.id); at != list->end() && look_at_one_more(); ++at) {
    visit(*at->second);
  }
}

bool WaitReasons::look_at_one_more() {
  if (looks_left_ == 0) return false;
  --looks_left_;
  return true;
}

void WaitReasons::set_deadline(WaitReason& reason, const Execution& execution) const {
  if (!execution.record.deadline) return;
  reason.left = execution.wait.due > steady_ ? execution.wait.due - steady_ : Duration::zero();
  reason.deadline = later(wall_, reason.left);
}

Duration WaitReasons::age_of(WallTime since) const {
  return std::max(Duration::zero(), wall_ - since);
}

}  // namespace pv2
