// SPDX-License-Identifier: Apache-2.0
//
// The rules. A visit is one turn of a step; its record moves the procedure to the next visit, and a
// visit that has ended is never seen again.

#include "simulation/task_world.h"

#include <pv2/engine/executor_options.h>

#include <algorithm>
#include <stdexcept>

namespace pv2::testing {
void TaskWorld::expect(bool holds, const StepContext& ctx, std::string_view words) {
  if (!holds) found_.add(place(ctx) + ": " + std::string(words));
}

TaskMember& TaskWorld::member(std::size_t spec, StepContext& ctx) {
  const auto [at, is_new] = members_.try_emplace(ctx.id().value);
  TaskMember& member = at->second;
  if (is_new) {
    member.spec = spec;
    const auto info = executor_->inspect().describe(ctx.id());
    if (info.ok()) member.parent = info->parent.value;
    const auto [first, only] = id_of_spec_.try_emplace(spec, ctx.id().value);
    expect(only, ctx,
           "task " + std::to_string(spec) + " runs a second time; the first was procedure " +
               std::to_string(first->second));
  }
  expect(member.spec == spec, ctx, "its arguments have changed");
  return member;
}

void TaskWorld::check_may_run(const TaskSpec& spec, const StepContext& ctx, Runs runs) {
  expect(!stopping_, ctx, "it begins after the executor was told to stop");
  const auto info = executor_->inspect().describe(ctx.id());
  expect(info.ok(), ctx, "it runs and is not listed");
  if (!info.ok()) return;
  expect(spec.locks.empty() || info->holds_locks, ctx, "it runs without a durable grant");
  const bool beside = runs == Runs::kUndo && plan_.has_concurrent_undos(spec.root);
  expect(!info->parked || beside, ctx, "it runs though it is parked");
  expect(!info->quarantined, ctx, "it runs though it is quarantined");
}

// The pool has no thread of its own, so work ends in the life in which it began.
std::function<std::string(std::stop_token)> TaskWorld::work(std::size_t spec,
                                                            const StepContext& ctx,
                                                            bool beside_earlier) {
  const Work work{ctx.id().value, spec, visit_of(ctx) == UINT64_MAX, ctx.step()};
  std::string name = ctx.effect_key();
  // A run that an operator hastened has the same attempt number as the one before it.
  if (beside_earlier) name += " #" + std::to_string(++beside_earlier_);
  return [this, work, key = ctx.effect_key(), name](const std::stop_token& stop) {
    if (stop.stop_requested()) return key;  // the executor stops: nothing else runs meanwhile
    if (!works_.emplace(name, work).second) {
      found_.add("two pieces of work run at once for " + name);
      return key;
    }
    run_work(name);
    return key;
  };
}

void TaskWorld::run_work(const std::string& key) {
  constexpr int kTurns = 12;
  for (int i = 0; i < kTurns; ++i) {
    if (meanwhile) meanwhile();
  }
  works_.erase(key);
}

// No undo runs while work that its procedure has offloaded runs, unless the work belongs to that
// same undo. No procedure of another tree runs with a lock that conflicts with one of the owner of
// running work.
void TaskWorld::check_beside_work(std::size_t spec, const StepContext& ctx, Runs runs) {
  const TaskSpec& self = plan_.tasks[spec];
  for (const auto& [key, work] : works_) {
    const TaskSpec& owner = plan_.tasks[work.spec];
    const bool same_undo = work.undo && work.step == ctx.step();
    if (work.id == ctx.id().value) {
      expect(runs == Runs::kStep || same_undo, ctx, "it is undone while its work " + key + " runs");
    }
    if (owner.root == self.root) continue;  // what an ancestor holds covers both
    for (const LockRequest& held : owner.locks.requests()) {
      for (const LockRequest& lock : self.locks.requests()) {
        const bool both = held.mode == LockMode::kShared && lock.mode == LockMode::kShared;
        expect(held.key != lock.key || both, ctx,
               "it runs with " + to_string(lock.key) + ", which the owner of " + key + " holds");
      }
    }
  }
}

// A crash may repeat an attempt, but never skips one or goes back; an order may start attempts
// again.
void TaskWorld::check_attempt(TaskMember& member, const StepContext& ctx) {
  std::uint32_t& highest = member.attempts[ctx.effect_key()];
  const bool anew = member.fresh && ctx.attempt() == 1 && highest > 1;
  if (anew) {
    member.fresh = false;
    member.anew.insert(visit_of(ctx));
    highest = 1;
  }
  expect(
      ctx.attempt() == highest || ctx.attempt() == highest + 1, ctx,
      "attempt " + std::to_string(ctx.attempt()) + " follows attempt " + std::to_string(highest));
  if (!anew) check_back_off(member, ctx);
  highest = std::max(highest, ctx.attempt());
  member.last_run[ctx.effect_key()] = this_moment();
}

// Between two attempts lies at least the back-off after the earlier one.
void TaskWorld::check_back_off(TaskMember& member, const StepContext& ctx) {
  const std::uint32_t before = member.attempts[ctx.effect_key()];
  if (before == 0 || ctx.attempt() <= before || !member.hurried.empty()) return;
  const RetryPolicy policy;
  Duration least = policy.base;
  for (std::uint32_t i = 1; i < before && least < policy.cap; ++i) least *= 2;
  expect(has_passed(member.last_run[ctx.effect_key()], std::min(least, policy.cap)), ctx,
         "attempt " + std::to_string(ctx.attempt()) + " comes before its back-off is over");
}

void TaskWorld::object_is_made() {
  if (life_ == 0 || throws_left_ == 0 || throws_.below(20) != 0) return;  // 0: registration
  --throws_left_;
  throw std::runtime_error("not now");
}

TaskMember& TaskWorld::step_begins(std::size_t spec, StepContext& ctx, std::uint64_t chain) {
  TaskMember& self = member(spec, ctx);
  const std::uint64_t visit = visit_of(ctx);
  check_may_run(plan_.tasks[spec], ctx, Runs::kStep);
  check_beside_work(spec, ctx, Runs::kStep);
  check_attempt(self, ctx);
  check_not_over(ctx);
  expect(plan_.max_attempts == 0 || ctx.attempt() <= plan_.max_attempts, ctx,
         "it is tried more often than it may be");
  expect(!self.undoing, ctx, "it goes forward after something of it was undone");
  expect(!signals_.has_ended(ctx.id().value), ctx, "it runs, though it was said to have ended");
  expect(visit >= self.visit, ctx,
         "visit " + std::to_string(visit) + " runs after visit " + std::to_string(self.visit));
  const auto ended = self.advanced.find(visit);
  const bool may_lack_room =
      plan_.max_live != 0 && plan_.tasks[spec].steps[ctx.step() - 1].does == StepSpec::Does::kSpawn;
  expect(ended == self.advanced.end() || ended->second != life_ || may_lack_room, ctx,
         "it runs again though no crash lost its record");
  if (visit > 0) {
    expect(self.advanced.contains(visit - 1), ctx, "the visit before never came to its end");
    expect(self.chain[visit - 1] == chain, ctx, "its fields are not those of the visit before");
  } else {
    expect(chain == 0, ctx, "it begins with fields that are not its arguments");
  }
  if (const auto parent = members_.find(self.parent); parent != members_.end()) {
    expect(!parent->second.undoing, ctx, "its parent is being undone");
  }
  self.visit = visit;
  self.effects[ctx.step()] = true;
  if (meanwhile) meanwhile();
  return self;
}

void TaskWorld::step_ends(TaskMember& member, StepContext& ctx, std::uint64_t chain) {
  if (meanwhile) meanwhile();
  const std::uint64_t visit = visit_of(ctx);
  member.chain[visit] = chain;
  member.advanced[visit] = life_;
  member.ended.insert(ctx.step());
  events_.forget(ctx.id().value);
}

// A procedure that was reported as undone never runs and is never undone again, nor are its
// descendants.
void TaskWorld::check_not_over(const StepContext& ctx) {
  expect(!was_ended(ctx.id()), ctx, "it runs, though it was reported as undone, or bypassed");
}

bool TaskWorld::was_ended(ProcedureId id) const {
  for (std::uint64_t at = id.value; at != 0;) {
    if (over_.contains(at)) return true;
    const auto member = members_.find(at);
    at = member == members_.end() ? 0 : member->second.parent;
  }
  return false;
}

// The visit did not end by itself, and the fields are those of the visit before.
void TaskWorld::skip_step(ProcedureId id, std::uint32_t step) {
  const auto found = members_.find(id.value);
  if (found == members_.end()) return;
  TaskMember& member = found->second;
  const TaskSpec& spec = plan_.tasks[member.spec];
  const std::uint64_t visit = member.visit;
  member.chain[visit] = visit > 0 ? member.chain[visit - 1] : 0;
  member.advanced[visit] = 0;
  member.skipped.insert(step);
  member.finished = member.finished || step == spec.steps.size();
  signals_.was_skipped(id.value, Turn{false, visit});
  skipped_.insert(spec.root);
}

void TaskWorld::skip_undo(ProcedureId id, std::uint32_t step) {
  const auto member = members_.find(id.value);
  if (member == members_.end()) return;
  member->second.skipped_undos.insert(step);
  signals_.was_skipped(id.value, Turn{true, UINT64_MAX - step});
}

void TaskWorld::resumes(std::size_t root) {
  for (const auto& [id, member] : members_) {
    if (plan_.tasks[member.spec].root == root) events_.may_ask_anew(id);
  }
}

void TaskWorld::begins_anew(ProcedureId id) {
  const auto member = members_.find(id.value);
  if (member == members_.end()) return;
  member->second.fresh = true;
  member->second.advanced.erase(member->second.visit);  // its step failed after all
}

void TaskWorld::hurry(ProcedureId id) {
  const auto member = members_.find(id.value);
  if (member != members_.end()) member->second.hurried.insert(member->second.visit);
}

// A member beyond its point of no return stays as it is when an operator sends its tree back.
bool TaskWorld::may_be_sent_back(const TaskMember& member) const {
  const TaskSpec& spec = plan_.tasks[member.spec];
  return spec.kind == TaskSpec::Kind::kCommitting && member.ended.contains(3) &&
         aborted_.contains(spec.root);
}

TreeFate TaskWorld::fate(std::size_t root) const {
  TreeFate fate = plan_.fate(root, aborted_.contains(root));
  if (mended_.contains(root) || skipped_.contains(root)) fate.may_succeed = true;
  return fate;
}

// The abort of the tree, or a failure in a domain around the task; one in another domain is no
// cause.
void TaskWorld::check_has_cause(std::size_t spec, const StepContext& ctx) {
  const std::size_t root = plan_.tasks[spec].root;
  bool has_cause = aborted_.contains(root) || fate(root).may_wait_in_a_cycle;
  for (std::size_t head = plan_.domain_of(spec); head != SIZE_MAX;
       head = plan_.domain_around(head)) {
    has_cause = has_cause || failed_.contains(head);
  }
  expect(has_cause, ctx, "it is undone though nothing that concerns it has failed");
}

void TaskWorld::child_seen(std::size_t spec, const StepContext& ctx, const ChildOutcome& child) {
  const TaskSpec& task = plan_.tasks[spec];
  const bool succeeded = child.state == ProcedureState::kSuccess;
  const bool skips = was_skipped(spec);
  const bool fails = plan_.fails_by_itself(spec) && task.reports;
  const bool has_to_fail = fails && !skips && !is_mended(spec);
  const bool may_fail =
      fails || (task.reports && (fate(task.root).may_wait_in_a_cycle || may_be_cut(spec) ||
                                 aborted_.contains(task.root)));
  expect(succeeded || child.state == ProcedureState::kRolledBack, ctx,
         "it goes on before its child has ended");
  expect(!succeeded || !has_to_fail, ctx, "it is told that a child succeeded that had to fail");
  expect(succeeded || may_fail, ctx, "it is told that a child failed that does not");
  expect(succeeded == child.error.ok(), ctx, "it is told a contradiction about its child");
  expect(skips || child.result == (succeeded ? task.name() + " done" : ""), ctx,
         "it sees another result of its child");
  const auto told = members_[ctx.id().value].ends.try_emplace(child.id.value, child.state).first;
  expect(told->second == child.state, ctx, "it is told of another end of its child than before");
  if (succeeded) return;
  is_over(child.id);
  const auto member = members_.find(child.id.value);
  if (member == members_.end() || may_be_cut(spec) || may_be_sent_back(member->second)) return;
  for (const auto& [step, there] : member->second.effects) {
    const bool skipped = member->second.skipped_undos.contains(step);
    expect(!there || skipped || !undoable(task, step), ctx,
           "it is told that its child is undone before step " + std::to_string(step) + " is");
  }
}

bool TaskWorld::undoable(const TaskSpec& spec, std::uint32_t step) {
  switch (spec.kind) {
    case TaskSpec::Kind::kUndoable:
    case TaskSpec::Kind::kFinal:
      return true;
    case TaskSpec::Kind::kCommitting:
      return step == 1;
    case TaskSpec::Kind::kPlain:
      return false;
    case TaskSpec::Kind::kLate:
      return step == 2;
  }
  return false;
}

TaskMember& TaskWorld::undo_begins(std::size_t spec, StepContext& ctx) {
  TaskMember& self = member(spec, ctx);
  check_may_run(plan_.tasks[spec], ctx, Runs::kUndo);
  check_beside_work(spec, ctx, Runs::kUndo);
  check_attempt(self, ctx);
  check_not_over(ctx);
  check_has_cause(spec, ctx);
  const auto undone = self.undone_in.find(ctx.step());
  expect(undone == self.undone_in.end() || undone->second != life_, ctx,
         "it is undone again though no crash lost its record");
  expect(undoable(plan_.tasks[spec], ctx.step()), ctx, "it is undone though it cannot be");
  for (const auto& [step, there] : self.effects) {
    const bool skipped = self.skipped_undos.contains(step);
    expect(!there || step <= ctx.step() || skipped || !undoable(plan_.tasks[spec], step), ctx,
           "it is undone before step " + std::to_string(step));
  }
  self.undoing = true;
  for (const auto& [id, other] : members_) {
    const TaskSpec& child = plan_.tasks[other.spec];
    if (other.parent != ctx.id().value) continue;
    if (child.kind == TaskSpec::Kind::kFinal && other.finished) continue;
    if (child.reports && may_be_cut(spec)) continue;  // an order may have ended it at any point
    if (may_be_sent_back(other)) continue;
    if (plan_.tasks[spec].steps[ctx.step() - 1].does != StepSpec::Does::kSpawn) continue;
    for (const auto& [step, there] : other.effects) {
      expect(!there || !undoable(child, step) || other.skipped_undos.contains(step), ctx,
             "it is undone before step " + std::to_string(step) + " of its child " +
                 std::to_string(id));
    }
  }
  if (meanwhile) meanwhile();
  return self;
}

void TaskWorld::undo_ends(TaskMember& member, StepContext& ctx) {
  member.effects[ctx.step()] = false;
  member.undone_in[ctx.step()] = life_;
  signals_.undo_ended(ctx);
  events_.forget(ctx.id().value);
}

Duration TaskWorld::wall_offset() const {
  return clock_->wall_now().time_since_epoch() - clock_->steady_now().time_since_epoch();
}

void TaskWorld::look_at_clock() {
  if (!offset_) offset_ = wall_offset();
  wall_jumped_ = wall_jumped_ || wall_offset() != *offset_;
}

// Within a life only the monotonic clock counts. After a restart only the wall clock tells how long
// the engine was away, so a jump of it may end a wait early.
bool TaskWorld::has_passed(const Moment& since, Duration patience) {
  look_at_clock();
  if (wall_jumped_ && since.life != life_) return true;
  return clock_->steady_now() - since.at >= patience;
}

bool TaskWorld::was_patient(TaskMember& member, StepContext& ctx, Duration patience) {
  const auto begun = member.wait_begun.try_emplace(visit_of(ctx), this_moment()).first;
  return member.hurried.contains(visit_of(ctx)) || has_passed(begun->second, patience);
}

ProcedureId TaskWorld::id_of(std::size_t spec) const {
  const auto known = id_of_spec_.find(spec);
  return known == id_of_spec_.end() ? ProcedureId{} : ProcedureId{known->second};
}

void TaskWorld::answer(std::size_t which) {
  if (which >= asked_.size()) {
    which -= asked_.size();
    if (which < signals_.due()) return signals_.send_due(which);
    return events_.pulse_due(which - signals_.due());
  }
  const auto [completion, value] = asked_[which];
  asked_.erase(asked_.begin() + static_cast<std::ptrdiff_t>(which));
  completion(value);
}

void TaskWorld::take_findings(Findings& findings) {
  for (const std::string& words : found_.list()) findings.add(words);
  found_ = Findings();
}

}  // namespace pv2::testing
