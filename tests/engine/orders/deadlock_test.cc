// SPDX-License-Identifier: Apache-2.0
//
// Procedures that wait for each other in a cycle. The engine finds the cycle when it closes,
// names it, and opens it by undoing the youngest tree, unless the host only wants a report. Lock
// sets that could never be granted are refused before anything is written.

#include <algorithm>

#include "support/engine_world.h"

namespace pv2::testing::deadlock_test {
namespace {

LockSet orders(LockMode mode = LockMode::kExclusive) {
  return LockSet().table("shop", "orders", mode);
}
LockSet goods() { return LockSet().table("shop", "goods", LockMode::kExclusive); }

// "older" holds orders and spawns a child that wants goods; "younger" the other way round.
void script_a_cycle(World& world) {
  world.scripts["older"] = {.children = {"older child"}, .locks = orders()};
  world.scripts["older child"] = {.steps = 1, .locks = goods()};
  world.scripts["younger"] = {.children = {"younger child"}, .locks = goods()};
  world.scripts["younger child"] = {.steps = 1, .locks = orders()};
}

bool logged(const EngineWorld& engine, const std::string& part) {
  return std::any_of(engine.log_lines.begin(), engine.log_lines.end(),
                     [&](const auto& line) { return line.find(part) != std::string::npos; });
}

// Opens an executor that reports deadlocks and undoes nothing.
void open_to_report(EngineWorld& engine) {
  auto options = engine.options();
  options.deadlock_policy = DeadlockPolicy::kReport;
  engine.open(std::move(options));
}

}  // namespace

TEST_CASE("of two trees that wait for each other the younger is undone and the older finishes") {
  EngineWorld engine;
  script_a_cycle(engine.world);
  engine.open();
  const ProcedureId older = engine.submit("older");
  const ProcedureId younger = engine.submit("younger");
  engine.run_to_the_end();

  CHECK(engine.result(older).state == ProcedureState::kSuccess);
  const ProcedureResult undone = engine.result(younger);
  CHECK(undone.state == ProcedureState::kRolledBack);
  CHECK(undone.status.code() == StatusCode::kDeadlock);
  CHECK(undone.status.message().find("waits for table shop:orders, held by procedure " +
                                     std::to_string(older.value)) != std::string::npos);
  CHECK(engine.world.journal.count("undo younger.1") == 1);
  CHECK(engine.world.journal.count("do younger child.1") == 0);
  CHECK(engine.executor().inspect().deadlocks().empty());
  CHECK(engine.executor().inspect().locks().empty());
}

TEST_CASE("the error of a deadlock is cut like any other because every later record contains it") {
  EngineWorld engine;
  script_a_cycle(engine.world);
  const std::string long_name(3000, 'x');
  const LockSet locks = LockSet().table("shop", long_name, LockMode::kExclusive);
  engine.world.scripts["younger"].locks = locks;
  engine.world.scripts["older child"].locks = locks;
  engine.open();
  engine.submit("older");
  const ProcedureId younger = engine.submit("younger");
  engine.run_to_the_end();

  const ProcedureResult undone = engine.result(younger);
  CHECK(undone.status.code() == StatusCode::kDeadlock);
  CHECK(undone.status.message().size() < 2100);
  CHECK(logged(engine, long_name));  // the log has the whole name
}

TEST_CASE("a host that only wants a report finds the deadlock listed, and nothing is undone") {
  EngineWorld engine;
  script_a_cycle(engine.world);
  open_to_report(engine);
  const ProcedureId older = engine.submit("older");
  const ProcedureId younger = engine.submit("younger");
  engine.run();

  REQUIRE(engine.executor().inspect().deadlocks().size() == 1);
  const WaitCycle cycle = engine.executor().inspect().deadlocks().front();
  CHECK(cycle.links.size() == 4);
  CHECK(to_string(cycle).find("waits for its child") != std::string::npos);
  CHECK(logged(engine, "deadlock: procedure"));
  CHECK(engine.describe(older).state == ProcedureState::kWaiting);
  CHECK(engine.describe(younger).state == ProcedureState::kWaiting);
}

TEST_CASE("a deadlock that a crash left behind is found and ended by the next run") {
  EngineWorld engine;
  script_a_cycle(engine.world);
  open_to_report(engine);
  const ProcedureId older = engine.submit("older");
  const ProcedureId younger = engine.submit("younger");
  engine.run();
  engine.crash_and_open();
  engine.run_to_the_end();

  CHECK(engine.result(older).state == ProcedureState::kSuccess);
  CHECK(engine.result(younger).state == ProcedureState::kRolledBack);
}

TEST_CASE("an executor that is stopped before it looks for deadlocks leaves them to the next run") {
  EngineWorld engine;
  script_a_cycle(engine.world);
  open_to_report(engine);
  const ProcedureId older = engine.submit("older");
  engine.submit("younger");
  engine.run();
  engine.crash_and_open();

  engine.close();

  engine.open();
  engine.run_to_the_end();
  CHECK(engine.result(older).state == ProcedureState::kSuccess);
}

TEST_CASE("a tree past its point of no return is not undone to end a deadlock") {
  EngineWorld engine;
  script_a_cycle(engine.world);
  engine.world.scripts["younger"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
                                       if (run.step == 4) run.spawn("younger child");
                                       return std::nullopt;
                                     },
                                     .locks = goods()};
  engine.world.scripts["younger"].steps = 5;
  engine.open();
  engine.world.scripts["older"].run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 1 && run.ctx.attempt() == 1) return Say::retry("later");
    return std::nullopt;
  };
  const ProcedureId older = engine.submit("older");
  const ProcedureId younger = engine.submit<CommittingJob>("younger");
  engine.run_to_the_end();

  CHECK(engine.result(older).state == ProcedureState::kRolledBack);
  CHECK(engine.result(younger).state == ProcedureState::kSuccess);
}

