// SPDX-License-Identifier: Apache-2.0
//
// Join, failure, rollback and end of a tree. Every function here runs under the state mutex. What
// is done to all members of a tree is done in sections, see tree_work.h.

#include "tree.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "messages.h"
#include "offloads.h"
#include "record_codec.h"
#include "results.h"
#include "tree_walk.h"

namespace pv2 {
namespace {

// The sequence of a turn whose undo has begun: newer than that of any other turn. A restart and the
// failure of a wider domain make a new plan; it undoes these turns first, because each may be half
// done and still has what it needs.
constexpr CommitSequence kBegunTurn{UINT64_MAX};

// Children looked at with each record of their parent: more than most steps spawn, and with those
// that leave not half of what a section may have.
constexpr std::size_t kExaminedAtOnce = 128;
// Rows of members that left early are deleted together: what is left of that after a crash is found
// again, so a batch may wait.
constexpr std::size_t kDroppedAtOnce = 64;
// Turns that are sorted under the mutex: in as long as it takes to take it twice.
constexpr std::size_t kSortedAtOnce = 256;

// Whether an attempt at the step that it is at has ended in a wait or a back-off. A ring that is
// full of orders says no more.
bool has_tried(const Execution& execution) {
  for (std::size_t i = execution.record.history.size(); i-- > 0;) {
    const HistoryEntry last = execution.record.history.at(i);
    if (is_order(last.outcome)) continue;
    const bool tried =
        last.outcome == Outcome::Kind::kWait || last.outcome == Outcome::Kind::kRetry;
    return tried && last.step == execution.record.step;
  }
  return execution.record.history.size() == History::kCapacity;
}

// Whether its record stands at a step that is undone if it was begun.
bool stands_at_undoable_step(const Execution& member) {
  if (member.record.step == 0 || member.type == nullptr || member.record.no_return) return false;
  if (member.record.state != ProcedureState::kRunnable &&
      member.record.state != ProcedureState::kWaitingTimeout) {
    return false;
  }
  if (!member.record.undo.empty() && member.record.undo.back().step == member.record.step)
    return false;
  const StepInfo* const info = member.type->find_step(member.record.step);
  return info != nullptr && info->kind == StepKind::kUndoable;
}

bool was_left_in_the_middle(const Execution& member) {
  return member.started && stands_at_undoable_step(member);
}

// Whether it has a point of no return, before or behind it.
bool may_not_return(const Execution& member) {
  if (member.type == nullptr || member.record.no_return) return true;
  return std::any_of(member.type->steps.begin(), member.type->steps.end(),
                     [](const StepInfo& step) { return step.kind == StepKind::kPointOfNoReturn; });
}

// Whether something in the tree can be neither finished nor undone, and if so what.
const Execution* beyond_return(Execution& head) {
  const Execution* found = nullptr;
  if (head.record.sent_back || head.root->domain.beyond == 0) return nullptr;
  for (Execution& member : Subtree(head)) {
    if (stands_beyond_return(member)) found = &member;
  }
  return found;
}

// Its root knows which heads are parked.
void move_to(Execution& head, DomainState state) {
  PV2_ASSERT(head.is_head(), "only a head has the state of a domain");
  head.domain.state.move_to(state);
  note_parked(head);
}

void park_tree(EngineCore& core, Execution& head, DomainState how, const std::string& why,
               Effects& effects) PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(is_parked(how), "what is parked waits for an operator");
  move_to(head, how);
  core.tell(ProcedureNews::Kind::kParked, head, Status(StatusCode::kFailedPrecondition, why));
  effects.log(LogLevel::kError, "procedure " + std::to_string(head.id.value) + " (" +
                                    std::string(head.name_of_type()) +
                                    ") is parked with its locks: " + why);
}

// What the records of the heads around a member say of the step at which it stands: nothing, or
// whether it was in the middle of it when one of them was about to be undone.
std::optional<bool> recorded_interruption(Execution& member) {
  std::optional<bool> said;
  if (member.root->domain.heads_that_say_it == 0) return said;
  for (Execution* head = &member.own_head(); head != nullptr; head = head->outer_domain()) {
    const InterruptedMembers* const interrupted = head->record.interrupted.get();
    if (interrupted != nullptr) said = said.value_or(true) && interrupted->contains(member.id);
  }
  return said;
}

bool is_known_not_begun(Execution& member) { return !recorded_interruption(member).value_or(true); }

// Of a member: the failure that its record names, if it is of the domain of `head`, and not of one
// within it: that was to be reported, and is not why this one failed.
const Failure* failure_within(Execution& member, const Execution& head) {
  const Failure* const failure = member.record.failure.get();
  // The one that failed may be undone already, when a restart comes in the middle of a rollback.
  const bool failed = member.record.state == ProcedureState::kFailed ||
                      member.record.state == ProcedureState::kRolledBack;
  if (failure == nullptr || failure->error.ok() || !failed) return nullptr;
  return &member.own_head() == &head ? failure : nullptr;
}

// The failure, or the abort, that was durable first. `first` is that of the members.
Status cause_of(const Execution& head, const Failure* first) {
  const InboxMessage* const abort = head.inbox ? head.inbox->abort() : nullptr;
  if (abort != nullptr && (first == nullptr || abort->sequence < first->sequence)) {
    return error_of(*abort);
  }
  return first != nullptr ? first->error
                          : Status(StatusCode::kInternal, "a member failed without an error");
}

bool is_live_head(const Execution& member) { return member.reports() && !member.record.reported; }

// A wider domain has failed: its plan replaces that of the domain of `member`, as after a restart.
// A member stays interrupted in its step if no record of an undo names that step.
void forget_that_it_was_stopped(Execution& member) {
  const std::unique_ptr<StoppedStep> record = std::move(member.stopped);
  if (record == nullptr || member.record.state != ProcedureState::kFailed) return;
  const bool undone = member.record.step == 0;
  const bool recorded =
      !member.record.undo.empty() && member.record.undo.back().step == member.record.step;
  if (undone || recorded) return;
  member.record.state = record->state;
  member.record.attempt = record->attempt;
  member.record.deadline = record->deadline;
  member.record.failure = std::move(record->failure);
  if (std::exchange(member.record.parked, record->parked) != record->parked) note_parked(member);
}

void forget_plan(Execution& inner_head, Effects& effects) {
  Domain& inner = inner_head.domain;
  move_to(inner_head, DomainState::kForward);
  inner.parked_undos = 0;
  if (inner.rollback) effects.retired_plans.push_back(std::move(inner.rollback));
  inner.cause = Status();
}

void forget_inner_plans(Execution& head, Effects& effects) {
  for (Execution& member : Subtree(head)) {
    member.turn.step = 0;
    if (&member == &head) continue;
    forget_that_it_was_stopped(member);
    if (is_live_head(member)) forget_plan(member, effects);
  }
}

// Whether an undo of it has begun and is not over, by its record. An undo of which nothing was
// recorded yet is not found: a restart would know nothing of it either.
bool has_begun_undo(const Execution& member) {
  if (member.record.state != ProcedureState::kFailed || member.record.undo.empty()) return false;
  if (member.record.parked || member.record.history.size() == 0) return member.record.parked;
  const HistoryEntry last = member.record.history.at(member.record.history.size() - 1);
  const bool is_over =
      last.outcome == Outcome::Kind::kUndone || last.outcome == Outcome::Kind::kSkipped;
  return last.undo && !is_over;
}

// What of `member` is to be undone, it has failed from now on.
void plan_member(Execution& member, std::vector<UndoTurn>& turns) {
  PV2_ASSERT(member.turn.step == 0, "a turn begins when the plan is made");
  if (!member.is_undone_with_its_tree() || member.record.state == ProcedureState::kRolledBack)
    return;
  member.turn.left = 0;
  for (const UndoEntry& entry : member.record.undo) {
    turns.push_back({&member, entry});
    ++member.turn.left;
  }
  if (was_left_in_the_middle(member)) {
    turns.push_back({&member, {member.record.step, kUnfinishedStep}});
    ++member.turn.left;
    member.stopped =
        std::make_unique<StoppedStep>(StoppedStep{.state = member.record.state,
                                                  .parked = member.record.parked,
                                                  .attempt = member.record.attempt,
                                                  .deadline = member.record.deadline,
                                                  .failure = std::move(member.record.failure)});
  }
  if (has_begun_undo(member)) {
    PV2_ASSERT(member.stopped == nullptr, "an undo that has begun is recorded with its step");
    turns.back().entry.sequence = kBegunTurn;
  }
  if (member.record.state == ProcedureState::kFailed) return;
  // Whatever it had to say about earlier attempts is not why the tree failed.
  member.record.state = ProcedureState::kFailed;
  if (std::exchange(member.record.parked, false)) note_parked(member);
  member.record.failure.reset();
  member.record.deadline.reset();
  member.record.attempt = 1;
}

TreeWork& begin_work(EngineCore& core, Execution& head, TreeWork::Kind kind)
    PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(head.is_head() && head.domain.work == nullptr,
             "one work at a time on what fails together");
  TreeWorks*& works = head.root->domain.works;
  if (works == nullptr) works = &core.state.tree_works.emplace_back(*head.root);
  TreeWork& work = *works->queue.emplace_back(std::make_unique<TreeWork>(kind, head));
  head.domain.work = &work;
  core.tree_work_waits.store(true);
  return work;
}

