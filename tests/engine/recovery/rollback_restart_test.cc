// SPDX-License-Identifier: Apache-2.0
//
// A rollback over a restart. Whatever record the machine crashes after, the next life undoes in the
// same order what the life before had left to undo, and no step that never ran. Only the undo that
// the crash interrupted may come again. Until an undo was called, a step counts as begun unless a
// durable record says that it was not.

#include <algorithm>
#include <string>
#include <vector>

#include "model/interrupted_members.h"
#include "support/random_job_tree.h"

namespace pv2::testing::rollback_restart_test {
namespace {

using namespace std::chrono_literals;

using Calls = std::vector<std::string>;

Calls entries_with(const Entries& journal, std::string_view prefix) {
  Calls calls;
  for (const std::string& entry : journal) {
    if (!entry.starts_with(prefix)) continue;
    std::string what = entry.substr(prefix.size());
    if (std::find(calls.begin(), calls.end(), what) == calls.end()) {
      calls.push_back(std::move(what));
    }
  }
  return calls;
}

bool has(const Calls& calls, const std::string& call) {
  return std::find(calls.begin(), calls.end(), call) != calls.end();
}

std::size_t place_of(const Calls& calls, const std::string& call) {
  return static_cast<std::size_t>(std::find(calls.begin(), calls.end(), call) - calls.begin());
}

// Neither member depends on the other: where their paths from the root part, both are children of
// one spawning step that are undone concurrently.
bool are_independent(const Tree& tree, std::size_t a, std::size_t b) {
  const auto path_to = [&](std::size_t member) {
    std::vector<std::size_t> path{member};
    while (path.front() != 0) path.insert(path.begin(), tree[path.front()].parent);
    return path;
  };
  const auto to_a = path_to(a);
  const auto to_b = path_to(b);
  std::size_t depth = 0;
  while (depth < to_a.size() && depth < to_b.size() && to_a[depth] == to_b[depth]) ++depth;
  if (depth == to_a.size() || depth == to_b.size()) return false;
  const Member& from_a = tree[to_a[depth]];
  const Member& from_b = tree[to_b[depth]];
  return from_a.beside && from_b.beside && from_a.spawned_by == from_b.spawned_by;
}

std::size_t member_of(const std::string& call) {
  return static_cast<std::size_t>(std::stoul(call.substr(1)));
}

/// Runs on until the root has ended or the store has failed. Retries what is parked, and aborts a
/// tree that waits for something that never comes.
void run_to_the_end(EngineWorld& engine, ProcedureId root) {
  ProcedureExecutor& executor = engine.executor();
  bool aborted = false;
  for (int i = 0; i < 60; ++i) {
    engine.run();
    if (!executor.health().ok() || executor.inspect().live_procedures() == 0) return;
    if (engine.world.answer_one("yes")) continue;
    if (executor.inspect().list({.parked = true}, {}, 1).procedures.size() == 1) {
      (void)executor.operate().retry_now(root, {.who = "anna", .why = "ticket 7"});
      continue;
    }
    if (!aborted && i > 1) {
      aborted = true;
      (void)executor.abort(root, {.reason = "nobody answers"});
      continue;
    }
    engine.clock->advance(10min);
  }
  FAIL("the tree does not end");
}

struct Life {
  Calls runs;
  Calls undos;
};

Life life_since(const EngineWorld& engine, std::size_t entries) {
  Entries journal = engine.journal();
  journal.erase(journal.begin(), journal.begin() + static_cast<std::ptrdiff_t>(entries));
  return {entries_with(journal, "run "), entries_with(journal, "call ")};
}

bool belongs_to_root(const Tree& tree, std::size_t member) {
  for (; member != 0; member = tree[member].parent) {
    if (tree[member].reports) return false;
  }
  return true;
}

std::string joined(const Calls& calls) {
  std::string text;
  for (const std::string& call : calls) text += " " + call;
  return text;
}

// Once an undo was called, the remaining steps are undone in the order that they would have had
// without the crash, also those whose undo was parked.
void compare_order(const Tree& tree, const Life& whole, const Life& before, const Life& after) {
  if (before.undos.empty()) return;
  INFO(words(tree) << "\nundone without a crash:" << joined(whole.undos));
  INFO("before the crash, undone:" << joined(before.undos));
  INFO("after the crash, undone:" << joined(after.undos));
  const Calls& plan = whole.undos;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    INFO("undo " << plan[i]);
    REQUIRE((has(after.undos, plan[i]) || has(before.undos, plan[i])));
    for (std::size_t j = i + 1; j < plan.size(); ++j) {
      if (are_independent(tree, member_of(plan[i]), member_of(plan[j]))) continue;
      INFO("that comes before undo " << plan[j]);
      if (has(before.undos, plan[j])) REQUIRE_FALSE(has(after.undos, plan[i]));
      if (!has(after.undos, plan[i]) || !has(after.undos, plan[j])) continue;
      REQUIRE(place_of(after.undos, plan[i]) < place_of(after.undos, plan[j]));
    }
  }
  for (const std::string& call : after.undos) {
    INFO("undo " << call);
    REQUIRE(has(plan, call));
  }
}

void compare(const Tree& tree, const Life& whole, const Life& before, const Life& after) {
  INFO(words(tree) << "\nundone without a crash:" << joined(whole.undos));
  INFO("before the crash, run:" << joined(before.runs) << ", undone:" << joined(before.undos));
  INFO("after the crash, undone:" << joined(after.undos));
  const Calls& plan = whole.undos;
  // An undo of the root's domain, not of a child whose failure is only reported.
  const bool had_begun =
      std::any_of(before.undos.begin(), before.undos.end(),
                  [&](const std::string& call) { return belongs_to_root(tree, member_of(call)); });
  for (const std::string& call : after.undos) {
    INFO("undo " << call);
    if (has(plan, call)) continue;
    REQUIRE_FALSE(had_begun);
    REQUIRE_FALSE(has(before.runs, call));
  }
  for (const std::string& call : plan) {
    INFO("undo " << call);
    REQUIRE((has(after.undos, call) || has(before.undos, call)));
  }
  if (!had_begun) return;  // a step whose record was lost is undone before all others
  for (std::size_t i = 0; i < plan.size(); ++i) {
    for (std::size_t j = i + 1; j < plan.size(); ++j) {
      const std::string& newer = plan[i];
      const std::string& older = plan[j];
      if (are_independent(tree, member_of(newer), member_of(older))) continue;
      // An undo in another domain was perhaps called before the tree failed around it.
      if (!belongs_to_root(tree, member_of(newer)) || !belongs_to_root(tree, member_of(older))) {
        continue;
      }
      INFO("undo " << newer << " comes before undo " << older);
      if (has(before.undos, older)) REQUIRE_FALSE(has(after.undos, newer));
      if (!has(after.undos, newer) || !has(after.undos, older)) continue;
      REQUIRE(place_of(after.undos, newer) < place_of(after.undos, older));
    }
  }
}

}  // namespace

