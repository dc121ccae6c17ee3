// SPDX-License-Identifier: Apache-2.0
//
// Under which locks steps are undone: under those of their member and of all members above it, as
// they were done, also if those have ended and have given their locks back; and in an order in
// which no member of a tree waits for the lock of a later one.

#include <pv2/store/noop_procedure_store.h>

#include <algorithm>
#include <string>
#include <utility>

#include "support/job_story.h"
#include "support/repair_orders.h"
#include "watch/state_audit.h"

namespace pv2::testing::undo_locks_test {
namespace {

using namespace std::chrono_literals;

LockSet orders_table() { return LockSet().table("shop", "orders", LockMode::kExclusive); }
LockSet key(const std::string& name) {
  return LockSet().key({ResourceClass::kHostFirst, name}, LockMode::kExclusive);
}

// Asks the world and waits for the answer.
bool has_answer(JobRun& run) {
  return run.ctx.await<std::string>([&](auto c) { run.world.ask(c); }) != nullptr;
}

JobScript waits_in(std::uint32_t step, LockSet locks = {}) {
  return {.steps = 2,
          .run =
              [step](JobRun& run) {
                return run.step == step && !has_answer(run) ? std::optional(Say::wait()) : usual();
              },
          .locks = std::move(locks)};
}

// Waits until the journal has `entry`.
std::optional<Outcome> after(JobRun& run, std::string_view entry) {
  return run.world.journal.count(entry) != 0 ? usual() : std::optional(Say::wait_for(1s));
}

// "parent" works under the lock of the table. Its last step spawns "child", which asks for none.
void add_family(World& world) {
  world.scripts["p"] = {.children = {"parent", "waits"}};
  world.scripts["parent"] = {.steps = 2, .children = {"child"}, .locks = orders_table()};
  world.scripts["child"] = {.steps = 2};
  world.scripts["waits"] = {.steps = 1,
                            .run = [](JobRun&) { return std::optional(Say::wait_for(1h)); }};
}

// "commits" has the table and, past its point of no return, needs the key "k". "holder" has that,
// and gives it back when its oldest step is undone, which is older than those of "child".
void add_deadlock(World& world) {
  world.scripts["holder"] = waits_in(2, key("k"));
  world.scripts["child"] = {.steps = 2, .run = [](JobRun& run) {
                              return run.step == 1 ? after(run, "do holder.1") : usual();
                            }};
  world.scripts["commits"] = {.steps = 5,
                              .run =
                                  [](JobRun& run) {
                                    if (run.step == 4) run.spawn("inner");
                                    return usual();
                                  },
                              .locks = orders_table()};
  world.scripts["inner"] = {.steps = 1, .locks = key("k")};
}

struct Deadlock {
  ProcedureId root;
  ProcedureId parent;  // the second child of the root
  ProcedureId commits;
};

// "p" is aborted when "parent" has ended and "commits" waits.
Deadlock abort_in_deadlock(EngineWorld& engine) {
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  engine.advance(1s);
  REQUIRE(engine.world.journal.count("do child.2") == 1);
  const ProcedureId commits = engine.submit<CommittingJob>("commits");
  engine.run();
  REQUIRE(engine.world.journal.count("do commits.4") == 1);
  REQUIRE(engine.executor().abort(root).ok());
  engine.run();
  return {root, ProcedureId{root.value + 2}, commits};
}

void answer_all(World& world) {
  while (world.answer_one("go on")) continue;
}

std::size_t place_of(const Entries& journal, std::string_view entry) {
  return static_cast<std::size_t>(std::find(journal.begin(), journal.end(), entry) -
                                  journal.begin());
}

}  // namespace

TEST_CASE("what a finished member has spawned is undone when its locks are free, and under them") {
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  add_family(engine.world);
  engine.world.scripts["child"].undo = [](JobRun& run) {
    return run.step == 1 && !has_answer(run) ? std::optional(Say::wait()) : usual();
  };
  engine.world.scripts["other"] = waits_in(2, orders_table());
  engine.world.scripts["late"] = {.steps = 1, .locks = orders_table()};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  REQUIRE(engine.world.journal.count("do child.2") == 1);
  engine.submit("other");
  engine.run();
  REQUIRE(engine.world.journal.count("do other.1") == 1);

  REQUIRE(engine.executor().abort(root).ok());
  engine.run();
  if (restart) engine.crash_and_open();
  engine.run();

  const ProcedureId parent{root.value + 1};
  CHECK(engine.world.journal.count("undo child.2") == 0);
  CHECK(engine.describe(parent).state == ProcedureState::kFailed);
  const auto why = engine.executor().inspect().explain(parent);
  REQUIRE(why.ok());
  CHECK(why->procedures[0].reasons[0].kind == WaitReason::Kind::kLock);

  answer_all(engine.world);
  engine.run();
  REQUIRE(engine.world.journal.count("do other.2") == 1);
  REQUIRE(engine.world.journal.count("undo child.2") == 1);
  REQUIRE(engine.world.journal.count("undo child.1") == 0);
  engine.submit("late");
  engine.run();
  if (restart) engine.crash_and_open();
  engine.run();
  CHECK(engine.world.journal.count("do late.1") == 0);
  answer_all(engine.world);
  engine.run_to_the_end();
  const Entries journal = engine.journal();
  CHECK(place_of(journal, "undo parent.1") < place_of(journal, "do late.1"));
  CHECK(engine.undone() ==
        Entries{"waits.1", "child.2", "child.1", "parent.2", "parent.1", "p.2", "p.1"});
}

TEST_CASE("a member takes its locks for its descendants though none of its own steps is undone") {
  EngineWorld engine;
  add_family(engine.world);
  engine.world.scripts["p"].run = [](JobRun& run) {
    if (run.step != 2) return usual();
    run.ctx.spawn(PlainJob(run.world, "parent"));
    run.spawn("waits");
    run.effect();
    return std::optional(Say::next(3));
  };
  engine.world.scripts["other"] = waits_in(1, orders_table());
  ExecutorOptions options = engine.options();
  options.registry.add<PlainJob>(engine.world);
  engine.open(std::move(options));
  const ProcedureId root = engine.submit("p");
  engine.run();
  REQUIRE(engine.world.journal.count("do child.2") == 1);
  const ProcedureId other = engine.submit("other");
  engine.run();

  REQUIRE(engine.executor().abort(root).ok());
  engine.run();
  CHECK(engine.world.journal.count("undo child.2") == 0);
  answer_all(engine.world);
  engine.run();

  CHECK(engine.result(other).status.ok());
  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
  CHECK(engine.undone() == Entries{"waits.1", "child.2", "child.1", "p.2", "p.1"});
  CHECK(engine.executor().inspect().locks().empty());
}

TEST_CASE("no lock is taken for descendants while another turn of their member takes it") {
  EngineWorld engine;
  add_family(engine.world);
  engine.world.scripts["parent"].steps = 3;  // its newest step is undone before its child
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const std::size_t before = engine.faults().commits();

  REQUIRE(engine.executor().abort(root).ok());
  engine.run();

  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
  CHECK(engine.undone() ==
        Entries{"waits.1", "parent.3", "child.2", "child.1", "parent.2", "parent.1", "p.2", "p.1"});
  // The abort; a grant; eight undos; the end of the root.
  CHECK(engine.faults().commits() - before <= 11);
}

TEST_CASE("a tree without records takes the locks of finished members, too") {
  EngineWorld engine;
  add_family(engine.world);
  engine.world.scripts["other"] = waits_in(1, orders_table());
  ExecutorOptions options = engine.options();
  options.store = noop();
  engine.open(std::move(options));
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId other = engine.submit("other");
  engine.run();
  REQUIRE(engine.executor().abort(root).ok());
  engine.run();
  CHECK(engine.world.journal.count("undo child.2") == 0);
  answer_all(engine.world);
  engine.run();

  CHECK(engine.result(other).status.ok());
  CHECK(engine.undone() ==
        Entries{"waits.1", "child.2", "child.1", "parent.2", "parent.1", "p.2", "p.1"});
}

TEST_CASE("crashed anywhere, nobody sees what children did under a lock half undone") {
  JobPlot plot;
  plot.scripts["p"] = {.children = {"parent", "fatal"}};
  plot.scripts["parent"] = {.steps = 2, .children = {"child"}, .locks = orders_table()};
  plot.scripts["child"] = {.steps = 2};
  plot.scripts["fatal"] = {.steps = 1, .run = [](JobRun& run) {
                             auto waits = after(run, "do other.1");
                             return waits ? waits : std::optional(Say::fail("fatal"));
                           }};
  plot.scripts["around"] = {.children = {"other"}, .run = [](JobRun& run) {
                              return run.step == 1 ? after(run, "do child.2") : usual();
                            }};
  plot.scripts["other"] = {
      .steps = 2,
      .run = [](JobRun& run) { return run.step == 2 ? after(run, "undo fatal.1") : usual(); },
      .locks = orders_table()};
  plot.roots = {{"p", false}, {"around"}};
  plot.check = [](const Entries& journal, const auto&) {
    const auto is_of_other = [](const std::string& entry) { return entry.starts_with("do other"); };
    const auto is_undo = [](const std::string& entry) {
      return entry.starts_with("undo child") || entry.starts_with("undo parent");
    };
    const auto first = std::find_if(journal.begin(), journal.end(), is_undo);
    REQUIRE(first != journal.end());
    REQUIRE(std::none_of(first, journal.end(), is_of_other));
  };
  check_everywhere([&] { return std::make_unique<JobStory>(plot); }, {.twice = true});
}

TEST_CASE("a tree that an older version has half undone without those locks is undone to its end") {
  EngineWorld engine;
  add_family(engine.world);
  engine.world.scripts["child"].locks = orders_table();
  engine.world.scripts["child"].undo = [](JobRun& run) {
    return run.step == 1 && !has_answer(run) ? std::optional(Say::wait()) : usual();
  };
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const auto parent_key = procedure_key({root.value + 1}, RowKind::kState);
  const auto without_locks = engine.disk->get(Space::kProcedure, parent_key);
  REQUIRE(without_locks.has_value());
  REQUIRE(engine.executor().abort(root).ok());
  engine.run();
  REQUIRE(engine.undone() == Entries{"waits.1", "child.2"});
  engine.close();
  engine.disk->put(Space::kProcedure, parent_key, *without_locks);

  engine.open();
  engine.run();
  answer_all(engine.world);
  engine.run();
  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
  CHECK(engine.undone() ==
        Entries{"waits.1", "child.2", "child.1", "parent.2", "parent.1", "p.2", "p.1"});
}

namespace {

// Of "a", whose failure is only reported, "holder" is half undone when "p" is aborted. A newer step
// of "b" needs the same key.
void add_half_undone(std::map<std::string, JobScript>& scripts, LockMode mode) {
  const LockSet locks = LockSet().key({ResourceClass::kHostFirst, "k"}, mode);
  scripts["p"] = {.run = [](JobRun& run) {
    if (run.step != 2) return usual();
    run.ctx.spawn(Job(run.world, "a"), {.on_failure = OnFailure::kReport});
    run.spawn("b around");
    run.spawn("waits");
    run.effect();
    return std::optional(Say::next(3));
  }};
  scripts["waits"] = {.steps = 1, .run = [](JobRun& run) { return after(run, "never"); }};
  scripts["a"] = {.children = {"holder", "slow", "bad"}};
  scripts["holder"] = {
      .steps = 2,
      .run = [](JobRun& run) { return run.step == 2 ? after(run, "do slow.1") : usual(); },
      .locks = locks};
  scripts["slow"] = {
      .steps = 2,
      .run = [](JobRun& run) { return run.step == 2 ? after(run, "never") : usual(); },
      .undo =
          [](JobRun& run) {
            const bool is_early = run.step == 1 && !run.ctx.timed_out();
            return is_early ? std::optional(Say::wait_for(1s)) : usual();
          }};
  scripts["bad"] = {.steps = 1, .run = [](JobRun& run) {
                      auto waits = after(run, "do b.1");
                      return waits ? waits : std::optional(Say::fail("bad"));
                    }};
  scripts["b around"] = {.children = {"b"}};
  scripts["b"] = {
      .steps = 1, .run = [](JobRun& run) { return after(run, "do holder.2"); }, .locks = locks};
}

// Submits "p", and lets time pass until the holder is half undone.
ProcedureId submit_until_half_undone(EngineWorld& engine) {
  const ProcedureId root = engine.submit("p");
  for (int i = 0; i < 20 && engine.world.journal.count("undo holder.2") == 0; ++i) {
    engine.advance(1s);
  }
  REQUIRE(engine.world.journal.count("undo holder.2") == 1);
  REQUIRE(engine.world.journal.count("undo holder.1") == 0);
  return root;
}

}  // namespace

TEST_CASE("an undo comes after those of a half undone member that has its lock, or its place") {
  const bool has_limit = GENERATE(false, true);
  EngineWorld engine;
  add_half_undone(engine.world.scripts, has_limit ? LockMode::kShared : LockMode::kExclusive);
  engine.open();
  if (has_limit) {
    REQUIRE(engine.executor().operate().set_limit({ResourceClass::kHostFirst, "k"}, 1).ok());
  }
  const ProcedureId root = submit_until_half_undone(engine);
  REQUIRE(engine.executor().abort(root).ok());
  engine.run_to_the_end();

  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
  const Entries journal = engine.journal();
  CHECK(place_of(journal, "undo holder.1") < place_of(journal, "undo b.1"));
}

TEST_CASE("crashed anywhere, a tree is undone around a half undone member that has a lock of it") {
  JobPlot plot;
  add_half_undone(plot.scripts, LockMode::kExclusive);
  std::size_t aborts_at = 0;
  {
    EngineWorld engine;
    engine.world.scripts = plot.scripts;
    engine.open();
    submit_until_half_undone(engine);
    aborts_at = engine.journal().size();
  }
  plot.roots = {{.name = "p", .succeeds = false, .aborts_at = aborts_at}};
  plot.check = [](const Entries& journal, const auto&) {
    for (const char* const step : {"holder.1", "holder.2", "b.1", "slow.1"}) {
      REQUIRE(place_of(journal, std::string("undo ") + step) < journal.size());
    }
  };
  check_everywhere([&] { return std::make_unique<JobStory>(plot); });
}

TEST_CASE("a member that cannot take its locks because of a deadlock parks, and undoes nothing") {
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  add_family(engine.world);
  engine.world.scripts["p"].children = {"holder", "parent"};
  add_deadlock(engine.world);
  const Deadlock it = abort_in_deadlock(engine);
  const auto check_parked = [&] {
    const ProcedureInfo info = engine.describe(it.parent);
    CHECK(info.parked);
    CHECK(info.error.code() == StatusCode::kDeadlock);
    CHECK(engine.undone() == Entries{"holder.2"});
  };
  check_parked();
  if (restart) engine.crash_and_open();
  engine.run();
  check_parked();
  order(engine, it.parent, RepairVerb::kRetryNow, restart ? Crash::kAfter : Crash::kNone, it.root);
  engine.run();
  check_parked();

  const auto preview = engine.executor().operate().preview(it.parent, RepairVerb::kSkipStep);
  CHECK_THAT(joined(preview), ContainsSubstring("is undone without them"));
  order(engine, it.parent, RepairVerb::kSkipStep, restart ? Crash::kAfter : Crash::kNone, it.root);
  engine.run();
  CHECK(engine.result(it.root).state == ProcedureState::kRolledBack);
  CHECK(engine.result(it.commits).status.ok());
  CHECK(engine.undone() == Entries{"holder.2", "child.2", "child.1", "holder.1", "parent.2",
                                   "parent.1", "p.2", "p.1"});
}

TEST_CASE("what is below a member whose undo was skipped without its locks is not undone either") {
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  add_family(engine.world);
  engine.world.scripts["p"].children = {"holder", "parent"};
  engine.world.scripts["parent"].steps = 3;  // the newest one is undone first
  add_deadlock(engine.world);
  const Deadlock it = abort_in_deadlock(engine);
  REQUIRE(engine.world.journal.count("do parent.3") == 1);
  REQUIRE(engine.describe(it.parent).parked);

  order(engine, it.parent, RepairVerb::kSkipStep, restart ? Crash::kAfter : Crash::kNone, it.root);
  engine.run();
  CHECK(engine.undone() == Entries{"holder.2"});
  CHECK(engine.describe(it.parent).parked);  // the deadlock is still there

  order(engine, it.root, RepairVerb::kBypass, Crash::kNone);
  engine.run();
  CHECK(engine.result(it.root).bypassed);
}

TEST_CASE("a root whose end was taken back takes its locks for what it has spawned") {
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"child"},
                               .run =
                                   [&engine](JobRun& run) {
                                     // Durable before the record of the end.
                                     if (run.step == 3)
                                       engine.executor().async().abort(run.ctx.root_id(), {},
                                                                       [](auto) {});
                                     return usual();
                                   },
                               .locks = orders_table()};
  engine.world.scripts["child"] = {.steps = 2, .undo = [](JobRun& run) {
                                     const bool waits = run.step == 1 && !has_answer(run);
                                     return waits ? std::optional(Say::wait()) : usual();
                                   }};
  engine.world.scripts["other"] = {.steps = 1, .locks = orders_table()};
  const auto open = [&] {
    ExecutorOptions options = engine.options();
    options.registry.add<LateJob>(engine.world);
    engine.open(std::move(options));
  };
  open();
  const ProcedureId root = engine.submit<LateJob>("p");
  engine.run();
  REQUIRE(engine.world.journal.count("do p.3") == 1);
  REQUIRE(engine.world.journal.count("undo child.2") == 1);
  if (restart) open();
  engine.submit("other");
  engine.run();
  CHECK(engine.world.journal.count("do other.1") == 0);

  answer_all(engine.world);
  engine.run_to_the_end();
  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
  CHECK(engine.undone() == Entries{"child.2", "child.1", "p.2"});
  CHECK(engine.world.journal.count("do other.1") == 1);
}