// What a restart would take `member` for, if nothing said who was in the middle of a step.
void note_interruption(TreeWork& work, Execution& member) {
  if (!member.is_undone_with_its_tree() || member.record.state == ProcedureState::kRolledBack)
    return;
  const bool interrupted = was_left_in_the_middle(member);
  work.has_turns = work.has_turns || interrupted || !member.record.undo.empty();
  if (!stands_at_undoable_step(member)) return;
  if (is_known_not_begun(member)) {
    PV2_ASSERT(!interrupted, "what a record says was not begun has not begun since");
    return;
  }
  const bool seems_begun = may_have_begun(member, member.record.holds_locks);
  PV2_ASSERT(seems_begun || !interrupted, "a restart sees that a step may have been begun");
  if (!seems_begun) return;
  work.candidates.push_back({member.id, interrupted});
  work.misleads = work.misleads || !interrupted;
}

// Who was in the middle of a step only this run knows; by its record a member whose step never
// began looks the same. So a record says it before the first undo is called that is made durable,
// or a restart would undo what never ran, and do so after what was done before it. Once: nothing
// has gone forward since.
bool misleads_a_restart(const TreeWork& work) {
  return !work.head.record.interrupted && work.misleads && work.has_turns;
}

// The rollback is planned when the record is published.
void record_who_was_interrupted(EngineCore& core, TreeWork& work, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  Execution& head = work.head;
  PV2_ASSERT(work.interrupted != nullptr, "it is known who was in the middle of a step");
  PV2_ASSERT(head.phase == Phase::kIdle, "the head of what is about to be undone does nothing");
  auto commit = core.state.spare_steps.take();
  commit->execution = &head;
  Transition& same = commit->next;
  same = as_it_is(core, head);
  same.interrupted = std::move(work.interrupted);
  if (head.record.failure && head.record.state != ProcedureState::kFailed)
    same.error = head.record.failure->shown();
  update_state(head, same, head.record.step, commit->batch);
  head.phase.move_to(Phase::kInFlight);
  enter_flight(head);
  effects.commits.push_back(*commit.release());
}

// Makes the last record of a procedure that has no step left to run: no user code is needed for it.
// One that `ends_domain` is the head of what was undone.
enum class LastRecord : std::uint8_t { kOfMember, kEndsDomain };
void commit_last_record(EngineCore& core, Execution& execution, ProcedureState state,
                        LastRecord which, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(is_finished(state), "the last record is that of an end");
  PV2_ASSERT(execution.phase != Phase::kInFlight, "a procedure has one record on the way");
  PV2_ASSERT(!has_work(execution), "who ends has no work outstanding");
  auto commit = core.state.spare_steps.take();
  commit->execution = &execution;
  Transition& last = commit->next;
  last.begin(execution.record, core.clock.wall_now());
  last.state = state;
  last.step = 0;
  last.parked = last.unsure = last.holds_locks = false;
  if (state == ProcedureState::kSuccess) last.result = execution.record.result.view();
  if (state == ProcedureState::kRolledBack) {
    last.error = execution.domain.cause;
    last.bypassed = execution.record.sent_back;
    last.reported = which == LastRecord::kEndsDomain && !execution.is_root();
  }
  core.date_end(execution, last);
  update_state(execution, last, 0, commit->batch);
  execution.phase.move_to(Phase::kInFlight);
  enter_flight(execution);
  effects.commits.push_back(*commit.release());
}

// What a member holds while others are undone before it may be what those need, or others who keep
// them waiting. For what it spawned itself it waits anyway, like every parent.
void wait_for_turn(EngineCore& core, Execution& member, Execution& scope)
    PV2_REQUIRES(core.state_mutex) {
  core.end_reported_wait(member);
  const bool keeps_others_out = !member.locks.empty() && member.holds_locks();
  if (&member == &scope || !keeps_others_out) return;
  core.report_wait(member, scope, WaitLink::Why::kTurn);
}

// Who holds locks and has nothing to undo (a child that was never begun) gives them back, by a
// record: a sibling that has finished may need them to be undone, and nobody else would give way.
void give_back_idle_locks(EngineCore& core, Execution& member, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  const bool idle = member.record.state == ProcedureState::kFailed && member.turn.left == 0;
  if (!idle || member.record.parked || member.locks.empty() || !member.holds_locks()) return;
  commit_last_record(core, member, ProcedureState::kRolledBack, LastRecord::kOfMember, effects);
}

void begin_turn(EngineCore& core, Execution& head, const UndoTurn& turn, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  Execution& member = *turn.execution;
  PV2_ASSERT(
      member.phase == Phase::kIdle || (member.record.parked && member.phase == Phase::kInFlight),
      "a turn begins when its member does nothing, or an order about it is on the way");
  PV2_ASSERT(member.turn.left != 0, "a turn is one of those that are left of its member");
  PV2_ASSERT(failing_domain(member) == &head, "a turn is that of the widest domain that failed");
  member.turn.step = turn.entry.step;
  core.end_reported_wait(member);
  member.turn.leads = &member == &head;
  member.turn.ends_domain = member.turn.leads && head.domain.rollback->left() == 1;
  if (member.record.parked) return;  // what has to come after it waits with it
  // A back-off between two attempts to undo, or a wait for time alone; what was awaited beside it
  // is asked for anew.
  if (member.record.deadline && !member.record.awaits) {
    member.phase.move_to(Phase::kWaiting);
    core.arm_timer(member, effects);
    return;
  }
  core.queue(member, member.holds_locks() ? Disposition::kFront : Disposition::kBack);
}

// Whether the last turn may begin, or if it is over the head may end. It waits until nobody else is
// in flight; left_flight() comes back to it. What is parked may begin: it stands still in its turn.
bool may_end(Execution& head) {
  const Domain& domain = head.domain;
  if (domain.in_flight_inside != 0) return false;
  if (!domain.is_parked()) return true;
  const UndoTurn* const last = domain.rollback->last();
  return last != nullptr && domain.parked_undos == 1 && is_parked_in_undo(*last->execution);
}

// Whatever may be undone now; or the head ends, if nothing is left.
void begin_turns(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  Domain& domain = head.domain;
  RollbackPlan& rollback = *domain.rollback;
  // If a wider domain has failed meanwhile, its plan replaces this one. If a work on this domain is
  // under way, it begins the turns.
  if (domain.failing != &head || head.is_quarantined() || domain.work != nullptr) return;
  if (domain.makes_way()) return;
  PV2_ASSERT(domain.is_undone(), "turns are those of what is being undone");
  if (rollback.left() <= 1 && !may_end(head)) return;
  if (rollback.left() == 0) {
    return commit_last_record(core, head, ProcedureState::kRolledBack, LastRecord::kEndsDomain,
                              effects);
  }
  std::vector<const UndoTurn*> turns;
  while (core.looks.have_room() && rollback.may_begin()) {
    if (const UndoTurn* const turn = rollback.begin_next()) turns.push_back(turn);
  }
  if (!rollback.may_begin()) {
    for (const RollbackPlan::Wait& wait : rollback.take_new_waits(kSectionPauses / 2)) {
      wait_for_turn(core, *wait.member, *wait.scope);
    }
  }
  for (const UndoTurn* const turn : turns) begin_turn(core, head, *turn, effects);
  // Nobody but the last one is left to wait: it has begun.
  const bool all = !rollback.may_begin() && (!rollback.has_new_waits() || rollback.left() <= 1);
  if (!all) begin_work(core, head, TreeWork::Kind::kTurns);
}

