// SPDX-License-Identifier: Apache-2.0
//
// Trees that failed beyond a point of no return. An operator retries the failed step, skips it, or
// sends the tree back as far as it can be undone. Histories and audits contain these orders.

#include "records/row_keys.h"
#include "support/repair_orders.h"

namespace pv2::testing::forward_repair_test {
namespace {

using namespace std::chrono_literals;

// Five steps, the third of which commits; fails at step 4 until `mended`.
JobScript fails_behind(const bool& mended) {
  return {.steps = 5,
          .run =
              [&mended](JobRun& run) {
                return run.step == 4 && !mended ? std::optional(Say::fail("no")) : usual();
              },
          .locks = LockSet().table("shop", "orders", LockMode::kExclusive)};
}

std::vector<Outcome::Kind> outcomes(const Result<std::vector<HistoryEntry>>& history) {
  REQUIRE(history.status().to_string() == "OK");
  std::vector<Outcome::Kind> kinds;
  for (const HistoryEntry& entry : *history) kinds.push_back(entry.outcome);
  return kinds;
}

}  // namespace

TEST_CASE("a step that failed beyond the point of no return runs again when ordered") {
  const auto crash = GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter);
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  bool mended = false;
  engine.world.scripts["m"] = fails_behind(mended);
  engine.open();
  const ProcedureId id = engine.submit<CommittingJob>("m");
  engine.run();
  if (restart) engine.open();
  REQUIRE(engine.describe(id).parked);
  CHECK(engine.describe(id).step_name == "FOUR");  // the step that failed
  CHECK_THAT(joined(engine.executor().operate().preview(id, RepairVerb::kRetryNow)),
             ContainsSubstring("makes FOUR again"));
  for (int i = 0; i < 2; ++i) {  // in vain
    REQUIRE(engine.executor().operate().retry_now(id, kNote).to_string() == "OK");
    engine.run();
    REQUIRE(engine.describe(id).parked);
  }
  REQUIRE(engine.executor().operate().audit(id)->size() == 2);
  mended = true;
  if (crash == Crash::kNone) {
    REQUIRE(engine.executor().operate().retry_now(id, kNote).ok());
  } else {
    const std::size_t next = engine.faults().commits() + 1;
    crash == Crash::kBefore ? engine.faults().crash_before(next, FaultStore::AfterCrash::kFail)
                            : engine.faults().crash_after(next, FaultStore::AfterCrash::kFail);
    REQUIRE(engine.executor().operate().retry_now(id, kNote).code() == StatusCode::kUnknownOutcome);
    engine.open();
    CHECK(engine.executor().operate().audit(id)->size() == (crash == Crash::kAfter ? 3 : 2));
    CHECK(engine.describe(id).parked == (crash == Crash::kBefore));
    CHECK(engine.describe(id).error.ok() == (crash == Crash::kAfter));
    if (crash == Crash::kBefore) REQUIRE(engine.executor().operate().retry_now(id, kNote).ok());
  }
  engine.run();

  CHECK(engine.result(id).status.ok());
  CHECK_FALSE(engine.result(id).bypassed);
  CHECK(engine.world.journal.count("do m.3") == 1);
  CHECK(engine.world.journal.count("do m.4") == 1);
  CHECK(engine.world.journal.count("undo m.1") == 0);
  CHECK(engine.executor().inspect().locks().empty());
  CHECK(engine.executor().operate().audit(id)->back().step == 4);
  using K = Outcome::Kind;
  const auto kinds = outcomes(engine.executor().inspect().history(id));
  REQUIRE(kinds.size() == 8);
  CHECK(std::vector<K>(kinds.end() - 3, kinds.end()) ==
        std::vector{K::kRetriedNow, K::kNext, K::kDone});
}

