// SPDX-License-Identifier: Apache-2.0
//
// The rules. A visit is one turn of a step; its record moves the procedure to the next visit, and a
// visit that is over is never seen again.

#include "simulation/task_world.h"

#include <algorithm>

namespace pv2::testing {
void TaskWorld::expect(bool holds, const StepContext& ctx, std::string_view words) {
  if (!holds) found_.add(place(ctx) + ": " + std::string(words));
}

TaskMember& TaskWorld::member(std::size_t spec, StepContext& ctx) {
  const auto [at, is_new] = members_.try_emplace(ctx.id().value);
  TaskMember& member = at->second;
  if (is_new) {
    member.spec = spec;
    const auto info = executor_->describe(ctx.id());
    if (info.ok()) member.parent = info->parent.value;
    const auto [first, only] = id_of_spec_.try_emplace(spec, ctx.id().value);
    expect(only, ctx,
           "task " + std::to_string(spec) + " runs a second time; the first was procedure " +
               std::to_string(first->second));
  }
  expect(member.spec == spec, ctx, "its arguments have changed");
  return member;
}

void TaskWorld::check_locks(const TaskSpec& spec, const StepContext& ctx) {
  const auto info = executor_->describe(ctx.id());
  expect(info.ok(), ctx, "it runs and is not listed");
  if (!info.ok()) return;
  expect(spec.locks.empty() || info->holds_locks, ctx, "it runs without a durable grant");
  expect(!info->parked && !info->quarantined, ctx, "it runs though it is parked");
}

// A crash may repeat an attempt, but never skips one or goes back.
void TaskWorld::check_attempt(TaskMember& member, const StepContext& ctx) {
  std::uint32_t& highest = member.attempts[ctx.effect_key()];
  expect(
      ctx.attempt() == highest || ctx.attempt() == highest + 1, ctx,
      "attempt " + std::to_string(ctx.attempt()) + " follows attempt " + std::to_string(highest));
  highest = std::max(highest, ctx.attempt());
}

TaskMember& TaskWorld::step_begins(std::size_t spec, StepContext& ctx, std::uint64_t chain) {
  TaskMember& self = member(spec, ctx);
  const std::uint64_t visit = visit_of(ctx);
  check_locks(plan_.tasks[spec], ctx);
  check_attempt(self, ctx);
  expect(!self.undoing, ctx, "it goes forward after something of it was undone");
  expect(!signals_.has_ended(ctx.id().value), ctx, "it runs, though it was said to have ended");
  expect(visit >= self.visit, ctx,
         "visit " + std::to_string(visit) + " runs after visit " + std::to_string(self.visit));
  const auto ended = self.advanced.find(visit);
  expect(ended == self.advanced.end() || ended->second != life_, ctx,
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
}

bool TaskWorld::undoable(const TaskSpec& spec, std::uint32_t step) const {
  return spec.kind != TaskSpec::Kind::kCommitting || step == 1;
}

TaskMember& TaskWorld::undo_begins(std::size_t spec, StepContext& ctx) {
  TaskMember& self = member(spec, ctx);
  check_locks(plan_.tasks[spec], ctx);
  check_attempt(self, ctx);
  const auto undone = self.undone_in.find(ctx.step());
  expect(undone == self.undone_in.end() || undone->second != life_, ctx,
         "it is undone again though no crash lost its record");
  expect(undoable(plan_.tasks[spec], ctx.step()), ctx, "it is undone though it cannot be");
  for (const auto& [step, there] : self.effects) {
    expect(!there || step <= ctx.step() || !undoable(plan_.tasks[spec], step), ctx,
           "it is undone before step " + std::to_string(step));
  }
  self.undoing = true;
  for (const auto& [id, other] : members_) {
    const TaskSpec& child = plan_.tasks[other.spec];
    if (other.parent != ctx.id().value) continue;
    if (child.kind == TaskSpec::Kind::kFinal && other.finished) continue;
    if (plan_.tasks[spec].steps[ctx.step() - 1].does != StepSpec::Does::kSpawn) continue;
    for (const auto& [step, there] : other.effects) {
      expect(!there || !undoable(child, step), ctx,
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
}

Duration TaskWorld::wall_offset() const {
  return clock_->wall_now().time_since_epoch() - clock_->steady_now().time_since_epoch();
}

void TaskWorld::look_at_clock() {
  if (!offset_) offset_ = wall_offset();
  wall_jumped_ = wall_jumped_ || wall_offset() != *offset_;
}

bool TaskWorld::was_patient(TaskMember& member, StepContext& ctx, Duration patience) {
  look_at_clock();
  const auto begun = member.wait_begun.try_emplace(visit_of(ctx), ctx.now()).first;
  // A jump of the wall clock may end a wait early, but only over a restart.
  return wall_jumped_ || ctx.now() - begun->second >= patience;
}

ProcedureId TaskWorld::id_of(std::size_t spec) const {
  const auto known = id_of_spec_.find(spec);
  return known == id_of_spec_.end() ? ProcedureId{} : ProcedureId{known->second};
}

void TaskWorld::answer(std::size_t which) {
  if (which >= asked_.size()) {
    which -= asked_.size();
    if (which < signals_.due()) signals_.send_due(which);
    return;
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