// The order that is to end what fails together under `head` may have waited for what is just over.
void let_order_look(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex) {
  const EndingOrder order = head.domain.ending;
  if (order != EndingOrder::kWaits && order != EndingOrder::kMayGoOn) return;
  head.domain.ending = EndingOrder::kMayGoOn;
  core.tree_work_waits.store(true);
}

void stop_member(EngineCore& core, Execution& member) PV2_REQUIRES(core.state_mutex) {
  core.stop_work(member);
  switch (member.phase) {
    case Phase::kQueued:
      if (core.scheduler.withdraw(member)) {
        member.phase.move_to(Phase::kIdle);
      } else {  // a worker has polled it and is about to look
        member.phase.move_to(Phase::kDropping);
        enter_flight(member);
      }
      core.abandon_waits(member);
      break;
    case Phase::kWaiting:
      member.phase.move_to(Phase::kIdle);
      core.abandon_waits(member);
      break;
    case Phase::kInserting:
    case Phase::kInFlight:  // in flight: counted already
    case Phase::kDropping:
    case Phase::kIdle:
      break;
  }
}

}  // namespace

Execution* failing_domain(Execution& member) {
  Execution* const failing = member.own_head().domain.failing;
  PV2_ASSERT(failing == nullptr || failing->domain.state != DomainState::kForward,
             "what is said to have failed has failed");
  return failing;
}

bool is_in_flight(Execution& head) {
  const Domain& domain = head.domain;
  if (domain.work != nullptr) return true;
  return (domain.failing == &head ? domain.in_flight_inside : domain.in_flight) != 0;
}

bool failed_before(Execution& member, CommitSequence sequence) {
  return member.own_head().domain.first_failure < sequence;
}

bool is_parked(Execution& member) {
  const Domain& own = member.own_head().domain;
  return member.record.parked || own.is_parked() ||
         (own.failing != nullptr && own.failing->domain.is_parked());
}

bool stands_still(Execution& member) {
  const Execution* const failed = failing_domain(member);
  const bool has_turn =
      failed != nullptr && failed->domain.rollback && failed->domain.rollback->has_begun(member);
  return is_parked(member) && (member.record.parked || !has_turn);
}

bool is_to_be_undone(Execution& member) {
  const Execution* const failing = failing_domain(member);
  if (failing == nullptr) return false;
  if (failing->domain.state != DomainState::kStopped) return true;
  const Execution* head = &member.own_head();
  while (head != failing && !head->domain.is_stopped()) head = head->outer_domain();
  return head != failing;
}

bool is_over(Execution& member) { return member.own_head().domain.is_over(); }

bool stop_turns(EngineCore& core, Execution& head, Effects& effects) {
  if (!head.domain.rollback) return true;
  core.flush();  // so that every kQueued member is in a queue, or polled
  std::vector<Execution*> stopped;
  bool all = true;
  for (Execution* const member : head.domain.rollback->begun()) {
    if (member->phase != Phase::kQueued) continue;
    all = core.scheduler.withdraw(*member) && all;
    if (!all) break;
    member->phase.move_to(Phase::kIdle);
    stopped.push_back(member);
  }
  if (all) return true;
  for (Execution* const member : stopped) {
    head.domain.rollback->put_back(*member);
    member->turn.step = 0;
  }
  begin_turns(core, head, effects);
  return false;
}

bool can_be_undone(Execution& head) {
  if (beyond_return(head) != nullptr) return false;
  if (head.root->domain.begun == 0) return true;
  for (const Execution& member : Subtree(head)) {
    if (member.no_return_mark == NoReturn::kBegun) return false;
  }
  return true;
}

namespace {

// Starts, or after a restart continues, the rollback of a domain of which nobody is in flight.
void begin_rollback(EngineCore& core, Execution& head, Effects& /*effects*/)
    PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(head.domain.failing == &head, "the widest domain that failed is undone");
  PV2_ASSERT(head.domain.in_flight_inside == 0,
             "nothing is undone beside a step or beside offloaded work");
  if (head.domain.state == DomainState::kStopped) return;
  if (head.domain.work == nullptr) begin_work(core, head, TreeWork::Kind::kPlan);
}

}  // namespace

void child_finished(EngineCore& core, Execution& child, Effects& effects) {
  PV2_ASSERT(!child.is_root(), "a root has no parent that waits");
  PV2_ASSERT(child.record.state == ProcedureState::kSuccess || child.record.reported,
             "a child that finishes has succeeded, or its failure is reported");
  Execution& parent = *child.parent_execution();
  // The child may be in a domain of its own, to which the work that stops all members has yet to
  // come.
  if (failing_domain(parent) != nullptr) return child_ended_too_late(child);
  PV2_ASSERT(parent.unfinished_children > 0, "a parent waits for every child that finishes");
  if (--parent.unfinished_children == 0 && parent.phase == Phase::kWaiting) {
    children_finished(core, parent, effects);
  }
}

void child_ended_too_late(Execution& child) {
  PV2_ASSERT(!child.is_root(), "a root has no parent that waits");
  PV2_ASSERT(child.record.state == ProcedureState::kSuccess || child.record.reported,
             "a child that finishes has succeeded, or its failure is reported");
  Execution& parent = *child.parent_execution();
  PV2_ASSERT(parent.unfinished_children > 0, "a parent waits for every child that finishes");
  if (--parent.unfinished_children == 0 && parent.record.state == ProcedureState::kWaiting) {
    parent.record.state = ProcedureState::kRunnable;
  }
}

bool is_done_but_for_work(const Execution& member) {
  return member.phase == Phase::kWaiting && member.record.state == ProcedureState::kRunnable &&
         member.record.step == 0 && member.unfinished_children == 0;
}

void children_finished(EngineCore& core, Execution& parent, Effects& effects) {
  PV2_ASSERT(parent.unfinished_children == 0, "whoever goes on has no unfinished child");
  PV2_ASSERT(failing_domain(parent) == nullptr, "nothing that has failed goes forward");
  // Not written: after a crash, waiting with no unfinished child means runnable.
  parent.record.state = ProcedureState::kRunnable;
  if (parent.record.step == 0) {  // it was done, but for its children
    if (has_work(parent)) {
      parent.phase.move_to(Phase::kWaiting);
      return;
    }
    return commit_last_record(core, parent, ProcedureState::kSuccess, LastRecord::kOfMember,
                              effects);
  }
  core.queue(parent, parent.holds_locks() ? Disposition::kFront : Disposition::kBack);
}