TEST_CASE("a step that failed beyond the point of no return is skipped, and the next one follows") {
  const auto crash = GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter);
  EngineWorld engine;
  const bool mended = false;
  engine.world.scripts["m"] = fails_behind(mended);
  engine.open();
  const ProcedureId id = engine.submit<CommittingJob>("m");
  engine.run();
  CHECK_THAT(joined(engine.executor().operate().preview(id, RepairVerb::kSkipStep)),
             ContainsSubstring("failed at FOUR") && ContainsSubstring("FIVE follows"));
  CHECK(engine.executor().operate().skip_step(id, {.next_step = 9}).code() ==
        StatusCode::kInvalidArgument);
  order(engine, id, RepairVerb::kSkipStep, crash);
  engine.run();

  CHECK(engine.result(id).result == "m done");
  CHECK(engine.world.journal.count("do m.4") == 0);
  CHECK(engine.world.journal.count("do m.5") == 1);
  using K = Outcome::Kind;
  CHECK(outcomes(engine.executor().inspect().history(id)) ==
        std::vector{K::kNext, K::kNext, K::kNext, K::kFail, K::kSkipped, K::kDone});
}

TEST_CASE("a step that is skipped may be followed by a step that the order names") {
  EngineWorld engine;
  engine.world.scripts["m"] = {
      .steps = 5, .run = [](JobRun& run) {
        return run.step == 4 && run.note.empty() ? std::optional(Say::fail("no")) : usual();
      }};
  engine.open();
  const ProcedureId id = engine.submit<CommittingJob>("m");
  engine.run();
  REQUIRE(engine.executor()
              .operate()
              .skip_step(id, {.who = "anna", .why = "again", .next_step = 2})
              .ok());
  engine.run();
  CHECK(engine.world.journal.count("do m.2") == 2);
  CHECK(engine.describe(id).parked);
}

TEST_CASE("a last step that is skipped ends its procedure, without a result") {
  const auto crash = GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter);
  const bool child = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["m"] = {.steps = 5, .run = [](JobRun& run) {
                                 return run.step == 5 ? std::optional(Say::fail("no")) : usual();
                               }};
  engine.world.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) run.ctx.spawn(CommittingJob(run.world, "m"));
    return usual();
  }};
  engine.open();
  const ProcedureId root =
      child ? engine.submit("p") : engine.submit<CommittingJob>("m", {.nonce = {1, 1}});
  engine.run();
  order(engine, root, RepairVerb::kSkipStep, crash);
  engine.run();

  CHECK(engine.result(root).status.ok());
  CHECK(engine.result(root).result == (child ? "p done" : ""));
  CHECK(engine.world.journal.count("do p.3") == (child ? 1 : 0));
  CHECK(engine.executor().operate().audit(root)->front().procedure.value ==
        root.value + (child ? 1 : 0));
  CHECK(engine.executor().inspect().live_procedures() == 0);
}

TEST_CASE(
    "of two failed members one is skipped to its end, and its parent waits for one child less") {
  EngineWorld engine;
  for (const char* name : {"a", "b"}) {
    engine.world.scripts[name] = {.steps = 5, .run = [](JobRun& run) {
                                    if (run.step != 5) return usual();
                                    const bool told = run.ctx.signal("go") != nullptr;
                                    return std::optional(told ? Say::fail("no") : Say::wait());
                                  }};
  }
  engine.world.scripts["g"] = {.children = {"a"}};
  engine.world.scripts["m"] = {.steps = 4, .run = [](JobRun& run) {
                                 if (run.step == 3) {
                                   for (const char* child : {"b", "g"}) run.spawn(child);
                                 }
                                 return usual();
                               }};
  engine.open();
  const ProcedureId root = engine.submit<CommittingJob>("m");
  engine.run();
  const ProcedureId b{root.value + 1};
  const ProcedureId g{root.value + 2};
  const ProcedureId a{root.value + 3};
  for (const ProcedureId id : {a, b}) {  // both fail, in one run of a worker
    engine.executor().async().signal(id, "go", {}, [](const Status&) {});
  }
  engine.run();
  REQUIRE(engine.describe(a).state == ProcedureState::kFailed);
  REQUIRE(engine.describe(b).state == ProcedureState::kFailed);
  REQUIRE(engine.executor().operate().skip_step(a, kNote).to_string() == "OK");
  engine.run();
  CHECK(engine.describe(g).state == ProcedureState::kRunnable);
  const std::string before = states(engine);
  engine.open();
  CHECK(states(engine) == before);
  REQUIRE(engine.executor().operate().skip_step(b, kNote).to_string() == "OK");
  engine.run();
  CHECK(engine.result(root).status.ok());
  CHECK(engine.world.journal.count("do g.3") == 1);
}

