// SPDX-License-Identifier: Apache-2.0
//
// How steps are undone whose locks were held per step or per visit: others may have taken the same
// locks between two steps, so each undo takes them for itself, and the order is that of age.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/engine_world.h"
#include "support/job_story.h"

namespace pv2::testing::undo_scopes_test {
namespace {

using namespace std::chrono_literals;

LockSet table(LockScope scope, LockMode mode = LockMode::kExclusive) {
  return LockSet().table("shop", "orders", mode).scope(scope);
}

bool has_answer(JobRun& run) {
  return run.ctx.await<std::string>([&](auto c) { run.world.ask(c); }) != nullptr;
}

std::optional<Outcome> waits_in_last(JobRun& run) {
  const bool is_last = run.step == run.world.scripts.at(run.name).steps;
  return is_last && !has_answer(run) ? std::optional(Say::wait()) : usual();
}

// "first" and "second" take steps in turn under one key.
void add_siblings(std::map<std::string, JobScript>& scripts, LockScope scope) {
  scripts["p"] = {.children = {"first", "second"}};
  for (const char* const name : {"first", "second"}) {
    scripts[name] = {.steps = 3, .run = waits_in_last, .locks = table(scope)};
  }
}

// The labels of the siblings' entries that begin with `verb`.
Entries of_siblings(const Entries& journal, std::string_view verb) {
  Entries labels;
  for (const std::string& entry : journal) {
    if (!entry.starts_with(verb)) continue;
    const std::string label = entry.substr(verb.size());
    if (label.starts_with("first") || label.starts_with("second")) labels.push_back(label);
  }
  return labels;
}

// Each step that was done is undone before those that were done before it. After a crash a step or
// an undo may be repeated: the last time that it was done counts, and the first that it was undone.
void check_newest_first(const Entries& journal) {
  const Entries done = of_siblings(journal, "do ");
  const Entries undone = of_siblings(journal, "undo ");
  Entries expected;
  for (std::size_t i = done.size(); i-- > 0;) {
    if (std::count(expected.begin(), expected.end(), done[i]) == 0) expected.push_back(done[i]);
  }
  Entries was;
  for (const std::string& label : undone) {
    const bool is_known = std::count(done.begin(), done.end(), label) != 0;
    if (is_known && std::count(was.begin(), was.end(), label) == 0) was.push_back(label);
  }
  REQUIRE(was == expected);
}

const auto kScopes = {LockScope::kOperation, LockScope::kStep, LockScope::kVisit};

}  // namespace

TEST_CASE("steps of siblings under one key are undone from the newest on, whatever its scope") {
  const LockScope scope = GENERATE(values(kScopes));
  const bool crash = GENERATE(false, true);
  const int turns = GENERATE(range(1, 14));
  CAPTURE(scope, crash, turns);
  EngineWorld engine;
  add_siblings(engine.world.scripts, scope);
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.executor().run_until_idle(static_cast<std::size_t>(turns));

  REQUIRE(engine.executor().abort(root).ok());
  if (crash) engine.crash_and_open();
  engine.run();

  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
  check_newest_first(engine.journal());
  CHECK(engine.executor().inspect().locks().empty());
}

TEST_CASE("crashed anywhere, steps of siblings under one key are undone from the newest on") {
  const LockScope scope = GENERATE(LockScope::kStep, LockScope::kVisit);
  const std::string last = GENERATE("do second.1", "do first.2", "do second.2", "do first.3");
  CAPTURE(scope, last);
  JobPlot plot;
  add_siblings(plot.scripts, scope);
  plot.scripts["p"].children.emplace_back("bad");
  for (const char* const name : {"first", "second"}) plot.scripts[name].run = {};
  plot.scripts["bad"] = {.steps = 1, .run = [last](JobRun& run) {
                           const bool is_early = run.world.journal.count(last) == 0;
                           return std::optional(is_early ? Say::wait_for(1s) : Say::fail("bad"));
                         }};
  plot.roots = {{.name = "p", .succeeds = false}};
  plot.check = [](const Entries& journal, const auto&) { check_newest_first(journal); };
  check_everywhere([&] { return std::make_unique<JobStory>(plot); });
}

TEST_CASE("others have a key that is held per step while another member is undone") {
  const LockScope scope = GENERATE(LockScope::kStep, LockScope::kVisit);
  const bool is_root = GENERATE(false, true);
  CAPTURE(scope, is_root);
  EngineWorld engine;
  engine.retry = {.base = 1h, .cap = 1h, .jitter_percent = 0};
  engine.world.scripts["r"] = {.steps = 2, .children = {"p"}};
  engine.world.scripts["p"] = {
      .children = {"slow"},
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .locks = table(scope)};
  engine.world.scripts["slow"] = {.steps = 1, .undo = [](JobRun& run) {
                                    const bool is_early = run.ctx.attempt() < 3;
                                    return is_early ? std::optional(Say::retry("no")) : usual();
                                  }};
  engine.world.scripts["other"] = {.steps = 1, .locks = table(LockScope::kOperation)};
  engine.open();
  const ProcedureId id = engine.submit(is_root ? "p" : "r");
  engine.run();
  const ProcedureId other = engine.submit("other");
  engine.run();

  CHECK(engine.world.journal.count("undo p.3") == 1);
  CHECK(engine.world.journal.count("undo slow.1") == 0);
  CHECK(engine.result(other).status.ok());
  engine.run_to_the_end();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
}

TEST_CASE("a child is undone under the key that its parent shares per step") {
  EngineWorld engine;
  engine.world.scripts["r"] = {
      .children = {"child"},
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .locks = table(LockScope::kStep, LockMode::kShared)};
  engine.world.scripts["child"] = {.steps = 1, .locks = table(LockScope::kOperation)};
  engine.open();
  const ProcedureId root = engine.submit("r");
  engine.run();

  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
  CHECK(engine.undone() == Entries{"r.3", "child.1", "r.2", "r.1"});
}

TEST_CASE("a lock per step that nobody waits for is kept from one undo to the next") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.steps = 5, .run = waits_in_last, .locks = table(LockScope::kStep)};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const std::size_t before = engine.faults().commits();
  REQUIRE(engine.executor().abort(root).ok());
  engine.run();

  CHECK(engine.undone() == Entries{"p.5", "p.4", "p.3", "p.2", "p.1"});
  // The abort, a grant, five undos and the end of the root.
  CHECK(engine.faults().commits() - before == 8);
}