namespace {

// Nobody of its domain has failed: it does what its last record says.
void go_on_from_record(EngineCore& core, Execution& member, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  switch (member.record.state) {
    case ProcedureState::kWaiting:
      if (member.unfinished_children > 0) {
        member.phase.move_to(Phase::kWaiting);
        member.started = false;
      } else {  // its last child's record was the last thing that happened
        children_finished(core, member, effects);
      }
      return;
    case ProcedureState::kRunnable:
      if (member.record.parked) return;  // until an operator acts
      if (member.record.step == 0) return children_finished(core, member, effects);
      return core.queue(member, Disposition::kBack);
    case ProcedureState::kWaitingTimeout:
      if (member.record.awaits) return core.queue(member, Disposition::kBack);
      member.phase.move_to(Phase::kWaiting);
      core.arm_timer(member, effects);
      return;
    case ProcedureState::kSuccess:
      return;  // a finished child: kept for its parent and for rollback
    case ProcedureState::kInitializing:
    case ProcedureState::kFailed:
    case ProcedureState::kRolledBack:
      return;
  }
}

// Whether its record says that it has failed, or that of an abort does.
bool has_failed_itself(const Execution& member) {
  if (member.record.state == ProcedureState::kFailed) return true;
  if (member.record.state == ProcedureState::kRolledBack) return true;
  return member.inbox && member.inbox->abort() != nullptr;
}

// Whether a record of its own domain says that it has failed.
bool has_failed(Execution& head) {
  for (Execution& member : Subtree(head)) {
    if (has_failed_itself(member) && &member.own_head() == &head) return true;
  }
  return false;
}

// Every head below `top`, which is in no domain that has failed, learns which domains around it
// have: an outer one before those within it.
void note_failing(Execution& top) {
  Execution* const outer = top.is_root() ? nullptr : top.outer_domain();
  PV2_ASSERT(outer == nullptr || outer->domain.failing == nullptr,
             "what fails with a wider domain is told so by that");
  for (Execution& member : Subtree(top)) {
    if (!member.is_head()) continue;
    Domain& domain = member.domain;
    Execution* const around = &member == &top ? nullptr : member.outer_domain()->domain.failing;
    domain.failing = around != nullptr ? around : domain.is_stopped() ? &member : nullptr;
    domain.in_flight_inside = 0;
    if (domain.failing != nullptr) domain.failing->domain.in_flight_inside += domain.in_flight;
  }
}

// What the records of each domain below `top` say of itself. One that is over says nothing.
void find_failed_domains(Execution& top) {
  for (Execution& member : Subtree(top)) {
    if (!has_failed_itself(member)) continue;
    Execution& head = member.own_head();
    if (head.domain.state == DomainState::kForward) move_to(head, DomainState::kFailed);
  }
}

// Nobody in the domain has failed any more: it goes on where it was stopped. What was said about
// children meanwhile was heard by nobody, so they are counted anew.
void resume_domain(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  Domain& domain = head.domain;
  PV2_ASSERT(domain.failing == &head, "the widest domain that failed goes on as a whole");
  PV2_ASSERT(domain.in_flight_inside == 0, "nobody is in flight in what goes on again");
  forget_inner_plans(head, effects);
  move_to(head, DomainState::kForward);
  domain.parked_undos = 0;
  if (domain.rollback) effects.retired_plans.push_back(std::move(domain.rollback));
  domain.cause = Status();
  domain.given_up = false;
  core.flush();
  find_failed_domains(head);
  note_failing(head);
  if (head.is_root() && head.record.state == ProcedureState::kSuccess) {
    return finish_root(core, head, effects);
  }
  for (Execution& member : Subtree(head)) {
    member.unfinished_children = 0;
    const bool ended = member.record.state == ProcedureState::kSuccess || member.record.reported;
    if (&member != &head && !ended) ++member.parent_execution()->unfinished_children;
  }
  start_domain(core, head, effects);
  if (head.record.state == ProcedureState::kSuccess) child_finished(core, head, effects);
}

}  // namespace

void find_failures(Execution& root) {
  find_failed_domains(root);
  for (Execution& member : Subtree(root)) {
    Domain& domain = member.own_head().domain;
    const InboxMessage* const abort = member.inbox ? member.inbox->abort() : nullptr;
    if (abort != nullptr) domain.first_failure = std::min(domain.first_failure, abort->sequence);
    const bool failed = member.record.state == ProcedureState::kFailed ||
                        member.record.state == ProcedureState::kRolledBack;
    if (!failed || !member.record.failure || member.record.failure->error.ok()) continue;
    domain.first_failure = std::min(domain.first_failure, member.record.failure->sequence);
  }
  for (Execution& member : Subtree(root)) {
    if (!member.is_head()) continue;
    Domain& domain = member.domain;
    if (!domain.is_stopped()) domain.first_failure = CommitSequence{UINT64_MAX};
    domain.stopped_since = std::min(domain.first_failure, root.domain.first_failure);
    if (member.is_root()) continue;
    domain.first_failure =
        std::min(domain.first_failure, member.outer_domain()->domain.first_failure);
  }
  note_failing(root);
}

void forget_what_had_not_begun(Execution& root,
                               const FlatMap<ProcedureId, CommitSequence>& recorded) {
  for (Execution& member : Subtree(root)) {
    if (!member.started) continue;
    if (const auto said = recorded_interruption(member)) {
      member.started = *said;
      continue;
    }
    // What became durable after the failure of its domain, or of the root, was published after it:
    // nothing followed from it. Of a domain in between that is not known: to stop what lies within
    // it may have taken a while.
    const auto at = recorded.find(member.id);
    if (at == recorded.end() || has_tried(member)) continue;
    if (member.own_head().domain.stopped_since < at->second) member.started = false;
  }
}

void start_domain(EngineCore& core, Execution& head, Effects& effects) {
  for (Execution& member : Subtree(head)) {
    const Execution* const failing = failing_domain(member);
    if (failing == nullptr) {
      if (!is_over(member)) go_on_from_record(core, member, effects);
      note_no_return(member);
      continue;
    }
    note_no_return(member);
    // Whoever waited for children that had all ended may have begun its next step.
    if (member.record.state == ProcedureState::kWaiting && member.unfinished_children == 0) {
      member.record.state = ProcedureState::kRunnable;
    }
  }
  for (Execution& member : Subtree(head)) {
    if (member.is_head() && failing_domain(member) == &member) {
      begin_rollback(core, member, effects);
    }
  }
}

void order_published(EngineCore& core, Execution& execution, const StepCommit& commit,
                     Effects& effects) {
  Execution* const head = failing_domain(execution);
  PV2_ASSERT(head != nullptr, "an order to a parked tree is about one that has failed");
  execution.phase.move_to(Phase::kIdle);
  if (commit.next.order == OrderEffect::kBack) move_to(*head, DomainState::kFailed);
  left_flight(core, execution, effects);
  if (commit.next.order != OrderEffect::kForward) return;
  if (execution.record.state == ProcedureState::kSuccess && !execution.is_root()) {
    core.settle(execution, Disposition::kParkUnlock);
    core.tell(ProcedureNews::Kind::kFinished, execution);
  }
  if (has_failed(*head)) {  // others have to be repaired too
    if (execution.record.state == ProcedureState::kSuccess) child_ended_too_late(execution);
    return;
  }
  resume_domain(core, *head, effects);
}

void park_member(EngineCore& core, Execution& member, Effects& effects) {
  PV2_ASSERT(member.record.parked && member.record.failure != nullptr,
             "a record that parks says why");
  member.phase.move_to(Phase::kIdle);
  const Status& why = member.record.failure->parked;
  core.tell(ProcedureNews::Kind::kParked, member, why);
  effects.log(LogLevel::kError, "procedure " + std::to_string(member.id.value) + " (" +
                                    std::string(member.name_of_type()) +
                                    ") is parked with its locks: " + why.to_string());
}

namespace {

// The end of `head` is durable: its members leave, and their rows.
void begin_end(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(head.is_head() && !head.domain.is_over(), "what fails together ends once");
  PV2_ASSERT(is_finished(head.record.state), "what is over has its last record");
  head.phase.move_to(Phase::kIdle);
  head.turn.step = 0;
  move_to(head, DomainState::kOver);  // nobody finds its members any more
  TreeWork& work = begin_work(core, head, TreeWork::Kind::kEnd);
  const bool has_rows = head.links.first_child != nullptr ||
                        (head.is_root() && head.inbox && !head.inbox->messages.empty());
  // Some of them may have been below it: they go first.
  const auto dropped = core.state.dropped.find(head.root->id);
  if (dropped != core.state.dropped.end()) {
    work.garbage = std::move(dropped->second);
    core.state.dropped.erase(dropped);
    return;
  }
  if (!has_rows || !core.keeps_records) return;
  work.garbage = std::make_unique<GarbageCommit>();
  work.garbage->root = head.root->id;
  ++core.state.garbage[head.root->id].chains;  // from now on no acknowledgement passes them
}

}  // namespace

void domain_ended(EngineCore& core, Execution& head) {
  PV2_ASSERT(head.record.reported && !head.is_root(),
             "the end of a child is reported by its record");
  begin_end(core, head);
}

namespace {

// Nothing of `head` has failed until now.
void stop_domain(EngineCore& core, Execution& head, DomainState why)
    PV2_REQUIRES(core.state_mutex) {
  Domain& domain = head.domain;
  PV2_ASSERT(head.is_head(), "what fails together has a head");
  PV2_ASSERT(domain.failing == nullptr, "what fails with a wider domain is told so by that");
  PV2_ASSERT(domain.in_flight_inside == 0, "what has not failed counts its own members");
  move_to(head, why);
  domain.failing = &head;
  domain.in_flight_inside = domain.in_flight;
  // Others than the one that failed, which is counted until its record has been dealt with; of the
  // domains within it nobody is counted yet.
  if (domain.in_flight > 1 || head.links.first_child != nullptr) core.recall_runs();
  begin_work(core, head, TreeWork::Kind::kStop);
}

// What was stopped for an order has failed after all, or a domain within it has: each member is
// looked at again, so that `begun` counts those who have begun their points of no return.
void stop_again(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex) {
  TreeWork* const work = head.domain.work;
  if (work == nullptr) {
    begin_work(core, head, TreeWork::Kind::kStop);
  } else {
    PV2_ASSERT(work->kind == TreeWork::Kind::kStop, "what is stopped for an order is only stopped");
    work->cursor = TreeCursor(head);
  }
}

}  // namespace

