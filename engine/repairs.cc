// SPDX-License-Identifier: Apache-2.0
//
// For each verb: why it has to be refused, the record that it makes, and what it would leave
// behind. The first is asked by both the order and its preview.

#include "repairs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "audit_row.h"
#include "offloads.h"
#include "procedure_rows.h"
#include "pv2/engine/limits.h"
#include "row_keys.h"
#include "tree.h"
#include "tree_walk.h"

namespace pv2 {
namespace {

std::string name_of(const Execution& execution) {
  return "procedure " + std::to_string(execution.id.value) + " (" +
         std::string(execution.name_of_type()) + ")";
}

std::string name_of_step(const Execution& execution, std::uint32_t step) {
  const StepInfo* const info =
      execution.type != nullptr ? execution.type->find_step(step) : nullptr;
  return info != nullptr ? std::string(info->name) : std::to_string(step);
}

Status refused(std::string why) { return Status(StatusCode::kFailedPrecondition, std::move(why)); }
Status busy(const Execution& execution) {
  return Status(StatusCode::kUnavailable,
                "a step of " + name_of(execution) + " is running or about to; try again");
}

// Why an order about `about` comes too late, or OK. While it stands still the head of a domain
// around it waits for it; so a record of such a head can only be an order to end all of that, and
// would be published first.
Status why_too_late(Execution& about) {
  for (Execution* head = &about.own_head(); head != nullptr; head = head->outer_domain()) {
    const bool moves = head != &about && head->phase == Phase::kInFlight;
    if (moves || head->domain.work != nullptr) return busy(*head);
  }
  return Status();
}

// The head of a domain, and all below it that is not over.
std::vector<Execution*> tree_of(Execution& head) {
  std::vector<Execution*> all;
  for (Execution& member : Subtree(head)) {
    if (&member == &head || !is_over(member)) all.push_back(&member);
  }
  return all;
}

// The oldest of those under `head` that are parked, or whose domain is, of whom that is true; or
// nullptr.
template <class Test>
Execution* first_standing(Execution& head, Test is_it) {
  return find_within(head.root->domain.standing, head, [&](Execution& member) {
    return is_it(member) && (&member == &head || !is_over(member));
  });
}

// Those of the rollback of `head` that are being undone.
std::vector<Execution*> begun_turns(const Execution& head) {
  const auto& rollback = head.domain.rollback;
  return rollback ? rollback->begun() : std::vector<Execution*>();
}

// The first one that used up its attempts; or nullptr.
Execution* first_given_up(Execution& head) { return first_standing(head, has_given_up); }

// The one that gave up that `target` means: itself, or the first one below a root; or nullptr.
Execution* given_up_at(Execution& target) {
  if (has_given_up(target)) return &target;
  return target.is_root() ? first_given_up(target) : nullptr;
}

// The head of what an order to `target` is about: the widest domain around it that has failed, or
// else that of who gave up. An order to a root that goes forward means the first domain within it
// that is parked, if there is one.
Execution& scope_of(Execution& target) {
  if (Execution* const failed = failing_domain(target)) return *failed;
  if (has_given_up(target)) return target.own_head();
  if (!target.is_root()) return *target.root;
  Execution* const parked = first_standing(target, [](const Execution& member) {
    return member.reports() && member.domain.is_parked();
  });
  if (parked != nullptr) return *failing_domain(*parked);  // or what has failed around it since
  Execution* const given_up = first_given_up(target);
  return given_up != nullptr ? given_up->own_head() : target;
}

// Whether `target` stands for all of what its order is about.
bool stands_for(const Execution& target, const Execution& head) {
  return &target == &head || target.is_root();
}

// The first member whose undo the tree is parked at, or nullptr.
Execution* parked_member(Execution& head) { return first_standing(head, is_parked_in_undo); }

// Whether the tree is parked because it failed beyond a point of no return, before any undo. There
// may be a member that is parked in the undo of a domain within it: that is not why.
bool is_parked_beyond_return(Execution& head) {
  return head.domain.is_parked() && !head.is_quarantined() && head.domain.rollback == nullptr;
}

// Whether to fail `target` and roll it back is to abort its root, which goes forward. What is
// parked in the undo of a part of it is undone with it; what failed beyond a point of no return is
// sent back alone.
bool aborts_root(RepairVerb verb, Execution& target) {
  if (verb != RepairVerb::kFailAndRollBack) return false;
  Execution& head = scope_of(target);
  return !head.domain.is_parked() ||
         (failing_domain(target) == nullptr && !is_parked_beyond_return(head));
}

// The parked member that `target` means: itself, or the first one of its tree if it is the root.
Result<Execution*> parked_at(Execution& target) {
  Execution& head = scope_of(target);
  Execution* const parked = is_parked_in_undo(target) ? &target : parked_member(head);
  PV2_ASSERT(parked != nullptr, "who asks has looked");
  if (&target != parked && !stands_for(target, head)) {
    return refused("the tree of " + name_of(head) + " is parked at " + name_of(*parked) +
                   ", not at " + name_of(target));
  }
  if (parked->phase != Phase::kIdle) return busy(*parked);
  if (Status late = why_too_late(*parked); !late.ok()) return late;
  return parked;
}

// The same in a tree that is parked beyond a point of no return: who failed, the first one if
// `target` is a root that has not. What failed in a domain within it is not why it is parked: that
// is undone, and reported, when the tree goes on.
Result<Execution*> failed_at(Execution& target) {
  Execution& head = scope_of(target);
  const auto failed_in_it = [&head](Execution& member) {
    return member.record.state == ProcedureState::kFailed && &member.own_head() == &head;
  };
  Execution* found = failed_in_it(target) ? &target : nullptr;
  if (found == nullptr && stands_for(target, head)) {
    for (Execution* member : tree_of(head)) {
      if (!failed_in_it(*member) || !member->record.failure) continue;
      const bool earlier =
          found == nullptr || member->record.failure->sequence < found->record.failure->sequence;
      if (earlier) found = member;
    }
  }
  if (found == nullptr) {
    return refused("the tree of " + name_of(head) + " is parked, but not because " +
                   name_of(target) + " failed");
  }
  if (found->record.step == 0 || found->type == nullptr) {
    return refused("the record of " + name_of(*found) +
                   " does not say which step failed; send the tree back, or bypass it");
  }
  if (is_in_flight(head)) return busy(head);
  if (Status late = why_too_late(*found); !late.ok()) return late;
  return found;
}

// The turn of the undo at which `parked` is parked. nullptr: its record has none.
const UndoTurn* parked_turn(const Execution& head, const Execution& parked) {
  return head.domain.rollback ? head.domain.rollback->newest_of(parked) : nullptr;
}

bool waits_for_time(const Execution& target) {
  return target.phase == Phase::kWaiting && target.record.deadline.has_value() &&
         target.unfinished_children == 0;
}

// A step that is passed over gives back what it holds; so its work has to have ended.
Status why_work_forbids(const Execution& member) {
  if (!has_work(member)) return Status();
  return Status(StatusCode::kUnavailable,
                "work that " + name_of(member) + " offloaded at step " +
                    name_of_step(member, member.work->pieces.front()->step) +
                    " still runs; try again when it has ended");
}

Status why_not_retried(Execution& target) {
  if (target.is_quarantined())
    return refused(name_of(target) + " is quarantined; nothing of it can run");
  Execution& head = scope_of(target);
  if (is_parked_beyond_return(head)) return failed_at(target).status();
  if (head.domain.is_parked()) return parked_at(target).status();
  if (Execution* const given_up = given_up_at(target)) {
    return given_up->phase == Phase::kIdle ? why_too_late(*given_up) : busy(*given_up);
  }
  if (waits_for_time(target)) return why_too_late(target);
  if (target.phase == Phase::kInFlight || target.phase == Phase::kDropping) return busy(target);
  return refused(name_of(target) + " is in no back-off and no timed wait");
}

Status why_not_skipped(Execution& target) {
  Execution& head = scope_of(target);
  if (Execution* const given_up = head.domain.is_parked() ? nullptr : given_up_at(target)) {
    if (Status runs = why_work_forbids(*given_up); !runs.ok()) return runs;
    return given_up->phase == Phase::kIdle ? why_too_late(*given_up) : busy(*given_up);
  }
  if (head.is_quarantined() || !head.domain.is_parked()) {
    return refused("the tree of " + name_of(head) + " is not parked");
  }
  if (is_parked_beyond_return(head)) return failed_at(target).status();
  const auto parked = parked_at(target);
  if (!parked.ok()) return parked.status();
  if (Status runs = why_work_forbids(**parked); !runs.ok()) return runs;
  if (parked_turn(head, **parked) == nullptr) {
    return refused("the record of " + name_of(**parked) +
                   " does not say which step is to be undone; let it be retried, or bypass it");
  }
  return Status();
}

// What follows a step that is skipped forward: `wanted`, or the next row of the table; 0: the end.
Result<std::uint32_t> step_after(const Execution& member, std::uint32_t wanted) {
  const std::vector<StepInfo>& steps = member.type->steps;
  if (wanted != 0) {
    if (member.type->find_step(wanted) != nullptr) return wanted;
    return Status(StatusCode::kInvalidArgument,
                  std::string(member.name_of_type()) + " has no step " + std::to_string(wanted));
  }
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    if (steps[i].number == member.record.step) return steps[i + 1].number;
  }
  return std::uint32_t{0};
}

// Why a tree that is parked cannot be sent back, or OK.
Status why_not_sent_back(Execution& head) {
  if (head.is_quarantined())
    return refused(name_of(head) + " is quarantined; nothing of it can run");
  const Execution* const parked = is_parked_beyond_return(head) ? nullptr : parked_member(head);
  if (parked != nullptr) {
    return refused("the tree of " + name_of(head) + " is being undone, and parked at " +
                   name_of(*parked) + "; let that be retried or skipped, or bypass the tree");
  }
  return is_in_flight(head) ? busy(head) : why_too_late(head);
}

// Begins an order about `execution`; submit_order() ends it.
std::unique_ptr<StepCommit> begin_order(EngineCore& core, Execution& execution)
    PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(execution.phase != Phase::kInFlight, "an order waits until nothing is on the way");
  auto commit = core.state.spare_steps.take();
  commit->execution = &execution;
  commit->next = as_it_is(core, execution);
  if (execution.record.state == ProcedureState::kFailed) commit->kind = StepCommit::Kind::kUndo;
  return commit;
}