TEST_CASE("a restart undoes in order what the life before had left to undo") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const Tree tree = random_tree(random);
    Life whole;
    std::size_t commits = 0;
    {
      EngineWorld engine;
      engine.retry.jitter_percent = 0;
      write_scripts(tree, engine.world);
      engine.open();
      const ProcedureId root = engine.submit(name_of(0));
      run_to_the_end(engine, root);
      whole = life_since(engine, 0);
      commits = engine.faults().commits();
    }
    for (std::size_t at = 3; at <= commits; ++at) {
      INFO("seed " << seed << ", the machine crashes after commit " << at << " of " << commits);
      EngineWorld engine;
      engine.retry.jitter_percent = 0;
      write_scripts(tree, engine.world);
      engine.open();
      engine.faults().crash_after(at, FaultStore::AfterCrash::kFail);
      const auto submitted = engine.executor().submit(Job(engine.world, name_of(0)));
      if (!submitted.ok()) continue;
      run_to_the_end(engine, submitted->id);
      const Life before = life_since(engine, 0);
      const std::size_t entries = engine.journal().size();
      engine.open();
      run_to_the_end(engine, submitted->id);
      const Life after = life_since(engine, entries);
      if (!after.runs.empty()) continue;  // the tree went forward first
      compare(tree, whole, before, after);
    }
  }
}