TEST_CASE(
    "a root whose only undo was skipped without its locks takes them for what it has spawned") {
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  ProcedureId root;
  engine.world.scripts["p"] = {.run = [&engine](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 1) run.spawn("child");
                                 if (run.step == 2 && !has_answer(run)) return Say::wait();
                                 // Durable before the record of the end, which gives the locks
                                 // back.
                                 if (run.step == 3)
                                   engine.executor().async().abort(run.ctx.root_id(), {},
                                                                   [](auto) {});
                                 return usual();
                               },
                               .locks = orders_table()};
  engine.world.scripts["child"] = {.steps = 2};
  engine.world.scripts["commits"] = {.steps = 5,
                                     .run =
                                         [&root](JobRun& run) {
                                           if (run.step != 4) return usual();
                                           run.ctx.completed_by(root);
                                           return has_answer(run) ? usual()
                                                                  : std::optional(Say::wait());
                                         },
                                     .locks = orders_table()};
  const auto open = [&] {
    ExecutorOptions options = engine.options();
    options.registry.add<LateJob>(engine.world);
    engine.open(std::move(options));
  };
  open();
  root = engine.submit<LateJob>("p");
  engine.run();
  engine.submit<CommittingJob>("commits");
  engine.run();
  engine.world.answer_one("go on");
  engine.run();
  REQUIRE(engine.describe(root).parked);

  order(engine, root, RepairVerb::kSkipStep, Crash::kNone);
  if (restart) open();
  engine.run();
  CHECK(engine.undone().empty());
  CHECK(engine.describe(root).parked);  // the deadlock is still there
}