void note_order(StepCommit& commit, Outcome::Kind kind, std::uint32_t step) {
  commit.next.history =
      HistoryEntry{step, commit.execution->record.attempt, kind, commit.next.updated,
                   commit.is_undo() && kind != Outcome::Kind::kBypassed};
}

std::unique_ptr<StepCommit> retry_parked(EngineCore& core, Execution& member, AuditEntry& entry)
    PV2_REQUIRES(core.state_mutex) {
  auto commit = begin_order(core, member);
  Transition& next = commit->next;
  const UndoTurn* const turn = parked_turn(scope_of(member), member);
  if (turn != nullptr) entry.step = turn->entry.step;
  note_order(*commit, Outcome::Kind::kRetriedNow, entry.step);
  next.parked = false;
  next.attempt = 1;
  next.requeue = true;
  next.deadline.reset();
  return commit;
}

std::unique_ptr<StepCommit> end_wait(EngineCore& core, Execution& member, AuditEntry& entry)
    PV2_REQUIRES(core.state_mutex) {
  auto commit = begin_order(core, member);
  Transition& next = commit->next;
  entry.step = member.turn.step != 0 ? member.turn.step : member.record.step;
  note_order(*commit, Outcome::Kind::kRetriedNow, entry.step);
  core.state.timers.cancel(member);
  core.begin_wait(Duration::zero(), next);  // over at once, in this life and the next
  next.ends_waits = false;
  if (member.record.failure) {
    commit->is_undo() ? next.undo_error = member.record.failure->undo
                      : next.error = member.record.failure->error;
  }
  return commit;
}