TEST_CASE("a tree that has begun its point of no return is not undone to end a deadlock") {
  EngineWorld engine;
  script_a_cycle(engine.world);
  const auto waits_in_it = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 3 && !run.ctx.timed_out()) return Say::wait_for(std::chrono::minutes(1));
    return std::nullopt;
  };
  engine.world.scripts["commits"] = {
      .steps = 4, .run = waits_in_it, .locks = goods().scope(LockScope::kStep)};
  engine.world.scripts["younger"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
                                       if (run.step != 1) return std::nullopt;
                                       run.ctx.spawn(CommittingJob(run.world, "commits"));
                                       return std::nullopt;
                                     },
                                     .locks = orders()};
  engine.world.scripts["older"] = {.children = {"older child"}, .locks = goods()};
  engine.world.scripts["older child"] = {.steps = 1, .locks = orders()};
  engine.open();
  const ProcedureId older = engine.submit("older", {.delay = std::chrono::seconds(30)});
  const ProcedureId younger = engine.submit("younger");
  engine.run();
  engine.advance(std::chrono::seconds(30));
  CHECK(engine.executor().abort(younger).code() == StatusCode::kFailedPrecondition);
  engine.run_to_the_end();

  CHECK(engine.result(older).status.code() == StatusCode::kDeadlock);
  CHECK(engine.result(younger).state == ProcedureState::kSuccess);
}

