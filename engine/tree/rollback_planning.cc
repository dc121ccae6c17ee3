// SPDX-License-Identifier: Apache-2.0
//
// The stages of TreeWork, from kSurvey to kSorted, in the order of plan_all() at the end.

#include "tree/rollback_planning.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "model/inbox.h"
#include "model/tree_walk.h"
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
// failure of a wider domain make a new plan; it undoes these turns first, because each may be half
// done and still has what it needs.
constexpr CommitSequence kBegunTurn{UINT64_MAX};

// Turns that are sorted under the mutex: in as long as it takes to take it twice.
constexpr std::size_t kSortedAtOnce = 256;

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

}  // namespace

void forget_inner_plans(Execution& head, Effects& effects) {
  for (Execution& member : Subtree(head)) {
    member.turn.step = 0;
    if (&member == &head) continue;
    forget_that_it_was_stopped(member);
    if (is_live_head(member)) forget_plan(member, effects);
  }
}

namespace {

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

// Who holds locks and has nothing to undo (a child that was never begun) gives them back, by a
// record: a sibling that has finished may need them to be undone, and nobody else would give way.
void give_back_idle_locks(EngineCore& core, Execution& member, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  const bool idle = member.record.state == ProcedureState::kFailed && member.turn.left == 0;
  if (!idle || member.record.parked || member.locks.empty() || !member.holds_locks()) return;
  commit_last_record(core, member, ProcedureState::kRolledBack, LastRecord::kOfMember, effects);
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

}  // namespace pv2
