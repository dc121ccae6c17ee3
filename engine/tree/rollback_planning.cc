// SPDX-License-Identifier: Apache-2.0
//
// The stages of a kPlan work, from kSurvey to kSorted. Read plan_all() at the end first.

#include "tree/rollback_planning.h"

#include <algorithm>
#include <utility>

#include "core/effects.h"
#include "model/inbox.h"
#include "model/names.h"
#include "model/rollback_plan.h"
#include "model/tree_walk.h"
#include "model/tree_work.h"
#include "model/undo_order.h"
#include "records/procedure_rows.h"
#include "tree/domains.h"
#include "tree/flight.h"
#include "tree/join.h"
#include "tree/member_step.h"
#include "tree/rollback.h"
#include "tree/tree_works.h"

namespace pv2 {
namespace {

// The sequence of a turn whose undo has begun: newer than that of any other turn. A restart and the
// failure of a wider domain make a new plan, which undoes these turns first: each may be half done,
// and what it needs is still there.
constexpr CommitSequence kBegunTurn{UINT64_MAX};

// As many turns as this are sorted under the mutex: that takes no longer than to lock it twice.
constexpr std::size_t kSortedAtOnce = 256;

// The failure that the record of `member` names, if `member` is in the domain of `head` itself; or
// nullptr. The failure of a domain within is reported, and is not why the domain of `head` failed.
const Failure* failure_within(Execution& member, const Execution& head) {
  const Failure* const failure = member.record.failure();
  // The member that failed may be undone already: a restart may interrupt a rollback.
  const bool failed = member.record.state == ProcedureState::kFailed ||
                      member.record.state == ProcedureState::kRolledBack;
  if (failure == nullptr || failure->error.ok() || !failed) return nullptr;
  return member.head() == &head ? failure : nullptr;
}

// The error of the failure or of the abort that was durable first. `first` is the first failure of
// the members, or nullptr.
Status cause_of(const Execution& head, const Failure* first) {
  const InboxMessage* const abort = head.inbox ? head.inbox->abort() : nullptr;
  if (abort != nullptr && (first == nullptr || abort->sequence < first->sequence)) {
    return error_of(*abort);
  }
  return first != nullptr ? first->error
                          : Status(StatusCode::kInternal, "a member failed without an error");
}

bool is_live_head(const Execution& member) { return member.reports() && !member.record.reported; }

// The plan that stopped `member` is discarded, because a wider domain has failed or the domain goes
// forward again. If no record of an undo names the step in which the member was interrupted, its
// record in memory says again what it said before that plan, and it is still interrupted.
void forget_that_it_was_stopped(Execution& member) {
  if (!member.rare_of_run.is_made()) return;
  const std::unique_ptr<StoppedStep> record = std::move(member.edit_turn().stopped);
  if (record == nullptr || member.record.state != ProcedureState::kFailed) return;
  const bool undone = member.record.step == 0;
  const bool recorded =
      !member.record.undo.empty() && member.record.undo.back().step == member.record.step;
  if (undone || recorded) return;
  member.record.state = record->state;  // back, against the table
  member.record.attempt = record->attempt;
  member.record.deadline = record->deadline;
  member.record.set_failure(std::move(record->failure));
  if (member.record.parked == record->parked) return;
  member.record.parked = record->parked;
  note_parked(member);
}

void forget_plan(Execution& inner_head, Effects& effects) {
  Domain& inner = inner_head.domain;
  move_to(inner_head, DomainState::kForward);
  if (!inner.rare.is_made()) return;
  inner.rare.edit().parked_undos = 0;
  retire_plan(inner, effects);
  inner.rare.edit().cause = Status();
}

}  // namespace

void forget_inner_plans(Execution& head, Effects& effects) {
  for (Execution& member : Subtree(head)) {
    member.leave_turn();
    if (&member == &head) continue;
    forget_that_it_was_stopped(member);
    if (is_live_head(member)) forget_plan(member, effects);
  }
}

namespace {

// Adds the turns of `member` to `turns`.
void plan_turns(Execution& member, bool was_interrupted, std::vector<UndoTurn>& turns) {
  Turn& turn = member.edit_turn();
  turn.left = 0;
  for (const UndoEntry& entry : member.record.undo) {
    turns.push_back({&member, entry});
    ++turn.left;
  }
  if (was_interrupted) {
    turns.push_back({&member, {member.record.step, kUnfinishedStep}});
    ++turn.left;
    turn.stopped =
        std::make_unique<StoppedStep>(StoppedStep{.state = member.record.state,
                                                  .parked = member.record.parked,
                                                  .attempt = member.record.attempt,
                                                  .deadline = member.record.deadline,
                                                  .failure = member.record.take_failure()});
  }
  if (has_begun_undo(member)) {
    PV2_ASSERT(turn.stopped == nullptr, "an undo that has begun is recorded with its step");
    turns.back().entry.sequence = kBegunTurn;
  }
}

// Like plan_turns(). In memory the state of `member` is kFailed from now on.
void plan_member(Execution& member, std::vector<UndoTurn>& turns) {
  PV2_ASSERT(!member.has_turn(), "no turn begins before the plan is made");
  if (!member.is_undone_with_its_tree() || member.record.state == ProcedureState::kRolledBack)
    return;
  const bool was_interrupted = was_left_in_the_middle(member);
  const bool has_turns = was_interrupted || !member.record.undo.empty();
  if (has_turns || member.turn().left != 0) plan_turns(member, was_interrupted, turns);
  if (member.record.state == ProcedureState::kFailed) return;
  // An error of earlier attempts in its record is not why the tree failed.
  member.record.move_to(ProcedureState::kFailed);
  if (member.record.parked) {
    member.record.parked = false;
    note_parked(member);
  }
  member.record.set_failure(nullptr);
  member.record.deadline.reset();
  member.record.attempt = 1;
}

// Notes whether a restart would take `member` for interrupted, if no record named the interrupted
// members, and whether it is.
void note_interruption(TreeWork& work, Execution& member) {
  if (!member.is_undone_with_its_tree() || member.record.state == ProcedureState::kRolledBack)
    return;
  const bool interrupted = was_left_in_the_middle(member);
  work.has_turns = work.has_turns || interrupted || !member.record.undo.empty();
  if (!stands_at_undoable_step(member)) return;
  if (is_known_not_begun(member)) {
    PV2_ASSERT(!interrupted, "a step that the record says was not begun is not interrupted");
    return;
  }
  const bool seems_begun = may_have_begun(member, member.record.holds_locks);
  PV2_ASSERT(seems_begun || !interrupted, "a step that was interrupted seems begun to a restart");
  if (!seems_begun) return;
  work.candidates.push_back({member.id, interrupted});
  work.misleads = work.misleads || !interrupted;
}

// Whether a record has to name the interrupted members. Only this run knows them: the record of a
// member whose step never began looks like that of an interrupted one, and a restart in the middle
// of the rollback would undo a step that never ran. So the record is durable before the first undo
// is called. One record is enough: no member has gone forward since.
bool misleads_a_restart(const TreeWork& work) {
  return work.head.record.interrupted() == nullptr && work.misleads && work.has_turns;
}

// Commits the record that names the interrupted members. The rollback is planned when it is
// published.
void record_who_was_interrupted(EngineCore& core, TreeWork& work, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  Execution& head = work.head;
  PV2_ASSERT(work.interrupted != nullptr, "the interrupted members are known");
  PV2_ASSERT(head.phase == Phase::kIdle, "the head of a domain about to be undone is idle");
  auto commit = core.state.spares.steps.take(core.seat());
  commit->execution = &head;
  Transition& same = commit->next;
  same = as_it_is(core, head);
  same.set_interrupted(std::move(work.interrupted));
  if (head.record.failure() && head.record.state != ProcedureState::kFailed)
    same.set_error(head.record.failure()->shown());
  update_state(head, same, head.record.step, commit->batch);
  head.phase.move_to(Phase::kInFlight);
  enter_flight(head);
  effects.commits.push_back(*commit.release());
}

// Until count_added_turns(), Turn::left counts only turns that undo a step.
bool has_steps_to_undo(const Execution& member) { return member.turn().left != 0; }

bool holds_for_undos(const Execution& member) {
  return member.holds_locks() && !member.record.parked;
}

bool is_idle_holder(const Execution& member) {
  return holds_for_undos(member) && !has_steps_to_undo(member);
}

// Whether descendants have worked under the locks of `member`, and may hold the same keys: it had
// them for the operation, or has kept them for children that have not finished. A finished member
// whose type is not registered any more cannot take them again.
bool keeps_for_descendants(const Execution& member) {
  if (member.first_child() == nullptr) return false;
  if (member.locks().scope() == LockScope::kOperation) {
    return member.type != nullptr || holds_for_undos(member);
  }
  return holds_for_undos(member) && member.children().unfinished != 0;
}

// Whether an operator has ordered that what is below `member` is undone without its locks.
bool goes_on_without_locks(const Execution& member) {
  const History& history = member.record.history;
  if (history.size() == 0) return false;
  const HistoryEntry last = history.at(history.size() - 1);
  return last.is_of_locks() && last.outcome == Outcome::Kind::kSkipped;
}

// Notes what has to be known of the locks of `member`, whose turns are planned. `had_failed` says
// whether it had failed before that.
void note_locks(TreeWork& work, Execution& member, bool had_failed) {
  if (member.record.state != ProcedureState::kFailed || member.locks().empty()) return;
  UndoLocks& locks = work.locks;
  const bool for_operation = member.locks().scope() == LockScope::kOperation;
  const bool is_head = &member == &work.head;
  const bool keeps = keeps_for_descendants(member);
  const bool holds = member.holds_locks();
  const bool has_steps = has_steps_to_undo(member);
  if (!for_operation && (keeps || member.rare_of_run.is_made())) {
    member.edit_turn().keeps_for_descendants = keeps;
  }
  if (keeps && !is_head) locks.keepers.push_back(&member);
  if (keeps && !holds && !goes_on_without_locks(member)) locks.takers.push_back(&member);
  // The head keeps what it has for the operation until the domain is over.
  if (holds && (keeps || (for_operation && (has_steps || is_head)))) {
    const bool took_again = had_failed && member.record.step == 0;
    (took_again || !for_operation ? locks.holders : locks.never_gave_back).push_back(&member);
  } else if (holds && has_steps) {
    locks.holders_at_first.push_back(&member);
  }
  if (!is_head && is_idle_holder(member)) work.idle_holders.push_back(&member);
  const bool takes_again = !for_operation && member.turn().left > 1;
  locks.is_one_needed =
      locks.is_one_needed || (!holds && (has_steps || keeps)) || (holds && takes_again);
}

// The plan has added first and last turns: counts each with the other turns of its member, as far
// as the section has room.
void count_added_turns(EngineCore& core, TreeWork& work) PV2_REQUIRES(core.state_mutex) {
  while (core.looks.have_room()) {
    Execution* const member = work.plan->take_with_added_turn();
    if (member == nullptr) return;
    ++member->edit_turn().left;
  }
}

// Members without any turn give back the locks that they hold (a child that never began), by their
// last record: a sibling that has finished may need them for its undo. Those at the bottom come
// first, because a restart restores a lock that two members hold only below an ancestor that holds
// it. Goes on as far as the section has room.
void give_back_idle_locks(EngineCore& core, TreeWork& work, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  while (core.looks.have_room() && !work.idle_holders.empty()) {
    Looks::one();
    Execution& member = *work.idle_holders.back();
    work.idle_holders.pop_back();
    const bool has_last_turn = member.turn().left != 0;
    if (has_last_turn) continue;
    commit_last_record(core, member, ProcedureState::kRolledBack, LastRecord::kOfMember, effects);
  }
}

// Whether `member` holds locks per step or per visit, and neither something half done nor a
// descendant needs them: its next step had not begun, or has nothing to undo. What it did before
// under these locks it may have done long ago, and others may have taken the same locks since.
bool holds_for_nothing(const TreeWork& work, const Execution& member) {
  if (member.locks().empty() || member.locks().scope() == LockScope::kOperation) return false;
  const bool is_undone = member.is_undone_with_its_tree() &&
                         member.record.state != ProcedureState::kRolledBack &&
                         (&member == &work.head || !member.record.undo.empty());
  return is_undone && member.record.holds_locks && member.holds_locks() &&
         !keeps_for_descendants(member) && !is_half_done(member);
}

// Gives back the locks of the members that hold them for nothing, those at the bottom first. The
// plan begins again when the last of these records is published: until then it would meet members
// in flight.
void give_back_before_plan(EngineCore& core, TreeWork& work, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  std::vector<Execution*>& members = work.to_give_back;
  while (core.looks.have_room() && members.size() > 1) {
    Looks::one();
    give_back_locks(core, *members.back(), effects);
    members.pop_back();
  }
  if (members.size() > 1) return;
  const auto over = take_off(work);
  give_back_locks(core, *members.back(), effects);
}

// Notes what the plan has to know of `member`. If `member` is the head of a domain within, drops
// that domain's plan: the new plan replaces it, as after a restart.
void survey(TreeWork& work, Execution& member, Effects& effects) {
  member.leave_turn();
  if (&member != &work.head) {
    forget_that_it_was_stopped(member);
    if (is_live_head(member)) forget_plan(member, effects);
  }
  if (holds_for_nothing(work, member)) work.to_give_back.push_back(&member);
  if (work.head.record.interrupted() == nullptr) note_interruption(work, member);
  const Failure* const failure = failure_within(member, work.head);
  const bool first =
      failure != nullptr && (work.first == nullptr || failure->sequence < work.first->sequence);
  if (first) work.first = failure;
  if (stands_beyond_return(member)) work.beyond = &member;
  if (!is_parked_in_undo(member)) return;
  if (work.parked == nullptr) work.parked = &member;
  ++work.parked_undos;
}

// All members were surveyed. False: the rollback cannot be planned, because a member is past its
// point of no return; the domain is parked.
bool surveyed(EngineCore& core, TreeWork& work, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  Execution& head = work.head;
  Domain& domain = head.domain;
  // The member that left flight last may just have given its locks back, and may be undone first.
  core.flush();
  domain.rare.edit().cause = cause_of(head, work.first);
  if (work.beyond == nullptr || head.record.sent_back) return true;
  park_tree(core, head, DomainState::kParkedBeyond,
            "it failed (" + domain.rare->cause.to_string() + ") after " + name_of(work.beyond->id) +
                " had passed its point of no return",
            effects);
  return false;
}

void plan(TreeWork& work, Execution& member) {
  Execution& head = work.head;
  PV2_ASSERT(failing_domain(member) == &head, "a planned member is in the domain that failed");
  // It may have the result of a done() that waited for children; the procedure has failed instead.
  if (&member == &head) head.record.set_result({});
  const bool had_failed = member.record.state == ProcedureState::kFailed;
  plan_member(member, work.turns);
  work.has_branches = work.has_branches || member.beside() != nullptr;
  note_locks(work, member, had_failed);
}

void planned(EngineCore& core, TreeWork& work, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  Domain& domain = work.head.domain;
  PV2_ASSERT(work.plan != nullptr, "a work that is planned has a plan");
  domain.rare.edit().rollback = std::move(work.plan);
  move_to(work.head, DomainState::kRollingBack);
  domain.rare.edit().parked_undos = work.parked_undos;
  // A member may have parked in an undo before a restart, or as part of a domain within this one.
  if (const Execution* const parked = work.parked) {
    park_tree(core, work.head, DomainState::kParkedInUndo,
              parked->record.failure() ? parked->record.failure()->shown().to_string() : "",
              effects);
  }
}

// All members were planned: notes the rest of what decides in which order locks are taken.
void note_limits(EngineCore& core, UndoLocks& locks) PV2_REQUIRES(core.state_mutex) {
  if (!locks.is_one_needed) {
    locks.holders.clear();
    locks.holders_at_first.clear();
  }
  if (locks.holders.empty() && locks.holders_at_first.empty()) return;
  for (const auto& [key, limit] : core.state.limits) locks.limited.insert(key);
}

// What the work has collected is sorted without the mutex; it pauses.
void leave_to_sort(TreeWork& work, Effects& effects) {
  work.is_outside = true;
  effects.to_sort.push_back(&work);
}

}  // namespace

void plan_all(EngineCore& core, TreeWork& work, Effects& effects) {
  using Stage = TreeWork::Stage;
  if (work.stage == Stage::kSurvey) {
    while (Execution* const member = next_to_visit(core, work)) survey(work, *member, effects);
    if (work.cursor.at() != nullptr) return;
    if (!surveyed(core, work, effects)) return void(take_off(work));
    work.stage = work.to_give_back.empty() ? Stage::kNames : Stage::kGiveBack;
  }
  if (work.stage == Stage::kGiveBack) return give_back_before_plan(core, work, effects);
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
    while (Execution* const member = next_to_visit(core, work)) plan(work, *member);
    if (work.cursor.at() != nullptr) return;
    work.stage = Stage::kSort;
  }
  if (work.stage == Stage::kSort) {
    // To find who has which locks, the plan walks from each turn towards the head. That may be
    // long, so it is done outside of the mutex.
    note_limits(core, work.locks);
    const bool is_much = work.turns.size() > kSortedAtOnce || work.has_branches ||
                         !work.locks.keepers.empty() || !work.locks.holders.empty() ||
                         !work.locks.holders_at_first.empty();
    if (is_much) return leave_to_sort(work, effects);
    sort_collected(work);
  }
  PV2_ASSERT(work.stage == Stage::kSorted, "a plan is in order before its first turn begins");
  count_added_turns(core, work);
  give_back_idle_locks(core, work, effects);
  if (!core.looks.have_room()) return;  // and perhaps there is more to do
  planned(core, work, effects);
  const auto over = take_off(work);
  begin_turns(core, over->head, effects);
}

void sort_collected(TreeWork& work) {
  if (work.stage == TreeWork::Stage::kNames) {
    work.interrupted = std::make_unique<InterruptedMembers>(std::move(work.candidates));
    work.stage = TreeWork::Stage::kNamed;
    return;
  }
  PV2_ASSERT(work.stage == TreeWork::Stage::kSort, "turns are sorted in their stage");
  PV2_ASSERT(work.cursor.at() == nullptr, "turns are sorted after all members were visited");
  forget_takers_above_holders(work.head, work.locks);
  auto turns = in_undo_order(work.head, std::move(work.turns), work.locks);
  work.plan = std::make_unique<RollbackPlan>(work.head, std::move(turns), work.locks);
  work.stage = TreeWork::Stage::kSorted;
}

}  // namespace pv2