TEST_CASE("who holds a place for the operation does not come before newer steps") {
  EngineWorld engine;
  const ResourceKey places{ResourceClass::kHostFirst, "places"};
  const auto shared = [&](LockScope scope) {
    return LockSet().key(places, LockMode::kShared).scope(scope);
  };
  engine.world.scripts["p"] = {.children = {"steady", "steps"}};
  engine.world.scripts["steady"] = {
      .steps = 2, .run = waits_in_last, .locks = shared(LockScope::kOperation)};
  engine.world.scripts["steps"] = {.run = waits_in_last, .locks = shared(LockScope::kStep)};
  engine.open();
  REQUIRE(engine.executor().operate().set_limit(places, 2).ok());
  const ProcedureId root = engine.submit("p");
  engine.run();
  REQUIRE(engine.journal().back() == "do steps.2");
  REQUIRE(engine.executor().abort(root).ok());
  engine.run();

  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
  const Entries undone = engine.undone();
  const auto place = [&](const char* label) {
    return std::find(undone.begin(), undone.end(), label);
  };
  CHECK(place("steps.2") < place("steady.1"));
}

TEST_CASE("an undo that was parked before it began keeps its place in the order") {
  // "m", of a part whose failure is only reported, waits for its lock to be undone, and is in a
  // deadlock with a tree that cannot be undone any more. Then the whole tree is aborted.
  EngineWorld engine;
  const LockSet key = LockSet().key({ResourceClass::kHostFirst, "k"}, LockMode::kExclusive);
  Event go("go");
  engine.world.scripts["r"] = {.run = [&](JobRun& run) {
    if (run.step != 2) return usual();
    run.ctx.spawn(Job(run.world, "a"), {.on_failure = OnFailure::kReport});
    run.spawn("b");
    run.effect();
    return std::optional(Say::next(3));
  }};
  engine.world.scripts["a"] = {
      .children = {"m"},
      .run =
          [&](JobRun& run) {
            if (run.step != 3) return usual();
            return run.ctx.await(go) ? std::optional(Say::fail("no")) : std::optional(Say::wait());
          },
      .locks = LockSet().key({ResourceClass::kHostFirst, "of a"}, LockMode::kExclusive)};
  engine.world.scripts["m"] = {.steps = 1, .locks = key};
  engine.world.scripts["b"] = {.steps = 3, .run = waits_in_last};
  engine.world.scripts["holds"] = {.steps = 5,
                                   .run =
                                       [](JobRun& run) {
                                         if (run.step == 4) run.spawn("wants");
                                         return usual();
                                       },
                                   .locks = key};
  engine.world.scripts["wants"] = {
      .steps = 1,
      .locks = LockSet().key({ResourceClass::kHostFirst, "of a"}, LockMode::kExclusive)};
  engine.open();
  const ProcedureId root = engine.submit("r");
  engine.run();
  const ProcedureId holds = engine.submit<CommittingJob>("holds");
  engine.run();
  REQUIRE(engine.world.journal.count("do b.2") == 1);
  go.set();
  engine.run();
  const ProcedureId m{root.value + 3};
  REQUIRE(engine.describe(m).parked);
  REQUIRE(engine.undone().size() <= 1);

  const bool restart = GENERATE(false, true);
  if (restart) engine.crash_and_open();
  engine.run();
  REQUIRE(engine.executor().abort(root).ok());
  engine.run();
  const Entries undone = engine.undone();
  CHECK(std::count(undone.begin(), undone.end(), "b.3") == 1);
  CHECK(std::count(undone.begin(), undone.end(), "m.1") == 0);
  (void)holds;
}

TEST_CASE("a repeated step is undone before what others have done between two visits") {
  EngineWorld engine;
  const LockScope scope = LockScope::kVisit;
  engine.world.scripts["p"] = {.children = {"first", "second"}};
  engine.world.scripts["first"] = {.steps = 1,
                                   .run = [](JobRun& run) -> std::optional<Outcome> {
                                     if (run.world.journal.count("do second.1") == 0) {
                                       run.effect();
                                       return Say::again();
                                     }
                                     return has_answer(run) ? usual() : std::optional(Say::wait());
                                   },
                                   .locks = table(scope)};
  engine.world.scripts["second"] = {.steps = 2, .run = waits_in_last, .locks = table(scope)};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  REQUIRE(engine.executor().abort(root).ok());
  engine.run();

  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
  CHECK(engine.undone() == Entries{"first.1", "second.1", "p.2", "p.1"});
}

}  // namespace pv2::testing::undo_scopes_test