// Some members are being undone on their own, and wait, back off or are parked in an undo. Then the
// whole tree is aborted; the parked members are retried later.
TEST_CASE("a restart keeps the order of a tree that is aborted around undos that have begun") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    Tree tree = random_tree(random);
    for (std::size_t i = 1; i < tree.size(); ++i) {
      if (tree[i].reports || random.below(2) == 0) continue;
      tree[i].reports = true;
      tree[i].fails_at = tree[i].steps;
      tree[i].undo = static_cast<Member::Undo>(1 + random.below(4));
    }
    const std::uint64_t turns = random.below(3);
    const auto play_until_abort = [&](EngineWorld& engine) {
      const ProcedureId root = engine.submit(name_of(0));
      engine.run();
      for (std::uint64_t i = 0; i < turns; ++i) {
        if (!engine.world.answer_one("yes")) engine.clock->advance(1s);
        engine.run();
      }
      return root;
    };
    EngineWorld engine;
    engine.retry.jitter_percent = 0;
    write_scripts(tree, engine.world);
    engine.open();
    const ProcedureId root = play_until_abort(engine);
    const std::size_t entries = engine.journal().size();
    if (!engine.executor().abort(root).ok()) continue;  // the tree has ended
    const std::size_t first = engine.faults().commits();
    run_to_the_end(engine, root);
    const Life whole = life_since(engine, entries);
    const std::size_t commits = engine.faults().commits();
    for (std::size_t at = first; at <= commits; ++at) {
      INFO("seed " << seed << ", the machine crashes after commit " << at << " of " << commits
                   << "; the abort is durable by commit " << first);
      EngineWorld other;
      other.retry.jitter_percent = 0;
      write_scripts(tree, other.world);
      other.open();
      REQUIRE(play_until_abort(other) == root);
      const std::size_t aborted = other.journal().size();
      other.faults().crash_after(at, FaultStore::AfterCrash::kFail);
      (void)other.executor().abort(root);
      run_to_the_end(other, root);
      const Life before = life_since(other, aborted);
      const std::size_t crashed = other.journal().size();
      other.open();
      run_to_the_end(other, root);
      const Life after = life_since(other, crashed);
      REQUIRE(after.runs.empty());
      compare_order(tree, whole, before, after);
    }
  }
}

TEST_CASE("a child that never ran is not undone after its parent's spawning step was") {
  // The order of their spawn decides which of the two has its record first.
  const bool bad_first = GENERATE(true, false);
  for (std::size_t at = 3;; ++at) {
    EngineWorld engine;
    World& world = engine.world;
    world.scripts["p"] = {.steps = 1, .run = [bad_first](JobRun& run) {
                            run.spawn(bad_first ? "bad" : "a");
                            run.spawn(bad_first ? "a" : "bad");
                            return usual();
                          }};
    world.scripts["bad"] = {.steps = 1,
                            .run = [](JobRun&) { return std::optional(Say::fail("no")); }};
    world.scripts["a"] = {.steps = 2, .run = [](JobRun& run) {
                            if (run.step == 1) run.spawn("g");
                            return usual();
                          }};
    world.scripts["g"] = {.steps = 1};
    engine.open();
    engine.faults().crash_after(at, FaultStore::AfterCrash::kFail);
    const auto submitted = engine.executor().submit(Job(world, "p"));
    REQUIRE(submitted.ok());
    engine.run();
    const bool crashed = !engine.executor().health().ok();
    const bool had_begun = world.journal.count("undo a.1") != 0;
    engine.open();
    engine.run();
    INFO("the machine crashes after commit " << at);
    if (had_begun || bad_first) CHECK(world.journal.count("undo g.1") == 0);
    CHECK(engine.result(submitted->id).state == ProcedureState::kRolledBack);
    if (!crashed) break;
  }
}