void fail_tree(EngineCore& core, Execution& head) {
  if (head.domain.state == DomainState::kForward) stop_domain(core, head, DomainState::kFailed);
}

void failed_too_late(EngineCore& core, Execution& member) {
  Execution* const failing = failing_domain(member);
  PV2_ASSERT(failing != nullptr, "what fails too late was stopped");
  if (failing->domain.state != DomainState::kStopped) return;
  Execution& own = member.own_head();
  if (!own.domain.is_undone() && !own.domain.is_parked()) move_to(own, DomainState::kFailed);
  stop_again(core, *failing);
}

void repaired_too_late(EngineCore& core, Execution& member) {
  Execution& own = member.own_head();
  const bool is_stopped_around = failing_domain(own)->domain.state == DomainState::kStopped;
  if (!is_stopped_around || !own.domain.is_stopped()) return;
  if (&own == failing_domain(own) || has_failed(own)) return;
  move_to(own, DomainState::kForward);
  own.domain.given_up = false;
  own.domain.cause = Status();
  find_failed_domains(own);  // those within it were forgotten when it was parked
  stop_again(core, *failing_domain(own));
}

void abort_tree(EngineCore& core, Execution& root, Effects& effects) {
  PV2_ASSERT(root.is_root(), "what is aborted is a tree");
  fail_tree(core, root);
  Domain& domain = root.domain;
  if (domain.state == DomainState::kStopped) {
    move_to(root, DomainState::kFailed);
    stop_again(core, root);
  }
  if (domain.in_flight_inside != 0) core.recall_runs();
  const bool stands = domain.in_flight_inside == 0 && domain.work == nullptr;
  if (stands && domain.state == DomainState::kFailed) begin_rollback(core, root, effects);
}

namespace {

// To name one of whom is known that there is one: nullptr: it is none of the first.
template <class Test>
const Execution* find_few(Execution& root, Test is_it) {
  constexpr std::size_t kFew = 128;
  std::size_t left = kFew;
  for (const Execution& member : Subtree(root)) {
    if (is_it(member)) return &member;
    if (--left == 0) return nullptr;
  }
  return nullptr;
}

}  // namespace

Status why_not_abortable(Execution& root) {
  const std::string name = "procedure " + std::to_string(root.id.value);
  const auto refused = [&](const std::string& why) {
    return Status(StatusCode::kFailedPrecondition, name + " cannot be aborted: " + why);
  };
  if (root.phase == Phase::kInserting) {
    return Status(StatusCode::kUnavailable, name + " is just being submitted; try again");
  }
  if (root.is_quarantined()) return refused("it is quarantined");
  if (root.domain.ending == EndingOrder::kDurable) {
    return refused("an operator has ended it, and it waits for its offloaded work");
  }
  if (root.domain.is_parked())
    return refused("it is parked, and can be neither finished nor undone");
  if (root.domain.is_stopped() && root.domain.state != DomainState::kStopped) {
    return refused("it has failed already and is being undone");
  }
  const bool is_beyond = root.domain.beyond != 0 && !root.record.sent_back;
  // Members of a part that fails are counted until that comes to them; those of one that was ended
  // in spite of them, until they have left.
  if ((is_beyond || root.domain.begun != 0) && root.domain.works != nullptr) {
    return Status(StatusCode::kUnavailable,
                  name + " cannot be aborted while a part of its tree ends or fails; try again");
  }
  if (is_beyond) {
    const Execution* const beyond = find_few(
        root, [](const Execution& member) { return member.no_return_mark == NoReturn::kBeyond; });
    return refused(beyond == nullptr ? "one of its members has passed its point of no return"
                                     : "procedure " + std::to_string(beyond->id.value) +
                                           " has passed its point of no return");
  }
  if (root.domain.begun != 0) {
    const Execution* const begun = find_few(
        root, [](const Execution& member) { return member.no_return_mark == NoReturn::kBegun; });
    return refused(begun == nullptr
                       ? "one of its members has begun its point of no return"
                       : "procedure " + std::to_string(begun->id.value) +
                             " has begun its point of no return, step " +
                             std::string(begun->type->find_step(begun->record.step)->name));
  }
  return Status();
}

bool stands_before_no_return(const Execution& member) {
  if (member.turn.step != 0 || member.type == nullptr) return false;
  const StepInfo* const info = member.type->find_step(member.record.step);
  return info != nullptr && info->kind == StepKind::kPointOfNoReturn;
}

bool may_begin(Execution& member) {
  const Execution* const failed = failing_domain(member);
  // Whoever stops its members may not have come to its domain yet.
  if (failed == nullptr) return member.root->domain.failing == nullptr;
  if (failed->domain.makes_way()) return false;
  return failed->domain.is_undone() && !failed->is_quarantined() && member.turn.step != 0;
}

bool makes_way_for_order(Execution& member) {
  const Execution* const failed = failing_domain(member);
  return failed != nullptr && failed->domain.makes_way();
}

void make_way_for_order(EngineCore& core, Execution& head) {
  Domain& domain = head.domain;
  domain.ending = EndingOrder::kMayGoOn;
  if (domain.state == DomainState::kForward) stop_domain(core, head, DomainState::kStopped);
  core.recall_runs();
}

void put_turn_back(EngineCore& core, Execution& member) {
  if (!makes_way_for_order(member)) return;
  let_order_look(core, *failing_domain(member));
  member.turn.step = 0;
  Domain& domain = failing_domain(member)->domain;
  if (domain.rollback) domain.rollback->put_back(member);
}

void drop_from_flight(EngineCore& core, Execution& member) {
  PV2_ASSERT(member.phase == Phase::kInFlight, "what is dropped was taken and has not begun");
  member.phase.move_to(Phase::kIdle);
  put_turn_back(core, member);
  member.turn.step = 0;  // of a domain within the one that failed: it is planned anew with that
  core.abandon_waits(member);
  if (member.granted_by_poll()) core.settle(member, Disposition::kParkUnlock);
}

Transition as_it_is(const EngineCore& core, const Execution& execution) {
  Transition same;
  same.begin(execution.record, core.clock.wall_now());
  same.awaits = execution.record.awaits;
  same.result = execution.record.result.view();
  core.go_on_waiting(execution, same);
  return same;
}

std::uint32_t step_that_may_have_begun(Execution& member) {
  if (member.record.state == ProcedureState::kFailed) {
    const Execution* const failed = failing_domain(member);
    const bool planned = failed != nullptr && failed->domain.rollback != nullptr;
    return planned && member.turn.left > member.record.undo.size() ? member.record.step : 0;
  }
  if (!stands_at_undoable_step(member)) return 0;
  // Of one in flight `started` belongs to its worker.
  return member.phase == Phase::kInFlight || member.started ? member.record.step : 0;
}

std::uint32_t step_to_undo(const Execution& execution) {
  if (execution.turn.step != 0) return execution.turn.step;
  const bool undoes =
      execution.record.state == ProcedureState::kFailed && execution.record.step == 0;
  return undoes && !execution.record.undo.empty() ? execution.record.undo.back().step : 0;
}

// Not without its locks, which a record gives it before the step runs; but it may have given them
// back since, to wait or after an attempt.
bool may_have_begun(const Execution& execution, bool held_locks) {
  if (held_locks || execution.locks.empty()) return true;
  return has_tried(execution);
}

// The record says so if the step was retried, waited or repeated itself.
bool has_begun_no_return(const Execution& member) {
  if (!stands_before_no_return(member)) return false;
  if (member.phase == Phase::kInFlight || member.started) return true;
  const std::size_t steps = member.record.history.size();
  return steps != 0 && member.record.history.at(steps - 1).step == member.record.step;
}

bool stands_beyond_return(Execution& member) {
  return member.record.no_return && member.is_undone_with_its_tree() && !is_over(member);
}

