// SPDX-License-Identifier: Apache-2.0
//
// Join, failure, rollback and end of a tree. Every function here runs under the state mutex and is
// short, except that a failure looks at every member of its tree once.

#include "tree.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "messages.h"
#include "offloads.h"
#include "record_codec.h"
#include "results.h"

namespace pv2 {
namespace {

// Newer than any other: what a failure around a parked undo plans anew begins with that undo.
constexpr CommitSequence kParkedTurn{UINT64_MAX};

// The head of a domain and all its descendants, for range-for.
class TreeMembers {
 public:
  explicit TreeMembers(Execution& root) : root_(root) {}

  struct Iterator {
    Execution& root;
    std::size_t index;
    Execution& operator*() const { return index == 0 ? root : *root.tree.members[index - 1]; }
    Iterator& operator++() {
      ++index;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return index != other.index; }
  };
  [[nodiscard]] Iterator begin() const { return {root_, 0}; }
  [[nodiscard]] Iterator end() const { return {root_, root_.tree.members.size() + 1}; }

 private:
  Execution& root_;
};

// Whether an attempt at the step that it is at has ended in a wait or a back-off. A ring that is
// full of orders says no more.
bool has_tried(const Execution& execution) {
  for (std::size_t i = execution.history.size(); i-- > 0;) {
    const HistoryEntry last = execution.history.at(i);
    if (is_order(last.outcome)) continue;
    const bool tried =
        last.outcome == Outcome::Kind::kWait || last.outcome == Outcome::Kind::kRetry;
    return tried && last.step == execution.step;
  }
  return execution.history.size() == History::kCapacity;
}

// Whether its record stands at a step that is undone if it was begun.
bool stands_at_undoable_step(const Execution& member) {
  if (member.step == 0 || member.type == nullptr || member.no_return) return false;
  if (member.state != ProcedureState::kRunnable &&
      member.state != ProcedureState::kWaitingTimeout) {
    return false;
  }
  if (!member.undo.empty() && member.undo.back().step == member.step) return false;
  const StepInfo* const info = member.type->find_step(member.step);
  return info != nullptr && info->kind == StepKind::kUndoable;
}

bool was_left_in_the_middle(const Execution& member) {
  return member.started && stands_at_undoable_step(member);
}

// Whether the step that it is at is its point of no return, and may have had effects. The record
// says so if the step was retried, waited or repeated itself.
bool has_begun_no_return(const Execution& member) {
  if (!stands_before_no_return(member)) return false;
  if (member.phase == Phase::kInFlight || member.started) return true;
  const std::size_t steps = member.history.size();
  return steps != 0 && member.history.at(steps - 1).step == member.step;
}

// Whether something in the tree can be neither finished nor undone, and if so what.
const Execution* beyond_return(Execution& head) {
  const Execution* found = nullptr;
  if (head.sent_back) return nullptr;
  for (Execution& member : TreeMembers(head)) {
    const bool stands = member.no_return && member.is_undone_with_its_tree();
    if (stands && !is_over(member)) found = &member;
  }
  return found;
}

void park_tree(EngineCore& core, Execution& head, const std::string& why, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  head.tree.parked = true;
  core.tell(ProcedureNews::Kind::kParked, head, Status(StatusCode::kFailedPrecondition, why));
  effects.log(LogLevel::kError, "procedure " + std::to_string(head.id.value) + " (" +
                                    std::string(head.name_of_type()) +
                                    ") is parked with its locks: " + why);
}

// What the records of the heads around a member say of the step at which it stands: nothing, or
// whether it was in the middle of it when one of them was about to be undone.
std::optional<bool> recorded_interruption(Execution& member) {
  std::optional<bool> said;
  for (Execution* head = &member.domain(); head != nullptr; head = head->outer_domain()) {
    const InterruptedMembers* const interrupted = head->tree.interrupted.get();
    if (interrupted != nullptr) said = said.value_or(true) && interrupted->contains(member.id);
  }
  return said;
}

bool is_known_not_begun(Execution& member) { return !recorded_interruption(member).value_or(true); }

// The failure, or the abort, that was durable first. What failed in a domain within this one was
// to be reported, and is not why this one failed.
Status find_cause(Execution& head) {
  const Failure* first = nullptr;
  for (Execution& member : TreeMembers(head)) {
    const Failure* const failure = member.failure.get();
    // The one that failed may be undone already, when a restart comes in the middle of a rollback.
    const bool failed =
        member.state == ProcedureState::kFailed || member.state == ProcedureState::kRolledBack;
    if (failure == nullptr || failure->error.ok() || !failed) continue;
    if (&member.domain() != &head) continue;
    if (first == nullptr || failure->sequence < first->sequence) first = failure;
  }
  const InboxMessage* const abort = head.inbox ? head.inbox->abort() : nullptr;
  if (abort != nullptr && (first == nullptr || abort->sequence < first->sequence)) {
    return error_of(*abort);
  }
  return first != nullptr ? first->error
                          : Status(StatusCode::kInternal, "a member failed without an error");
}

// The rows of all messages that nobody in the tree has consumed.
std::vector<std::string> message_rows(Execution& root) {
  std::vector<std::string> rows;
  for (Execution& member : TreeMembers(root)) {
    if (!member.inbox) continue;
    for (const auto& message : member.inbox->messages) {
      rows.push_back(inbox_key(member.id, message->number));
    }
  }
  return rows;
}

// Who was left in the middle of a step that no record of an undo names yet is so still.
void forget_that_it_was_stopped(const UndoTurn& turn) {
  Execution& left = *turn.execution;
  if (turn.entry.sequence != kUnfinishedStep || left.state != ProcedureState::kFailed) return;
  const bool undone = left.step == 0;
  const bool recorded = !left.undo.empty() && left.undo.back().step == left.step;
  if (!undone && !recorded) left.state = ProcedureState::kRunnable;
}

// What was being undone within this domain is planned anew with it, as after a restart, or never
// undone. Nobody has a turn any more.
void forget_inner_plans(Execution& head) {
  head.undo_step = 0;
  for (Execution* member : head.tree.members) {
    member->undo_step = 0;
    if (!member->reports || member->reported) continue;
    TreeState& inner = member->tree;
    if (inner.rollback) inner.rollback->for_each(forget_that_it_was_stopped);
    inner.failed = inner.parked = inner.rolling_back = false;
    inner.rollback.reset();
    inner.cause = Status();
  }
}

// The first of the members that is parked in an undo, or nullptr.
const Execution* first_parked(Execution& head) {
  for (const Execution& member : TreeMembers(head)) {
    if (is_parked_in_undo(member)) return &member;
  }
  return nullptr;
}

void plan_rollback(Execution& head) {
  std::vector<UndoTurn> turns;
  head.tree.cause = find_cause(head);
  head.result.clear();  // of a done() that was waiting for its children: nothing came of it
  for (Execution& member : TreeMembers(head)) {
    PV2_ASSERT(member.undo_step == 0, "a turn begins when the plan is made");
    if (!member.is_undone_with_its_tree() || member.state == ProcedureState::kRolledBack) continue;
    member.undo_left = 0;
    for (const UndoEntry& entry : member.undo) {
      turns.push_back({&member, entry});
      ++member.undo_left;
    }
    if (was_left_in_the_middle(member)) {
      turns.push_back({&member, {member.step, kUnfinishedStep}});
      ++member.undo_left;
    }
    if (is_parked_in_undo(member) && member.undo_left != 0) {
      turns.back().entry.sequence = kParkedTurn;
    }
    if (member.state == ProcedureState::kFailed) continue;
    // Whatever it had to say about earlier attempts is not why the tree failed.
    member.state = ProcedureState::kFailed;
    member.parked = false;
    member.failure.reset();
    member.deadline.reset();
    member.attempt = 1;
  }
  head.tree.rollback = std::make_unique<RollbackPlan>(head, std::move(turns));
}

// Who was in the middle of a step only this run knows; by its record a member whose step never
// began looks the same. Before the first undo is called that is made durable, or a restart would
// undo what never ran, and do so after what was done before it. True: the record is on its way, and
// the rollback begins when it is published.
bool record_who_was_interrupted(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  if (head.tree.interrupted) return false;  // nothing has gone forward since
  std::vector<InterruptedMembers::Candidate> candidates;
  bool misleads = false;
  bool has_turns = false;
  for (Execution& member : TreeMembers(head)) {
    if (!member.is_undone_with_its_tree() || member.state == ProcedureState::kRolledBack) continue;
    const bool interrupted = was_left_in_the_middle(member);
    has_turns = has_turns || interrupted || !member.undo.empty();
    if (!stands_at_undoable_step(member)) continue;
    if (is_known_not_begun(member)) {
      PV2_ASSERT(!interrupted, "what a record says was not begun has not begun since");
      continue;
    }
    const bool seems_begun = may_have_begun(member, member.recorded_locks);
    PV2_ASSERT(seems_begun || !interrupted, "a restart sees that a step may have been begun");
    if (!seems_begun) continue;
    candidates.push_back({member.id, interrupted});
    misleads = misleads || !interrupted;
  }
  if (!misleads || !has_turns) return false;
  auto commit = core.state.spare_steps.take();
  commit->execution = &head;
  Transition& same = commit->next;
  same = as_it_is(core, head);
  same.interrupted = std::make_unique<InterruptedMembers>(std::move(candidates));
  if (head.failure && head.state != ProcedureState::kFailed) same.error = head.failure->shown();
  update_state(head, same, head.step, commit->batch);
  head.phase = Phase::kInFlight;
  enter_flight(head);
  effects.commits.push_back(*commit.release());
  return true;
}

// Makes the last record of a procedure that has no step left to run: no user code is needed for it.
// One that `ends_domain` is the head of what was undone.
enum class LastRecord : std::uint8_t { kOfMember, kEndsDomain };
void commit_last_record(EngineCore& core, Execution& execution, ProcedureState state,
                        LastRecord which, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  auto commit = core.state.spare_steps.take();
  commit->execution = &execution;
  Transition& last = commit->next;
  last.state = state;
  last.attempt = execution.attempt;
  last.no_return = execution.no_return;
  last.holds_locks = false;
  last.now = core.clock.wall_now();
  if (state == ProcedureState::kSuccess) last.result = execution.result.view();
  if (state == ProcedureState::kRolledBack) {
    last.error = execution.tree.cause;
    last.bypassed = execution.sent_back;
    last.reported = which == LastRecord::kEndsDomain && !execution.is_root();
  }
  core.date_end(execution, last);
  update_state(execution, last, 0, commit->batch);
  execution.phase = Phase::kInFlight;
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
void give_back_idle_locks(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  for (Execution* member : head.tree.members) {
    const bool idle = member->state == ProcedureState::kFailed && member->undo_left == 0;
    if (!idle || member->parked || member->locks.empty() || !member->holds_locks()) continue;
    commit_last_record(core, *member, ProcedureState::kRolledBack, LastRecord::kOfMember, effects);
  }
}

void begin_turn(EngineCore& core, Execution& head, const UndoTurn& turn, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  Execution& member = *turn.execution;
  member.undo_step = turn.entry.step;
  core.end_reported_wait(member);
  member.leads_rollback = &member == &head;
  member.ends_tree = member.leads_rollback && head.tree.rollback->left() == 1;
  if (member.parked) return;  // what has to come after it waits with it
  // A back-off between two attempts to undo, or a wait for time alone; what was awaited beside it
  // is asked for anew.
  if (member.deadline && !member.awaits) {
    member.phase = Phase::kWaiting;
    core.arm_timer(member, effects);
    return;
  }
  core.queue(member, member.holds_locks() ? Disposition::kFront : Disposition::kBack);
}

// Whether the last turn may begin, or if it is over the head may end. It waits until nobody else is
// in flight; left_flight() comes back to it. What is parked may begin: it stands still in its turn.
bool may_end(Execution& head) {
  if (head.tree.in_flight != 0) return false;
  if (!head.tree.parked) return true;
  const Execution* const parked = first_parked(head);
  return parked != nullptr && parked->undo_left != 0;
}

// Whatever may be undone now; or the head ends, if nothing is left.
void begin_turns(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  TreeState& tree = head.tree;
  RollbackPlan& rollback = *tree.rollback;
  if (head.quarantined) return;
  if (rollback.left() <= 1 && !may_end(head)) return;
  if (rollback.left() == 0) {
    return commit_last_record(core, head, ProcedureState::kRolledBack, LastRecord::kEndsDomain,
                              effects);
  }
  std::vector<const UndoTurn*> turns;
  while (const UndoTurn* const turn = rollback.begin_next()) turns.push_back(turn);
  for (const RollbackPlan::Wait& wait : rollback.take_new_waits()) {
    wait_for_turn(core, *wait.member, *wait.scope);
  }
  for (const UndoTurn* const turn : turns) begin_turn(core, head, *turn, effects);
}

void stop_member(EngineCore& core, Execution& member) PV2_REQUIRES(core.state_mutex) {
  core.stop_work(member);
  switch (member.phase) {
    case Phase::kQueued:
      if (core.scheduler.withdraw(member)) {
        member.phase = Phase::kIdle;
      } else {  // a worker has polled it and is about to look
        member.phase = Phase::kDropping;
        enter_flight(member);
      }
      core.abandon_waits(member);
      break;
    case Phase::kWaiting:
      member.phase = Phase::kIdle;
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
  Execution* found = nullptr;
  for (Execution* head = &member.domain(); head != nullptr; head = head->outer_domain()) {
    if (head->tree.failed) found = head;
  }
  return found;
}

bool failed_before(Execution& member, CommitSequence sequence) {
  for (Execution* head = &member.domain(); head != nullptr; head = head->outer_domain()) {
    if (!head->tree.failed) continue;
    const InboxMessage* const abort = head->inbox ? head->inbox->abort() : nullptr;
    if (abort != nullptr && abort->sequence < sequence) return true;
    for (Execution& other : TreeMembers(*head)) {
      const bool failed =
          other.state == ProcedureState::kFailed || other.state == ProcedureState::kRolledBack;
      if (!failed || !other.failure || other.failure->error.ok()) continue;
      if (&other.domain() == head && other.failure->sequence < sequence) return true;
    }
  }
  return false;
}

bool is_parked(Execution& member) {
  if (member.parked) return true;
  for (Execution* head = &member.domain(); head != nullptr; head = head->outer_domain()) {
    if (head->tree.parked) return true;
  }
  return false;
}

bool stands_still(Execution& member) {
  const Execution* const failed = failing_domain(member);
  const bool has_turn =
      failed != nullptr && failed->tree.rollback && failed->tree.rollback->has_begun(member);
  return is_parked(member) && (member.parked || !has_turn);
}

bool is_over(Execution& member) {
  for (Execution* head = &member.domain(); head != nullptr; head = head->outer_domain()) {
    if (head->reported) return true;
  }
  return false;
}

bool stop_turns(EngineCore& core, Execution& head, Effects& effects) {
  if (!head.tree.rollback) return true;
  core.flush();  // so that every kQueued member is in a queue, or polled
  std::vector<Execution*> stopped;
  bool all = true;
  for (Execution* const member : head.tree.rollback->begun()) {
    if (member->phase != Phase::kQueued) continue;
    all = core.scheduler.withdraw(*member) && all;
    if (!all) break;
    member->phase = Phase::kIdle;
    stopped.push_back(member);
  }
  if (all) return true;
  for (const Execution* const member : stopped) head.tree.rollback->put_back(*member);
  begin_turns(core, head, effects);
  return false;
}

bool can_be_undone(Execution& head) { return beyond_return(head) == nullptr; }

namespace {

// Starts, or after a restart continues, the rollback of a domain of which nobody is in flight.
void begin_rollback(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(head.tree.in_flight == 0, "nothing is undone beside a step or beside offloaded work");
  head.tree.rolling_back = true;
  core.flush();  // the last one in flight may just have given its locks back, and be the first to
                 // be undone
  if (const Execution* const member = beyond_return(head)) {
    head.tree.cause = find_cause(head);
    return park_tree(core, head,
                     "it failed (" + head.tree.cause.to_string() + ") after procedure " +
                         std::to_string(member->id.value) + " had passed its point of no return",
                     effects);
  }
  forget_inner_plans(head);
  if (record_who_was_interrupted(core, head, effects)) {
    head.tree.rolling_back = false;
    return;
  }
  plan_rollback(head);
  // Before a restart, or as part of a domain within this one.
  if (const Execution* const parked = first_parked(head)) {
    park_tree(core, head, parked->failure ? parked->failure->shown().to_string() : "", effects);
  }
  give_back_idle_locks(core, head, effects);
  begin_turns(core, head, effects);
}

}  // namespace

void child_finished(EngineCore& core, Execution& child, Effects& effects) {
  Execution& parent = *child.parent_execution();
  PV2_ASSERT(parent.unfinished_children > 0, "a parent waits for every child that finishes");
  if (--parent.unfinished_children == 0 && parent.phase == Phase::kWaiting) {
    children_finished(core, parent, effects);
  }
}

void child_ended_too_late(Execution& child) {
  Execution& parent = *child.parent_execution();
  PV2_ASSERT(parent.unfinished_children > 0, "a parent waits for every child that finishes");
  if (--parent.unfinished_children == 0 && parent.state == ProcedureState::kWaiting) {
    parent.state = ProcedureState::kRunnable;
  }
}

bool is_done_but_for_work(const Execution& member) {
  return member.phase == Phase::kWaiting && member.state == ProcedureState::kRunnable &&
         member.step == 0 && member.unfinished_children == 0;
}

void children_finished(EngineCore& core, Execution& parent, Effects& effects) {
  // Not written: after a crash, waiting with no unfinished child means runnable.
  parent.state = ProcedureState::kRunnable;
  if (parent.step == 0) {  // it was done, but for its children
    if (has_work(parent)) {
      parent.phase = Phase::kWaiting;
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
  switch (member.state) {
    case ProcedureState::kWaiting:
      if (member.unfinished_children > 0) {
        member.phase = Phase::kWaiting;
        member.started = false;
      } else {  // its last child's record was the last thing that happened
        children_finished(core, member, effects);
      }
      return;
    case ProcedureState::kRunnable:
      if (member.parked) return;  // until an operator acts
      if (member.step == 0) return children_finished(core, member, effects);
      return core.queue(member, Disposition::kBack);
    case ProcedureState::kWaitingTimeout:
      if (member.awaits) return core.queue(member, Disposition::kBack);
      member.phase = Phase::kWaiting;
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

// Whether it ended earlier than `head`, with a domain within that of `head`.
bool is_over_before(Execution& member, const Execution& head) {
  for (Execution* inner = &member.domain(); inner != &head; inner = inner->outer_domain()) {
    if (inner->reported) return true;
  }
  return false;
}

bool is_live_head(const Execution& member) { return member.reports && !member.reported; }

// Whether a record of its own domain says that it has failed.
bool has_failed(Execution& head) {
  if (head.inbox && head.inbox->abort() != nullptr) return true;
  for (Execution& member : TreeMembers(head)) {
    const bool failed =
        member.state == ProcedureState::kFailed || member.state == ProcedureState::kRolledBack;
    if (failed && &member.domain() == &head) return true;
  }
  return false;
}

// Nobody in the domain has failed any more: it goes on where it was stopped. What was said about
// children meanwhile was heard by nobody, so they are counted anew.
void resume_domain(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  TreeState& tree = head.tree;
  forget_inner_plans(head);
  tree.failed = tree.parked = tree.rolling_back = false;
  tree.rollback.reset();
  tree.cause = Status();
  tree.given_up = false;
  core.flush();
  if (head.is_root() && head.state == ProcedureState::kSuccess) {
    return finish_root(core, head, effects);
  }
  for (Execution& member : TreeMembers(head)) member.unfinished_children = 0;
  for (const Execution* member : tree.members) {
    const bool ended = member->state == ProcedureState::kSuccess || member->reported;
    if (!ended) ++member->parent_execution()->unfinished_children;
  }
  for (Execution* member : tree.members) {
    if (is_live_head(*member)) member->tree.failed = has_failed(*member);
  }
  start_domain(core, head, effects);
  if (head.state == ProcedureState::kSuccess) child_finished(core, head, effects);
}

}  // namespace

void find_failures(Execution& root) {
  for (Execution& member : TreeMembers(root)) {
    if (member.is_root() || is_live_head(member)) member.tree.failed = has_failed(member);
  }
}

void forget_what_had_not_begun(Execution& root,
                               const FlatMap<ProcedureId, CommitSequence>& recorded) {
  std::map<ProcedureId, CommitSequence> failures;  // the first of each domain, by its head
  const auto failed = [&](const Execution& head, CommitSequence sequence) {
    if (!head.tree.failed) return;
    const auto at = failures.try_emplace(head.id, sequence).first;
    at->second = std::min(at->second, sequence);
  };
  bool is_recorded = false;
  for (Execution& member : TreeMembers(root)) {
    is_recorded = is_recorded || member.tree.interrupted != nullptr;
    const InboxMessage* const abort = member.inbox ? member.inbox->abort() : nullptr;
    if (abort != nullptr) failed(member, abort->sequence);
    const bool has_failed =
        member.state == ProcedureState::kFailed || member.state == ProcedureState::kRolledBack;
    if (!has_failed || !member.failure || member.failure->error.ok()) continue;
    failed(member.domain(), member.failure->sequence);
  }
  if (failures.empty() && !is_recorded) return;
  for (Execution& member : TreeMembers(root)) {
    if (!member.started) continue;
    if (const auto said = recorded_interruption(member)) {
      member.started = *said;
      continue;
    }
    // What became durable after the failure was published after it: nothing followed from it.
    const auto at = recorded.find(member.id);
    if (at == recorded.end() || has_tried(member)) continue;
    for (Execution* head = &member.domain(); head != nullptr; head = head->outer_domain()) {
      const auto failure = failures.find(head->id);
      if (failure != failures.end() && failure->second < at->second) member.started = false;
    }
  }
}

void start_domain(EngineCore& core, Execution& head, Effects& effects) {
  if (head.tree.failed) {
    for (Execution& member : TreeMembers(head)) {
      // Whoever waited for children that had all ended may have begun its next step.
      if (member.state == ProcedureState::kWaiting && member.unfinished_children == 0) {
        member.state = ProcedureState::kRunnable;
      }
    }
    return begin_rollback(core, head, effects);
  }
  for (Execution& member : TreeMembers(head)) {
    if (&member.domain() == &head) go_on_from_record(core, member, effects);
  }
  for (Execution* member : head.tree.members) {
    if (is_live_head(*member) && member->outer_domain() == &head) {
      start_domain(core, *member, effects);
    }
  }
}

void order_published(EngineCore& core, Execution& execution, const StepCommit& commit,
                     Effects& effects) {
  Execution* const head = failing_domain(execution);
  PV2_ASSERT(head != nullptr, "an order to a parked tree is about one that has failed");
  TreeState& tree = head->tree;
  execution.phase = Phase::kIdle;
  if (commit.next.order == OrderEffect::kBack) tree.parked = tree.rolling_back = false;
  left_flight(core, execution, effects);
  if (commit.next.order != OrderEffect::kForward) return;
  if (execution.state == ProcedureState::kSuccess && !execution.is_root()) {
    core.settle(execution, Disposition::kParkUnlock);
    core.tell(ProcedureNews::Kind::kFinished, execution);
  }
  if (has_failed(*head)) return;  // others have to be repaired too
  resume_domain(core, *head, effects);
}

void park_member(EngineCore& core, Execution& member, Effects& effects) {
  member.phase = Phase::kIdle;
  const Status& why = member.failure->parked;
  core.tell(ProcedureNews::Kind::kParked, member, why);
  effects.log(LogLevel::kError, "procedure " + std::to_string(member.id.value) + " (" +
                                    std::string(member.name_of_type()) +
                                    ") is parked with its locks: " + why.to_string());
}

void domain_ended(EngineCore& core, Execution& head, Effects& effects) {
  head.phase = Phase::kIdle;
  forget_inner_plans(head);
  TreeState& tree = head.tree;
  tree.failed = tree.parked = tree.rolling_back = tree.given_up = false;
  tree.rollback.reset();
  core.flush();
  for (Execution& member : TreeMembers(head)) {
    if (&member != &head && is_over_before(member, head)) continue;
    PV2_ASSERT(!has_work(member), "what was undone has no work that runs");
    core.abandon_waits(member);
    if (member.holds_locks()) core.settle(member, Disposition::kParkUnlock);
    member.recorded_locks = false;  // whatever its own record says
    const bool stays = &member != &head && !member.is_undone_with_its_tree();
    if (stays) continue;
    member.state = ProcedureState::kRolledBack;
    member.parked = false;
    core.tell(ProcedureNews::Kind::kFinished, member, tree.cause);
  }
  effects.log(LogLevel::kInfo,
              "procedure " + std::to_string(head.id.value) + " (" +
                  std::string(head.name_of_type()) +
                  ") failed and is undone; its parent is told: " + head.failure->error.to_string());
  failing_domain(head) == nullptr ? child_finished(core, head, effects)
                                  : child_ended_too_late(head);
}

namespace {

void stop_all(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex) {
  head.tree.failed = true;
  // Others than the one that failed, which is counted until its record has been dealt with.
  if (head.tree.in_flight > 1) core.recall_runs();
  core.flush();  // so that every kQueued member is in a queue, or polled
  for (Execution& member : TreeMembers(head)) stop_member(core, member);
}

}  // namespace

void fail_tree(EngineCore& core, Execution& head) {
  if (!head.tree.failed) stop_all(core, head);
}

void abort_tree(EngineCore& core, Execution& root, Effects& effects) {
  fail_tree(core, root);
  TreeState& tree = root.tree;
  if (tree.in_flight != 0) core.recall_runs();
  if (tree.in_flight == 0 && !tree.rolling_back && !tree.parked) {
    begin_rollback(core, root, effects);
  }
}

Status why_not_abortable(Execution& root) {
  const std::string name = "procedure " + std::to_string(root.id.value);
  const auto refused = [&](const std::string& why) {
    return Status(StatusCode::kFailedPrecondition, name + " cannot be aborted: " + why);
  };
  if (root.phase == Phase::kInserting) {
    return Status(StatusCode::kUnavailable, name + " is just being submitted; try again");
  }
  if (root.quarantined) return refused("it is quarantined");
  if (root.work && root.work->last_order) {
    return refused("an operator has ended it, and it waits for its offloaded work");
  }
  if (root.tree.parked) return refused("it is parked, and can be neither finished nor undone");
  if (root.tree.failed) return refused("it has failed already and is being undone");
  if (const Execution* const beyond = beyond_return(root)) {
    return refused("procedure " + std::to_string(beyond->id.value) +
                   " has passed its point of no return");
  }
  for (Execution& member : TreeMembers(root)) {
    if (!has_begun_no_return(member) || failing_domain(member) != nullptr) continue;
    return refused("procedure " + std::to_string(member.id.value) +
                   " has begun its point of no return, step " +
                   std::string(member.type->find_step(member.step)->name));
  }
  return Status();
}

bool stands_before_no_return(const Execution& member) {
  if (member.undo_step != 0 || member.type == nullptr) return false;
  const StepInfo* const info = member.type->find_step(member.step);
  return info != nullptr && info->kind == StepKind::kPointOfNoReturn;
}

bool may_begin(Execution& member) {
  const Execution* const failed = failing_domain(member);
  if (failed == nullptr) return true;
  return failed->tree.rolling_back && !failed->quarantined && member.undo_step != 0;
}

void drop_from_flight(EngineCore& core, Execution& member) {
  PV2_ASSERT(member.phase == Phase::kInFlight, "what is dropped was taken and has not begun");
  member.phase = Phase::kIdle;
  member.undo_step = 0;  // of a domain within the one that failed: it is planned anew with that
  core.abandon_waits(member);
  if (member.granted_by_poll()) core.settle(member, Disposition::kParkUnlock);
}

Transition as_it_is(const EngineCore& core, const Execution& execution) {
  Transition same;
  same.state = execution.state;
  same.step = execution.step;
  same.attempt = execution.attempt;
  same.no_return = execution.no_return;
  same.parked = execution.parked;
  same.unsure = execution.unsure;
  same.awaits = execution.awaits;
  same.holds_locks = execution.recorded_locks;
  same.result = execution.result.view();
  core.go_on_waiting(execution, same);
  same.now = core.clock.wall_now();
  return same;
}

std::uint32_t step_that_may_have_begun(Execution& member) {
  if (member.state == ProcedureState::kFailed) {
    const Execution* const failed = failing_domain(member);
    const bool planned = failed != nullptr && failed->tree.rollback != nullptr;
    return planned && member.undo_left > member.undo.size() ? member.step : 0;
  }
  if (!stands_at_undoable_step(member)) return 0;
  // Of one in flight `started` belongs to its worker.
  return member.phase == Phase::kInFlight || member.started ? member.step : 0;
}

std::uint32_t step_to_undo(const Execution& execution) {
  if (execution.undo_step != 0) return execution.undo_step;
  const bool undoes = execution.state == ProcedureState::kFailed && execution.step == 0;
  return undoes && !execution.undo.empty() ? execution.undo.back().step : 0;
}

// Not without its locks, which a record gives it before the step runs; but it may have given them
// back since, to wait or after an attempt.
bool may_have_begun(const Execution& execution, bool held_locks) {
  if (held_locks || execution.locks.empty()) return true;
  return has_tried(execution);
}

void enter_flight(Execution& member) {
  for (Execution* head = &member.domain(); head != nullptr; head = head->outer_domain()) {
    ++head->tree.in_flight;
  }
}

void left_flight(EngineCore& core, Execution& member, Effects& effects) {
  for (Execution* head = &member.domain(); head != nullptr; head = head->outer_domain()) {
    PV2_ASSERT(head->tree.in_flight > 0, "what leaves flight was in flight");
    --head->tree.in_flight;
    if (head->work && head->work->last_order && head->tree.in_flight == 1) {
      effects.durable.push_back(*head->work->last_order.release());
    }
  }
  Execution* const failed = failing_domain(member);
  if (failed == nullptr || failed->tree.in_flight > 0) return;
  if (failed->tree.rolling_back && failed->tree.rollback) {
    begin_turns(core, *failed, effects);
  } else if (!failed->tree.parked) {
    begin_rollback(core, *failed, effects);
  }
}

namespace {

void wait_in_turn(EngineCore& core, Execution& execution, const StepCommit& commit,
                  Effects& effects) PV2_REQUIRES(core.state_mutex) {
  const bool arrived = execution.wake_pending || (execution.inbox && execution.inbox->has_wanted());
  if (arrived && !commit.next.ends_waits) {
    execution.wake_pending = false;
    return core.queue(execution, Disposition::kFront);
  }
  execution.phase = Phase::kWaiting;
  if (execution.deadline) core.arm_timer(execution, effects);
}

void end_turn(EngineCore& core, Execution& head, Execution& execution)
    PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(!has_work(execution), "an undo is over when its work has ended");
  core.end_reported_wait(execution);  // there is one if an operator passed over its turn
  execution.undo_step = 0;
  --execution.undo_left;
  head.tree.rollback->end(execution);
  if (execution.undo_left == 0 && &execution != &head) {
    core.settle(execution, Disposition::kParkUnlock);
  }
}

}  // namespace

void undo_published(EngineCore& core, Execution& execution, StepCommit& commit, Effects& effects) {
  Execution* const failed = failing_domain(execution);
  PV2_ASSERT(failed != nullptr, "what is undone has failed");
  Execution& head = *failed;
  TreeState& tree = head.tree;
  const Transition& done = commit.next;
  execution.phase = Phase::kIdle;
  if (done.parked) {
    PV2_ASSERT(execution.failure != nullptr, "a record that parks says why");
    if (!done.holds_locks && execution.holds_locks()) {
      core.settle(execution, Disposition::kParkUnlock);
    }
    return park_tree(core, head, execution.failure->parked.to_string(), effects);
  }
  const bool ordered = done.history && is_order(done.history->outcome);
  if (ordered) tree.parked = first_parked(head) != nullptr;
  if (done.undo == UndoChange::kPop) {
    end_turn(core, head, execution);
  } else if (done.requeue) {  // an operator wants the undo tried again
    tree.rollback->put_back(execution);
  } else {  // a wait or a back-off inside the turn
    return wait_in_turn(core, execution, commit, effects);
  }
  begin_turns(core, head, effects);
}

void finish_root(EngineCore& core, Execution& root, Effects& effects) {
  core.flush();
  keep_result(core, root, effects);
  std::unique_ptr<GarbageCommit> garbage;
  std::vector<std::string> rows = message_rows(root);
  if ((!root.tree.members.empty() || !rows.empty()) && core.keeps_records) {
    garbage = std::make_unique<GarbageCommit>();
    garbage->root = root.id;
    garbage->rows = std::move(rows);
    core.state.garbage.try_emplace(root.id);
  }
  if (root.state == ProcedureState::kRolledBack) {
    for (Execution* member : root.tree.members) {
      if (!member->is_undone_with_its_tree() || is_over(*member)) continue;
      core.tell(ProcedureNews::Kind::kFinished, *member, root.tree.cause);
    }
  }
  core.tell(ProcedureNews::Kind::kFinished, root, root.failure ? root.failure->error : Status());
  for (Execution& member : TreeMembers(root)) {
    PV2_ASSERT(!has_work(member), "a tree ends when its work has ended");
    if (member.type != nullptr) {  // else it is bypassed by a program that does not know it
      TypeCounts& counts = core.counts_of(*member.type);
      ++(member.state == ProcedureState::kSuccess ? counts.succeeded : counts.undone);
    }
    core.abandon_waits(member);
    core.settle(member, Disposition::kComplete);
    core.state.live.erase(member.id);
    if (garbage && !member.is_root()) garbage->left.push_back(member.id);
  }
  core.flush();
  const LazyVector<Execution*> members = std::move(root.tree.members);
  for (Execution* member : members) effects.retired.emplace_back(member);
  effects.retired.emplace_back(&root);
  if (garbage) effects.garbage.push_back(std::move(garbage));
}

void quarantine_tree(EngineCore& core, Execution& root, const Status& reason, Effects& effects) {
  if (root.quarantined) return;
  stop_all(core, root);
  root.quarantined = true;
  root.tree.parked = true;
  for (Execution& member : TreeMembers(root)) member.quarantined = true;
  root.tree.cause = reason;
  core.tell(ProcedureNews::Kind::kQuarantined, root, reason);
  effects.log(LogLevel::kError, "procedure " + std::to_string(root.id.value) + " (" +
                                    std::string(root.name_of_type()) +
                                    ") is quarantined with its locks: " + reason.to_string());
}

}  // namespace pv2