std::unique_ptr<StepCommit> skip_parked(EngineCore& core, Execution& member, AuditEntry& entry)
    PV2_REQUIRES(core.state_mutex) {
  Execution& head = scope_of(member);
  Domain& domain = head.domain;
  auto commit = begin_order(core, member);
  Transition& next = commit->next;
  PV2_ASSERT(is_parked_in_undo(member), "an undo that is passed over is parked");
  const UndoTurn* const turn = parked_turn(head, member);
  PV2_ASSERT(turn != nullptr, "an order to skip without a turn to skip is refused above");
  member.turn.step = entry.step = turn->entry.step;
  note_order(*commit, Outcome::Kind::kSkipped, entry.step);
  member.turn.leads = &member == &head;
  member.turn.ends_domain = member.turn.leads && domain.rollback->left() == 1;
  next.parked = false;
  next.attempt = 1;
  next.step = 0;
  next.undo = UndoChange::kPop;
  if (member.turn.left > 1) return commit;
  const bool ends = !member.turn.leads || member.turn.ends_domain;
  if (ends) next.state = ProcedureState::kRolledBack;
  if (ends) next.holds_locks = false;
  if (member.turn.ends_domain) next.error = domain.cause;
  if (member.turn.ends_domain) next.bypassed = member.record.sent_back;
  if (member.turn.ends_domain) next.reported = !member.is_root();
  return commit;
}

// The procedure failed at a step beyond the point of no return, or used up its attempts: it is to
// make the step again.
std::unique_ptr<StepCommit> retry_failed(EngineCore& core, Execution& member, AuditEntry& entry)
    PV2_REQUIRES(core.state_mutex) {
  auto commit = begin_order(core, member);
  commit->kind = StepCommit::Kind::kStep;
  Transition& next = commit->next;
  PV2_ASSERT(member.record.step != 0, "what is tried again is a step");
  entry.step = member.record.step;
  note_order(*commit, Outcome::Kind::kRetriedNow, entry.step);
  next.state = ProcedureState::kRunnable;
  next.parked = false;
  next.attempt = 1;
  // Else nothing has failed, and it is published like any step.
  if (failing_domain(member) != nullptr) next.order = OrderEffect::kForward;
  return commit;
}

// The same, but the step counts as done, and `following` is next.
std::unique_ptr<StepCommit> skip_failed(EngineCore& core, Execution& member,
                                        std::uint32_t following, AuditEntry& entry)
    PV2_REQUIRES(core.state_mutex) {
  auto commit = retry_failed(core, member, entry);
  Transition& next = commit->next;
  next.history->outcome = Outcome::Kind::kSkipped;
  ++next.visits;
  next.unsure = false;
  next.step = following;
  const StepKind kind = member.type->find_step(member.record.step)->kind;
  if (kind == StepKind::kUndoable && !member.record.no_return) next.undo = UndoChange::kPush;
  if (kind == StepKind::kPointOfNoReturn) next.undo = UndoChange::kClear;
  if (kind == StepKind::kPointOfNoReturn) next.no_return = true;
  if (following == 0) next.state = ProcedureState::kSuccess;
  if (following == 0) next.holds_locks = false;
  return commit;
}

