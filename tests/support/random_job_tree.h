// SPDX-License-Identifier: Apache-2.0
//
// A random tree of scripted jobs: which job spawns which and how, in which step a job fails, waits
// or tries again, and whose undo takes several runs.

#pragma once

#include <pv2/base/random.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/engine_world.h"

namespace pv2::testing {

/// One job of a random tree. Its name is its place in the list.
struct Member {
  std::size_t parent = 0;
  std::uint32_t spawned_by = 0;  // step of the parent
  std::uint32_t steps = 1;
  bool beside = false;
  bool reports = false;
  bool locks = false;
  std::uint32_t fails_at = 0;  // the step that fails; 0: none, as in the next two
  std::uint32_t asks_at = 0;   // the step that awaits an answer, which never comes
  std::uint32_t tries_at = 0;  // the step that always retries: it backs off when another job fails
  enum class Undo { kPlain, kRetries, kAsks, kWaits, kParks } undo = Undo::kPlain;
  std::uint32_t undo_of = 1;  // the step whose undo behaves as `undo` says; the others are kPlain
};
using Tree = std::vector<Member>;

inline Tree random_tree(Random& random) {
  Tree tree(2 + random.below(6));
  for (std::size_t i = 0; i < tree.size(); ++i) {
    Member& member = tree[i];
    member.steps = static_cast<std::uint32_t>(1 + random.below(3));
    if (i != 0) {
      member.parent = random.below(i);
      member.spawned_by = static_cast<std::uint32_t>(1 + random.below(tree[member.parent].steps));
      member.beside = random.below(3) == 0;
      member.reports = random.below(6) == 0;
    }
    member.locks = random.below(3) == 0;
    const auto a_step = [&] { return static_cast<std::uint32_t>(1 + random.below(member.steps)); };
    switch (random.below(6)) {
      case 0:
      case 1:
        member.fails_at = i == 0 ? 0 : a_step();
        break;
      case 2:
        member.asks_at = a_step();
        break;
      case 3:
        member.tries_at = a_step();
        break;
      default:
        break;
    }
    if (random.below(2) == 0) member.undo = static_cast<Member::Undo>(random.below(5));
    member.undo_of = a_step();
  }
  return tree;
}

inline std::string name_of(std::size_t member) { return "m" + std::to_string(member); }

inline void write_scripts(const Tree& tree, World& world) {
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const Member& member = tree[i];
    JobScript& script = world.scripts[name_of(i)];
    script.steps = member.steps;
    if (member.locks) {
      script.locks = LockSet().table("shop", name_of(i), LockMode::kExclusive);
    }
    script.run = [&tree, &member, i, never = Event("an answer that never comes")](JobRun& run) {
      run.world.journal.note("run " + run.label());
      if (run.step == member.fails_at) return std::optional(Say::fail("no"));
      if (run.step == member.tries_at) return std::optional(Say::retry("busy"));
      if (run.step == member.asks_at) {
        (void)run.ctx.await(never);
        return std::optional(Say::wait());
      }
      for (std::size_t child = i + 1; child < tree.size(); ++child) {
        if (tree[child].parent != i || tree[child].spawned_by != run.step) continue;
        run.ctx.spawn(
            Job(run.world, name_of(child)),
            {.on_failure = tree[child].reports ? OnFailure::kReport : OnFailure::kFailTree,
             .undo_order = tree[child].beside ? UndoOrder::kConcurrent : UndoOrder::kReverse});
      }
      return std::optional<Outcome>();
    };
    script.undo = [&member](JobRun& run) {
      const std::string call = "call " + run.label();
      const bool first = run.world.journal.count(call) == 0;
      run.world.journal.note(call);
      if (run.step != member.undo_of) return std::optional<Outcome>();
      switch (member.undo) {
        case Member::Undo::kRetries:
          if (run.ctx.attempt() == 1) return std::optional(Say::retry("busy"));
          break;
        case Member::Undo::kAsks:
          if (!run.ctx.await<std::string>([&run](auto asked) { run.world.ask(asked); })) {
            return std::optional(Say::wait());
          }
          break;
        case Member::Undo::kWaits:
          if (!run.ctx.timed_out() && first)
            return std::optional(Say::wait_for(std::chrono::minutes(1)));
          break;
        case Member::Undo::kParks:
          if (first) return std::optional(Say::fail("stuck"));
          break;
        case Member::Undo::kPlain:
          break;
      }
      return std::optional<Outcome>();
    };
  }
}

// For the message of a failed expectation.
inline std::string words(const Tree& tree) {
  std::string text;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const Member& member = tree[i];
    text += "\n" + name_of(i) + " of " + name_of(member.parent) + "." +
            std::to_string(member.spawned_by) + ", " + std::to_string(member.steps) + " steps" +
            (member.beside ? ", beside" : "") + (member.reports ? ", reports" : "") +
            (member.locks ? ", locks" : "") + ", fails at " + std::to_string(member.fails_at) +
            ", asks at " + std::to_string(member.asks_at) + ", tries at " +
            std::to_string(member.tries_at) + ", undo " +
            std::to_string(static_cast<int>(member.undo)) + " of " + std::to_string(member.undo_of);
  }
  return text;
}

}  // namespace pv2::testing
