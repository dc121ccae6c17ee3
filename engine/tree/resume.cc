// SPDX-License-Identifier: Apache-2.0
//
// A restart and a repair use the same functions: a repaired domain does what a restart from its
// records would do.

#include "tree/resume.h"

#include <utility>

#include "core/effects.h"
#include "model/tree_walk.h"
#include "tree/domains.h"
#include "tree/ending.h"
#include "tree/flight.h"
#include "tree/join.h"
#include "tree/member_step.h"
#include "tree/members_at_work.h"
#include "tree/rollback.h"
#include "tree/rollback_planning.h"

namespace pv2 {
namespace {

// No domain around `member` has failed: the member does what its last record says.
void go_on_from_record(EngineCore& core, Execution& member, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  switch (member.record.state) {
    case ProcedureState::kWaiting:
      if (member.children().unfinished > 0) {
        member.phase.move_to(Phase::kWaiting);
        member.started = false;
      } else {  // its last child had finished, and the parent had made no record since
        children_finished(core, member, effects);
      }
      return;
    case ProcedureState::kRunnable:
      if (member.record.parked) {  // until an operator acts
        (void)gives_back_kept_locks(core, member, effects);
        return;
      }
      if (member.record.step == 0) return children_finished(core, member, effects);
      return core.queue(member, Disposition::kBack);
    case ProcedureState::kWaitingTimeout:
      if (member.record.awaits) return core.queue(member, Disposition::kBack);
      member.phase.move_to(Phase::kWaiting);
      if (!gives_back_kept_locks(core, member, effects)) core.arm_timer(member, effects);
      return;
    case ProcedureState::kSuccess:
      return;  // a finished child: kept for its parent and for rollback
    case ProcedureState::kInitializing:
    case ProcedureState::kFailed:
    case ProcedureState::kRolledBack:
      return;
  }
}

// No member of the domain has failed any more: the domain goes on where it was stopped. Parents
// were not told of all children that finished while it was stopped, so the unfinished children are
// counted again.
void resume_domain(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  Domain& domain = head.domain;
  PV2_ASSERT(domain.failing() == &head, "the widest domain that failed goes on as a whole");
  PV2_ASSERT(domain.rare->in_flight_inside == 0,
             "no member of a domain that goes on again is in flight");
  forget_inner_plans(head, effects);
  move_to(head, DomainState::kForward);
  domain.rare.edit().parked_undos = 0;
  retire_plan(domain, effects);
  domain.rare.edit().cause = Status();
  domain.deadlock_victim = false;
  core.flush();
  find_failed_domains(head);
  note_failing(head);
  if (head.is_root() && head.record.state == ProcedureState::kSuccess) {
    return finish_root(core, head, effects);
  }
  for (Execution& member : Subtree(head)) {
    if (member.children().unfinished != 0) member.edit_place().children.unfinished = 0;
    const bool ended = member.record.state == ProcedureState::kSuccess || member.record.reported;
    if (&member != &head && !ended) ++member.parent_execution()->edit_place().children.unfinished;
  }
  start_domain(core, head, effects);
  if (head.record.state == ProcedureState::kSuccess) child_finished(core, head, effects);
}

}  // namespace

void start_domain(EngineCore& core, Execution& head, Effects& effects) {
  for (Execution& member : Subtree(head)) {
    const Execution* const failing = failing_domain(member);
    if (failing == nullptr) {
      if (!is_over(member)) go_on_from_record(core, member, effects);
      note_no_return(member);
      continue;
    }
    note_no_return(member);
    // A member that waited for children may have begun its next step if all of them have ended.
    if (member.record.state == ProcedureState::kWaiting && member.children().unfinished == 0) {
      member.record.move_to(ProcedureState::kRunnable);
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
  PV2_ASSERT(head != nullptr, "an order to a parked tree is about a failed domain");
  execution.phase.move_to(Phase::kIdle);
  if (commit.next.order == OrderEffect::kBack) move_to(*head, DomainState::kFailed);
  left_flight(core, execution, effects);
  if (commit.next.order != OrderEffect::kForward) return;
  if (execution.record.state == ProcedureState::kSuccess && !execution.is_root()) {
    core.settle(execution, Disposition::kParkUnlock);
    core.state.news.add(ProcedureNews::Kind::kFinished, execution);
  }
  if (domain_has_failed(*head)) {  // others have to be repaired too
    if (execution.record.state == ProcedureState::kSuccess) child_ended_too_late(execution);
    return;
  }
  resume_domain(core, *head, effects);
}

void forget_what_had_not_begun(Execution& root,
                               const FlatMap<ProcedureId, CommitSequence>& recorded) {
  for (Execution& member : Subtree(root)) {
    if (!member.started) continue;
    if (const auto said = recorded_interruption(member)) {
      member.started = *said;
      continue;
    }
    // If the member's last record became durable after the failure of its own domain or of the
    // root, it was published after that failure, and the member began no step after it. A failure
    // of a domain in between proves nothing: the work that stops a wider domain may have visited
    // this member later.
    const auto at = recorded.find(member.id);
    if (at == recorded.end() || has_tried(member)) continue;
    if (member.head()->domain.rare->stopped_since < at->second) member.started = false;
  }
}

}  // namespace pv2