std::unique_ptr<StepCommit> send_back(EngineCore& core, Execution& head)
    PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(head.is_head(), "what is sent back is a domain");
  auto commit = begin_order(core, head);
  commit->kind = StepCommit::Kind::kStep;
  note_order(*commit, Outcome::Kind::kSentBack, head.record.step);
  commit->next.sent_back = true;
  commit->next.order = OrderEffect::kBack;
  if (head.record.failure && head.record.state != ProcedureState::kFailed) {
    commit->next.error = head.record.failure->error;  // of the attempt before this one
  }
  return commit;
}

std::unique_ptr<StepCommit> end_tree(EngineCore& core, Execution& head, const AuditEntry& entry)
    PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(head.is_head() && head.domain.work == nullptr,
             "a domain is ended when nothing is done to its members");
  PV2_ASSERT(head.domain.failing == &head, "whoever goes forward is stopped before it is ended");
  for (Execution* const member : begun_turns(head)) {
    if (member->phase == Phase::kWaiting) member->phase.move_to(Phase::kIdle);
    core.abandon_waits(*member);
  }
  for_each_at_work(head, [](Execution& member) { member.work->ends = true; });
  auto commit = begin_order(core, head);
  Transition& next = commit->next;
  next.state = ProcedureState::kRolledBack;
  next.step = 0;
  next.parked = false;
  next.bypassed = true;
  next.reported = !head.is_root();
  next.holds_locks = false;
  next.result.clear();
  next.deadline.reset();
  note_order(*commit, Outcome::Kind::kBypassed, head.record.step);
  std::string text = "bypassed";
  if (!entry.who.empty()) text += " by " + entry.who;
  if (!entry.why.empty()) text += ": " + entry.why;
  if (!head.domain.cause.ok()) text += "; it had failed with " + head.domain.cause.to_string();
  if (text.size() > limits::kErrorBytes) text.resize(limits::kErrorBytes);
  next.error = Status(StatusCode::kAborted, std::move(text));
  return commit;
}

// Writes the record and the audit entry in one batch.
void submit_order(EngineCore& core, std::unique_ptr<StepCommit> commit, AuditEntry entry,
                  Reply<Status> reply, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  Execution& execution = *commit->execution;
  Execution& root = *execution.root;
  PV2_ASSERT(execution.phase != Phase::kInFlight, "an order waits until nothing is on the way");
  PV2_ASSERT(execution.wait.timer_index == Wait::kNoTimer, "whom an order is about waits no more");
  if (!root.inbox) root.inbox = std::make_unique<Inbox>();
  root.audited = true;
  entry.procedure = execution.id;
  entry.at = commit->next.updated;
  core.date_end(execution, commit->next);
  const std::uint64_t number = root.inbox->next_number++;
  if (execution.stored == Stored::kLost) {
    insert_rows(execution, commit->next, commit->batch);  // the first, and the last
  } else {
    update_state(execution, commit->next,
                 commit->is_undo() ? execution.turn.step : execution.record.step, commit->batch);
  }
  insert_audit(entry, root.id, number, commit->batch);
  commit->reply = std::move(reply);
  execution.phase.move_to(Phase::kInFlight);
  enter_flight(execution);
  effects.log(LogLevel::kWarning, std::string(to_string(entry.verb)) + " of " + name_of(execution) +
                                      " was ordered by '" + entry.who + "': " + entry.why);
  effects.commits.push_back(*commit.release());
}

std::string steps_of(const Execution& member) {
  std::string steps;
  for (const UndoEntry& entry : member.record.undo) {
    if (!steps.empty()) steps += ", ";
    steps += name_of_step(member, entry.step);
  }
  return steps;
}

// What is undone of it if its tree is, or is not if that is bypassed.
void describe_undo(Execution& member, const std::string& what_of_it,
                   std::vector<std::string>& lines) {
  if (!member.record.undo.empty()) {
    lines.push_back(name_of(member) + " did " + steps_of(member) + ", which is " + what_of_it);
  }
  const std::uint32_t begun = step_that_may_have_begun(member);
  if (begun == 0) return;
  lines.push_back(name_of(member) + " may have begun " + name_of_step(member, begun) +
                  ", which is " + what_of_it);
}

// What a preview has found so far. Members of a large tree are described in sections; each is
// described as it is then. Whether the order would be refused is asked again in the last one.
struct Preview {
  explicit Preview(RepairVerb asked) : verb(asked) {}

  RepairVerb verb;
  std::vector<std::string> lines;
  ProcedureId of;                  ///< The head of whose members are described, if any are.
  std::optional<TreeCursor> walk;  ///< To the next of them.
  std::string waits_for;           ///< Who is in the middle of something; "": nobody.
  bool has_paused = false;

  void describe_all(Execution& head) {
    of = head.id;
    walk.emplace(head);
  }
};