TEST_CASE("no point of no return begins while the failure that ends a deadlock is on its way") {
  EngineWorld engine;
  script_a_cycle(engine.world);
  engine.world.scripts["younger"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
                                       if (run.step == 2) {
                                         run.ctx.spawn(CommittingJob(run.world, "commits"));
                                         run.spawn("younger child");
                                       }
                                       return std::nullopt;
                                     },
                                     .locks = goods()};
  const auto goes_on = [](JobRun& run) {
    return run.ctx.await<std::string>([&](auto c) { run.world.ask(c); }) != nullptr;
  };
  engine.world.scripts["older"].children.clear();
  engine.world.scripts["older"].run = [goes_on](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 1) return std::nullopt;
    if (!goes_on(run)) return Say::wait();
    run.spawn("older child");
    return std::nullopt;
  };
  engine.world.scripts["commits"] = {
      .steps = 5, .run = [goes_on](JobRun& run) -> std::optional<Outcome> {
        return run.step != 2 || goes_on(run) ? std::nullopt : std::optional(Say::wait());
      }};
  engine.open();
  const ProcedureId older = engine.submit("older");
  const ProcedureId younger = engine.submit("younger");
  engine.run();
  REQUIRE(engine.world.journal.count("do commits.1") == 1);
  // "older" closes the cycle, and the third record from now on gives "younger" up. The second one
  // says that "commits" comes to its point of no return.
  engine.faults().hold_commit(engine.faults().commits() + 2);
  REQUIRE(engine.world.answer_one("go on"));
  engine.executor().run_until_idle(1);
  REQUIRE(engine.world.answer_one("go on"));
  engine.executor().run_until_idle(1);
  engine.run();
  REQUIRE(engine.faults().held() == 2);
  engine.faults().release();
  engine.store().pump_some(1);
  REQUIRE(engine.describe({younger.value + 1}).step == 3);
  engine.executor().run_until_idle(1);
  engine.run_to_the_end();

  CHECK(engine.world.journal.count("do commits.3") == 0);
  CHECK(engine.result(younger).status.code() == StatusCode::kDeadlock);
  CHECK(engine.result(younger).state == ProcedureState::kRolledBack);
  CHECK(engine.result(older).state == ProcedureState::kSuccess);
}

TEST_CASE("of two trees past their points of no return the younger is parked") {
  const bool crash = GENERATE(false, true);
  EngineWorld engine;
  script_a_cycle(engine.world);
  for (const std::string name : {"older", "younger"}) {
    JobScript& script = engine.world.scripts[name];
    script.steps = 5;
    script.children.clear();
    script.run = [name](JobRun& run) -> std::optional<Outcome> {
      if (run.step == 4) run.spawn(name + " child");
      return std::nullopt;
    };
  }
  engine.open();
  const ProcedureId older = engine.submit<CommittingJob>("older");
  const ProcedureId younger = engine.submit<CommittingJob>("younger");
  engine.run();
  CHECK(logged(engine, "None of them can be undone"));
  if (crash) engine.crash_and_open();
  engine.run();

  const auto all = engine.executor().inspect().list();
  const auto parked = std::find_if(all.begin(), all.end(), [](const auto& i) { return i.parked; });
  REQUIRE(parked != all.end());
  CHECK(parked->root == younger);
  CHECK(parked->id != younger);
  CHECK(parked->error.code() == StatusCode::kDeadlock);
  CHECK(parked->error.message().find(std::to_string(older.value)) != std::string::npos);
  CHECK(engine.executor().inspect().deadlocks().empty());
  CHECK(engine.executor().abort(younger).code() == StatusCode::kFailedPrecondition);
  const Status bypassed =
      engine.executor().operate().bypass(older, {.who = "anna", .why = "ticket 7"});
  CHECK(bypassed.message().find("let it go on, as it has begun") != std::string::npos);
  // Nothing has changed for the parked member: it queues for its lock and closes the cycle again.
  REQUIRE(
      engine.executor().operate().retry_now(parked->id, {.who = "anna", .why = "ticket 7"}).ok());
  engine.run();
  REQUIRE(engine.describe(parked->id).parked);
  REQUIRE(engine.executor().operate().bypass(younger, {.who = "anna", .why = "ticket 7"}).ok());
  engine.run_to_the_end();
  CHECK(engine.result(younger).bypassed);
  CHECK(engine.result(older).status.ok());
}

// Waits in `step` until the test answers.
std::function<std::optional<Outcome>(JobRun&)> awaits_in(std::uint32_t step) {
  return [step](JobRun& run) -> std::optional<Outcome> {
    if (run.step != step) return std::nullopt;
    const auto* const said = run.ctx.await<std::string>(
        [&](Completion<std::string> completion) { run.world.ask(std::move(completion)); });
    return said != nullptr ? std::nullopt : std::optional<Outcome>(Say::wait());
  };
}