bool has_given_up(Execution& member) {
  return member.record.parked && member.record.state != ProcedureState::kFailed &&
         !member.is_quarantined() && failing_domain(member) == nullptr;
}

namespace {

void count_no_return(Execution& member, NoReturn now) {
  Domain& domain = member.root->domain;
  const NoReturn before = std::exchange(member.no_return_mark, now);
  if (before == now) return;
  PV2_ASSERT(before != NoReturn::kBeyond || domain.beyond != 0,
             "a member past its point of no return is counted");
  PV2_ASSERT(before != NoReturn::kBegun || domain.begun != 0,
             "a member that has begun to pass it is counted");
  if (before == NoReturn::kBeyond) --domain.beyond;
  if (before == NoReturn::kBegun) --domain.begun;
  if (now == NoReturn::kBeyond) ++domain.beyond;
  if (now == NoReturn::kBegun) ++domain.begun;
}

}  // namespace

NoReturn no_return_now(Execution& member) {
  if (stands_beyond_return(member)) return NoReturn::kBeyond;
  const bool has_begun = !is_to_be_undone(member) && has_begun_no_return(member);
  return has_begun ? NoReturn::kBegun : NoReturn::kAhead;
}

void note_no_return(Execution& member) {
  if (member.no_return_mark == NoReturn::kNone) return;
  count_no_return(member, no_return_now(member));
}

void note_parked(Execution& member) {
  auto& standing = member.root->domain.standing;
  if (member.record.parked || member.domain.is_parked()) {
    if (!standing) standing = std::make_unique<MembersById>();
    standing->emplace(member.id, &member);
  } else if (standing) {
    standing->erase(member.id);
  }
}

void adopt(Execution& member) {
  PV2_ASSERT(member.root != nullptr && member.head != nullptr, "a member has its place in a tree");
  PV2_ASSERT(member.links.first_child == nullptr, "who is new has no children");
  if (!member.is_root()) link_child(member);
  if (!member.is_root() && member.is_head()) {
    member.domain.failing = member.outer_domain()->domain.failing;
    const bool is_over_already = is_over(*member.parent_execution()) || member.record.reported;
    if (is_over_already) member.domain.state.move_to(DomainState::kOver);
  }
  if (may_not_return(member)) member.no_return_mark = NoReturn::kAhead;
  note_no_return(member);
  if (member.record.parked) note_parked(member);
  if (member.record.interrupted) ++member.root->domain.heads_that_say_it;
}

void enter_flight(Execution& member) {
  Domain& own = member.own_head().domain;
  PV2_ASSERT(!own.is_over() || own.work == nullptr, "nobody of what is over takes flight");
  ++own.in_flight;
  if (own.failing != nullptr) ++own.failing->domain.in_flight_inside;
  note_no_return(member);
}

void left_flight(EngineCore& core, Execution& member, Effects& effects) {
  Domain& own = member.own_head().domain;
  PV2_ASSERT(own.in_flight > 0, "what leaves flight was in flight");
  --own.in_flight;
  note_no_return(member);
  Execution* const failed = own.failing;
  if (failed == nullptr) return;
  let_order_look(core, *failed);
  PV2_ASSERT(failed->domain.in_flight_inside > 0, "a domain that failed counts all within it");
  if (--failed->domain.in_flight_inside > 0) return;
  if (failed->domain.work != nullptr) return;    // that comes to it
  if (failed->domain.failing != failed) return;  // or that of a domain around it
  if (failed->domain.rollback) {
    begin_turns(core, *failed, effects);
  } else if (!failed->domain.is_parked()) {
    begin_rollback(core, *failed, effects);
  }
}

namespace {

void wait_in_turn(EngineCore& core, Execution& execution, const StepCommit& commit,
                  Effects& effects) PV2_REQUIRES(core.state_mutex) {
  const bool arrived =
      execution.wait.wake_pending || (execution.inbox && execution.inbox->has_wanted());
  if (arrived && !commit.next.ends_waits) {
    execution.wait.wake_pending = false;
    return core.queue(execution, Disposition::kFront);
  }
  execution.phase.move_to(Phase::kWaiting);
  if (execution.record.deadline) core.arm_timer(execution, effects);
}

void end_turn(EngineCore& core, Execution& head, Execution& execution)
    PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(!has_work(execution), "an undo is over when its work has ended");
  core.end_reported_wait(execution);  // there is one if an operator passed over its turn
  execution.turn.step = 0;
  execution.stopped.reset();  // that would have been its newest turn
  PV2_ASSERT(execution.turn.left != 0, "a turn that is over was left");
  --execution.turn.left;
  head.domain.rollback->end(execution);
  if (execution.turn.left == 0 && &execution != &head) {
    core.settle(execution, Disposition::kParkUnlock);
  }
}

}  // namespace

void undo_published(EngineCore& core, Execution& execution, StepCommit& commit, Effects& effects) {
  Execution* const failed = failing_domain(execution);
  PV2_ASSERT(failed != nullptr, "what is undone has failed");
  Execution& head = *failed;
  Domain& domain = head.domain;
  PV2_ASSERT(domain.is_undone(), "an undo is a turn of a rollback");
  const Transition& done = commit.next;
  execution.phase.move_to(Phase::kIdle);
  if (done.parked) {
    PV2_ASSERT(execution.record.failure != nullptr, "a record that parks says why");
    if (!done.holds_locks && execution.holds_locks()) {
      core.settle(execution, Disposition::kParkUnlock);
    }
    if (!commit.was_parked) ++domain.parked_undos;
    return park_tree(core, head, DomainState::kParkedInUndo,
                     execution.record.failure->parked.to_string(), effects);
  }
  const bool ordered = done.history && is_order(done.history->outcome);
  if (commit.was_parked) {
    PV2_ASSERT(domain.parked_undos != 0, "an undo that was parked was counted");
    --domain.parked_undos;
  }
  if (ordered && domain.parked_undos == 0) move_to(head, DomainState::kRollingBack);
  if (done.undo == UndoChange::kPop) {
    end_turn(core, head, execution);
  } else if (done.requeue) {  // an operator wants the undo tried again
    domain.rollback->put_back(execution);
  } else {  // a wait or a back-off inside the turn
    return wait_in_turn(core, execution, commit, effects);
  }
  begin_turns(core, head, effects);
}

void finish_root(EngineCore& core, Execution& root, Effects& effects) {
  PV2_ASSERT(root.is_root() && is_finished(root.record.state),
             "a tree ends with the end of its root");
  PV2_ASSERT(!has_work(root), "who ends has no work outstanding");
  core.flush();
  keep_result(core, root, effects);
  begin_end(core, root);
}

void quarantine_tree(EngineCore& core, Execution& root, const Status& reason, Effects& effects) {
  PV2_ASSERT(root.is_root(), "what is quarantined is a tree");
  PV2_ASSERT(!reason.ok(), "what is quarantined has a reason");
  if (root.is_quarantined()) return;
  Domain& domain = root.domain;
  if (domain.state == DomainState::kForward) {
    stop_domain(core, root, DomainState::kQuarantined);
  } else if (domain.state == DomainState::kStopped) {
    stop_again(core, root);
  } else if (domain.work == nullptr) {  // what is being undone of it stops too
    begin_work(core, root, TreeWork::Kind::kStop);
  }
  move_to(root, DomainState::kQuarantined);
  domain.cause = reason;
  core.tell(ProcedureNews::Kind::kQuarantined, root, reason);
  effects.log(LogLevel::kError, "procedure " + std::to_string(root.id.value) + " (" +
                                    std::string(root.name_of_type()) +
                                    ") is quarantined with its locks: " + reason.to_string());
}

// ---- Works on all members of a domain, a section at a time (tree_work.h) ----