void describe_bypass(Execution& member, ProcedureId head, std::vector<std::string>& lines) {
  const bool ended = member.record.state == ProcedureState::kSuccess;
  if (member.is_undone_with_its_tree()) describe_undo(member, "not undone", lines);
  // Of one in flight `started` belongs to its worker.
  const bool began = member.phase == Phase::kInFlight || member.started;
  if (began && !ended && member.record.step != 0 && member.type != nullptr &&
      member.record.state != ProcedureState::kFailed && step_that_may_have_begun(member) == 0) {
    lines.push_back(name_of(member) + " may have begun " +
                    name_of_step(member, member.record.step) +
                    ", which is neither finished nor undone");
  }
  if (has_work(member)) {
    lines.push_back("work that " + name_of(member) + " offloaded at step " +
                    name_of_step(member, member.work->pieces.front()->step) +
                    " still runs; the tree ends, and gives its locks up, when it has ended");
  }
  for (const LockRequest& lock : member.locks.requests()) {
    if (!member.record.holds_locks || lock.mode != LockMode::kExclusive) continue;
    lines.push_back(name_of(member) + " gives up its lock on " + to_string(lock.key) +
                    "; others may change it as it is");
  }
  if (member.id != head && !ended && member.record.state != ProcedureState::kRolledBack) {
    lines.push_back(name_of(member) + " is cut off as it stands");
  }
}

void describe_rollback(Execution& member, std::vector<std::string>& lines) {
  if (!member.is_undone_with_its_tree()) {
    lines.push_back(name_of(member) + " has succeeded and stays as it is");
  } else if (member.record.no_return) {
    lines.push_back(name_of(member) +
                    " has passed its point of no return; nothing of it is undone");
  } else if (member.record.state != ProcedureState::kRolledBack) {
    describe_undo(member, "undone", lines);
  }
}

// Whether `member` is in the middle of something that is not to be cut off. All that is queued has
// been settled.
bool is_busy(EngineCore& core, const Execution& member) PV2_REQUIRES(core.state_mutex) {
  if (member.phase == Phase::kIdle || member.phase == Phase::kWaiting) return false;
  return member.phase != Phase::kQueued ||
         core.scheduler.place_of(member, 0).where == QueuePlace::Where::kOut;
}

// Whether all are described; else the section has no room for more.
bool describe_members(EngineCore& core, Preview& preview) PV2_REQUIRES(core.state_mutex) {
  if (!preview.walk) return true;
  TreeCursor& walk = *preview.walk;
  for (; walk.at() != nullptr && core.looks.have_room(); walk.move()) {
    Execution& member = *walk.at();
    if (!walk.arrives() || (member.id != preview.of && is_over(member))) continue;
    if (preview.verb == RepairVerb::kBypass) {
      if (preview.waits_for.empty() && is_busy(core, member)) preview.waits_for = name_of(member);
      describe_bypass(member, preview.of, preview.lines);
    } else {
      describe_rollback(member, preview.lines);
    }
  }
  return walk.at() == nullptr;
}

}  // namespace

std::string_view to_string(RepairVerb verb) noexcept {
  switch (verb) {
    case RepairVerb::kRetryNow:
      return "retry_now";
    case RepairVerb::kSkipStep:
      return "skip_step";
    case RepairVerb::kFailAndRollBack:
      return "fail_and_roll_back";
    case RepairVerb::kBypass:
      return "bypass";
  }
  return "?";
}