TEST_CASE("of two rollbacks that need each other's locks the younger is parked and says why") {
  EngineWorld engine;
  // Each parent has had one key, and its child "short" the other one. To be undone each parent
  // takes its key again, and keeps it until "short", which needs the other one, is undone.
  const auto undone_when_told = [](JobRun& run) -> std::optional<Outcome> {
    const bool told = run.ctx.await<std::string>([&](Completion<std::string> completion) {
      run.world.ask(std::move(completion));
    }) != nullptr;
    return told ? std::nullopt : std::optional<Outcome>(Say::wait());
  };
  const auto script_tree = [&](const std::string& name, const LockSet& kept, const LockSet& taken) {
    engine.world.scripts[name] = {.children = {name + " parent"}};
    engine.world.scripts[name + " parent"] = {.children = {name + " short", name + " late"},
                                              .locks = kept};
    engine.world.scripts[name + " short"] = {.steps = 1, .locks = taken};
    engine.world.scripts[name + " late"] = {.steps = 1, .undo = undone_when_told};
  };
  script_tree("older", orders(), goods());
  script_tree("younger", goods(), orders());
  engine.world.scripts["waits"] = {.steps = 1, .run = awaits_in(1)};
  for (const char* const name : {"older", "younger"}) {
    engine.world.scripts[name].children.push_back("waits");
  }
  engine.open();
  const ProcedureId older = engine.submit("older");
  engine.run();
  const ProcedureId younger = engine.submit("younger");
  engine.run();
  REQUIRE(engine.executor().abort(older).ok());
  REQUIRE(engine.executor().abort(younger).ok());
  engine.run();
  REQUIRE(engine.executor().inspect().deadlocks().empty());
  while (engine.world.answer_one("go on")) engine.run();
  engine.run();

  CHECK(engine.describe(younger).parked);
  CHECK(logged(engine, "is the youngest and is parked"));
  CHECK(logged(engine, "waits for table shop:"));
  CHECK_FALSE(engine.describe(older).parked);
  CHECK(engine.executor().inspect().deadlocks().empty());
  engine.crash_and_open();
  engine.run();
  CHECK(engine.describe(younger).parked);
}

TEST_CASE("a procedure that waits in two cycles goes on when both others are undone") {
  EngineWorld engine;
  // "old" comes last to the key that the others share, and both wait for the key of "old".
  engine.world.scripts["old"] = {.children = {"old child"}, .run = awaits_in(1), .locks = orders()};
  engine.world.scripts["old child"] = {.steps = 1, .locks = goods()};
  const LockSet shared = LockSet().table("shop", "goods", LockMode::kShared);
  for (const std::string name : {"middle", "young"}) {
    engine.world.scripts[name] = {.children = {name + " child"}, .locks = shared};
    engine.world.scripts[name + " child"] = {.steps = 1, .locks = orders(LockMode::kShared)};
  }
  engine.open();
  const ProcedureId old = engine.submit("old");
  const ProcedureId middle = engine.submit("middle");
  const ProcedureId young = engine.submit("young");
  engine.run();
  CHECK(engine.executor().inspect().deadlocks().empty());
  REQUIRE(engine.world.answer_one("go"));
  engine.run_to_the_end();

  CHECK(engine.result(old).state == ProcedureState::kSuccess);
  CHECK(engine.result(middle).status.code() == StatusCode::kDeadlock);
  CHECK(engine.result(young).status.code() == StatusCode::kDeadlock);
}