TEST_CASE("a tree goes on when every member that failed was repaired by an order of its own") {
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  bool mended = false;
  for (const char* name : {"a", "b"}) {  // both fail, in one run of a worker
    engine.world.scripts[name] = {.run = [&](JobRun& run) {
      return run.step == 2 && !mended ? std::optional(Say::fail("no")) : usual();
    }};
  }
  engine.world.scripts["w"] = {.run = [](JobRun& run) {
    if (run.step != 2) return usual();
    const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
    return value == nullptr ? std::optional(Say::wait()) : usual();
  }};
  engine.world.scripts["late"] = {.run = [](JobRun& run) {
    return run.step == 2 && !run.ctx.timed_out() ? std::optional(Say::wait_for(1h)) : usual();
  }};
  engine.world.scripts["grand"] = {.children = {"w"}};
  engine.world.scripts["m"] = {.steps = 4, .run = [](JobRun& run) {
                                 if (run.step == 3) {
                                   for (const char* c : {"a", "b", "grand", "late"}) run.spawn(c);
                                 }
                                 return usual();
                               }};
  engine.open();
  const ProcedureId root = engine.submit<CommittingJob>("m");
  engine.run();
  REQUIRE(engine.describe(root).parked);
  if (restart) engine.open();
  const ProcedureId a{root.value + 1};
  const ProcedureId b{root.value + 2};
  const ProcedureId grand{root.value + 3};
  REQUIRE(engine.describe(a).state == ProcedureState::kFailed);
  CHECK(engine.executor().operate().retry_now(grand, kNote).code() ==
        StatusCode::kFailedPrecondition);
  mended = true;
  const bool both = engine.describe(b).state == ProcedureState::kFailed;
  REQUIRE(engine.executor().operate().retry_now(root, kNote).to_string() ==
          "OK");  // for the member that failed first
  engine.run();
  REQUIRE(both);
  CHECK(engine.describe(root).parked);
  if (restart) engine.crash_and_open();
  REQUIRE(engine.executor().operate().skip_step(b, kNote).to_string() == "OK");
  if (GENERATE(false, true)) engine.crash_and_open();
  engine.run();
  CHECK_FALSE(engine.describe(root).parked);
  while (engine.world.answer_one("go")) engine.run();
  engine.run_to_the_end();

  CHECK(engine.result(root).status.ok());
  CHECK(engine.world.journal.count("do a.3") == 1);
  CHECK(engine.world.journal.count("do b.2") == 0);
  CHECK(engine.world.journal.count("do b.3") == 1);
  CHECK(engine.world.journal.count("do grand.3") == 1);
  CHECK(engine.world.journal.count("do late.3") == 1);
  CHECK(engine.world.journal.count("do m.4") == 1);
}