namespace {

// Why no order about `head` is taken just now, or OK.
Status why_not_now(const Execution& head) {
  const EndingOrder order = head.domain.ending;
  if (order != EndingOrder::kWaits && order != EndingOrder::kMayGoOn) return Status();
  return Status(StatusCode::kUnavailable, "an order to bypass " + name_of(head) +
                                              " waits until a step has ended; look again");
}

// Why what fails together under `head` cannot be bypassed, whoever is in the middle of something;
// or OK.
Status why_not_bypassed(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex) {
  if (head.stored == Stored::kTorn) {
    return refused(name_of(head) + " belongs to a root that is none; restore a backup");
  }
  if (head.stored == Stored::kUnreadable) {
    return refused(name_of(head) +
                   " has a record that cannot be read, and is kept as it is; restore a backup");
  }
  if (!head.is_quarantined() && !head.domain.is_stopped()) {
    const Execution* const given_up = first_given_up(head);
    if (given_up == nullptr) {
      const bool commits = head.root->domain.beyond != 0 || head.root->domain.begun != 0;
      return refused("the tree of " + name_of(head) +
                     " goes forward, and nobody in it has used up the attempts at a step; " +
                     (commits ? "let it go on, as it has begun a point of no return" : "abort it") +
                     ", or, if a part of it has failed, bypass that part by its own id");
    }
    // As long as one of them stands, nobody above him ends.
    const auto stands = [](Execution& member) {
      return has_given_up(member) && member.phase == Phase::kIdle;
    };
    if (first_standing(head, stands) == nullptr) return busy(*given_up);
  }
  if (head.domain.ending == EndingOrder::kDurable) {
    return refused("an operator has ended " + name_of(head) +
                   " already, and it waits for its offloaded work");
  }
  const auto waits_for_it = [&](const WaitingOrder& order) PV2_REQUIRES(core.state_mutex) {
    const Execution* const other = core.find(order.head);
    return other != nullptr && other->root == head.root;
  };
  const auto& waiting = core.state.waiting_orders;
  if (std::any_of(waiting.begin(), waiting.end(), waits_for_it)) {
    return Status(StatusCode::kUnavailable, "an order to bypass a part of the tree of " +
                                                name_of(*head.root) +
                                                " waits until a step has ended; look again");
  }
  return Status();
}

// Of what has failed under `head`, or was stopped: who is in the middle of something, so that an
// order to end it waits. nullptr: nobody. Not one with offloaded work: the end waits for that.
const Execution* busy_member(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex) {
  if (!why_too_late(head).ok()) return &head;
  PV2_ASSERT(head.domain.failing == &head, "what an order ends was stopped");
  core.flush();  // so that every kQueued member is in a queue, or polled
  for (const Execution* const member : begun_turns(head)) {
    if (is_busy(core, *member)) return member;
  }
  // The others were stopped, but for those that were taken before, and are counted.
  std::size_t at_work = 0;
  for_each_at_work(head, [&](const Execution& /*member*/) { ++at_work; });
  return head.domain.in_flight_inside == at_work ? nullptr : &head;
}

// The order waits, and nothing of the tree begins until it is carried out.
Status let_order_wait(EngineCore& core, Execution& head, AuditEntry entry, Reply<Status>& reply)
    PV2_REQUIRES(core.state_mutex) {
  auto& waiting = core.state.waiting_orders;
  if (waiting.size() >= WaitingOrder::kMax) {
    return Status(StatusCode::kUnavailable,
                  std::to_string(WaitingOrder::kMax) +
                      " orders to bypass wait until steps have ended, which is as many as may "
                      "wait; try again");
  }
  waiting.push_back({head.id, std::move(entry), std::move(reply)});
  make_way_for_order(core, head);
  return Status();
}

// Why an order means nothing, whatever it is about; or OK.
Status check_order(RepairVerb verb, const RepairNote& note) {
  const auto invalid = [](std::string why) {
    return Status(StatusCode::kInvalidArgument, std::move(why));
  };
  if (to_string(verb) == "?") {
    return invalid("there is no order number " + std::to_string(static_cast<int>(verb)));
  }
  if (note.who.empty() || note.why.empty()) {
    return invalid(std::string(to_string(verb)) +
                   " needs RepairNote::" + (note.who.empty() ? "who" : "why") +
                   ": who gives an order, and why, is kept with it");
  }
  if (note.next_step != 0 && verb != RepairVerb::kSkipStep) {
    return invalid(std::string(to_string(verb)) + " with RepairNote::next_step " +
                   std::to_string(note.next_step) + ", which only skip_step takes");
  }
  return Status();
}

// The record that the order makes, and for its entry the step; or why it is refused. nullptr: it
// has to wait.
Result<std::unique_ptr<StepCommit>> make_order(EngineCore& core, Execution& target,
                                               const RepairNote& note, AuditEntry& entry,
                                               Effects& effects) PV2_REQUIRES(core.state_mutex) {
  Execution& head = scope_of(target);
  if (Status later = why_not_now(head); !later.ok()) return later;
  switch (entry.verb) {
    case RepairVerb::kRetryNow: {
      if (Status refusal = why_not_retried(target); !refusal.ok()) return refusal;
      if (is_parked_beyond_return(head)) return retry_failed(core, **failed_at(target), entry);
      if (head.domain.is_parked()) return retry_parked(core, **parked_at(target), entry);
      if (Execution* const given_up = given_up_at(target)) {
        return retry_failed(core, *given_up, entry);
      }
      return end_wait(core, target, entry);
    }
    case RepairVerb::kSkipStep: {
      if (Status refusal = why_not_skipped(target); !refusal.ok()) return refusal;
      if (head.domain.is_parked() && !is_parked_beyond_return(head)) {
        if (note.next_step != 0) {
          return Status(StatusCode::kInvalidArgument,
                        "RepairNote::next_step is " + std::to_string(note.next_step) +
                            ", but what is skipped is an undo, which nothing of it follows");
        }
        return skip_parked(core, **parked_at(target), entry);
      }
      Execution* const failed = head.domain.is_parked() ? *failed_at(target) : given_up_at(target);
      PV2_ASSERT(failed != nullptr, "an order to skip without a step to skip is refused above");
      const auto following = step_after(*failed, note.next_step);
      if (!following.ok()) return following.status();
      return skip_failed(core, *failed, *following, entry);
    }
    case RepairVerb::kFailAndRollBack: {
      if (Status refusal = why_not_sent_back(head); !refusal.ok()) return refusal;
      return send_back(core, head);
    }
    case RepairVerb::kBypass: {
      if (Status refusal = why_not_bypassed(core, head); !refusal.ok()) return refusal;
      const bool waits = !head.domain.is_stopped() || busy_member(core, head) != nullptr ||
                         !stop_turns(core, head, effects);
      if (waits) return std::unique_ptr<StepCommit>();
      return end_tree(core, head, entry);
    }
  }
  return refused("there is no such order");
}

// Why an order that has waited cannot be carried out any more, or OK.
Status why_not_any_more(EngineCore& core, const WaitingOrder& order)
    PV2_REQUIRES(core.state_mutex) {
  Execution* const head = core.find(order.head);
  const std::string name = "procedure " + std::to_string(order.head.value);
  if (head == nullptr || head->record.reported || is_over(*head)) {
    return refused(name + " ended before it could be bypassed");
  }
  const Execution* const failing = failing_domain(*head);
  if (failing == nullptr) {
    return refused(name + " went forward again before it could be bypassed; look again");
  }
  if (failing != head) {
    return refused("the tree of " + name_of(*failing) + " failed around " + name +
                   " before that could be bypassed; look again");
  }
  return Status();
}

// In words, what the order would do; or why it would be refused.
Status describe_order(EngineCore& core, Execution& target, Preview& preview)
    PV2_REQUIRES(core.state_mutex) {
  Execution& head = scope_of(target);
  const bool aborts = aborts_root(preview.verb, target);
  if (Status later = why_not_now(head); !later.ok() && !aborts) return later;
  std::vector<std::string>& lines = preview.lines;
  switch (preview.verb) {
    case RepairVerb::kRetryNow: {
      if (Status refusal = why_not_retried(target); !refusal.ok()) return refusal;
      const Execution* const given_up = head.domain.is_parked() ? nullptr : given_up_at(target);
      if (given_up != nullptr || is_parked_beyond_return(head)) {
        const Execution& failed = given_up != nullptr ? *given_up : **failed_at(target);
        lines.push_back(name_of(failed) + " makes " + name_of_step(failed, failed.record.step) +
                        " again, at which it failed");
      } else if (head.domain.is_parked()) {
        lines.push_back("the undo at which " + name_of(**parked_at(target)) +
                        " is parked is tried again");
      } else {
        lines.push_back("the wait of " + name_of(target) + " ends now");
      }
      return Status();
    }
    case RepairVerb::kSkipStep: {
      if (Status refusal = why_not_skipped(target); !refusal.ok()) return refusal;
      const Execution* const given_up = head.domain.is_parked() ? nullptr : given_up_at(target);
      if (given_up != nullptr || is_parked_beyond_return(head)) {
        const Execution& failed = given_up != nullptr ? *given_up : **failed_at(target);
        const std::uint32_t following = *step_after(failed, 0);
        lines.push_back(name_of(failed) + " failed at " + name_of_step(failed, failed.record.step) +
                        ", which may be half done and counts as done; " +
                        (following == 0 ? std::string("it ends then, without a result")
                                        : name_of_step(failed, following) +
                                              " follows, unless the order names another step"));
        return Status();
      }
      const UndoTurn& turn = *parked_turn(head, **parked_at(target));
      lines.push_back(name_of(*turn.execution) + " did " +
                      name_of_step(*turn.execution, turn.entry.step) +
                      ", which is not undone; the rollback goes on as if it were");
      return Status();
    }
    case RepairVerb::kFailAndRollBack: {
      Status refusal;
      if (!aborts) {
        refusal = why_not_sent_back(head);
      } else if (refusal = why_not_aborted_anew(*target.root); refusal.ok()) {
        refusal = why_not_abortable(*target.root);
      }
      if (refusal.ok()) preview.describe_all(aborts ? *target.root : head);
      return refusal;
    }
    case RepairVerb::kBypass: {
      if (Status refusal = why_not_bypassed(core, head); !refusal.ok()) return refusal;
      preview.describe_all(head);
      if (head.stored == Stored::kLost) {
        lines.push_back(name_of(head) +
                        " has no record: what it did, and which locks it held, is not known");
      }
      return Status();
    }
  }
  return refused("there is no such order");
}

// The preview of an order, all of whose members are described: as long as it means the same.
Result<std::vector<std::string>> described(EngineCore& core, Execution& target, Preview& preview)
    PV2_REQUIRES(core.state_mutex) {
  if (!preview.of) return std::move(preview.lines);
  Preview now(preview.verb);
  if (preview.has_paused) {
    if (Status refusal = describe_order(core, target, now); !refusal.ok()) return refusal;
    if (now.of != preview.of) {
      return Status(StatusCode::kUnavailable, "what is parked of the tree of " +
                                                  name_of(*target.root) +
                                                  " has changed meanwhile; ask again");
    }
  }
  const auto head = core.state.live.find(preview.of);
  PV2_ASSERT(head != core.state.live.end(), "what an order is about is live");
  // Whom it found may have ended that since, or begun: where nobody goes forward, that is known.
  if (preview.verb == RepairVerb::kBypass && head->second->domain.is_stopped()) {
    const Execution* const busy_one = busy_member(core, *head->second);
    if (busy_one == nullptr) preview.waits_for.clear();
    if (busy_one != nullptr && preview.waits_for.empty()) preview.waits_for = name_of(*busy_one);
  }
  if (!preview.waits_for.empty()) {
    preview.lines.push_back("the order waits until " + preview.waits_for +
                            " has ended what it is doing, by which some of this may change; "
                            "nothing else of the tree begins meanwhile");
  }
  const char* const end = preview.verb == RepairVerb::kBypass
                              ? " ends as bypassed, with all its children"
                              : " ends as undone";
  preview.lines.push_back(name_of(*head->second) + end);
  return std::move(preview.lines);
}

}  // namespace