TEST_CASE(
    "a procedure that only queues for a lock is not undone because a rollback queues behind it") {
  EngineWorld engine;
  // In the tree that is undone, "keeps" has a lock until its undo is over. Before that "done" is
  // undone, which has given its own lock back.
  engine.world.scripts["tree"] = {.children = {"keeps", "done"}};
  engine.world.scripts["keeps"] = {.run = awaits_in(2), .locks = orders()};
  engine.world.scripts["done"] = {.steps = 1, .locks = goods()};
  LockSet both = orders();
  both.table("shop", "goods", LockMode::kExclusive);
  engine.world.scripts["in line"] = {.locks = both};
  engine.open();
  const ProcedureId tree = engine.submit("tree");
  engine.run();
  const ProcedureId in_line = engine.submit("in line");
  engine.run();
  REQUIRE(engine.executor().abort(tree).to_string() == "OK");
  engine.run_to_the_end();

  CHECK(engine.result(tree).state == ProcedureState::kRolledBack);
  CHECK(engine.world.journal.count("undo done.1") == 1);
  CHECK(engine.result(in_line).state == ProcedureState::kSuccess);
}

TEST_CASE(
    "a procedure that only queues for a lock is not undone because a domain fails behind it") {
  EngineWorld engine;
  // As above, but only a failure domain is undone, and the root of its tree goes on.
  engine.world.scripts["root"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 2) run.ctx.spawn(Job(run.world, "part"), {.on_failure = OnFailure::kReport});
    return std::nullopt;
  }};
  engine.world.scripts["part"] = {.children = {"keeps", "done", "fails"}};
  engine.world.scripts["keeps"] = {.run = awaits_in(2), .locks = orders()};
  engine.world.scripts["done"] = {.steps = 1, .locks = goods()};
  engine.world.scripts["fails"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.ctx.timed_out()) return Say::fail("no");
    return Say::wait_for(std::chrono::minutes(1));
  }};
  LockSet both = orders();
  both.table("shop", "goods", LockMode::kExclusive);
  engine.world.scripts["in line"] = {.locks = both};
  engine.open();
  const ProcedureId root = engine.submit("root");
  engine.run();
  const ProcedureId in_line = engine.submit("in line");
  engine.run();
  engine.advance(std::chrono::minutes(1));
  engine.run_to_the_end();

  CHECK(engine.result(root).status.ok());
  CHECK(engine.world.journal.count("undo done.1") == 1);
  CHECK(engine.world.journal.count("undo keeps.1") == 1);
  CHECK(engine.result(in_line).state == ProcedureState::kSuccess);
  CHECK_FALSE(logged(engine, "deadlock"));
}

TEST_CASE("an undo that was parked to open a cycle is still the next one after a restart") {
  EngineWorld engine;
  // "short" waits in its only step. Its undo needs the lock that the "keeper" of the other tree has
  // until that is undone. The keepers start while both "short" wait.
  const auto later = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 1 && run.ctx.attempt() == 1) return Say::retry("later");
    return std::nullopt;
  };
  const auto script_tree = [&](const std::string& name, const LockSet& kept, LockSet taken) {
    engine.world.scripts[name] = {.children = {name + " short", name + " gate"}};
    taken.scope(LockScope::kStep);
    engine.world.scripts[name + " short"] = {.steps = 1, .run = awaits_in(1), .locks = taken};
    engine.world.scripts[name + " gate"] = {.children = {name + " keeper"}, .run = later};
    engine.world.scripts[name + " keeper"] = {.run = awaits_in(2), .locks = kept};
  };
  script_tree("older", orders(), goods());
  script_tree("younger", goods(), orders());
  engine.open();
  const ProcedureId older = engine.submit("older");
  const ProcedureId younger = engine.submit("younger");
  engine.run();
  engine.advance(std::chrono::minutes(1));
  REQUIRE(engine.world.journal.count("do older keeper.1") == 1);
  REQUIRE(engine.world.journal.count("do younger keeper.1") == 1);
  REQUIRE(engine.executor().abort(older).to_string() == "OK");
  REQUIRE(engine.executor().abort(younger).to_string() == "OK");
  engine.run();
  REQUIRE(engine.describe(younger).parked);
  REQUIRE_FALSE(engine.describe(older).parked);

  engine.crash_and_open();
  engine.run();
  REQUIRE(engine.describe(younger).parked);
  // That undo is still the next one, so it can be skipped; the other undos then get their locks.
  REQUIRE(
      engine.executor().operate().skip_step(younger, {.who = "anna", .why = "test"}).to_string() ==
      "OK");
  engine.run_to_the_end();

  CHECK(engine.result(younger).state == ProcedureState::kRolledBack);
  CHECK(engine.result(older).state == ProcedureState::kRolledBack);
  CHECK(engine.world.journal.count("undo younger short.1") == 0);
  CHECK(engine.world.journal.count("undo older short.1") == 1);
  CHECK(engine.world.journal.count("undo younger keeper.1") == 1);
}

