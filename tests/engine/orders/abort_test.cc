// SPDX-License-Identifier: Apache-2.0
//
// Aborts from outside. An accepted abort is durable, its tree is undone as after any failure, and
// an abort that could not be carried out is refused. The order of commits decides each race with an
// abort. (Rows 5, 6, 10, 13, 14, 124, 125; X5.)

#include <pv2/store/noop_procedure_store.h>

#include "records/row_keys.h"
#include "support/engine_world.h"
#include "support/job_story.h"
#include "support/rows_in_store.h"

namespace pv2::testing::abort_test {
namespace {

using namespace std::chrono_literals;

JobScript waiting_at(std::uint32_t step, std::uint32_t steps = 3) {
  return {.steps = steps, .run = [step](JobRun& run) {
            if (run.step != step) return usual();
            const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
            return value == nullptr ? std::optional(Say::wait()) : usual();
          }};
}

JobScript failing_at(std::uint32_t step) {
  return {.run = [step](JobRun& run) {
    return run.step == step ? std::optional(Say::fail("failed")) : usual();
  }};
}

// Its first step is its point of no return.
struct CommitsFirstKind : JobKind {
  static constexpr std::string_view kType = "test.CommitsFirst";
  static constexpr auto kSteps =
      steps(step(JobStep::kOne, "ONE", kPointOfNoReturn), step(JobStep::kTwo, "TWO", kNoUndo));
};
using CommitsFirst = ScriptedJob<CommitsFirstKind>;

// The answers to asynchronous aborts, in order.
struct Answers {
  std::vector<Status> list;
  void ask(EngineWorld& engine, ProcedureId id, AbortOptions options = {}) {
    engine.executor().async().abort(id, std::move(options),
                                    [this](const Status& status) { list.push_back(status); });
  }
};

}  // namespace

TEST_CASE("an abort undoes a tree that waits, and the result says who ordered it and why") {
  EngineWorld engine;  // behaviour.md, rows 14, 124
  engine.world.scripts["p"] = {.children = {"c", "slow"}};
  engine.world.scripts["c"] = {.steps = 1};
  engine.world.scripts["slow"] = waiting_at(2);
  engine.open();
  const ProcedureId id = engine.submit("p");
  engine.run();
  CHECK(engine.executor().abort(id, {.reason = "not needed", .who = "anna"}).ok());
  engine.run();

  const ProcedureResult result = engine.result(id);
  CHECK(result.state == ProcedureState::kRolledBack);
  CHECK(result.status == Status(StatusCode::kAborted, "aborted by anna: not needed"));
  CHECK(engine.undone() == Entries{"slow.2", "slow.1", "c.1", "p.2", "p.1"});
  CHECK(rows_in_store(engine, RowKind::kInbox) == 0);
}

TEST_CASE("an abort undoes a procedure that has waited for its locks, with records and without") {
  const bool keeps_records = GENERATE(true, false);
  const LockScope scope = GENERATE(LockScope::kStep, LockScope::kVisit, LockScope::kOperation);
  const bool as_child = GENERATE(false, true);
  CAPTURE(keeps_records, static_cast<int>(scope), as_child);
  EngineWorld engine;
  for (const char* const name : {"first", "second"}) {
    engine.world.scripts[name] = waiting_at(1, 1);
    engine.world.scripts[name].locks =
        LockSet().table("shop", "orders", LockMode::kExclusive).scope(scope);
  }
  engine.world.scripts["parent"] = {.children = {"second"}};
  ExecutorOptions options = engine.options();
  if (!keeps_records) options.store = noop();
  engine.open(std::move(options));
  const ProcedureId first = engine.submit("first");
  const ProcedureId second = engine.submit(as_child ? "parent" : "second");
  engine.run();
  REQUIRE(engine.world.answer_one("go"));
  engine.run();
  CHECK(engine.result(first).status.ok());
  const ProcedureId waits = as_child ? ProcedureId{second.value + 1} : second;
  CHECK(engine.describe(waits).holds_locks == (scope != LockScope::kStep));

  CHECK(engine.executor().abort(second).ok());
  engine.run();

  CHECK(engine.result(second).state == ProcedureState::kRolledBack);
  CHECK(engine.executor().inspect().locks().empty());
}

TEST_CASE("an abort ends a step that repeats itself, a back-off and a timed wait") {
  EngineWorld engine;  // behaviour.md, rows 14, 45
  const auto answer = GENERATE(0, 1, 2);
  engine.world.scripts["a"] = {.run = [answer](JobRun& run) {
    if (run.step != 2) return usual();
    if (answer == 0) return std::optional(Say::again());
    return std::optional(answer == 1 ? Say::retry("later") : Say::wait_for(1h));
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.executor().run_until_idle(10);
  CHECK(engine.executor().abort(id).ok());
  engine.run();

  CHECK(engine.result(id).status == Status(StatusCode::kAborted, "aborted"));
  CHECK(engine.undone() == Entries{"a.2", "a.1"});
}

TEST_CASE("an abort is in the audit of its tree once, with who ordered it and why") {
  const bool crash = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["a"] = {
      .steps = 1, .run = [](JobRun& run) {
        (void)run.ctx.await<std::string>([&](auto completion) { run.world.ask(completion); });
        return std::optional(Say::wait());
      }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  REQUIRE(engine.executor().abort(id, {.reason = "too late", .who = "anna"}).ok());
  (void)engine.executor().abort(id, {.reason = "again", .who = "bob"});
  if (crash) engine.crash_and_open();
  engine.run();
  REQUIRE(engine.result(id).state == ProcedureState::kRolledBack);

  const auto audit = engine.executor().operate().audit(id);
  REQUIRE(audit.ok());
  REQUIRE(audit->size() == 1);
  const AuditEntry entry = audit->front();
  CHECK(entry.verb == RepairVerb::kFailAndRollBack);
  CHECK(entry.procedure == id);
  CHECK(entry.who == "anna");
  CHECK(entry.why == "too late");
  CHECK(engine.executor().acknowledge(id).ok());
  CHECK(engine.executor().operate().audit(id).status().code() == StatusCode::kExpired);
}

TEST_CASE("an abort that was accepted is carried out after a crash") {
  EngineWorld engine;  // X5
  engine.world.scripts["a"] = waiting_at(2);
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  Answers answers;
  answers.ask(engine, id, {.reason = "enough"});
  engine.store().pump();  // the abort's row is durable, nothing else has happened
  engine.crash_and_open();
  CHECK(engine.describe(id).state == ProcedureState::kFailed);
  engine.run();

  CHECK(engine.result(id).status == Status(StatusCode::kAborted, "aborted: enough"));
  CHECK(engine.undone() == Entries{"a.2", "a.1"});
  engine.open();  // the message of the abort was deleted with the tree
  CHECK(rows_in_store(engine, RowKind::kInbox) == 0);
  CHECK(engine.result(id).status == Status(StatusCode::kAborted, "aborted: enough"));
}

TEST_CASE("an abort that is not possible is refused with the reason, and nothing changes") {
  EngineWorld engine;  // behaviour.md, rows 124, 125
  engine.world.scripts["p"] = {.children = {"c"}};
  engine.world.scripts["c"] = waiting_at(1);
  engine.world.scripts["ended"] = {.steps = 1};
  engine.world.scripts["stuck"] = failing_at(2);
  engine.world.scripts["stuck"].undo = [](JobRun&) { return std::optional(Say::fail("no undo")); };
  engine.open();
  ProcedureExecutor& executor = engine.executor();
  const ProcedureId parent = engine.submit("p");
  const ProcedureId ended = engine.submit("ended");
  const ProcedureId gone = engine.submit("ended");
  const ProcedureId parked = engine.submit("stuck");
  engine.run();
  REQUIRE(executor.acknowledge(gone).ok());
  ProcedureId child;
  for (const ProcedureInfo& info : executor.inspect().list()) {
    if (info.parent == parent) child = info.id;
  }

  CHECK(executor.abort(ProcedureId{999}).code() == StatusCode::kNotFound);
  CHECK(executor.abort(gone).code() == StatusCode::kExpired);
  const Status late = executor.abort(ended);
  CHECK(late.code() == StatusCode::kFailedPrecondition);
  CHECK_THAT(late.to_string(), ContainsSubstring("ended"));
  const Status below = executor.abort(child);
  CHECK(below.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(below.to_string(),
             ContainsSubstring("abort its root, procedure " + std::to_string(parent.value)));
  const Status kept = executor.abort(parked);
  CHECK(kept.code() == StatusCode::kFailedPrecondition);
  CHECK_THAT(kept.to_string(), ContainsSubstring("parked"));
  CHECK(rows_in_store(engine, RowKind::kInbox) == 0);
  CHECK(engine.describe(parent).state == ProcedureState::kWaiting);
}

TEST_CASE("an abort is refused once the point of no return has begun, and accepted before") {
  EngineWorld engine;  // behaviour.md, row 124
  engine.world.scripts["m"] = waiting_at(GENERATE(3U, 4U), 5);
  engine.open();
  const ProcedureId id = engine.submit<CommittingJob>("m");
  SECTION("before") {
    engine.executor().run_until_idle(2);
    CHECK(engine.executor().abort(id).ok());
    engine.run();
    CHECK(engine.result(id).status.code() == StatusCode::kAborted);
    CHECK(engine.world.journal.count("do m.3") == 0);
  }
  SECTION("after") {
    const bool restart = GENERATE(false, true);
    engine.run();
    if (restart) engine.crash_and_open();
    engine.run();
    const Status refused = engine.executor().abort(id);
    CHECK(refused.code() == StatusCode::kFailedPrecondition);
    CHECK_THAT(refused.to_string(), ContainsSubstring("point of no return"));
    while (engine.world.answer_one("go on")) engine.run();
    CHECK(engine.result(id).status.ok());
  }
}

TEST_CASE("an abort is refused while the first run of a point of no return is not yet recorded") {
  EngineWorld engine;
  engine.world.scripts["m"] = {.steps = 5};
  engine.open();
  const ProcedureId id = engine.submit<CommittingJob>("m");
  engine.executor().run_until_idle(2);
  engine.faults().hold_commit(engine.faults().commits() + 1);
  engine.run();
  REQUIRE(engine.world.journal.count("do m.3") == 1);
  REQUIRE(engine.world.journal.count("do m.4") == 0);
  Answers answers;
  answers.ask(engine, id);
  engine.faults().release();
  engine.run();

  REQUIRE(answers.list.size() == 1);
  CHECK(answers.list.front().code() == StatusCode::kFailedPrecondition);
  CHECK_THAT(answers.list.front().to_string(),
             ContainsSubstring("has begun its point of no return"));
  CHECK(engine.result(id).status.ok());
}

TEST_CASE(
    "an abort is put off while a step of a failed part may still pass its point of no return") {
  const bool passes = GENERATE(true, false);
  const auto spawns = [](auto spawn_all) {
    return JobScript{.steps = 2, .run = [spawn_all](JobRun& run) {
                       if (run.step == 1) spawn_all(run);
                       return usual();
                     }};
  };
  EngineWorld engine;
  auto& scripts = engine.world.scripts;
  scripts["root"] = spawns([](JobRun& run) {
    run.ctx.spawn(Job(run.world, "part"), {.on_failure = OnFailure::kReport});
  });
  scripts["part"] = spawns([](JobRun& run) {
    run.spawn("fails");
    run.ctx.spawn(CommittingJob(run.world, "commits"));
  });
  scripts["fails"] = waiting_at(1);
  scripts["fails"].run = [awaits = scripts["fails"].run](JobRun& run) {
    const auto outcome = awaits(run);
    return outcome ? outcome : std::optional(Say::fail("failed"));
  };
  scripts["commits"] = waiting_at(3, 5);
  scripts["commits"].run = [passes, awaits = scripts["commits"].run](JobRun& run) {
    const auto outcome = awaits(run);
    return outcome || passes || run.step != 3 ? outcome : std::optional(Say::fail("failed too"));
  };
  engine.open();
  const ProcedureId root = engine.submit("root");
  engine.run();
  engine.faults().hold_commit(engine.faults().commits() + 1);
  REQUIRE(engine.world.answer_one("fail"));
  engine.run();
  REQUIRE(engine.world.answer_one("go on"));
  engine.run();
  REQUIRE(engine.faults().held() == 2);
  engine.faults().release();
  engine.store().pump_some(1);  // the failure is durable, the step at the point of no return is not

  const Status put_off = engine.executor().abort(root);
  CHECK(put_off.code() == StatusCode::kUnavailable);
  CHECK_THAT(put_off.to_string(), ContainsSubstring("while a part of its tree ends or fails"));
  engine.run();
  if (passes) {
    CHECK_FALSE(engine.describe(root).parked);
    CHECK(engine.describe({root.value + 1}).parked);
    CHECK(engine.executor().abort(root).code() == StatusCode::kFailedPrecondition);
  } else {
    CHECK(engine.result(root).status.ok());  // the part was undone, and its failure reported
  }
}

TEST_CASE("the last record of a part that failed at its point of no return forbids no abort") {
  EngineWorld engine;
  engine.world.scripts["root"] = {.steps = 2, .run = [](JobRun& run) {
                                    if (run.step == 1) {
                                      run.ctx.spawn(CommitsFirst(run.world, "part"),
                                                    {.on_failure = OnFailure::kReport});
                                    }
                                    return usual();
                                  }};
  engine.world.scripts["part"] = failing_at(1);
  auto options = engine.options();
  options.registry.add<CommitsFirst>(engine.world);
  engine.open(std::move(options));
  const ProcedureId root = engine.submit("root");
  const ProcedureId part{root.value + 1};
  while (!engine.executor().inspect().describe(part).ok()) engine.executor().run_until_idle(1);
  engine.faults().hold_commit(engine.faults().commits() + 2);  // the record after its failure
  engine.run();
  REQUIRE(engine.faults().held() == 1);
  REQUIRE(engine.describe(part).state == ProcedureState::kFailed);
  Answers answers;
  answers.ask(engine, root);
  engine.faults().release();
  engine.run();
  CHECK(answers.list == std::vector<Status>{Status()});
  CHECK(engine.result(root).status.code() == StatusCode::kAborted);
}

TEST_CASE("a point of no return that waits for its lock has not begun, also after a restart") {
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  const auto table = LockSet().table("shop", "orders", LockMode::kExclusive);
  engine.world.scripts["holder"] = waiting_at(2, 3);
  engine.world.scripts["holder"].locks = table;
  engine.world.scripts["m"] = {.steps = 5};
  engine.world.scripts["m"].locks = table;
  engine.world.scripts["m"].locks.scope(LockScope::kStep);
  engine.open();
  const ProcedureId id = engine.submit<CommittingJob>("m");
  engine.executor().run_until_idle(1);
  const ProcedureId holder = engine.submit("holder");
  engine.run();
  REQUIRE(engine.describe(id).step == 3);
  REQUIRE(engine.world.journal.count("do m.3") == 0);
  REQUIRE_FALSE(engine.describe(id).holds_locks);
  if (restart) engine.crash_and_open();
  engine.run();
  CHECK(engine.executor().abort(id).to_string() == "OK");
  while (engine.world.answer_one("go on")) engine.run();
  CHECK(engine.result(holder).status.ok());
  CHECK(engine.result(id).status.code() == StatusCode::kAborted);
  CHECK(engine.world.journal.count("undo m.1") == 1);
}

TEST_CASE("a point of no return whose wait an operator has ended has not begun by that") {
  EngineWorld engine;
  const auto table = LockSet().table("shop", "orders", LockMode::kExclusive);
  engine.world.scripts["holder"] = waiting_at(2);
  engine.world.scripts["late"] = {.steps = 2};
  engine.world.scripts["holder"].locks = engine.world.scripts["late"].locks = table;
  ExecutorOptions options = engine.options();
  options.registry.add<CommitsFirst>(engine.world);
  engine.open(std::move(options));
  engine.submit("holder");
  engine.run();
  const ProcedureId late = engine.submit<CommitsFirst>("late", {.delay = 1h});
  REQUIRE(engine.executor().operate().retry_now(late, {.who = "anna", .why = "now"}).ok());
  engine.run();
  CHECK(engine.executor().abort(late, {.reason = "no"}).to_string() == "OK");
  engine.run();
  CHECK(engine.result(late).status.code() == StatusCode::kAborted);
}

TEST_CASE("no procedure begins a point of no return while an abort is on its way") {
  EngineWorld engine;
  engine.world.scripts["m"] = {.steps = 5};
  engine.world.scripts["m"].locks = LockSet().table("shop", "orders", LockMode::kExclusive);
  if (GENERATE(false, true)) engine.world.scripts["m"].locks.scope(LockScope::kStep);
  engine.open();
  const ProcedureId id = engine.submit<CommittingJob>("m");
  engine.executor().run_until_idle(2);
  engine.faults().hold_commit(engine.faults().commits() + 1);
  Answers answers;
  answers.ask(engine, id);
  engine.run();
  CHECK(engine.world.journal.count("do m.2") == 1);
  CHECK(engine.world.journal.count("do m.3") == 0);
  CHECK(answers.list.empty());
  engine.faults().release();
  engine.run();

  CHECK(answers.list == std::vector<Status>{Status()});
  CHECK(engine.result(id).status.code() == StatusCode::kAborted);
  CHECK(engine.world.journal.count("do m.3") == 0);
  CHECK(engine.executor().inspect().locks().empty());
}

TEST_CASE("an abort that meets the last record is decided by the order of their commits") {
  EngineWorld engine;
  const bool final = GENERATE(false, true);
  const bool crash = GENERATE(false, true);
  engine.world.scripts["a"] = {.steps = 2};
  engine.open();
  const ProcedureId id = final ? engine.submit<FinalJob>("a") : engine.submit("a");
  engine.executor().run_until_idle(1);
  engine.faults().hold_commit(engine.faults().commits() + 1);
  Answers answers;
  SECTION("the end came first") {
    engine.run();  // runs step 2; its record is held
    answers.ask(engine, id);
    REQUIRE(engine.faults().held() == 2);
    engine.faults().release();
    if (crash) {
      engine.store().pump_some(2);
      engine.crash_and_open();
    }
    engine.run();
    CHECK(engine.result(id).status.ok());
    CHECK(engine.undone().empty());
    if (!crash) {
      REQUIRE(answers.list.size() == 1);
      CHECK(answers.list[0].code() == StatusCode::kFailedPrecondition);
    }
  }
  SECTION("the abort came first") {
    answers.ask(engine, id);
    engine.run();
    REQUIRE(engine.faults().held() == 2);
    engine.faults().release();
    if (crash) {
      engine.store().pump_some(2);
      engine.crash_and_open();
    }
    engine.run();
    CHECK(engine.result(id).status.code() == StatusCode::kAborted);
    CHECK(engine.result(id).result.empty());
    CHECK(engine.undone() == Entries{"a.2", "a.1"});
    if (!crash) CHECK(answers.list == std::vector<Status>{Status()});
  }
  CHECK(rows_in_store(engine, RowKind::kInbox) == 0);
}

TEST_CASE("of an abort and a failure, the one that is durable first is the cause") {
  EngineWorld engine;
  const bool failure_first = GENERATE(false, true);
  const bool crash = GENERATE(false, true);
  engine.world.scripts["a"] = failing_at(2);
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.executor().run_until_idle(1);
  engine.faults().hold_commit(engine.faults().commits() + 1);
  Answers answers;
  if (failure_first) engine.run();
  answers.ask(engine, id);
  if (!failure_first) engine.run();
  REQUIRE(engine.faults().held() == 2);
  engine.faults().release();
  if (crash) {
    engine.store().pump_some(2);
    engine.crash_and_open();
  }
  engine.run();

  if (!crash) CHECK(answers.list == std::vector<Status>{Status()});  // it is undone, as asked
  CHECK(engine.result(id).status.code() ==
        (failure_first ? StatusCode::kFailedPrecondition : StatusCode::kAborted));
  CHECK(engine.undone() == Entries{"a.2", "a.1"});
  CHECK(rows_in_store(engine, RowKind::kInbox) == 0);
}

TEST_CASE("a second abort joins the first while that is on its way and while the tree is undone") {
  EngineWorld engine;
  engine.world.scripts["a"] = waiting_at(2);
  engine.world.scripts["a"].undo = [](JobRun& run) {
    return run.step == 2 && !run.ctx.timed_out() ? std::optional(Say::wait_for(1h)) : usual();
  };
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  Answers answers;
  answers.ask(engine, id, {.who = "anna"});
  answers.ask(engine, id, {.who = "ben"});
  engine.run();
  answers.ask(engine, id, {.who = "cleo"});
  engine.run();
  CHECK(answers.list == std::vector<Status>{Status(), Status(), Status()});
  CHECK(rows_in_store(engine, RowKind::kInbox) == 1);
  engine.advance(1h);

  CHECK(engine.result(id).status == Status(StatusCode::kAborted, "aborted by anna"));
  CHECK(rows_in_store(engine, RowKind::kInbox) == 0);
}

TEST_CASE("an abort waits for members in flight, and children that they spawned never begin") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"c"}};
  engine.world.scripts["c"] = {};
  engine.open();
  const ProcedureId id = engine.submit("p");
  engine.executor().run_until_idle(1);
  engine.faults().hold_commit(engine.faults().commits() + 1);
  Answers answers;
  answers.ask(engine, id);
  engine.run();  // step 2 spawns; its record is queued behind the abort
  engine.faults().release();
  engine.store().pump_some(1);
  CHECK(engine.undone().empty());
  engine.run();

  CHECK(engine.result(id).status.code() == StatusCode::kAborted);
  CHECK(engine.undone() == Entries{"p.2", "p.1"});
  CHECK(engine.world.journal.count("do c.1") == 0);
}

TEST_CASE("an abort whose commit fails is answered with an unknown outcome") {
  EngineWorld engine;
  engine.world.scripts["a"] = waiting_at(2);
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.faults().fail_commit(engine.faults().commits() + 1,
                              Status(StatusCode::kIoError, "no disk"));
  Answers answers;
  answers.ask(engine, id);
  answers.ask(engine, id);
  engine.run();
  answers.ask(engine, id);
  engine.run();

  REQUIRE(answers.list.size() == 3);
  CHECK(answers.list[0].code() == StatusCode::kUnknownOutcome);
  CHECK(answers.list[1].code() == StatusCode::kUnknownOutcome);
  CHECK(answers.list[2].code() == StatusCode::kIoError);
  engine.open();
  engine.run();
  CHECK(engine.describe(id).state == ProcedureState::kRunnable);
}

TEST_CASE("a message without a procedure is deleted at load, a damaged one quarantines its tree") {
  EngineWorld engine;
  engine.world.scripts["a"] = waiting_at(2);
  engine.world.scripts["ended"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("a");
  const ProcedureId ended = engine.submit("ended");
  engine.run();
  engine.close();
  SECTION("without a procedure") {
    engine.disk->put(Space::kProcedure, inbox_key(ended, 1), "what it says is not looked at");
    engine.disk->put(Space::kProcedure, inbox_key(ProcedureId{77}, 3), "nor this");
    engine.open();
    engine.run();
    CHECK(rows_in_store(engine, RowKind::kInbox) == 0);
    CHECK(engine.result(ended).status.ok());
    CHECK_FALSE(engine.describe(id).quarantined);
    CHECK(engine.submit("ended").value > 77);
  }
  SECTION("damaged") {
    engine.disk->put(Space::kProcedure, inbox_key(id, 1), "damaged");
    engine.open();
    engine.run();
    CHECK(engine.describe(id).quarantined);
    CHECK_THAT(engine.describe(id).error.to_string(), ContainsSubstring("message 1"));
    CHECK(rows_in_store(engine, RowKind::kInbox) == 1);
    CHECK(engine.result(ended).status.ok());
  }
}

TEST_CASE("an abort on a thread of the executor is refused instead of waiting for itself") {
  EngineWorld engine;
  Status answer;
  ProcedureExecutor* executor = nullptr;
  engine.world.scripts["a"] = {.steps = 1, .run = [&](JobRun& run) {
                                 answer = executor->abort(run.ctx.id());
                                 return usual();
                               }};
  executor = &engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(answer.code() == StatusCode::kFailedPrecondition);
  CHECK(engine.result(id).status.ok());
}

TEST_CASE("crashed anywhere, an abort that was accepted is carried out, whole") {
  JobPlot plot;
  const std::size_t at = GENERATE(0, 1, 2, 3, 4, 5);
  plot.scripts["p"] = {.children = {"x", "y"}};
  plot.scripts["x"] = {.steps = 2};
  plot.scripts["y"] = waiting_at(2);
  plot.scripts["y"].locks = LockSet().table("shop", "orders", LockMode::kExclusive);
  plot.roots = {{.name = "p", .succeeds = false, .aborts_at = at}};
  plot.check = [](const auto& journal, const auto&) {
    check_all_undone(journal);
    check_undone_before(journal, "p.2", "p.1");
  };

  crash_everywhere(plot, {.twice = at == 4, .power_cuts = at == 4});
}

TEST_CASE("crashed anywhere, an abort and a point of no return agree on one end") {
  JobPlot plot;
  plot.scripts["m"] = {.steps = 5};
  plot.roots = {{.name = "m",
                 .succeeds = std::nullopt,
                 .type = JobRoot::Type::kCommittingJob,
                 .aborts_at = GENERATE(1U, 2U, 3U, 5U)}};
  plot.check = [](const auto& journal, const auto&) {
    const bool committed = count(journal, "do m.3") != 0;
    REQUIRE((count(journal, "do m.5") != 0) == committed);
    REQUIRE((count(journal, "undo m.1") != 0) == !committed);
  };

  crash_everywhere(plot, {.twice = true});
}

}  // namespace pv2::testing::abort_test