void carry_out_waiting_orders(EngineCore& core, Effects& effects) {
  auto& waiting = core.state.waiting_orders;
  if (waiting.empty()) return;
  if (Status stopped = core.unavailable(); !stopped.ok()) {
    return refuse_waiting_orders(core, stopped, effects);
  }
  core.flush();  // so that every kQueued member is in a queue, or polled
  std::erase_if(waiting, [&](WaitingOrder& order) PV2_REQUIRES(core.state_mutex) {
    Looks::one();
    if (Status late = why_not_any_more(core, order); !late.ok()) {
      if (Execution* const head = core.find(order.head)) head->domain.ending = EndingOrder::kNone;
      effects.reply(std::move(order.reply), late);
      return true;
    }
    Execution& head = *core.find(order.head);
    PV2_ASSERT(head.domain.makes_way(), "a tree makes way for the order that is to end it");
    if (!why_too_late(head).ok()) return false;
    if (head.domain.ending != EndingOrder::kMayGoOn) return false;
    head.domain.ending = EndingOrder::kWaits;
    if (busy_member(core, head) != nullptr || !stop_turns(core, head, effects)) return false;
    auto commit = end_tree(core, head, order.entry);
    submit_order(core, std::move(commit), std::move(order.entry), std::move(order.reply), effects);
    return true;
  });
}

