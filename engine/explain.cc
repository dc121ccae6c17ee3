// SPDX-License-Identifier: Apache-2.0
//
// Read follow_all(), then reasons_of(): the one place where what the engine knows of a procedure
// becomes a reason. Facts of queues and locks come from the scheduler, whose mutex is inside the
// state mutex.

#include "explain.h"

#include <algorithm>
#include <utility>

#include "offloads.h"
#include "tree.h"
#include "tree_walk.h"

namespace pv2 {
namespace {

// An answer with more procedures is read by nobody.
constexpr std::size_t kProceduresMax = 64;
// How many one reason names; each of them gets reasons of its own.
constexpr std::size_t kNamesMax = 8;
// Tree members that one explanation looks at, in one critical section.
constexpr std::size_t kMembersMax = kSectionPauses;

// A root that has ended and whose result is in memory.
Explanation ended(const ProcedureResult& result) {
  Explanation answer;
  auto& procedure = answer.procedures.emplace_back();
  procedure.id = result.id;
  procedure.state = result.state;
  WaitReason& reason = procedure.reasons.emplace_back();
  reason.kind = WaitReason::Kind::kFinished;
  reason.error = result.status;
  return answer;
}

class Explainer {
 public:
  explicit Explainer(EngineCore& core)
      : core_(core), wall_(core.clock.wall_now()), steady_(core.clock.steady_now()) {}

  Result<Explanation> run(ProcedureId id) PV2_EXCLUDES(core_.state_mutex) {
    StateLock lock(core_);
    Execution* const execution = core_.find(id);
    if (execution != nullptr) {
      core_.flush();  // so that who is said to be queued is in a queue
      follow_all(*execution);
      return std::move(answer_);
    }
    const Completed* const completed = core_.state.completed.find(id);
    if (completed != nullptr) return ended(completed->result);
    const bool issued = id && id.value < core_.state.next_id;
    return Status(StatusCode::kNotFound,
                  "procedure " + std::to_string(id.value) +
                      (issued ? " is not live: it has ended; wait() knows its result"
                              : " does not exist and never did"));
  }

 private:
  using Kind = WaitReason::Kind;

  void follow_all(Execution& first) PV2_REQUIRES(core_.state_mutex) {
    wanted_.push_back(&first);
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      Execution& execution = *wanted_[i];
      Explanation::Procedure procedure;
      procedure.id = execution.id;
      procedure.type = execution.name_of_type();
      procedure.state = execution.record.state;
      const std::uint32_t undoes = step_to_undo(execution);
      procedure.undo = undoes != 0;
      procedure.step = procedure.undo ? undoes : execution.record.step;
      const StepInfo* const step =
          execution.type != nullptr ? execution.type->find_step(procedure.step) : nullptr;
      if (step != nullptr) procedure.step_name = step->name;
      reasons_ = &procedure.reasons;
      reasons_of(execution);
      if (has_work(execution)) offloaded(execution);
      follow(procedure.reasons);
      answer_.procedures.push_back(std::move(procedure));
    }
  }

  WaitReason& add(Kind kind) {
    WaitReason& reason = reasons_->emplace_back();
    reason.kind = kind;
    return reason;
  }

  static void name(WaitReason& reason, ProcedureId id) {
    if (std::find(reason.on.begin(), reason.on.end(), id) != reason.on.end()) return;
    reason.on.size() < kNamesMax ? reason.on.push_back(id) : void(++reason.more);
  }

  // Whom these reasons name is explained too, as far as there is room.
  void follow(const std::vector<WaitReason>& reasons) PV2_REQUIRES(core_.state_mutex) {
    for (const WaitReason& reason : reasons) {
      for (const ProcedureId id : reason.on) {
        Execution* const next = core_.find(id);
        if (next == nullptr || std::find(wanted_.begin(), wanted_.end(), next) != wanted_.end()) {
          continue;
        }
        wanted_.size() < kProceduresMax ? wanted_.push_back(next) : void(++answer_.left_out);
      }
    }
  }