TEST_CASE(
    "an undo whose record is lost comes again, and no step that never ran is undone before it") {
  for (std::size_t at = 3;; ++at) {
    EngineWorld engine;
    World& world = engine.world;
    world.scripts["p"] = {.steps = 1, .run = [](JobRun& run) {
                            run.spawn("c");
                            run.spawn("bad");
                            return usual();
                          }};
    world.scripts["bad"] = {
        .steps = 1, .run = [](JobRun& run) {
          return run.ctx.attempt() == 1 && run.step == 1 ? std::optional(Say::fail("no")) : usual();
        }};
    world.scripts["c"] = {.steps = 2};
    engine.open();
    engine.faults().crash_after(at, FaultStore::AfterCrash::kFail);
    const auto submitted = engine.executor().submit(Job(world, "p"));
    REQUIRE(submitted.ok());
    engine.run();
    const bool crashed = !engine.executor().health().ok();
    const Entries before = engine.journal();
    engine.open();
    engine.run();
    INFO("the machine crashes after commit " << at);
    if (std::find(before.begin(), before.end(), "undo c.1") != before.end()) {
      CHECK(world.journal.count("undo c.2") == 0);
    }
    CHECK(engine.result(submitted->id).state == ProcedureState::kRolledBack);
    if (!crashed) break;
  }
}

TEST_CASE("interrupted members are recorded before the first undo, and only if needed") {
  const bool has_idle_sibling = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["p"] = {.steps = 1, .run = [&](JobRun& run) {
                                 run.spawn("bad");
                                 if (has_idle_sibling) run.spawn("idle");
                                 return usual();
                               }};
  engine.world.scripts["bad"] = {.steps = 1,
                                 .run = [](JobRun&) { return std::optional(Say::fail("no")); },
                                 .priority = Priority::kHigh};
  engine.world.scripts["idle"] = {.steps = 1};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.executor().run_until_idle(1);
  const std::size_t before = engine.faults().commits();
  engine.faults().hold_commit(before + 2);  // the commit after that of the failure
  engine.executor().run_until_idle(1);
  engine.run();
  CHECK(engine.faults().held() == 1);
  CHECK(engine.world.journal.count("undo bad.1") == (has_idle_sibling ? 0 : 1));
  engine.faults().release();
  engine.run();
  CHECK(engine.world.journal.count("undo bad.1") == 1);
  CHECK(engine.world.journal.count("undo idle.1") == 0);
  // The failure, perhaps the record of the interrupted members, two undos.
  CHECK(engine.faults().commits() >= before + (has_idle_sibling ? 4 : 3));
  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
}

TEST_CASE(
    "the ranges contain every interrupted member, and no other if there is room for all ranges") {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<InterruptedMembers::Candidate> candidates;
    const std::size_t count = 1 + random.below(round % 3 == 0 ? 900 : 200);
    const std::uint64_t one_in = 1 + random.below(5);
    std::uint64_t id = 0;
    for (std::size_t i = 0; i < count; ++i) {
      id += 1 + random.below(3);
      candidates.push_back({ProcedureId{id}, random.below(one_in) == 0});
    }
    std::size_t changes = 0;
    for (std::size_t i = 1; i < count; ++i) {
      changes += candidates[i].interrupted != candidates[i - 1].interrupted ? 1 : 0;
    }
    const std::vector<InterruptedMembers::Candidate> in_order = candidates;
    if (random.below(2) == 0) std::reverse(candidates.begin(), candidates.end());

    const InterruptedMembers members(std::move(candidates));
    REQUIRE(members.ranges().size() <= InterruptedMembers::kRangesMax);
    const bool fits = changes / 2 + 1 <= InterruptedMembers::kRangesMax;
    for (const auto& candidate : in_order) {
      if (candidate.interrupted || fits) {
        REQUIRE(members.contains(candidate.id) == candidate.interrupted);
      }
    }
    InterruptedMembers copy;
    for (const auto& range : members.ranges()) REQUIRE(copy.append(range));
    REQUIRE(copy.ranges() == members.ranges());
    if (!members.ranges().empty()) REQUIRE_FALSE(copy.append(members.ranges().front()));
  }
}

}  // namespace pv2::testing::rollback_restart_test