void refuse_waiting_orders(EngineCore& core, const Status& why, Effects& effects) {
  for (WaitingOrder& order : core.state.waiting_orders) {
    effects.reply(std::move(order.reply), why);
  }
  core.state.waiting_orders.clear();
}

void Repairs::repair(ProcedureId id, RepairVerb verb, RepairNote note, Reply<Status> reply) {
  Effects effects;
  if (Status invalid = check_order(verb, note); !invalid.ok()) {
    effects.reply(std::move(reply), std::move(invalid));
    return publisher_.perform(effects);
  }
  note.who.resize(std::min(note.who.size(), limits::kWhoBytes));
  note.why.resize(std::min(note.why.size(), limits::kWhyBytes));
  AuditEntry entry;
  entry.verb = verb;
  entry.who = note.who;
  entry.why = note.why;
  Status answer;
  ProcedureId abort;
  bool live = true;
  bool submitted = false;
  {
    StateLock lock(core_);
    Execution* const target = core_.find(id);
    live = target != nullptr;
    answer = core_.unavailable();
    if (!answer.ok() || !live) {
    } else if (aborts_root(verb, *target)) {
      abort = target->root->id;  // a message, which no step that runs has to wait for
      entry.procedure = id;
    } else {
      auto commit = make_order(core_, *target, note, entry, effects);
      answer = commit.status();
      submitted = commit.ok();
      if (submitted && *commit == nullptr) {
        answer = let_order_wait(core_, scope_of(*target), std::move(entry), reply);
        submitted = answer.ok();
      } else if (submitted) {
        submit_order(core_, *std::move(commit), std::move(entry), std::move(reply), effects);
      }
    }
  }
  if (abort) {
    // NOLINTNEXTLINE(bugprone-use-after-move): moved away only together with a commit
    return messages_.abort(abort, {.reason = note.why, .who = note.who}, std::move(reply), &entry);
  }
  if (!submitted) {
    // NOLINTNEXTLINE(bugprone-use-after-move): moved away only together with a commit
    effects.reply(std::move(reply), live || !answer.ok() ? answer : results_.why_not_live(id));
  }
  publisher_.perform(effects);
}

Result<std::vector<std::string>> Repairs::preview(ProcedureId id, RepairVerb verb) {
  if (Status invalid = check_order(verb, {.who = "preview", .why = "asked"}); !invalid.ok()) {
    return invalid;
  }
  Preview preview(verb);
  for (;;) {
    {
      StateLock lock(core_);
      if (preview.has_paused) std::erase(core_.state.walks, &*preview.walk);
      Execution* const target = core_.find(id);
      if (target == nullptr) break;
      if (!preview.has_paused) {
        if (Status refusal = describe_order(core_, *target, preview); !refusal.ok()) return refusal;
      }
      if (describe_members(core_, preview)) return described(core_, *target, preview);
      preview.has_paused = true;
      core_.state.walks.push_back(&*preview.walk);
    }
    if (core_.between_sections) core_.between_sections();
    core_.give_way();
  }
  return results_.why_not_live(id);
}

Result<std::vector<AuditEntry>> Repairs::audit(ProcedureId id) {
  ProcedureId root = id;
  bool live = false;
  {
    StateLock lock(core_);
    const Execution* const found = core_.find(id);
    live = found != nullptr;
    if (live) root = found->root->id;
  }
  std::vector<AuditEntry> entries;
  const auto read = [&] {
    return core_.store.scan(Space::kProcedure, procedure_key(root, RowKind::kAudit),
                            [&](const StoredRow& row) {
                              auto audit = decode_audit(row.value);
                              if (!audit.ok()) return audit.status();
                              if (audit->root && root == id) root = audit->root;
                              entries.push_back(std::move(audit->entry));
                              return Status();
                            });
  };
  Status scanned = read();
  if (scanned.ok() && !live && root != id) {  // a child of a tree that has ended
    entries.clear();
    scanned = read();
  }
  const std::string what = "the audit of procedure " + std::to_string(id.value);
  if (!scanned.ok()) return scanned.with_context(what);
  if (!entries.empty() || live) return entries;
  const Status gone = results_.why_not_live(id);
  if (gone.code() == StatusCode::kFailedPrecondition) return entries;  // nothing was ordered
  return gone.with_context(what + " (of a child, ask for that of its root)");
}

}  // namespace pv2