  void reasons_of(Execution& execution) PV2_REQUIRES(core_.state_mutex) {
    Execution* const failed = failing_domain(execution);
    if (execution.is_quarantined()) {
      add(Kind::kQuarantined).error = execution.root->domain.cause;
    } else if (stands_still(execution)) {
      parked(execution);
    } else if (const Status stopped = standstill(); !stopped.ok()) {
      add(Kind::kStopped).error = stopped;
    } else if (execution.work && execution.work->last_order) {
      if (!has_work(execution)) in_flight_around(execution);
    } else if (failed != nullptr && !is_on_the_move(execution) &&
               (execution.turn.step == 0 || failed->domain.makes_way())) {
      stopped_by_failure(*failed, execution);
    } else {
      by_phase(execution);
    }
  }

  [[nodiscard]] Status standstill() const PV2_REQUIRES(core_.state_mutex) {
    Status stopped = core_.unavailable();
    if (stopped.ok() && core_.options.workers != 0 && !core_.state.started) {
      stopped = Status(StatusCode::kFailedPrecondition, "start() was not called, so nothing runs");
    }
    return stopped;
  }

  static bool is_on_the_move(const Execution& execution) {
    return execution.phase == Phase::kInFlight || execution.phase == Phase::kInserting;
  }

  void by_phase(Execution& execution) PV2_REQUIRES(core_.state_mutex) {
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

  void queued(const Execution& execution) PV2_REQUIRES(core_.state_mutex) {
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
  void blockers(const QueuePlace& place) {
    for (const WaitLink& link : place.blockers) {
      const Kind kind = kind_of(link.why);
      auto at = std::find_if(reasons_->begin(), reasons_->end(), [&](const WaitReason& reason) {
        return reason.kind == kind && reason.key == link.key;
      });
      WaitReason& reason = at != reasons_->end() ? *at : add(kind);
      reason.key = link.key;
      reason.age = std::max(Duration::zero(), steady_ - link.since);
      if (link.awaited) name(reason, link.awaited);
    }
    if (reasons_->empty()) add(Kind::kQueued);  // it is granted at this moment
    reasons_->back().more += place.more;
  }

  static Kind kind_of(WaitLink::Why why) {
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

  void in_flight(const Execution& execution) PV2_REQUIRES(core_.state_mutex) {
    if (execution.work && execution.work->held_back) return;  // offloaded() says the reason
    for (std::size_t worker = 0; worker < core_.running.size(); ++worker) {
      const auto running = core_.running.look(worker);
      if (!running) continue;  // it hands over at once
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

  void waiting(const Execution& execution) PV2_REQUIRES(core_.state_mutex) {
    if (is_done_but_for_work(execution)) return;  // likewise
    if (execution.unfinished_children != 0 && execution.turn.step == 0) {
      return children(execution);
    }
    const bool wants_signals = execution.inbox && !execution.inbox->wanted.empty();
    const bool only_time = execution.slots.empty() && !wants_signals;
    if (only_time) {
      const bool again = execution.record.backs_off();
      WaitReason& reason = add(again ? Kind::kBackOff : Kind::kTimer);
      set_deadline(reason, execution);
      reason.attempt = execution.record.attempt;
      if (!execution.record.failure) return;
      reason.error = execution.turn.step != 0 ? execution.record.failure->undo
                                              : execution.record.failure->error;
      return;
    }
    awaited(execution);
  }

  void awaited(const Execution& execution) PV2_REQUIRES(core_.state_mutex) {
    for (const auto& slot : execution.slots) {
      if (slot->ready()) continue;
      if (const auto* const event = dynamic_cast<const EventSlot*>(slot.get())) {
        WaitReason& reason = add(Kind::kEvent);
        reason.name = event->event().name();
        set_deadline(reason, execution);
        continue;
      }
      const Kind kind =
          slot->source() == AwaitSlot::Source::kCompletion ? Kind::kValue : Kind::kOffload;
      auto at = std::find_if(reasons_->begin(), reasons_->end(),
                             [&](const WaitReason& reason) { return reason.kind == kind; });
      WaitReason& reason = at != reasons_->end() ? *at : add(kind);
      ++reason.count;
      set_deadline(reason, execution);
    }
    if (execution.inbox) {
      for (const SignalWish& wish : execution.inbox->wanted) {
        WaitReason& reason = add(Kind::kSignal);
        reason.name = wish.name;
        set_deadline(reason, execution);
      }
    }
    const QueuePlace place = core_.scheduler.place_of(execution, kNamesMax);
    if (!place.blockers.empty()) blockers(place);
    if (reasons_->empty()) add(Kind::kQueued);  // all has arrived: it is woken at this moment
  }

  void children(const Execution& execution) PV2_REQUIRES(core_.state_mutex) {
    WaitReason& reason = add(Kind::kChildren);
    reason.count = execution.unfinished_children;
    reason.age = age_of(execution.record.updated);
    std::size_t found = 0;
    const Execution* child = execution.links.last_child;
    for (; child != nullptr && look_at_one_more(); child = older_of_spawn(*child)) {
      if (child->record.state == ProcedureState::kSuccess || child->record.reported) continue;
      name(reason, child->id);
      if (++found == std::min<std::size_t>(reason.count, kNamesMax)) break;
    }
    std::reverse(reason.on.begin(), reason.on.end());
    reason.more = reason.count - std::min(reason.count, reason.on.size());
  }

  void stopped_by_failure(Execution& head, Execution& execution) PV2_REQUIRES(core_.state_mutex) {
    const Domain& domain = head.domain;
    const bool stays =
        execution.record.state == ProcedureState::kSuccess && !is_to_be_undone(execution);
    if (execution.record.state == ProcedureState::kRolledBack || stays ||
        !execution.is_undone_with_its_tree()) {
      finished(execution);
      return;
    }
    if (!domain.is_undone() || domain.makes_way()) {
      if (!has_work(execution)) in_flight_around(head);  // else that is what the others wait for
      return;
    }
    WaitReason& reason = add(Kind::kTurn);
    const std::vector<Execution*> begun = domain.rollback->begun(kNamesMax);
    for (const Execution* const member : begun) name(reason, member->id);
    reason.more += domain.rollback->begun_count() - begun.size();
    if (reason.on.empty()) name(reason, head.id);
  }

  // Of who is ended by an order, only its work.
  void in_flight_around(Execution& head) PV2_REQUIRES(core_.state_mutex) {
    WaitReason& reason = add(Kind::kTreeInFlight);
    for_each_member(head, [&](const Execution& member) {
      const bool moves = member.phase == Phase::kInFlight || member.phase == Phase::kDropping;
      const bool is_ended = member.work && member.work->last_order;
      if ((moves && !is_ended) || has_work(member)) name(reason, member.id);
    });
  }

  // Also of work that the procedure does not await any more, or does not await yet.
  void offloaded(const Execution& execution) PV2_REQUIRES(core_.state_mutex) {
    const auto& pieces = execution.work->pieces;
    auto at = std::find_if(reasons_->begin(), reasons_->end(),
                           [](const WaitReason& reason) { return reason.kind == Kind::kOffload; });
    WaitReason& reason = at != reasons_->end() ? *at : add(Kind::kOffload);
    reason.count = pieces.size();
    reason.age = std::max(Duration::zero(), steady_ - pieces.front()->since);
    for (const auto& piece : pieces) {
      const auto heartbeat = piece->work->last_heartbeat();
      if (!heartbeat) continue;
      const Duration ago = std::max(Duration::zero(), steady_ - *heartbeat);
      reason.heartbeat = std::min(ago, reason.heartbeat.value_or(ago));
    }
  }

  void parked(Execution& execution) PV2_REQUIRES(core_.state_mutex) {
    WaitReason& reason = add(Kind::kParked);
    Execution* const failed = failing_domain(execution);
    Execution& head = failed != nullptr ? *failed : execution;
    const Execution* culprit = execution.record.parked ? &execution : nullptr;
    for_each_member(head, [&](const Execution& member) {
      if (culprit == nullptr && member.record.parked) culprit = &member;
    });
    if (culprit != nullptr && culprit != &execution) name(reason, culprit->id);
    reason.error = culprit != nullptr && culprit->record.failure ? culprit->record.failure->shown()
                                                                 : head.domain.cause;
  }

  void finished(const Execution& execution) {
    WaitReason& reason = add(Kind::kFinished);
    if (execution.record.state != ProcedureState::kSuccess && execution.record.failure) {
      reason.error = execution.record.failure->error;
    }
  }

  template <class Visit>
  void for_each_member(Execution& root, Visit&& visit) {
    for (const Execution& member : Subtree(root)) {
      if (!look_at_one_more()) return;
      visit(member);
    }
  }

  bool look_at_one_more() { return members_looked_at_++ < kMembersMax; }

  void set_deadline(WaitReason& reason, const Execution& execution) {
    if (!execution.record.deadline) return;
    reason.left = execution.wait.due > steady_ ? execution.wait.due - steady_ : Duration::zero();
    reason.deadline = later(wall_, reason.left);
  }

  [[nodiscard]] Duration age_of(WallTime since) const {
    return std::max(Duration::zero(), wall_ - since);
  }

  EngineCore& core_;
  const WallTime wall_;
  const SteadyTime steady_;
  Explanation answer_;
  std::vector<Execution*> wanted_;              // explained, or to be: in the order of the answer
  std::vector<WaitReason>* reasons_ = nullptr;  // of the one that is being explained
  std::size_t members_looked_at_ = 0;
};

// Circles and root causes, of a finished answer: needs no lock. (Why it does not ask the scheduler
// for its circles: docs/decisions/0017-kept-after-review.md.)
class Circles {
 public:
  explicit Circles(Explanation& answer) : answer_(answer), marks_(answer.procedures.size()) {}

  void complete() {
    for (const Explanation::Procedure& procedure : answer_.procedures) {
      bool waits_for_somebody = false;
      for (const WaitReason& reason : procedure.reasons) {
        for (const ProcedureId id : reason.on) {
          if (answer_.find(id) != nullptr) waits_for_somebody = true;
        }
      }
      if (!waits_for_somebody) answer_.root_causes.push_back(procedure.id);
    }
    for (std::size_t i = 0; i < marks_.size(); ++i) visit(i);
  }

 private:
  enum class Mark : std::uint8_t { kNew, kOnPath, kDone };

  // Depth first; as deep as there are procedures, of which there are few.
  void visit(std::size_t index) {
    if (marks_[index] != Mark::kNew) return;
    marks_[index] = Mark::kOnPath;
    path_.push_back(index);
    for (const WaitReason& reason : answer_.procedures[index].reasons) {
      for (const ProcedureId id : reason.on) {
        const Explanation::Procedure* const next = answer_.find(id);
        if (next == nullptr) continue;
        const auto at = static_cast<std::size_t>(next - answer_.procedures.data());
        if (marks_[at] == Mark::kOnPath) close(at);
        visit(at);
      }
    }
    path_.pop_back();
    marks_[index] = Mark::kDone;
  }

  void close(std::size_t start) {
    auto& cycle = answer_.cycles.emplace_back();
    for (auto at = std::find(path_.begin(), path_.end(), start); at != path_.end(); ++at) {
      cycle.push_back(answer_.procedures[*at].id);
    }
  }

  Explanation& answer_;
  std::vector<Mark> marks_;
  std::vector<std::size_t> path_;
};

}  // namespace

Result<Explanation> explain(EngineCore& core, ProcedureId id) {
  Result<Explanation> answer = Explainer(core).run(id);
  if (answer.ok()) Circles(*answer).complete();
  return answer;
}

}  // namespace pv2