TEST_CASE("a tree that is parked beyond a point of no return is sent back as far as it goes") {
  const auto crash = GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter);
  const bool crash_later = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) {
      run.ctx.spawn(CommittingJob(run.world, "m"));
      run.spawn("c");
    }
    return usual();
  }};
  engine.world.scripts["m"] = {.steps = 4};
  engine.world.scripts["c"] = {.steps = 5, .run = [](JobRun& run) {
                                 return run.step == 5 ? std::optional(Say::fail("no")) : usual();
                               }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  REQUIRE(engine.describe(root).parked);
  const std::string lines =
      joined(engine.executor().operate().preview(root, RepairVerb::kFailAndRollBack));
  CHECK_THAT(lines, ContainsSubstring("passed its point of no return"));
  CHECK_THAT(lines, ContainsSubstring("did ONE, TWO, which is undone"));
  order(engine, root, RepairVerb::kFailAndRollBack, crash);
  if (crash_later) {
    engine.executor().run_until_idle(2);
    engine.crash_and_open();
  }
  engine.run();

  const ProcedureResult result = engine.result(root);
  CHECK(result.state == ProcedureState::kRolledBack);
  CHECK(result.bypassed);
  CHECK(result.status == Status(StatusCode::kFailedPrecondition, "no"));
  for (const char* step : {"undo c.5", "undo c.1", "undo p.2", "undo p.1"}) {
    CHECK(engine.world.journal.count(step) >= 1);
  }
  for (const char* step : {"undo m.1", "undo m.3"}) CHECK(engine.world.journal.count(step) == 0);
  CHECK(engine.executor().operate().audit(root)->front().verb == RepairVerb::kFailAndRollBack);
  engine.open();
  CHECK(engine.result(root).bypassed);
  CHECK(engine.executor().acknowledge(root).ok());
  CHECK(rows_in_store(engine, RowKind::kAudit) == 0);
  CHECK(rows_in_store(engine, RowKind::kState) == 0);
}

TEST_CASE("an order about a tree whose success an abort took back stays in the audit") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.steps = 1, .run = [](JobRun& run) {
                                 run.spawn("c");
                                 return usual();
                               }};
  engine.world.scripts["c"] = {.steps = 1,
                               .run =
                                   [](JobRun& run) {
                                     return run.ctx.timed_out() ? usual()
                                                                : std::optional(Say::wait_for(1h));
                                   },
                               .undo = [](JobRun&) { return std::optional(Say::fail("stuck")); }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  // The child's success is published after the abort is durable, and the root's end is recorded.
  engine.faults().hold_commit(engine.faults().commits() + 1);
  engine.advance(1h);
  REQUIRE(engine.faults().held() == 1);
  engine.executor().async().abort(root, {}, [](const Status&) {});
  engine.run();
  engine.faults().release();
  engine.run();
  REQUIRE(engine.disk->get(Space::kResult, result_key(root)).has_value());
  REQUIRE(engine.describe(root).parked);
  order(engine, root, RepairVerb::kSkipStep, Crash::kAfter);
  CHECK(engine.executor().operate().audit(root)->size() == 2);
  engine.run();
  CHECK(engine.result(root).status.code() == StatusCode::kAborted);
  CHECK(engine.executor().operate().audit(root)->size() == 2);
  CHECK(engine.world.journal.count("undo p.1") == 1);
}

TEST_CASE("an undo that parks after a tree was sent back is repaired like any other") {
  EngineWorld engine;
  engine.world.scripts["p"] = {
      .run =
          [](JobRun& run) {
            if (run.step == 2) {
              run.ctx.spawn(CommittingJob(run.world, "m"));
            }
            return run.step == 3 ? std::optional(Say::fail("no")) : usual();
          },
      .undo =
          [](JobRun& run) { return run.step == 2 ? std::optional(Say::fail("stuck")) : usual(); }};
  engine.world.scripts["m"] = {.steps = 4};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  REQUIRE(engine.executor().operate().fail_and_roll_back(root, kNote).to_string() == "OK");
  engine.run();
  REQUIRE(engine.describe(root).parked);
  if (GENERATE(false, true)) engine.crash_and_open();
  CHECK(engine.executor().operate().fail_and_roll_back(root, kNote).code() ==
        StatusCode::kFailedPrecondition);
  REQUIRE(engine.executor().operate().skip_step(root, kNote).to_string() == "OK");
  engine.run();
  CHECK(engine.result(root).bypassed);
  CHECK(engine.world.journal.count("undo p.1") == 1);
}