TEST_CASE("an order to skip means the same before and after a restart") {
  EngineWorld engine;
  add_family(engine.world);
  engine.world.scripts["p"].children = {"holder", "parent"};
  add_deadlock(engine.world);
  engine.world.scripts["parent"] = {.run =
                                        [](JobRun& run) {
                                          if (run.step == 1) {
                                            auto waits = after(run, "do holder.1");
                                            if (waits) return waits;
                                            run.spawn("child");
                                          }
                                          return usual();
                                        },
                                    .locks = orders_table()};
  const Deadlock it = abort_in_deadlock(engine);
  const auto preview = [&] {
    return joined(engine.executor().operate().preview(it.parent, RepairVerb::kSkipStep));
  };
  CHECK_THAT(preview(), ContainsSubstring("did THREE, which is not undone"));

  order(engine, it.parent, RepairVerb::kSkipStep, Crash::kNone);
  engine.run();
  const std::string before = preview();
  CHECK_THAT(before, ContainsSubstring("did TWO, which is not undone"));  // it takes the locks now
  engine.crash_and_open();
  engine.run();
  CHECK(preview() == before);
}

TEST_CASE("an undo without its locks is skipped though the turn of another one has begun") {
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step != 2) return usual();
    run.ctx.spawn(Job(run.world, "a"), {.on_failure = OnFailure::kReport});
    run.ctx.spawn(Job(run.world, "b"), {.on_failure = OnFailure::kReport});
    run.effect();
    return std::optional(Say::next(3));
  }};
  engine.world.scripts["a"] = {.children = {"holder", "parent", "fails late"}};
  add_deadlock(engine.world);
  engine.world.scripts["parent"] = {.children = {"child"}, .locks = orders_table()};
  engine.world.scripts["fails late"] = {.steps = 1, .run = [](JobRun& run) {
                                          auto waits = after(run, "do commits.4");
                                          return waits ? waits : std::optional(Say::fail("late"));
                                        }};
  engine.world.scripts["b"] = {.children = {"stuck"}, .run = [](JobRun& run) {
                                 return run.step == 1 ? after(run, "do child.2") : usual();
                               }};
  engine.world.scripts["stuck"] = stuck_everywhere();
  engine.open();
  const ProcedureId root = engine.submit("p");
  for (int i = 0; i < 10 && engine.world.journal.count("do parent.3") == 0; ++i) engine.advance(1s);
  engine.submit<CommittingJob>("commits");
  for (int i = 0; i < 10; ++i) engine.advance(1s);
  REQUIRE(engine.executor().abort(root).ok());
  engine.run();
  ProcedureId parent;
  for (const ProcedureInfo& info : engine.executor().inspect().list()) {
    const bool is_it = info.parked && info.error.code() == StatusCode::kDeadlock &&
                       info.step_name == "THREE" && info.id != root;
    if (is_it) parent = info.id;
  }
  REQUIRE(parent);
  if (restart) engine.crash_and_open();
  engine.run();

  order(engine, parent, RepairVerb::kSkipStep, Crash::kNone);
  engine.run();
  CHECK(engine.world.journal.count("undo child.2") == 0);
  CHECK(StateAudit::of(engine.executor()).empty());
}

}  // namespace pv2::testing::undo_locks_test
