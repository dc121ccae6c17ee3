// SPDX-License-Identifier: Apache-2.0
//
// The join of a parent counts its unfinished children down. When the last one has finished, the
// parent goes on or ends.

#include "tree/join.h"

#include "core/effects.h"
#include "model/tree_walk.h"
#include "records/procedure_rows.h"
#include "tree/domains.h"
#include "tree/flight.h"
#include "tree/member_step.h"
#include "tree/members_at_work.h"

namespace pv2 {
namespace {

// `child`, not linked yet, is counted with those that the same step spawned. A child of a later
// step than the one before it begins the count of a new join.
void count_in_join(Execution& child) {
  Children& siblings = child.parent_execution()->edit_place().children;
  if (siblings.last == nullptr || siblings.last->place->spawned_at != child.place->spawned_at) {
    siblings.joined = 0;
    siblings.joins_mixed_types = false;
  } else if (siblings.last->type != child.type) {
    siblings.joins_mixed_types = true;
  }
  ++siblings.joined;
}

}  // namespace

void adopt(Execution& member) {
  PV2_ASSERT(member.stands_below_its_parent(), "a member has its place in the tree of its parent");
  PV2_ASSERT(member.first_child() == nullptr, "a new member has no children");
  if (!member.is_root()) {
    count_in_join(member);
    link_child(member);
  }
  if (!member.is_root() && member.is_head()) {
    if (Execution* const failing = member.outer_domain()->domain.failing()) {
      member.domain.rare.edit().failing = failing;
    }
    const bool is_over_already = is_over(*member.parent_execution()) || member.record.reported;
    if (is_over_already) member.domain.state.move_to(DomainState::kOver);
  }
  if (may_not_return(member)) member.no_return_mark = NoReturn::kAhead;
  note_no_return(member);
  if (member.record.parked) note_parked(member);
  if (member.record.interrupted() != nullptr) ++member.root()->domain.rare.edit().heads_that_say_it;
}

void commit_last_record(EngineCore& core, Execution& execution, ProcedureState state,
                        LastRecord which, Effects& effects) {
  PV2_ASSERT(is_finished(state), "the last record of a procedure ends it");
  PV2_ASSERT(execution.phase != Phase::kInFlight, "a procedure has at most one record on the way");
  PV2_ASSERT(!has_work(execution), "a procedure that ends has no work outstanding");
  auto commit = core.state.spares.steps.take(core.seat());
  commit->execution = &execution;
  if (which == LastRecord::kLastTurn) commit->kind = StepCommit::Kind::kUndo;
  Transition& last = commit->next;
  last.begin(execution.record, core.clock.wall_now());
  last.state = state;
  last.step = 0;
  last.parked = last.unsure = last.holds_locks = false;
  if (state == ProcedureState::kSuccess) last.set_result(std::string(execution.record.result()));
  if (state == ProcedureState::kRolledBack) {
    last.set_error(execution.domain.rare->cause);
    last.bypassed = execution.record.sent_back;
    last.reported = which == LastRecord::kEndsDomain && !execution.is_root();
  }
  core.date_end(execution, last);
  update_state(execution, last, 0, commit->batch);
  execution.phase.move_to(Phase::kInFlight);
  enter_flight(execution);
  effects.commits.push_back(*commit.release());
}

void child_finished(EngineCore& core, Execution& child, Effects& effects) {
  PV2_ASSERT(!child.is_root(), "a root has no parent that waits");
  PV2_ASSERT(child.record.state == ProcedureState::kSuccess || child.record.reported,
             "a child that finishes has succeeded, or its failure is reported");
  Execution& parent = *child.parent_execution();
  // The child may be the head of a domain of its own, which the work that stops all members has not
  // visited yet.
  if (failing_domain(parent) != nullptr) return child_ended_too_late(child);
  PV2_ASSERT(parent.children().unfinished > 0, "a parent waits for every child that finishes");
  if (--parent.edit_place().children.unfinished == 0 && parent.phase == Phase::kWaiting) {
    children_finished(core, parent, effects);
  }
}

void child_ended_too_late(Execution& child) {
  PV2_ASSERT(!child.is_root(), "a root has no parent that waits");
  PV2_ASSERT(child.record.state == ProcedureState::kSuccess || child.record.reported,
             "a child that finishes has succeeded, or its failure is reported");
  Execution& parent = *child.parent_execution();
  PV2_ASSERT(parent.children().unfinished > 0, "a parent waits for every child that finishes");
  if (--parent.edit_place().children.unfinished == 0 &&
      parent.record.state == ProcedureState::kWaiting) {
    parent.record.move_to(ProcedureState::kRunnable);
  }
}

void children_finished(EngineCore& core, Execution& parent, Effects& effects) {
  PV2_ASSERT(parent.children().unfinished == 0, "a parent that goes on has no unfinished child");
  PV2_ASSERT(failing_domain(parent) == nullptr, "a parent in a failed domain does not go forward");
  // No record says so: after a crash, a parent that waits with no unfinished child is runnable.
  parent.record.move_to(ProcedureState::kRunnable);
  if (parent.record.step == 0) {  // its last step is done; it waited only for its children
    if (has_work(parent)) {
      parent.phase.move_to(Phase::kWaiting);
      return;
    }
    return commit_last_record(core, parent, ProcedureState::kSuccess, LastRecord::kOfMember,
                              effects);
  }
  core.queue(parent, parent.holds_locks() ? Disposition::kFront : Disposition::kBack);
}

}  // namespace pv2