namespace {

// What `head` is the head of has failed, and `member` learns it.
void stop(EngineCore& core, Execution& head, Execution& member) PV2_REQUIRES(core.state_mutex) {
  if (member.is_head() && member.domain.failing != &head) {
    // Domains within it that were not come to yet go on counting there.
    if (Execution* const before = std::exchange(member.domain.failing, &head)) {
      PV2_ASSERT(before->domain.in_flight_inside >= member.domain.in_flight,
                 "a domain that failed counts all within it");
      before->domain.in_flight_inside -= member.domain.in_flight;
    }
    head.domain.in_flight_inside += member.domain.in_flight;
  }
  PV2_ASSERT(failing_domain(member) == &head, "whoever is stopped knows what has failed");
  stop_member(core, member);
  note_no_return(member);
}

void stopped(EngineCore& core, Execution& head, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  const Domain& domain = head.domain;
  let_order_look(core, head);
  if (domain.in_flight_inside != 0) core.recall_runs();
  if (head.is_quarantined() || domain.in_flight_inside != 0) return;
  if (domain.state == DomainState::kFailed) begin_rollback(core, head, effects);
}

// Notes what the plan has to know of `member`, and drops the plan of a domain that it is the head
// of: the new plan replaces that, as after a restart.
void survey(TreeWork& work, Execution& member, Effects& effects) {
  member.turn.step = 0;
  if (&member != &work.head) {
    forget_that_it_was_stopped(member);
    if (is_live_head(member)) forget_plan(member, effects);
  }
  if (!work.head.record.interrupted) note_interruption(work, member);
  const Failure* const failure = failure_within(member, work.head);
  const bool first =
      failure != nullptr && (work.first == nullptr || failure->sequence < work.first->sequence);
  if (first) work.first = failure;
  if (stands_beyond_return(member)) work.beyond = &member;
  if (!is_parked_in_undo(member)) return;
  if (work.parked == nullptr) work.parked = &member;
  ++work.parked_undos;
}

// Whether a rollback can be planned.
bool surveyed(EngineCore& core, TreeWork& work, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  Execution& head = work.head;
  Domain& domain = head.domain;
  core.flush();  // the last one in flight may just have given its locks back, and be the first to
                 // be undone
  domain.cause = cause_of(head, work.first);
  if (work.beyond == nullptr || head.record.sent_back) return true;
  park_tree(core, head, DomainState::kParkedBeyond,
            "it failed (" + domain.cause.to_string() + ") after procedure " +
                std::to_string(work.beyond->id.value) + " had passed its point of no return",
            effects);
  return false;
}

void plan(EngineCore& core, TreeWork& work, Execution& member, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  Execution& head = work.head;
  PV2_ASSERT(failing_domain(member) == &head, "whoever is planned for has failed with its domain");
  // Of a done() that was waiting for its children: nothing came of it.
  if (&member == &head) head.record.result.clear();
  plan_member(member, work.turns);
  work.has_branches = work.has_branches || member.beside != nullptr;
  if (&member != &head) give_back_idle_locks(core, member, effects);
}

void planned(EngineCore& core, TreeWork& work, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  Domain& domain = work.head.domain;
  PV2_ASSERT(work.plan != nullptr, "what is planned has a plan");
  domain.rollback = std::move(work.plan);
  move_to(work.head, DomainState::kRollingBack);
  domain.parked_undos = work.parked_undos;
  // Before a restart, or as part of a domain within this one.
  if (const Execution* const parked = work.parked) {
    park_tree(core, work.head, DomainState::kParkedInUndo,
              parked->record.failure ? parked->record.failure->shown().to_string() : "", effects);
  }
}

bool has_messages(const Execution& member) {
  return member.inbox && !member.inbox->messages.empty();
}

// A member without children leaves the tree, the scheduler and the table, and its rows are garbage.
void let_go(EngineCore& core, Execution& member, GarbageCommit* rows, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(!has_work(member), "who leaves has no work outstanding");
  PV2_ASSERT(member.links.first_child == nullptr, "who leaves has no children that are left");
  PV2_ASSERT(member.phase != Phase::kInFlight, "who leaves has no record on the way");
  PV2_ASSERT(member.domain.work == nullptr, "nothing is being done to what is under who leaves");
  PV2_ASSERT(member.waiters.empty(), "nobody waits for a result of who leaves");
  Looks::one();
  if (member.type != nullptr) {  // else it is bypassed by a program that does not know it
    TypeCounts& counts = core.counts_of(*member.type);
    ++(member.record.state == ProcedureState::kSuccess ? counts.succeeded : counts.undone);
  }
  count_no_return(member, NoReturn::kNone);
  if (member.root->domain.standing) member.root->domain.standing->erase(member.id);
  if (member.record.interrupted) --member.root->domain.heads_that_say_it;
  core.abandon_waits(member);
  core.settle(member, Disposition::kComplete);
  core.state.live.erase(member.id);
  if (rows != nullptr && !member.is_root()) rows->left.push_back(member.id);
  if (rows != nullptr && has_messages(member)) {
    rows->inboxes.emplace_back(member.id, std::move(member.inbox));
  }
  for (TreeCursor* const walk : core.state.walks) {
    if (walk->at() == &member) walk->move();
  }
  if (!member.is_root()) unlink_child(member);
  if (member.domain.rollback) effects.retired_plans.push_back(std::move(member.domain.rollback));
  effects.retired.emplace_back(&member);
}

// The same at the end of its tree, of which whoever listens is told.
void leave(EngineCore& core, TreeWork& work, Execution& member, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  const Execution& head = work.head;
  const Execution& root = *member.root;
  const bool ended_with_it = &member != &head && !member.record.reported &&
                             head.record.state == ProcedureState::kRolledBack &&
                             member.is_undone_with_its_tree();
  if (ended_with_it && !head.is_root()) member.record.state = ProcedureState::kRolledBack;
  if (ended_with_it) core.tell(ProcedureNews::Kind::kFinished, member, head.domain.cause);
  if (&member == &root) {
    core.tell(ProcedureNews::Kind::kFinished, root,
              root.record.failure ? root.record.failure->error : Status());
  }
  let_go(core, member, work.garbage.get(), effects);
}

// Whoever is below a head whose failure was reported has left; its parent is told.
void report_end(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  Domain& domain = head.domain;
  PV2_ASSERT(head.links.first_child == nullptr,
             "all below a head leave before its end is reported");
  PV2_ASSERT(head.record.failure != nullptr, "a failure that is reported is known");
  PV2_ASSERT(domain.in_flight == 0, "nobody of what is over is in flight");
  core.abandon_waits(head);
  if (head.holds_locks()) core.settle(head, Disposition::kParkUnlock);
  head.record.holds_locks = false;  // whatever its own record says
  PV2_ASSERT(head.record.state == ProcedureState::kRolledBack, "what is reported is undone");
  head.record.parked = false;
  note_parked(head);
  core.tell(ProcedureNews::Kind::kFinished, head, domain.cause);
  const bool in_wider = domain.failing != nullptr && domain.failing != &head;
  domain.given_up = false;
  domain.ending = EndingOrder::kNone;
  domain.parked_undos = 0;
  if (domain.rollback) effects.retired_plans.push_back(std::move(domain.rollback));
  if (!in_wider) domain.failing = nullptr;
  if (!in_wider) domain.in_flight_inside = 0;
  core.flush();
  effects.log(
      LogLevel::kInfo,
      "procedure " + std::to_string(head.id.value) + " (" + std::string(head.name_of_type()) +
          ") failed and is undone; its parent is told: " + head.record.failure->error.to_string());
  in_wider ? child_ended_too_late(head) : child_finished(core, head, effects);
}

// The first work on a tree is over, and its head is free for another one.
std::unique_ptr<TreeWork> take_off(TreeWork& work) {
  auto& queue = work.head.root->domain.works->queue;
  PV2_ASSERT(queue.front().get() == &work && work.head.domain.work == &work,
             "a head knows the work on its members, and the first one is done");
  work.head.domain.work = nullptr;
  std::unique_ptr<TreeWork> over = std::move(queue.front());
  queue.pop_front();
  return over;
}

// The next member to visit, parents before their children; nullptr: all were visited, or the
// section has no room.
Execution* next_to_visit(EngineCore& core, TreeWork& work) PV2_REQUIRES(core.state_mutex) {
  while (work.cursor.at() != nullptr && core.looks.have_room()) {
    Execution* const at = work.cursor.at();
    const bool arrives = work.cursor.arrives();
    work.cursor.move();
    if (arrives) return at;
  }
  return nullptr;
}

// Each of these goes on with the first work on a tree, until it is over or pauses.

void stop_all(EngineCore& core, TreeWork& work, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  core.flush();  // so that every kQueued member is in a queue, or polled
  while (Execution* const member = next_to_visit(core, work)) stop(core, work.head, *member);
  if (work.cursor.at() != nullptr) return;
  const auto over = take_off(work);
  stopped(core, over->head, effects);
}

// What the work has collected is sorted without the mutex; it pauses.
void leave_to_sort(TreeWork& work, Effects& effects) {
  work.is_outside = true;
  effects.to_sort.push_back(&work);
}

void plan_all(EngineCore& core, TreeWork& work, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  using Stage = TreeWork::Stage;
  if (work.stage == Stage::kSurvey) {
    while (Execution* const member = next_to_visit(core, work)) survey(work, *member, effects);
    if (work.cursor.at() != nullptr) return;
    if (!surveyed(core, work, effects)) return void(take_off(work));
    work.stage = Stage::kNames;
  }
  if (work.stage == Stage::kNames && misleads_a_restart(work)) {
    if (work.candidates.size() > kSortedAtOnce) return leave_to_sort(work, effects);
    sort_collected(work);
  }
  if (work.stage == Stage::kNamed) {
    const auto over = take_off(work);
    return record_who_was_interrupted(core, *over, effects);
  }
  if (work.stage == Stage::kNames) {
    work.stage = Stage::kTurns;
    work.cursor = TreeCursor(work.head);
  }
  if (work.stage == Stage::kTurns) {
    while (Execution* const member = next_to_visit(core, work)) {
      plan(core, work, *member, effects);
    }
    if (work.cursor.at() != nullptr) return;
    work.stage = Stage::kSort;
  }
  if (work.stage == Stage::kSort) {
    const bool is_much = work.turns.size() > kSortedAtOnce || work.has_branches;
    if (is_much) return leave_to_sort(work, effects);
    sort_collected(work);
  }
  PV2_ASSERT(work.stage == Stage::kSorted, "a plan is in order before its first turn begins");
  planned(core, work, effects);
  const auto over = take_off(work);
  begin_turns(core, over->head, effects);
}

void end_all(EngineCore& core, TreeWork& work, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  Execution& head = work.head;
  while (work.at != &head || head.links.first_child != nullptr) {
    if (!core.looks.have_room()) return;
    Execution& member = *work.at;
    if (member.links.first_child != nullptr) {
      Looks::one();
      work.at = member.links.first_child;
    } else {
      work.at = member.parent_execution();
      leave(core, work, member, effects);
    }
  }
  const auto over = take_off(work);
  head.is_root() ? leave(core, *over, head, effects) : report_end(core, head, effects);
  if (over->garbage) core.delete_rows(std::move(over->garbage), effects);
}

void go_on(EngineCore& core, TreeWork& work, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  using Kind = TreeWork::Kind;
  Execution& head = work.head;
  PV2_ASSERT(!work.is_outside, "what is sorted without the mutex has no turn");
  // A domain around it has failed meanwhile, and that covers this one.
  const bool taken_over = head.domain.failing != &head && work.kind != Kind::kEnd;
  if (taken_over) return void(take_off(work));
  if (head.is_quarantined() && work.kind != Kind::kStop && work.kind != Kind::kEnd) {
    const auto over = take_off(work);
    begin_work(core, head, Kind::kStop);  // what it has begun
    return;
  }
  switch (work.kind) {
    case Kind::kStop:
      return stop_all(core, work, effects);
    case Kind::kPlan:
      return plan_all(core, work, effects);
    case Kind::kTurns: {
      const auto over = take_off(work);
      return begin_turns(core, head, effects);
    }
    case Kind::kEnd:
      return end_all(core, work, effects);
  }
}

}  // namespace

