// SPDX-License-Identifier: Apache-2.0
//
// For each verb: why it has to be refused, the record that it makes, and what it would leave
// behind. The first is asked by both the order and its preview.

#include "repairs.h"

#include <algorithm>
#include <utility>

#include "inbox_codec.h"
#include "record_codec.h"
#include "tree.h"

namespace pv2 {
namespace {

constexpr std::size_t kWhyMax = 1024;
constexpr std::size_t kWhoMax = 256;

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

std::vector<Execution*> tree_of(Execution& root) {
  std::vector<Execution*> all{&root};
  for (Execution* member : root.tree.members) all.push_back(member);
  return all;
}

// The member whose undo the tree is parked at, or nullptr.
Execution* parked_member(Execution& root) {
  for (Execution* member : tree_of(root)) {
    if (member->parked) return member;
  }
  return nullptr;
}

// The parked member that `target` means: itself, or that of its tree if it is the root.
Result<Execution*> parked_at(Execution& target) {
  Execution& root = *target.root;
  Execution* const parked = parked_member(root);
  if (parked == nullptr) {
    return refused(
        "the tree of " + name_of(root) +
        " is parked at no undo: it failed after a point of no return, so there is nothing "
        "to try again or to skip; bypass it");
  }
  if (&target != parked && !target.is_root()) {
    return refused("the tree of " + name_of(root) + " is parked at " + name_of(*parked) +
                   ", not at " + name_of(target));
  }
  if (root.tree.in_flight != 0) return busy(root);
  return parked;
}

bool waits_for_time(const Execution& target) {
  return target.phase == Phase::kWaiting && target.deadline.has_value() &&
         target.unfinished_children == 0;
}

Status why_not_retried(Execution& target) {
  if (target.quarantined)
    return refused(name_of(target) + " is quarantined; nothing of it can run");
  if (target.root->tree.parked) return parked_at(target).status();
  if (waits_for_time(target)) return Status();
  if (target.phase == Phase::kInFlight || target.phase == Phase::kDropping) return busy(target);
  return refused(name_of(target) + " is in no back-off and no timed wait");
}

Status why_not_skipped(Execution& target) {
  Execution& root = *target.root;
  if (root.quarantined || !root.tree.parked) {
    return refused("the tree of " + name_of(root) + " is not parked at an undo");
  }
  const auto parked = parked_at(target);
  if (!parked.ok()) return parked.status();
  if (root.tree.to_undo.empty() || root.tree.to_undo.back().execution != *parked) {
    return refused("after the restart another step has to be undone before the one of " +
                   name_of(**parked) + "; let it be retried first");
  }
  return Status();
}

// What a record of `execution` says if nothing happened but time.
Transition as_it_is(const EngineCore& core, const Execution& execution) {
  Transition same;
  same.state = execution.state;
  same.step = execution.step;
  same.attempt = execution.attempt;
  same.no_return = execution.no_return;
  same.parked = execution.parked;
  same.awaits = execution.awaits;
  same.holds_locks = execution.recorded_locks;
  same.deadline = execution.deadline;
  same.patience = execution.patience;
  same.now = core.clock.wall_now();
  return same;
}

// Begins an order about `execution`; submit_order() ends it.
std::unique_ptr<StepCommit> begin_order(EngineCore& core, Execution& execution)
    PV2_REQUIRES(core.state_mutex) {
  auto commit = core.state.spare_steps.take();
  commit->execution = &execution;
  commit->next = as_it_is(core, execution);
  commit->was_undo = execution.state == ProcedureState::kFailed;
  return commit;
}

std::unique_ptr<StepCommit> retry_parked(EngineCore& core, Execution& member, AuditEntry& entry)
    PV2_REQUIRES(core.state_mutex) {
  auto commit = begin_order(core, member);
  Transition& next = commit->next;
  if (!member.root->tree.to_undo.empty()) entry.step = member.root->tree.to_undo.back().entry.step;
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
  entry.step = member.undo_step != 0 ? member.undo_step : member.step;
  core.state.timers.cancel(member);
  next.deadline = next.now;
  next.patience = Duration::zero();
  next.ends_waits = false;
  if (member.failure && !commit->was_undo) next.error = member.failure->error;
  return commit;
}

std::unique_ptr<StepCommit> skip_parked(EngineCore& core, Execution& member, AuditEntry& entry)
    PV2_REQUIRES(core.state_mutex) {
  TreeState& tree = member.root->tree;
  auto commit = begin_order(core, member);
  Transition& next = commit->next;
  member.undo_step = entry.step = tree.to_undo.back().entry.step;
  member.ends_tree = member.is_root() && tree.to_undo.size() == 1;
  next.parked = false;
  next.attempt = 1;
  next.step = 0;
  next.undo = UndoChange::kPop;
  if (member.undo_left > 1) return commit;
  const bool ends = !member.is_root() || member.ends_tree;
  if (ends) next.state = ProcedureState::kRolledBack;
  if (ends) next.holds_locks = false;
  if (member.ends_tree) next.error = tree.cause;
  return commit;
}

std::unique_ptr<StepCommit> end_tree(EngineCore& core, Execution& root, const AuditEntry& entry)
    PV2_REQUIRES(core.state_mutex) {
  for (Execution* member : tree_of(root)) {
    if (member->phase == Phase::kWaiting) member->phase = Phase::kIdle;
    core.abandon_waits(*member);
  }
  auto commit = begin_order(core, root);
  Transition& next = commit->next;
  next.state = ProcedureState::kRolledBack;
  next.step = 0;
  next.parked = false;
  next.bypassed = true;
  next.holds_locks = false;
  next.deadline.reset();
  std::string text = "bypassed";
  if (!entry.who.empty()) text += " by " + entry.who;
  if (!entry.why.empty()) text += ": " + entry.why;
  if (!root.tree.cause.ok()) text += "; it had failed with " + root.tree.cause.to_string();
  if (text.size() > 2048) text.resize(2048);
  next.error = Status(StatusCode::kAborted, std::move(text));
  return commit;
}

// Writes the record and the audit entry in one batch.
void submit_order(std::unique_ptr<StepCommit> commit, AuditEntry entry,
                  std::function<void(Status)> done, Effects& effects) {
  Execution& execution = *commit->execution;
  Execution& root = *execution.root;
  if (!root.inbox) root.inbox = std::make_unique<Inbox>();
  root.inbox->audited = true;
  entry.procedure = execution.id;
  entry.at = commit->next.now;
  const std::uint64_t number = root.inbox->next_number++;
  update_state(execution, commit->next, execution.undo_step, commit->batch);
  std::string row;
  encode_audit(entry, number, row);
  commit->batch.insert(Space::kProcedure, audit_key(root.id, number), row);
  commit->inbox_use = std::make_unique<InboxUse>();
  commit->inbox_use->answer = std::move(done);
  execution.phase = Phase::kInFlight;
  ++root.tree.in_flight;
  effects.log(LogLevel::kWarning, std::string(to_string(entry.verb)) + " of " + name_of(execution) +
                                      " was ordered by '" + entry.who + "': " + entry.why);
  effects.commits.push_back(*commit.release());
}

std::string steps_of(const Execution& member) {
  std::string steps;
  for (const UndoEntry& entry : member.undo) {
    if (!steps.empty()) steps += ", ";
    steps += name_of_step(member, entry.step);
  }
  return steps;
}

void describe_bypass(Execution& root, std::vector<std::string>& lines) {
  for (const Execution* member : tree_of(root)) {
    const bool ended = member->state == ProcedureState::kSuccess;
    if (!member->undo.empty() && member->is_undone_with_its_tree()) {
      lines.push_back(name_of(*member) + " did " + steps_of(*member) + ", which is not undone");
    }
    if (member->started && !ended && member->step != 0 &&
        member->state != ProcedureState::kFailed) {
      lines.push_back(name_of(*member) + " may have begun " + name_of_step(*member, member->step) +
                      ", which is neither finished nor undone");
    }
    for (const LockRequest& lock : member->locks.requests()) {
      if (!member->recorded_locks || lock.mode != LockMode::kExclusive) continue;
      lines.push_back(name_of(*member) + " gives up its lock on " + to_string(lock.key) +
                      "; others may change it as it is");
    }
    if (!member->is_root() && !ended && member->state != ProcedureState::kRolledBack) {
      lines.push_back(name_of(*member) + " is cut off as it stands");
    }
  }
  lines.push_back(name_of(root) + " ends as bypassed, with all its children");
}

void describe_rollback(Execution& root, std::vector<std::string>& lines) {
  for (const Execution* member : tree_of(root)) {
    if (!member->is_undone_with_its_tree()) {
      lines.push_back(name_of(*member) + " has succeeded and stays as it is");
    } else if (!member->undo.empty()) {
      lines.push_back(name_of(*member) + " did " + steps_of(*member) + ", which is undone");
    }
  }
  lines.push_back(name_of(root) + " ends as undone");
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

Status why_not_bypassed(Execution& root) {
  if (root.torn) {
    return refused(name_of(root) +
                   " belongs to a root of which there is no record; restore a backup");
  }
  if (!root.quarantined && !root.tree.parked && !root.tree.failed) {
    return refused("the tree of " + name_of(root) + " goes forward; abort it");
  }
  for (const Execution* member : tree_of(root)) {
    if (member->phase != Phase::kIdle && member->phase != Phase::kWaiting) return busy(*member);
  }
  return root.tree.in_flight != 0 ? busy(root) : Status();
}

void Repairs::repair(ProcedureId id, RepairVerb verb, RepairNote note,
                     std::function<void(Status)> done) {
  note.who.resize(std::min(note.who.size(), kWhoMax));
  note.why.resize(std::min(note.why.size(), kWhyMax));
  AuditEntry entry;
  entry.verb = verb;
  entry.who = note.who;
  entry.why = note.why;
  Effects effects;
  Status answer;
  ProcedureId abort;
  bool live = true;
  {
    StateLock lock(core_);
    Execution* const target = core_.find(id);
    live = target != nullptr;
    answer = core_.unavailable();
    std::unique_ptr<StepCommit> commit;
    if (!answer.ok() || !live) {
    } else if (verb == RepairVerb::kFailAndRollBack) {
      abort = target->root->id;
    } else if (verb == RepairVerb::kRetryNow) {
      answer = why_not_retried(*target);
      if (answer.ok()) {
        commit = target->root->tree.parked
                     ? retry_parked(core_, *parked_member(*target->root), entry)
                     : end_wait(core_, *target, entry);
      }
    } else if (verb == RepairVerb::kSkipStep) {
      answer = why_not_skipped(*target);
      if (answer.ok()) commit = skip_parked(core_, *parked_member(*target->root), entry);
    } else {
      answer = why_not_bypassed(*target->root);
      if (answer.ok()) commit = end_tree(core_, *target->root, entry);
    }
    if (commit) {
      submit_order(std::move(commit), std::move(entry), std::move(done), effects);
    }
  }
  // NOLINTNEXTLINE(bugprone-use-after-move): moved away only together with a commit
  if (abort) return messages_.abort(abort, {.reason = note.why, .who = note.who}, std::move(done));
  if (!effects.commits.empty()) return publisher_.perform(effects);
  // NOLINTNEXTLINE(bugprone-use-after-move): moved away only together with a commit
  done(live || !answer.ok() ? answer : results_.why_not_live(id));
}

Result<std::vector<std::string>> Repairs::preview(ProcedureId id, RepairVerb verb) {
  std::vector<std::string> lines;
  bool live = true;
  {
    StateLock lock(core_);
    Execution* const target = core_.find(id);
    live = target != nullptr;
    Status status;
    if (!live) {
    } else if (verb == RepairVerb::kRetryNow) {
      status = why_not_retried(*target);
      if (status.ok() && target->root->tree.parked) {
        lines.push_back("the undo at which " + name_of(*parked_member(*target->root)) +
                        " is parked is tried again");
      } else if (status.ok()) {
        lines.push_back("the wait of " + name_of(*target) + " ends now");
      }
    } else if (verb == RepairVerb::kSkipStep) {
      status = why_not_skipped(*target);
      if (status.ok()) {
        const UndoTurn& turn = target->root->tree.to_undo.back();
        lines.push_back(name_of(*turn.execution) + " did " +
                        name_of_step(*turn.execution, turn.entry.step) +
                        ", which is not undone; the rollback goes on as if it were");
      }
    } else if (verb == RepairVerb::kFailAndRollBack) {
      status = why_not_abortable(*target->root);
      if (status.ok()) describe_rollback(*target->root, lines);
    } else {
      status = why_not_bypassed(*target->root);
      if (status.ok()) describe_bypass(*target->root, lines);
    }
    if (!status.ok()) return status;
  }
  if (!live) return results_.why_not_live(id);
  return lines;
}

Result<std::vector<AuditEntry>> Repairs::audit(ProcedureId id) {
  ProcedureId root = id;
  {
    StateLock lock(core_);
    if (const Execution* const live = core_.find(id); live != nullptr) root = live->root->id;
  }
  std::vector<AuditEntry> entries;
  const Status scanned = core_.store.scan(Space::kProcedure, procedure_key(root, RowKind::kAudit),
                                          [&](const StoredRow& row) {
                                            auto entry = decode_audit(row.value);
                                            if (!entry.ok()) return entry.status();
                                            entries.push_back(*std::move(entry));
                                            return Status();
                                          });
  if (!scanned.ok())
    return scanned.with_context("the audit of procedure " + std::to_string(id.value));
  return entries;
}

}  // namespace pv2
