// SPDX-License-Identifier: Apache-2.0
//
// One critical section per batch of finished requests; everything that must happen outside it is in
// Effects.

#include "publisher.h"

#include <algorithm>
#include <utility>

#include "check_limits.h"
#include "messages.h"
#include "offloads.h"
#include "record_codec.h"
#include "repairs.h"
#include "results.h"
#include "state_audit.h"
#include "timers.h"
#include "tree.h"

namespace pv2 {
namespace {

// From here on a list takes longer to publish than a worker takes to wake up.
constexpr std::size_t kWorthAnotherThread = 256;
// Requests published in one critical section: others wait for it, workers for what it queues.
constexpr std::size_t kSection = 128;
// Rows deleted per batch after a tree has ended: small beside what a sync takes anyway.
constexpr std::size_t kGarbageChunk = 512;

// A step that never succeeds is tried again for ever, unless its attempts are bounded: not
// silently.
void tell_of_retry(EngineCore& core, const Execution& execution, const StepCommit& commit,
                   Effects& effects) PV2_REQUIRES(core.state_mutex) {
  const std::uint32_t number = commit.was_undo ? execution.turn.step : execution.record.step;
  const StepInfo* const step = execution.type->find_step(number);
  core.tell(ProcedureNews::Kind::kRetrying, execution, commit.next.retried);
  effects.log(LogLevel::kWarning,
              "procedure " + std::to_string(execution.id.value) + " (" + execution.type->name +
                  ") has failed " + std::to_string(execution.record.attempt - 1) + " times " +
                  (commit.was_undo ? "to undo step " : "at step ") +
                  (step != nullptr ? std::string(step->name) : std::to_string(number)) +
                  " and goes on trying: " + commit.next.retried.to_string());
}

// Deletes the next rows of what is left: `chunk` procedures or messages.
void fill_chunk(GarbageCommit& garbage, std::size_t chunk) {
  PV2_ASSERT(chunk != 0, "each chunk deletes something");
  PV2_ASSERT(garbage.next <= garbage.left.size(), "rows are deleted once");
  garbage.batch.clear();
  for (const auto& [id, inbox] : garbage.inboxes) {
    for (const auto& message : inbox->messages) {
      garbage.rows.push_back(inbox_key(id, message->number));
    }
  }
  garbage.inboxes.clear();
  for (; chunk > 0 && !garbage.rows.empty(); --chunk) {
    garbage.batch.erase(Space::kProcedure, garbage.rows.back());
    garbage.rows.pop_back();
  }
  for (; chunk > 0 && garbage.next < garbage.left.size(); --chunk) {
    const ProcedureId id = garbage.left[garbage.next++];
    garbage.batch.erase(Space::kProcedure, procedure_key(id, RowKind::kHeader));
    garbage.batch.erase(Space::kProcedure, procedure_key(id, RowKind::kState));
  }
  for (; chunk > 0 && !garbage.engine_rows.empty(); --chunk) {
    const auto& [key, value] = garbage.engine_rows.back();
    value.empty() ? garbage.batch.erase(Space::kEngine, key)
                  : garbage.batch.put(Space::kEngine, key, value);
    garbage.engine_rows.pop_back();
  }
}

// Whether nothing follows from a record because `head`, around or at `execution`, has failed: its
// rollback has not begun and will be planned by the records that are there then; or it has, and
// this was a step that went forward.
bool stops_here(const Execution& head, const Execution& execution, const StepCommit& commit) {
  if (!head.domain.is_undone() || head.is_quarantined()) return true;
  const bool ordered = commit.next.order != OrderEffect::kNone;
  return execution.turn.step == 0 && !ordered && (!commit.was_undo || commit.is_grant);
}

// Whether an operator ordered it.
bool is_order(const StepCommit& commit) {
  return commit.next.history && is_order(commit.next.history->outcome);
}

// Whether an operator ends what is under a head.
bool is_last_order(const StepCommit& commit) {
  return is_order(commit) && commit.next.history->outcome == Outcome::Kind::kBypassed;
}

// What the execution knew of its waits, in this run, is over or goes on.
void apply_to_run(Execution& execution, const Transition& next) {
  PV2_ASSERT(!next.deadline || next.due != kNotDue,
             "a deadline is measured by the monotonic clock in this run");
  execution.wait.due = next.due;
  execution.wait.timed_out = false;
  if (!next.ends_waits) return;
  ++execution.wait.epoch;
  execution.wait.wake_pending = false;
}

// The execution becomes what its record says.
void apply_transition(Execution& execution, StepCommit& commit) {
  Transition& next = commit.next;
  Record& record = execution.record;
  const bool only_locks = commit.is_grant || commit.gives_back;
  PV2_ASSERT(!only_locks || commit.is_grant == next.holds_locks,
             "a grant holds, and what is given back does not");
  const bool step_is_over = next.visits != record.visits || next.step != record.step;
  const bool had_interrupted = record.interrupted != nullptr;
  const std::uint32_t ran_step =
      commit.was_undo || commit.is_grant ? execution.turn.step : record.step;
  commit.was_parked = record.parked;
  execution.ahead_of_record = !commit.needs_record;
  if (commit.needs_record) {
    if (next.undo == UndoChange::kPush && record.undo.empty()) {
      record.undo.reserve(execution.type->steps.size());  // once
    }
    record.assign(next, ran_step, commit.sequence);
  } else {
    record.assign_wait(next);
  }
  if (step_is_over) execution.started = false;
  if (commit.was_parked != record.parked) note_parked(execution);
  if (record.interrupted && !had_interrupted) ++execution.root->domain.heads_that_say_it;
  if (!only_locks) apply_to_run(execution, next);
}

}  // namespace

// A worker that counts itself idle looks at what is committed after it has ceased to be; so either
// it sees this list or this thread sees that nobody is idle.
void Publisher::on_committed(CommitList finished) noexcept {
  const EngineThread mark(&core_);
  const bool is_long = finished.size() >= kWorthAnotherThread;
  {
    MutexLock lock(committed_mutex_);
    committed_.splice_back(std::move(finished));
  }
  if (is_long && core_.idle_workers.load() != 0) return core_.scheduler.nudge();
  publish_committed();
}

void Publisher::publish_committed() {
  for (;;) {
    CommitList taken;
    {
      MutexLock lock(committed_mutex_);
      if (publishing_ || committed_.empty()) return;
      publishing_ = true;
      taken = std::exchange(committed_, {});
    }
    publish(std::move(taken));
    MutexLock lock(committed_mutex_);
    publishing_ = false;
  }
}

void Publisher::publish(CommitList finished) {
  std::vector<TreeWork*> sorted;
  bool works = core_.tree_work_waits.load() && core_.tree_work_waits.exchange(false);
  while (!finished.empty() || works) {
    Effects effects;
    {
      StateLock lock(core_);
      for (TreeWork* const work : sorted) go_on_with_sorted(core_, *work);
      sorted.clear();
      for (std::size_t i = 0; i < kSection && !finished.empty() && core_.looks.have_room(); ++i) {
        apply(static_cast<EngineRequest&>(*finished.pop_front()), effects);
        do_tree_works(core_, effects);
      }
      works = do_tree_works(core_, effects);
      carry_out_waiting_orders(core_, effects);
      audit_now_and_then(core_);
    }
    finished.splice_back(act_on(effects));
    for (TreeWork* const work : effects.to_sort) sort_collected(*work);
    sorted = std::move(effects.to_sort);
    if (!sorted.empty()) works = true;
    if (core_.between_sections && works) core_.between_sections();
    if (works) core_.give_way();
  }
}

void Publisher::perform(Effects& effects) { publish(act_on(effects)); }

// Returns what the store answered to be durable at once.
CommitList Publisher::act_on(Effects& effects) {
  if (effects.timers_moved && timers_ != nullptr) timers_->earliest_moved();
  for (auto& garbage : effects.garbage) {
    fill_chunk(*garbage,
               std::min(kGarbageChunk,
                        std::max<std::size_t>(1, core_.store.limits().batch_operations / 2)));
    effects.commits.push_back(*garbage.release());
  }
  if (!effects.commits.empty()) {
    const StoreLimits limits = core_.store.limits();
    effects.commits.for_each([&](const CommitRequest& request) {
      PV2_ASSERT(fits(limits, request.batch),
                 "what the engine writes was measured against the limits of its store");
    });
  }
  CommitList durable = std::move(effects.durable);
  if (!effects.commits.empty() &&
      core_.store.commit_all(effects.commits) == CommitAnswer::kDurable) {
    durable.splice_back(std::move(effects.commits));
  }
  for (Task& answer : effects.answers) answer();
  if (!effects.pool_tasks.empty()) core_.pool->post_all(effects.pool_tasks);
  for (const auto& [level, line] : effects.log_lines) log(core_.options.log, level, line);
  return durable;
}

void Publisher::apply(EngineRequest& request, Effects& effects) {
  Looks::one();
  if (!request.status.ok()) return store_failed(request, effects);
  switch (request.kind) {
    case EngineRequest::Kind::kInsert:
      return apply_insert(static_cast<InsertCommit&>(request), effects);
    case EngineRequest::Kind::kStep:
      return apply_step(static_cast<StepCommit&>(request), effects);
    case EngineRequest::Kind::kGarbage:
      return apply_garbage(static_cast<GarbageCommit&>(request), effects);
    case EngineRequest::Kind::kAcknowledge:
      return apply_acknowledge(static_cast<AcknowledgeCommit&>(request), effects);
    case EngineRequest::Kind::kMessage:
      return message_published(core_, static_cast<MessageCommit&>(request), effects);
    case EngineRequest::Kind::kLimit: {
      const std::unique_ptr<LimitCommit> limit(&static_cast<LimitCommit&>(request));
      core_.set_limit(limit->key, limit->limit);
      effects.answers.push_back([answer = std::move(limit->answer)] { answer(Status()); });
      return;
    }
    case EngineRequest::Kind::kWatermark: {
      const std::unique_ptr<WatermarkCommit> watermark(&static_cast<WatermarkCommit&>(request));
      core_.state.durable_watermark = watermark->next_id;
      core_.state.watermark_on_the_way = false;
      if (watermark->answer) {
        effects.answers.push_back([answer = std::move(watermark->answer)] { answer(Status()); });
      }
      return;
    }
  }
}

void Publisher::apply_insert(InsertCommit& commit, Effects& effects) {
  Execution& execution = *commit.execution;
  PV2_ASSERT(execution.inserting == &commit, "who is inserted knows its first record");
  PV2_ASSERT(execution.phase == Phase::kInserting, "a procedure is inserted once");
  execution.record.state =
      execution.record.deadline ? ProcedureState::kWaitingTimeout : ProcedureState::kRunnable;
  execution.record.holds_locks = commit.holds_locks;
  execution.record.updated = execution.submitted;
  ++core_.counts_of(*execution.type).submitted;
  core_.reserve_ids(effects);
  execution.inserting = nullptr;
  adopt(execution);
  if (execution.record.deadline) {
    execution.phase.move_to(Phase::kWaiting);
    core_.arm_timer(execution, effects);
  } else {
    core_.queue(execution, Disposition::kBack);
  }
  core_.tell(ProcedureNews::Kind::kAdded, execution);
  for (InsertCommit::Submitter& submitter : commit.submitters) {
    auto call = [answer = std::move(submitter.answer), id = execution.id,
                 replayed = submitter.replayed] {
      answer(Submitted{id, replayed});
    };
    submitter.on_pool ? effects.pool_tasks.emplace_back(std::move(call))
                      : effects.answers.emplace_back(std::move(call));
  }
  for (const InsertCommit::PutOff& step : commit.put_off) core_.wake(step.id, step.epoch);
  core_.state.spare_inserts.give_back(std::unique_ptr<InsertCommit>(&commit));
}

void Publisher::apply_step(StepCommit& commit, Effects& effects) {
  Execution& execution = *commit.execution;
  Execution& root = *execution.root;
  // At once: whatever is published behind it was durable after that end.
  if (is_last_order(commit)) execution.domain.ending = EndingOrder::kDurable;
  if (is_order(commit) && root.domain.works != nullptr)
    return root.domain.works->put_off.push_back(commit);
  PV2_ASSERT(execution.phase == Phase::kInFlight, "whose record is published is in flight");
  PV2_ASSERT(execution.wait.timer_index == Wait::kNoTimer, "who is in flight waits for no time");
  PV2_ASSERT(commit.children.empty() || execution.unfinished_children == 0,
             "who spawns has joined those that it spawned before");
  if (is_last_order(commit) && waits_for_work(commit)) {
    PV2_ASSERT(commit.inbox_use != nullptr, "an order is answered");
    if (auto answer = std::exchange(commit.inbox_use->answer, {})) {
      effects.answers.push_back([tell = std::move(answer)] { tell(Status()); });
    }
    return;
  }
  apply_transition(execution, commit);
  const bool only_locks = commit.is_grant || commit.gives_back;
  if (!only_locks && (execution.inbox || commit.inbox_use)) inbox_used(execution, commit);
  if (!commit.next.retried.ok()) tell_of_retry(core_, execution, commit, effects);
  if (commit.inbox_use && commit.inbox_use->answer) {
    effects.answers.push_back([tell = std::move(commit.inbox_use->answer)] { tell(Status()); });
  }
  for (Execution* child : commit.children) {
    Looks::one();
    PV2_ASSERT(child->parent == &execution && child->phase == Phase::kInserting,
               "a record makes children of its own procedure durable");
    child->record.state = ProcedureState::kRunnable;
    child->phase.move_to(Phase::kIdle);
    child->record.updated = child->submitted;
    ++core_.counts_of(*child->type).submitted;
    core_.state.live.emplace(child->id, child);
    adopt(*child);
    core_.tell(ProcedureNews::Kind::kAdded, *child);
  }
  if (!commit.children.empty()) {
    execution.unfinished_children = static_cast<std::uint32_t>(commit.children.size());
    core_.reserve_ids(effects);
  }
  for (InsertCommit* submitted : commit.roots) apply_insert(*submitted, effects);
  PV2_ASSERT(core_.state.spawning >= commit.reserved, "children were counted when they were made");
  core_.state.spawning -= std::exchange(commit.reserved, 0);
  const bool may_drop =
      execution.links.unexamined != nullptr && !commit.was_undo && !commit.is_grant;
  // All of them leave.
  const bool all_leave =
      commit.next.reported || (execution.is_root() && is_finished(execution.record.state));
  if (may_drop && !all_leave) drop_ended_children(core_, execution, effects);
  const Execution* const failed = failing_domain(execution);
  const bool ended =
      is_finished(execution.record.state) && execution.is_root() && failed == nullptr;
  if (ended || (execution.is_root() && execution.record.state == ProcedureState::kRolledBack)) {
    finish_root(core_, root, effects);
  } else if (commit.next.reported) {
    domain_ended(core_, execution);
    left_flight(core_, execution, effects);
  } else if (failed != nullptr && stops_here(*failed, execution, commit)) {
    execution.phase.move_to(Phase::kIdle);
    execution.turn.step = 0;
    const bool ended_too_late = execution.record.state == ProcedureState::kSuccess;
    if (ended_too_late && !execution.is_root()) child_ended_too_late(execution);
    if (execution.record.state == ProcedureState::kFailed && !commit.was_undo)
      failed_too_late(core_, execution);
    if (commit.next.order == OrderEffect::kForward) repaired_too_late(core_, execution);
    core_.abandon_waits(execution);
    if (!commit.next.holds_locks) core_.settle(execution, Disposition::kParkUnlock);
    left_flight(core_, execution, effects);
  } else if (commit.next.order != OrderEffect::kNone) {
    order_published(core_, execution, commit, effects);
  } else if (commit.was_undo && !commit.is_grant) {
    execution.phase.move_to(Phase::kIdle);
    undo_published(core_, execution, commit, effects);
    left_flight(core_, execution, effects);
  } else {
    go_on(execution, commit, effects);
    if (execution.work) {
      work_looked_after(core_, execution, commit.next.holds_locks ? Kept::kMaybe : Kept::kNo,
                        effects);
    }
    left_flight(core_, execution, effects);
  }
  core_.state.spare_steps.give_back(std::unique_ptr<StepCommit>(&commit));
}

// It waits on as it did, or does what has become possible meanwhile.
void Publisher::gave_back(Execution& execution, Effects& effects) {
  PV2_ASSERT(execution.turn.step == 0 || is_parked_in_undo(execution),
             "an undo keeps its locks until it is over, or parked");
  const bool arrived =
      execution.wait.wake_pending || (execution.inbox && execution.inbox->has_wanted());
  execution.phase.move_to(execution.record.parked ? Phase::kIdle : Phase::kWaiting);
  if (arrived && !execution.record.parked) {
    execution.wait.wake_pending = false;
    return core_.queue(execution, Disposition::kBackUnlock);
  }
  core_.settle(execution, Disposition::kParkUnlock);
  if (execution.record.parked) return;
  if (execution.record.state == ProcedureState::kWaiting && execution.unfinished_children == 0) {
    core_.flush();  // its locks are back before it is queued
    return children_finished(core_, execution, effects);
  }
  if (execution.record.deadline) core_.arm_timer(execution, effects);
}

// What follows a published step in a tree that goes forward (or the grant for a turn of rollback).
void Publisher::go_on(Execution& execution, StepCommit& commit, Effects& effects) {
  const Transition& next = commit.next;
  const bool unlock = !next.holds_locks;
  if (commit.is_grant) return core_.queue(execution, Disposition::kFront);
  if (commit.gives_back) return gave_back(execution, effects);
  if (next.parked) {
    if (unlock) core_.settle(execution, Disposition::kParkUnlock);
    return park_member(core_, execution, effects);
  }
  switch (next.state) {
    case ProcedureState::kFailed:
      PV2_ASSERT(execution.record.failure != nullptr, "a record of a failure says why");
      execution.phase.move_to(Phase::kIdle);
      fail_tree(core_, execution.own_head());
      return;
    case ProcedureState::kSuccess:
      execution.phase.move_to(Phase::kIdle);
      core_.settle(execution, Disposition::kParkUnlock);
      core_.tell(ProcedureNews::Kind::kFinished, execution);
      child_finished(core_, execution, effects);
      return;
    case ProcedureState::kWaiting:
      PV2_ASSERT(execution.unfinished_children != 0, "who waits for children has some");
      execution.phase.move_to(Phase::kWaiting);
      if (unlock) core_.settle(execution, Disposition::kParkUnlock);
      for (Execution* child : commit.children) core_.queue(*child, Disposition::kFront);
      return;
    case ProcedureState::kRunnable:
    case ProcedureState::kWaitingTimeout:
      break;
    case ProcedureState::kInitializing:
    case ProcedureState::kRolledBack:
      PV2_ASSERT(false, "no step of a live tree ends like this");
  }
  if (next.ends_waits && next.state == ProcedureState::kRunnable) {
    const auto place = next.requeue ? Disposition::kBack : Disposition::kFront;
    return core_.queue(execution, unlock ? Disposition::kBackUnlock : place);
  }
  // It arrived while the record was on the way.
  if (execution.wait.wake_pending || (execution.inbox && execution.inbox->has_wanted())) {
    execution.wait.wake_pending = false;
    return core_.queue(execution, unlock ? Disposition::kBackUnlock : Disposition::kFront);
  }
  execution.phase.move_to(Phase::kWaiting);
  if (unlock) core_.settle(execution, Disposition::kParkUnlock);
  if (execution.record.deadline) return core_.arm_timer(execution, effects);
  Execution* const producer = commit.producer ? core_.find(commit.producer) : nullptr;
  if (producer != nullptr && producer != &execution) {
    core_.report_wait(execution, *producer, WaitLink::Why::kReported);
  }
}

void Publisher::apply_garbage(GarbageCommit& commit, Effects& effects) {
  std::unique_ptr<GarbageCommit> owned(&commit);
  const bool more = commit.next < commit.left.size() || !commit.rows.empty();
  if (more || !commit.engine_rows.empty()) {
    effects.garbage.push_back(std::move(owned));
    return;
  }
  if (!commit.root) return;
  const auto at = core_.state.garbage.find(commit.root);
  PV2_ASSERT(at != core_.state.garbage.end(), "garbage belongs to a root that is remembered");
  PV2_ASSERT(at->second.chains > 0, "garbage that is deleted was counted");
  PendingGarbage& pending = at->second;
  pending.under_way = !pending.next.empty();
  if (pending.under_way) {
    effects.garbage.push_back(std::move(pending.next.front()));
    pending.next.erase(pending.next.begin());
  }
  if (--pending.chains != 0) return;
  for (auto& acknowledge : at->second.acknowledgements) {
    effects.answers.push_back([acknowledge = std::move(acknowledge)] { acknowledge(Status()); });
  }
  core_.state.garbage.erase(at);
}

void Publisher::apply_acknowledge(AcknowledgeCommit& commit, Effects& effects) {
  core_.state.acknowledging.erase(commit.id);
  core_.state.completed.erase(commit.id);
  core_.state.retention.gone(commit.id, commit.age, commit.bytes);
  if (commit.nonce) {
    // Its row may be gone for a while already, and a new procedure have been given the nonce since.
    const auto at = core_.state.nonces.find(commit.nonce);
    if (at != core_.state.nonces.end() && at->second.id == commit.id) {
      core_.state.nonces.erase(at);
    } else if (core_.state.nonces_on_disk_only > 0) {
      --core_.state.nonces_on_disk_only;
    }
  }
  for (Acknowledger& who : commit.answers) answer_acknowledger(std::move(who), Status(), effects);
  core_.state.spare_acknowledges.give_back(std::unique_ptr<AcknowledgeCommit>(&commit));
}

void Publisher::insert_failed(InsertCommit& commit, const Status& unknown, Effects& effects) {
  const std::unique_ptr<InsertCommit> insert(&commit);
  insert->execution->phase.move_to(Phase::kIdle);
  insert->execution->inserting = nullptr;
  if (insert->execution->nonce) core_.state.nonces.erase(insert->execution->nonce);
  for (InsertCommit::Submitter& submitter : insert->submitters) {
    auto call = [answer = std::move(submitter.answer), unknown] { answer(unknown); };
    submitter.on_pool ? effects.pool_tasks.emplace_back(std::move(call))
                      : effects.answers.emplace_back(std::move(call));
  }
}

// The first failure ends the run: nobody is told that something is durable from here on.
void Publisher::store_failed(EngineRequest& request, Effects& effects) {
  // By stop(): no failure. A store that anybody else has closed is one.
  const bool closed = core_.state.stopping && request.status.code() == StatusCode::kStopping;
  if (core_.state.store_failure.ok() && !closed) {
    core_.state.store_failure = request.status.with_context(
        "the store failed and nothing more is written; restart to go on from what is on disk");
    core_.recall_runs();
    core_.scheduler.stop();
    effects.log(LogLevel::kError, core_.state.store_failure.to_string());
    if (core_.options.on_store_failure) {
      effects.pool_tasks.push_back([callback = core_.options.on_store_failure,
                                    status = core_.state.store_failure] { callback(status); });
    }
    for (const auto& [id, execution] : core_.state.live) {
      answer_waiters(core_, *execution, core_.state.store_failure, effects);
    }
  }
  const Status unknown =
      closed ? request.status
             : Status(StatusCode::kUnknownOutcome, "whether it is durable is not known: " +
                                                       std::string(request.status.message()));
  switch (request.kind) {
    case EngineRequest::Kind::kInsert:
      return insert_failed(static_cast<InsertCommit&>(request), unknown, effects);
    case EngineRequest::Kind::kStep: {
      auto& step = static_cast<StepCommit&>(request);
      step.execution->phase.move_to(Phase::kIdle);
      if (step.inbox_use && step.inbox_use->answer) {
        effects.answers.push_back(
            [tell = std::move(step.inbox_use->answer), unknown] { tell(unknown); });
      }
      for (Execution* child : step.children) {  // kept so that stop() finds and frees them
        child->phase.move_to(Phase::kIdle);
        core_.state.live.emplace(child->id, child);
      }
      core_.state.spawning -= std::exchange(step.reserved, 0);
      for (InsertCommit* submitted : step.roots) insert_failed(*submitted, unknown, effects);
      core_.state.spare_steps.give_back(std::unique_ptr<StepCommit>(&step));
      return;
    }
    case EngineRequest::Kind::kGarbage: {
      const std::unique_ptr<GarbageCommit> garbage(&static_cast<GarbageCommit&>(request));
      const auto at = core_.state.garbage.find(garbage->root);
      if (at == core_.state.garbage.end()) return;
      // Nothing of what they asked for was written: that is known.
      const Status failed = closed ? request.status : core_.state.store_failure;
      for (auto& acknowledge : at->second.acknowledgements) {
        effects.answers.push_back(
            [acknowledge = std::move(acknowledge), failed] { acknowledge(failed); });
      }
      at->second.acknowledgements.clear();
      return;
    }
    case EngineRequest::Kind::kWatermark: {
      const std::unique_ptr<WatermarkCommit> watermark(&static_cast<WatermarkCommit&>(request));
      if (watermark->answer) {
        effects.answers.push_back(
            [answer = std::move(watermark->answer), unknown] { answer(unknown); });
      }
      return;
    }
    case EngineRequest::Kind::kLimit: {
      const std::unique_ptr<LimitCommit> limit(&static_cast<LimitCommit&>(request));
      effects.answers.push_back([answer = std::move(limit->answer), unknown] { answer(unknown); });
      return;
    }
    case EngineRequest::Kind::kMessage: {
      const std::unique_ptr<MessageCommit> message(&static_cast<MessageCommit&>(request));
      core_.state.aborting.erase(message->to);
      for (auto& answer : message->answers) {
        effects.answers.push_back([answer = std::move(answer), unknown] { answer(unknown); });
      }
      return;
    }
    case EngineRequest::Kind::kAcknowledge: {
      const std::unique_ptr<AcknowledgeCommit> acknowledge(
          &static_cast<AcknowledgeCommit&>(request));
      core_.state.acknowledging.erase(acknowledge->id);
      for (Acknowledger& who : acknowledge->answers) {
        answer_acknowledger(std::move(who), unknown, effects);
      }
      return;
    }
  }
}

}  // namespace pv2
