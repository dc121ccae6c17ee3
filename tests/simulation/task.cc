// SPDX-License-Identifier: Apache-2.0
//
// Read execute_from_state(): it reports the start, does what the spec says, reports the end,
// answers.

#include "simulation/task.h"

namespace pv2::testing {
namespace {

using Kind = TaskSpec::Kind;
using Does = StepSpec::Does;

Status not_now() { return {StatusCode::kUnavailable, "not now"}; }
Status never() { return {StatusCode::kFailedPrecondition, "never"}; }

std::string row_of(const StepContext& ctx) {
  return "r/" + std::to_string(ctx.id().value) + "/" + std::to_string(visit_of(ctx));
}

// Adds one in a row that belongs to this visit alone: the count must be exactly one.
void count_in_row(TaskWorld& world, StepContext& ctx) {
  const auto before = ctx.get_row(row_of(ctx));
  world.expect(before.ok(), ctx, "its row cannot be read");
  const std::uint64_t count = before.ok() && *before ? std::stoull(**before) : 0;
  world.expect(count == 0, ctx, "its row was written by a run that left no record");
  ctx.put_row(row_of(ctx), std::to_string(count + 1));
}

}  // namespace

template <Kind kKind>
Outcome Task<kKind>::execute_from_state(TaskStep step, StepContext& ctx) {
  if (is_beyond(ctx)) return done(spec().name() + " done");
  TaskMember& member = world_.step_begins(spec_, ctx, chain_);
  const StepSpec& does = spec().steps.at(ctx.step() - 1);
  check_children(ctx);
  switch (does.does) {
    case Does::kPlain:
      break;
    case Does::kSpawn:
      spawn_children(ctx);
      break;
    case Does::kRetry:
      world_.expect(ctx.unsure() ==
                        (does.unsure && (ctx.attempt() > 1 || member.anew.contains(visit_of(ctx)))),
                    ctx, "it is not told whether an attempt may have had its effect");
      if (ctx.attempt() <= does.times && !world_.is_mended(spec_)) return fail_for_now(does, ctx);
      break;
    case Does::kAwait:
      if (ask(ctx) == nullptr) return wait();
      break;
    case Does::kTimedWait:
      if (!ctx.timed_out()) {
        static_cast<void>(world_.was_patient(member, ctx, does.patience));
        return wait_for(does.patience);
      }
      world_.expect(world_.was_patient(member, ctx, does.patience), ctx, "it is woken early");
      break;
    case Does::kAwaitOrTime:
      if (ask(ctx) == nullptr && !ctx.timed_out()) return wait_for(does.patience);
      break;
    case Does::kOffload: {
      const auto* const done = ctx.offload([key = ctx.effect_key()] { return key; });
      if (done == nullptr) return wait();
      world_.expect(done->ok() && **done == ctx.effect_key(), ctx, "it is given another's answer");
      break;
    }
    case Does::kOffloadOrTime: {
      if (ctx.timed_out()) {
        if (does.retries && ctx.attempt() == 1) return spoil(ctx, retry(not_now()));
        break;
      }
      const auto* const done = ctx.offload(world_.work(spec_, ctx, does.beside_earlier),
                                           {.beside_earlier = does.beside_earlier});
      if (done == nullptr) return wait_for(does.patience);
      world_.expect(done->ok() && **done == ctx.effect_key(), ctx, "it is given another's answer");
      break;
    }
    case Does::kSignal:
      if (!world_.signals().take(ctx, does.times, member.visit)) return wait();
      if (does.retries && ctx.attempt() == 1) return spoil(ctx, retry(not_now()));
      break;
    case Does::kSignalOrTime:
      if (!world_.signals().take(ctx, 1, member.visit) && !ctx.timed_out()) {
        return wait_for(does.patience);
      }
      break;
    case Does::kEvent:
      if (!world_.events().await(ctx, does.times % StoryEvents::kCount)) return wait();
      break;
    case Does::kEventOrTime:
      if (!world_.events().await(ctx, does.times % StoryEvents::kCount) && !ctx.timed_out()) {
        return wait_for(does.patience);
      }
      break;
    case Does::kAgain:
      if (rounds_ < does.times) {
        ++rounds_;
        world_.step_ends(member, ctx, chain_);
        return again();
      }
      rounds_ = 0;
      break;
    case Does::kFail:
      if (world_.is_mended(spec_)) break;
      return fail_for_good(ctx);
    case Does::kThrow:
      if (world_.is_mended(spec_)) break;
      static_cast<void>(fail_for_good(ctx));
      throw std::runtime_error("thrown by a task");
  }
  return go_on(step, member, ctx);
}

// The table of steps is longer than most tasks; only a task whose last step was skipped gets beyond
// its own steps.
template <Kind kKind>
bool Task<kKind>::is_beyond(const StepContext& ctx) {
  const bool beyond = ctx.step() > spec().steps.size();
  world_.expect(!beyond || world_.was_skipped(spec_), ctx, "it runs though it is not in the spec");
  return beyond;
}

template <Kind kKind>
Outcome Task<kKind>::go_on(TaskStep step, TaskMember& member, StepContext& ctx) {
  const StepSpec& does = spec().steps.at(ctx.step() - 1);
  if (does.writes_row) count_in_row(world_, ctx);
  chain_ = chain_ * 31 + ctx.step() + 1000 * visit_of(ctx) + spec_;
  world_.step_ends(member, ctx, chain_);
  if (ctx.step() < spec().steps.size()) return next(static_cast<TaskStep>(ctx.step() + 1));
  member.finished = true;
  static_cast<void>(step);
  return done(spec().name() + " done");
}

// Leaves marks that must not be seen again.
template <Kind kKind>
Outcome Task<kKind>::spoil(StepContext& ctx, Flow flow) {
  chain_ = 0xBAD;
  rounds_ = 0xBAD;
  world_.events().forget(ctx.id().value);
  ctx.put_row("bad/" + std::to_string(ctx.id().value), "written by an attempt that failed");
  return flow;
}

template <Kind kKind>
Outcome Task<kKind>::fail_for_now(const StepSpec& does, StepContext& ctx) {
  if (!does.unsure || ctx.attempt() > 1) return spoil(ctx, retry(not_now()));
  return spoil(ctx, failed(Status(StatusCode::kUnknownOutcome, "no answer came")));
}

template <Kind kKind>
Outcome Task<kKind>::fail_for_good(StepContext& ctx) {
  world_.fails(spec_);
  return spoil(ctx, ctx.id().value % 2 == 0 ? fail(never()) : failed(never()));
}

template <Kind kKind>
const std::string* Task<kKind>::ask(StepContext& ctx) {
  const std::string* const answer = ctx.await<std::string>([&](Completion<std::string> completion) {
    world_.ask(std::move(completion), ctx.effect_key());
  });
  if (answer != nullptr) {
    world_.expect(*answer == ctx.effect_key(), ctx, "it is given the answer of " + *answer);
  }
  return answer;
}

template <Kind kKind>
void Task<kKind>::spawn_children(StepContext& ctx) {
  for (const std::size_t child : spec().children) {
    const TaskSpec& of_child = world_.plan().tasks[child];
    const SpawnOptions options{
        .on_failure = of_child.reports ? OnFailure::kReport : OnFailure::kFailTree,
        .undo_order = of_child.beside ? UndoOrder::kConcurrent : UndoOrder::kReverse};
    with_task(world_, child, [&](auto task) { ctx.spawn(std::move(task), options); });
  }
}

template <Kind kKind>
void Task<kKind>::check_children(StepContext& ctx) {
  if (ctx.step() < 2 || spec().steps[ctx.step() - 2].does != Does::kSpawn) return;
  const auto children = ctx.children();
  world_.expect(children.size() == spec().children.size(), ctx, "it does not see all its children");
  for (std::size_t i = 0; i < children.size() && i < spec().children.size(); ++i) {
    world_.child_seen(spec().children[i], ctx, children[i]);
  }
}

template <Kind kKind>
Outcome Task<kKind>::rollback_state(TaskStep /*step*/, StepContext& ctx) {
  if (is_beyond(ctx)) return undone();
  TaskMember& member = world_.undo_begins(spec_, ctx);
  if (ctx.attempt() <= spec().undo_retries && !world_.is_mended(spec_)) {
    static_cast<void>(spoil(ctx, again()));
    if (spec().undo_throws) throw std::runtime_error("thrown by an undo");
    return retry(not_now());
  }
  if (spec().undo_wants_event) {
    if (!world_.events().await(ctx, spec_ % StoryEvents::kCount)) return wait();
  } else if (spec().undo_wants_signal) {
    if (!world_.signals().take(ctx, 1, member.visit)) return wait();
  } else if (spec().undo_waits && ask(ctx) == nullptr) {
    return wait();
  }
  if (spec().undo_offloads) static_cast<void>(ctx.offload(world_.work(spec_, ctx)));
  world_.undo_ends(member, ctx);
  return undone();
}

template class Task<Kind::kUndoable>;
template class Task<Kind::kFinal>;
template class Task<Kind::kCommitting>;
template class Task<Kind::kPlain>;
template class Task<Kind::kLate>;

void add_task_types(ProcedureRegistry& types, TaskWorld& world) {
  types.add<Task<Kind::kUndoable>>(world)
      .add<Task<Kind::kFinal>>(world)
      .add<Task<Kind::kCommitting>>(world)
      .add<Task<Kind::kPlain>>(world)
      .add<Task<Kind::kLate>>(world);
}

}  // namespace pv2::testing