TEST_CASE("an order about a parked undo is carried out if the undo before it ends meanwhile") {
  const RepairVerb verb = GENERATE(RepairVerb::kRetryNow, RepairVerb::kSkipStep);
  EngineWorld engine;
  bool mended = false;
  SpawnOptions reported;
  reported.on_failure = OnFailure::kReport;
  auto& scripts = engine.world.scripts;
  scripts["p"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 2) run.ctx.spawn(Job(run.world, "parks"), reported);
    if (run.step == 2) run.ctx.spawn(Job(run.world, "waits"), reported);
    return usual();
  }};
  scripts["parks"] = {
      .steps = 2,
      .run = [](JobRun& run) { return run.step == 2 ? std::optional(Say::fail("no")) : usual(); },
      .undo = [&](JobRun&) { return mended ? usual() : std::optional(Say::fail("stuck")); }};
  scripts["waits"] = {.steps = 2, .run = scripts["parks"].run, .undo = [](JobRun& run) {
                        const bool over = run.step == 1 || run.ctx.timed_out();
                        return over ? usual() : std::optional(Say::wait_for(1h));
                      }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId parked{root.value + 1};
  REQUIRE(engine.describe(parked).parked);
  REQUIRE(engine.executor().abort(root).ok());
  engine.run();

  mended = true;
  engine.faults().hold_commit(engine.faults().commits() + 1);
  engine.advance(1h);
  REQUIRE(engine.faults().held() == 1);  // the record of the undo of "waits"
  std::optional<Status> answer;
  engine.executor().operate().order(parked, verb, kNote, [&](const Status& s) { answer = s; });
  engine.run();
  engine.faults().release();
  engine.run();
  REQUIRE(answer.has_value());
  CHECK(answer->to_string() == "OK");
  CHECK(engine.result(root).status.code() == StatusCode::kAborted);
  CHECK(engine.world.journal.count("undo waits.2") == 1);
  CHECK(engine.world.journal.count("undo parks.2") == (verb == RepairVerb::kRetryNow ? 1 : 0));
}

TEST_CASE("a tree beyond its point of no return can still be bypassed") {
  EngineWorld engine;
  const bool mended = false;
  engine.world.scripts["m"] = fails_behind(mended);
  engine.open();
  const ProcedureId id = engine.submit<CommittingJob>("m");
  engine.run();
  if (GENERATE(false, true)) engine.open();
  REQUIRE(engine.describe(id).parked);
  CHECK(engine.executor().operate().bypass(id, kNote).ok());
  CHECK(engine.result(id).bypassed);
  CHECK(engine.executor().operate().audit(id)->size() == 1);
  CHECK(outcomes(engine.executor().inspect().history(id)).back() == Outcome::Kind::kBypassed);
}

TEST_CASE("an undo that an operator retried or skipped is in the history") {
  EngineWorld engine;
  engine.world.scripts["a"] = {
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .undo =
          [](JobRun& run) { return run.step == 2 ? std::optional(Say::fail("stuck")) : usual(); }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  REQUIRE(engine.executor().operate().retry_now(id, kNote).ok());
  engine.run();
  REQUIRE(engine.executor().operate().skip_step(id, kNote).ok());
  engine.run();
  using K = Outcome::Kind;
  const auto history = engine.executor().inspect().history(id);
  CHECK(outcomes(history) == std::vector{K::kNext, K::kFail, K::kUndone, K::kFail, K::kRetriedNow,
                                         K::kFail, K::kSkipped, K::kUndone});
  CHECK((*history)[6].step == 2);
}

TEST_CASE("a back-off that an operator ended is not mistaken for a deadline, however often") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun& run) {
    if (run.step == 2 && run.ctx.attempt() <= 10) {
      run.world.journal.note(run.ctx.timed_out() ? "timed out" : "attempt");
      return std::optional(Say::retry("later"));
    }
    return usual();
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  for (int i = 0; i < 10; ++i) {
    REQUIRE(engine.executor().operate().retry_now(id, kNote).to_string() == "OK");
    engine.run();
  }
  CHECK(engine.result(id).status.ok());
  CHECK(engine.world.journal.count("attempt") == 10);
  CHECK(engine.world.journal.count("timed out") == 0);
}