TEST_CASE(
    "two procedures that await each other's values are a deadlock if they name the producers") {
  EngineWorld engine;
  ProcedureId first, second;
  const auto awaits = [&](const ProcedureId& producer) {
    return [&producer](JobRun& run) -> std::optional<Outcome> {
      if (run.step != 2) return std::nullopt;
      if (!producer) return Say::retry("the other is not there yet");
      const auto* const said = run.ctx.await<std::string>(
          [&](Completion<std::string> completion) { run.world.ask(std::move(completion)); });
      if (said != nullptr) return std::nullopt;
      run.ctx.completed_by(producer);
      return Say::wait();
    };
  };
  engine.world.scripts["first"] = {.run = awaits(second)};
  engine.world.scripts["second"] = {.run = awaits(first)};
  engine.open();
  first = engine.submit("first");
  engine.run();
  second = engine.submit("second");
  engine.run();
  CHECK(engine.executor().inspect().deadlocks().empty());  // "first" is backing off
  engine.advance(std::chrono::minutes(1));
  engine.run();

  const ProcedureResult undone = engine.result(second);
  CHECK(undone.state == ProcedureState::kRolledBack);
  CHECK(undone.status.message().find("waits for something that procedure " +
                                     std::to_string(first.value) + " has to do") !=
        std::string::npos);
  CHECK(engine.executor().inspect().deadlocks().empty());
  while (engine.world.answer_one("done")) {
  }
  engine.run_to_the_end();
  CHECK(engine.result(first).state == ProcedureState::kSuccess);
}

TEST_CASE("a procedure that names itself as the producer of what it awaits fails") {
  const bool has_deadline = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [=](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 2 || run.ctx.timed_out()) return std::nullopt;
    run.ctx.completed_by(run.ctx.id());
    const auto* const said = run.ctx.await<std::string>(
        [&](Completion<std::string> completion) { run.world.ask(std::move(completion)); });
    if (said != nullptr) return std::nullopt;
    return has_deadline ? Say::wait_for(std::chrono::hours(1)) : Say::wait();
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run_to_the_end();

  const ProcedureResult result = engine.result(id);
  if (has_deadline) {  // then it says nothing, because the wait ends by itself
    CHECK(result.state == ProcedureState::kSuccess);
    return;
  }
  CHECK(result.state == ProcedureState::kRolledBack);
  CHECK(result.status.code() == StatusCode::kInvalidArgument);
  CHECK(result.status.message().find("the procedure itself") != std::string::npos);
}

TEST_CASE("a child that asks exclusively for what its parent shares fails the spawning step") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"c"}, .locks = orders(LockMode::kShared)};
  engine.world.scripts["c"] = {.steps = 1, .locks = orders()};
  engine.open();
  const ProcedureId id = engine.submit("p");
  engine.run_to_the_end();

  const ProcedureResult result = engine.result(id);
  CHECK(result.state == ProcedureState::kRolledBack);
  CHECK(result.status.code() == StatusCode::kInvalidArgument);
  CHECK(result.status.message().find("locks are not upgraded") != std::string::npos);
  CHECK(engine.world.journal.count("do c.1") == 0);
  CHECK(engine.faults().rows(Space::kProcedure, RowOperation::kInsert) == 2);  // both of the parent
}

}  // namespace pv2::testing::deadlock_test