namespace {

// Whether it has ended and nothing of it itself can have to be undone, or keep others from it.
bool is_spent(const Execution& member) {
  if (member.record.reported) return true;
  if (member.record.state != ProcedureState::kSuccess) return false;
  return !member.is_undone_with_its_tree() ||
         (member.record.undo.empty() && !member.record.no_return);
}

void drop(EngineCore& core, Execution& child, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(is_spent(child) && child.phase == Phase::kIdle && child.domain.work == nullptr,
             "who leaves before its tree has ended");
  // Of works that have not begun the cursor is at their heads. Who has taken a work off drops
  // nobody before its tree has another one, or none.
  if (const TreeWorks* const works = child.root->domain.works) {
    PV2_ASSERT(!works->queue.empty(), "a tree has works as long as one of them is not over");
    TreeCursor& cursor = works->queue.front()->cursor;
    if (cursor.at() == &child) cursor.move();
  }
  const ProcedureId root = child.root->id;
  GarbageCommit* rows = nullptr;
  if (core.keeps_records) {
    std::unique_ptr<GarbageCommit>& dropped = core.state.dropped[root];
    if (!dropped) {
      dropped = std::make_unique<GarbageCommit>();
      dropped->root = root;
      ++core.state.garbage[root].chains;
    }
    rows = dropped.get();
  }
  let_go(core, child, rows, effects);
  if (rows == nullptr || rows->left.size() < kDroppedAtOnce) return;
  core.delete_rows(std::move(core.state.dropped[root]), effects);
  core.state.dropped.erase(root);
}

}  // namespace

namespace {

// `most` is how many are still looked at.
void drop_ended(EngineCore& core, Execution& parent, std::size_t& most, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  const bool has_ended = is_spent(parent);
  while (Execution* const child = parent.links.unexamined) {
    if (most == 0) return;
    --most;
    Looks::one();
    const bool is_of_last_spawn = child->spawned_at == parent.links.last_child->spawned_at;
    if (is_of_last_spawn && !has_ended) return;
    const bool spent = is_spent(*child);
    if (child->domain.work != nullptr) return;  // what is below it leaves already
    if (spent && child->links.unexamined != nullptr) {
      drop_ended(core, *child, most, effects);
      if (child->links.unexamined != nullptr) return;  // the next record goes on with them
    }
    parent.links.unexamined = child->links.next_sibling;
    if (spent && child->links.first_child == nullptr) drop(core, *child, effects);
  }
}

}  // namespace

void drop_ended_children(EngineCore& core, Execution& parent, Effects& effects) {
  std::size_t most = kExaminedAtOnce;
  drop_ended(core, parent, most, effects);
}

void drop_all_ended(EngineCore& core, Execution& root, Effects& effects) {
  std::vector<Execution*> members;
  for (Execution& member : Subtree(root)) members.push_back(&member);
  for (auto at = members.rbegin(); at != members.rend(); ++at) {  // children before their parents
    const Execution* before = nullptr;
    do {
      before = (*at)->links.unexamined;
      drop_ended_children(core, **at, effects);
    } while ((*at)->links.unexamined != before && (*at)->links.unexamined != nullptr);
  }
}

void sort_collected(TreeWork& work) {
  if (work.stage == TreeWork::Stage::kNames) {
    work.interrupted = std::make_unique<InterruptedMembers>(std::move(work.candidates));
    work.stage = TreeWork::Stage::kNamed;
    return;
  }
  PV2_ASSERT(work.stage == TreeWork::Stage::kSort, "turns are sorted once all are there");
  PV2_ASSERT(work.cursor.at() == nullptr, "turns are sorted when all members were visited");
  work.plan = std::make_unique<RollbackPlan>(work.head, std::move(work.turns));
  work.stage = TreeWork::Stage::kSorted;
}

void go_on_with_sorted(EngineCore& core, TreeWork& work) {
  auto& outside = core.state.works_outside;
  const auto at = std::find_if(outside.begin(), outside.end(), [&](const TreeWorks& works) {
    return &works == work.head.root->domain.works;
  });
  PV2_ASSERT(at != outside.end() && work.is_outside, "what was sorted was left to be sorted");
  work.is_outside = false;
  core.state.tree_works.splice(core.state.tree_works.end(), outside, at);
}

bool do_tree_works(EngineCore& core, Effects& effects) {
  auto& all = core.state.tree_works;
  while (!all.empty() && core.looks.have_room()) {
    TreeWorks& works = all.front();
    go_on(core, *works.queue.front(), effects);
    if (works.queue.empty()) {
      works.root.domain.works = nullptr;
      effects.durable.splice_back(std::exchange(works.put_off, {}));
      all.pop_front();
      continue;
    }
    auto& next = works.queue.front()->is_outside ? core.state.works_outside : all;
    next.splice(next.end(), all, all.begin());
  }
  if (all.empty()) core.tree_work_waits.store(false);
  return !all.empty();
}

}  // namespace pv2