TEST_CASE("fail_and_roll_back of a root that goes forward aborts it, also around a parked child") {
  EngineWorld engine;
  bool mended = false;
  SpawnOptions reported;
  reported.on_failure = OnFailure::kReport;
  engine.world.scripts["p"] = {.run = [&](JobRun& run) {
    if (run.step == 2) run.ctx.spawn(Job(run.world, "parks"), reported);
    return usual();
  }};
  engine.world.scripts["parks"] = stuck(mended);
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId parked{root.value + 1};
  REQUIRE(engine.describe(parked).parked);
  CHECK(engine.executor().operate().fail_and_roll_back(parked, kNote).code() ==
        StatusCode::kFailedPrecondition);
  CHECK(engine.executor().operate().preview(root, RepairVerb::kFailAndRollBack).ok());
  CHECK(engine.executor().operate().fail_and_roll_back(root, kNote).ok());
  engine.run();
  mended = true;
  REQUIRE(engine.executor().operate().retry_now(parked, kNote).ok());
  engine.run();
  CHECK(engine.result(root).status.code() == StatusCode::kAborted);
}

TEST_CASE("fail_and_roll_back of a tree that goes forward is in the audit, if it was in time") {
  const auto crash = GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter);
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"c"}};
  engine.world.scripts["c"] = {.run = [](JobRun&) { return std::optional(Say::wait_for(1h)); }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId child{root.value + 1};
  order(engine, child, RepairVerb::kFailAndRollBack, crash, root);
  engine.run();
  CHECK(engine.result(root).status == Status(StatusCode::kAborted, "aborted by anna: ticket 7"));
  const auto audit = engine.executor().operate().audit(root);
  REQUIRE(audit->size() == 1);
  CHECK(audit->front().procedure == child);
  CHECK(audit->front().verb == RepairVerb::kFailAndRollBack);
  CHECK(engine.executor().acknowledge(root).ok());
  CHECK(rows_in_store(engine, RowKind::kAudit) == 0);
}

TEST_CASE(
    "fail_and_roll_back of a tree that is aborted already is refused, and only the abort is in the "
    "audit") {
  const bool crash = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["a"] = {
      .run = [](JobRun&) { return std::optional(Say::wait_for(1h)); },
      .undo = [](JobRun&) { return std::optional(Say::wait_for(1h)); },
  };
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.faults().hold_commit(engine.faults().commits() + 1);
  engine.executor().async().abort(id, {.reason = "enough"}, [](const Status&) {});
  Status answer;
  engine.executor().operate().order(id, RepairVerb::kFailAndRollBack, kNote,
                                    [&](const Status& status) { answer = status; });
  engine.run();
  CHECK(answer.code() == StatusCode::kUnavailable);
  CHECK(engine.executor().operate().preview(id, RepairVerb::kFailAndRollBack).status() == answer);
  engine.faults().release();
  engine.run();
  if (crash) engine.crash_and_open();
  engine.run();
  answer = engine.executor().operate().fail_and_roll_back(id, kNote);
  CHECK(answer.code() == StatusCode::kFailedPrecondition);
  CHECK(engine.executor().operate().preview(id, RepairVerb::kFailAndRollBack).status() == answer);
  CHECK(engine.executor().abort(id, {}).ok());
  const auto audit = engine.executor().operate().audit(id);
  REQUIRE(audit.ok());
  REQUIRE(audit->size() == 1);
  CHECK(audit->front().why == "enough");
}

TEST_CASE("the audit of an order that came too late is deleted with its message") {
  const bool crash = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.faults().hold_commit(engine.faults().commits() + 1);
  engine.run();  // the record of its end is held
  Status answer;
  engine.executor().operate().order(id, RepairVerb::kFailAndRollBack, kNote,
                                    [&](const Status& status) { answer = status; });
  engine.faults().release();
  if (crash) {
    engine.store().pump();
    engine.crash_and_open();
  }
  engine.run();
  if (!crash) CHECK(answer.code() == StatusCode::kFailedPrecondition);
  CHECK(engine.result(id).status.ok());
  CHECK(rows_in_store(engine, RowKind::kAudit) == 0);
  CHECK(rows_in_store(engine, RowKind::kInbox) == 0);
}

}  // namespace pv2::testing::forward_repair_test
