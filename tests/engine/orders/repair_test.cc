// SPDX-License-Identifier: Apache-2.0
//
// Orders of operators. Each order is one batch with its audit entry: a crash before it leaves
// nothing of the order, a crash after it the whole order. An order that has no meaning is refused.
// (Rows 40-45 in our terms; X9, F31.)

#include "records/row_keys.h"
#include "support/repair_orders.h"

namespace pv2::testing::repair_test {
namespace {

using namespace std::chrono_literals;

}  // namespace

TEST_CASE("a parked undo is tried again, with fresh attempts, and the rollback ends") {
  const auto crash = GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter);
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  bool mended = false;
  engine.world.scripts["a"] = stuck(mended);
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  REQUIRE(engine.describe(id).parked);
  if (restart) engine.open();
  CHECK_THAT(joined(engine.executor().operate().preview(id, RepairVerb::kRetryNow)),
             ContainsSubstring("tried again"));
  mended = true;
  order(engine, id, RepairVerb::kRetryNow, crash);
  engine.run();

  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK_FALSE(engine.result(id).bypassed);
  CHECK(engine.world.journal.count("undo a.2") == 1);
  CHECK(engine.world.journal.count("undo a.1") == 1);
  CHECK(engine.executor().inspect().locks().empty());
  const auto audit = engine.executor().operate().audit(id);
  REQUIRE(audit.status().ok());
  REQUIRE(audit->size() == 1);
  CHECK(audit->front().verb == RepairVerb::kRetryNow);
  CHECK(audit->front().procedure == id);
  CHECK(audit->front().step == 2);
  CHECK(audit->front().who == "anna");
  CHECK(audit->front().why == "ticket 7");
  CHECK(engine.executor().acknowledge(id).ok());
  CHECK(rows_in_store(engine, RowKind::kAudit) == 0);
}

TEST_CASE("an undo that parks again after a retry can be retried again") {
  EngineWorld engine;
  bool mended = false;
  engine.world.scripts["a"] = stuck(mended);
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  for (int i = 0; i < 3; ++i) {
    REQUIRE(engine.executor().operate().retry_now(id, kNote).ok());
    engine.run();
    REQUIRE(engine.describe(id).parked);
  }
  mended = true;
  REQUIRE(engine.executor().operate().retry_now(id, kNote).ok());
  engine.run();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.executor().operate().audit(id)->size() == 4);
}

TEST_CASE("a parked undo that is skipped counts as done, and earlier steps are undone") {
  const auto crash = GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter);
  const bool last = GENERATE(false, true);
  EngineWorld engine;
  const bool mended = false;
  engine.world.scripts["a"] = stuck(mended);
  if (last) {
    engine.world.scripts["a"].undo = [](JobRun& run) {
      return run.step == 1 ? std::optional(Say::fail("stuck")) : usual();
    };
  }
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  REQUIRE(engine.describe(id).parked);
  CHECK_THAT(
      joined(engine.executor().operate().preview(id, RepairVerb::kSkipStep)),
      ContainsSubstring(last ? "did ONE, which is not undone" : "did TWO, which is not undone"));
  order(engine, id, RepairVerb::kSkipStep, crash);
  engine.run();

  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.result(id).status == Status(StatusCode::kFailedPrecondition, "no"));
  CHECK(engine.world.journal.count("undo a.1") == (last ? 0 : 1));
  CHECK(engine.world.journal.count("undo a.2") == (last ? 1 : 0));
  CHECK(engine.executor().inspect().locks().empty());
}

TEST_CASE("a parked child shows why it is parked, and its root keeps why the tree failed") {
  EngineWorld engine;
  const bool mended = false;
  engine.world.scripts["p"] = {.children = {"c"}};
  engine.world.scripts["c"] = stuck(mended);
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  if (GENERATE(false, true)) engine.open();
  CHECK_THAT(engine.describe(ProcedureId{root.value + 1}).error.to_string(),
             ContainsSubstring("stuck"));
  const Status of_root = engine.describe(root).error;
  CHECK(of_root.code() == StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(of_root.message()), StartsWith("no; "));
  CHECK_THAT(std::string(of_root.message()), ContainsSubstring("procedure 2 is parked: "));
  REQUIRE(engine.executor().operate().skip_step(root, kNote).ok());
  if (GENERATE(false, true)) engine.crash_and_open();
  engine.run();
  CHECK(engine.result(root).status == Status(StatusCode::kFailedPrecondition, "no"));
}

TEST_CASE("a child's undo is skipped, and its parent's rollback goes on") {
  EngineWorld engine;
  const bool mended = false;
  engine.world.scripts["p"] = {.children = {"c"}};
  engine.world.scripts["c"] = stuck(mended);
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId child{root.value + 1};
  if (GENERATE(false, true)) engine.open();
  REQUIRE(engine.executor().operate().skip_step(GENERATE(false, true) ? child : root, kNote).ok());
  engine.run();

  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
  CHECK(engine.world.journal.count("undo c.2") == 0);
  CHECK(engine.world.journal.count("undo c.1") == 1);
  CHECK(engine.world.journal.count("undo p.2") == 1);
  CHECK(engine.executor().operate().audit(root)->front().procedure == child);
}

TEST_CASE("the audit of an order about a child is found by its id until its root is acknowledged") {
  const bool forward = GENERATE(false, true);
  EngineWorld engine;
  const bool mended = false;
  engine.world.scripts["p"] = {.children = {"c", "d"}};
  engine.world.scripts["d"] = {.steps = 1};
  engine.world.scripts["c"] = stuck(mended);
  if (forward) {
    engine.world.scripts["c"] = {.run = [](JobRun&) { return std::optional(Say::wait_for(1h)); }};
  }
  engine.world.scripts["plain"] = {.steps = 1};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId child{root.value + 1};
  const ProcedureId sibling{root.value + 2};
  const ProcedureId plain = engine.submit("plain");
  order(engine, child, forward ? RepairVerb::kFailAndRollBack : RepairVerb::kSkipStep,
        GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter), root);
  for (int life = 0; life < 3; ++life) {
    for (const ProcedureId id : {root, child}) {
      const auto audit = engine.executor().operate().audit(id);
      REQUIRE(audit.status().to_string() == "OK");
      REQUIRE(audit->size() == 1);
      CHECK(audit->front().procedure == child);
      CHECK(audit->front().who == "anna");
    }
    CHECK(engine.executor().operate().audit(plain)->empty());
    engine.run();
    if (life > 0) engine.crash_and_open();
  }
  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
  const Status asked = engine.executor().operate().audit(sibling).status();
  CHECK(asked.code() == StatusCode::kExpired);
  CHECK_THAT(asked.to_string(), ContainsSubstring("ask for that of its root"));
  CHECK(engine.executor().operate().audit(ProcedureId{UINT64_MAX}).status().code() ==
        StatusCode::kNotFound);

  const std::string copy =
      engine.disk->get(Space::kProcedure, audit_key(child, forward ? 2 : 1)).value();
  CHECK(engine.executor().acknowledge(root).ok());
  CHECK(rows_in_store(engine, RowKind::kAudit) == 0);
  CHECK(engine.executor().operate().audit(child).status().code() == StatusCode::kExpired);
  CHECK(engine.executor().operate().audit(root).status().code() == StatusCode::kExpired);
  engine.close();
  engine.disk->put(Space::kProcedure, audit_key(child, 1), copy);  // the tree no longer exists
  engine.open();
  engine.run();
  CHECK(rows_in_store(engine, RowKind::kAudit) == 0);
}

TEST_CASE("a back-off, a timed wait and the back-off of an undo end at once when ordered") {
  const auto crash = GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter);
  const auto kind = GENERATE(0, 1, 2);
  EngineWorld engine;
  engine.world.scripts["a"] = {
      .run =
          [kind](JobRun& run) {
            if (run.step != 2) return usual();
            if (kind == 0 && run.ctx.attempt() == 1) {
              return std::optional(Say::retry("later"));
            }
            if (kind == 1 && !run.ctx.timed_out()) {
              return std::optional(Say::wait_for(24h));
            }
            return kind == 2 ? std::optional(Say::fail("no")) : usual();
          },
      .undo =
          [](JobRun& run) {
            return run.ctx.attempt() == 1 ? std::optional(Say::retry("later")) : usual();
          }};
  engine.world.scripts["a"].locks = LockSet().table("shop", "orders", LockMode::kExclusive);
  if (GENERATE(false, true)) engine.world.scripts["a"].locks.scope(LockScope::kStep);
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  order(engine, id, RepairVerb::kRetryNow, crash);
  engine.run();
  if (kind == 2) {  // the undo of step 1 backs off too
    REQUIRE(engine.executor().operate().retry_now(id, kNote).ok());
    engine.run();
  }
  CHECK(engine.result(id).status.ok() == (kind != 2));
  CHECK(engine.executor().inspect().locks().empty());
}

TEST_CASE(
    "the back-off of an undo of a parent ends when ordered, however its children are counted") {
  const bool restart = GENERATE(false, true);
  const bool child_fails = GENERATE(false, true);
  CAPTURE(restart, child_fails);
  EngineWorld engine;
  engine.retry = {.base = 1h, .cap = 1h, .jitter_percent = 0};
  bool is_open = false;
  engine.world.scripts["p"] = {.children = {"c"},
                               .run = [=](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 3 && !child_fails) return Say::fail("no");
                                 return usual();
                               },
                               .undo = [&](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 2 && !is_open) return Say::retry("closed");
                                 return usual();
                               }};
  engine.world.scripts["c"] = {.steps = 1, .run = [=](JobRun&) -> std::optional<Outcome> {
                                 return child_fails ? std::optional(Say::fail("no")) : usual();
                               }};
  engine.open();
  const ProcedureId id = engine.submit("p");
  engine.run();
  if (restart) {
    engine.crash_and_open();
    engine.run();
  }
  is_open = true;

  CHECK(engine.executor().operate().retry_now(id, kNote).to_string() == "OK");
  engine.run();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
}

TEST_CASE("a parked tree that is bypassed ends as it stands, and gives its locks back at once") {
  const auto crash = GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter);
  EngineWorld engine;
  const bool mended = false;
  engine.world.scripts["p"] = {.children = {"c", "d"}};
  engine.world.scripts["c"] = stuck(mended);
  engine.world.scripts["d"] = {.steps = 1};
  engine.world.scripts["other"] = {.locks =
                                       LockSet().table("shop", "orders", LockMode::kExclusive)};
  engine.open();
  const ProcedureId root = engine.submit("p", {.nonce = {1, 1}});
  engine.run();
  const ProcedureId other = engine.submit("other");
  engine.run();
  REQUIRE(engine.describe(root).parked);
  const std::string lines = joined(engine.executor().operate().preview(root, RepairVerb::kBypass));
  CHECK_THAT(lines, ContainsSubstring("(test.Job) did ONE, TWO, which is not undone"));
  CHECK_THAT(lines, ContainsSubstring("gives up its lock on"));
  CHECK_THAT(lines, ContainsSubstring("is cut off"));
  CHECK(engine.describe(root).parked);  // a preview changes nothing
  const Entries journal = engine.journal();
  order(engine, root, RepairVerb::kBypass, crash);
  engine.run();

  const ProcedureResult result = engine.result(root);
  CHECK(result.bypassed);
  CHECK(result.state == ProcedureState::kRolledBack);
  CHECK(result.status.code() == StatusCode::kAborted);
  CHECK_THAT(result.status.to_string(), ContainsSubstring("bypassed by anna: ticket 7"));
  CHECK(engine.world.journal.count("undo p.1") == 0);
  CHECK(engine.result(other).status.ok());
  CHECK(engine.executor().inspect().live_procedures() == 0);
  CHECK(engine.submit("p", {.nonce = {1, 1}}) == root);
  engine.open();
  CHECK(engine.result(root).bypassed);
  CHECK(engine.executor().operate().audit(root)->size() == 1);
  CHECK(engine.executor().acknowledge(root).ok());
  CHECK(rows_in_store(engine, RowKind::kAudit) == 0);
  CHECK(engine.executor().acknowledge(other).ok());
  CHECK(rows_in_store(engine, RowKind::kState) == 0);
}

TEST_CASE(
    "a tree that only waits is aborted, and may be bypassed while it is undone, also by a child's "
    "id") {
  const auto crash = GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter);
  const bool by_child = GENERATE(false, true);
  EngineWorld engine;  // behaviour.md, rows 40, 42
  engine.world.scripts["p"] = {.children = {"c"}};
  engine.world.scripts["c"] = {
      .run =
          [](JobRun& run) {
            if (run.step != 2) return usual();
            const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
            return value == nullptr ? std::optional(Say::wait()) : usual();
          },
      .undo =
          [](JobRun& run) {
            return run.step == 2 ? std::optional(Say::retry("not yet")) : usual();
          }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId child{root.value + 1};
  CHECK(engine.executor().operate().bypass(root, kNote).code() == StatusCode::kFailedPrecondition);
  REQUIRE(engine.executor().abort(root).ok());
  engine.run();  // the undo of the child's step backs off
  order(engine, by_child ? child : root, RepairVerb::kBypass, crash, root);
  engine.run();

  CHECK(engine.result(root).bypassed);
  CHECK(engine.executor().inspect().live_procedures() == 0);
  CHECK(engine.world.journal.count("undo c.1") == 0);
  CHECK(engine.world.journal.count("undo p.1") == 0);
  engine.world.answer_one("too late");
  engine.advance(1h);
  CHECK(engine.result(root).bypassed);
}

TEST_CASE("a quarantined tree can be bypassed by a program that does not know its type") {
  EngineWorld engine;
  const auto table = LockSet().table("shop", "orders", LockMode::kExclusive);
  engine.world.scripts["final"] = {.run = [](JobRun&) { return std::optional(Say::wait_for(1h)); },
                                   .locks = table};
  engine.world.scripts["other"] = {.locks = table};
  engine.open();
  const ProcedureId id = engine.submit<FinalJob>("final");
  engine.run();
  ExecutorOptions options = engine.options();
  options.registry = ProcedureRegistry();
  options.registry.add<Job>(engine.world);
  engine.open(std::move(options));
  const ProcedureId other = engine.submit("other");
  engine.run();
  REQUIRE(engine.describe(id).quarantined);
  CHECK(engine.executor().operate().retry_now(id, kNote).code() == StatusCode::kFailedPrecondition);
  CHECK(engine.executor().operate().bypass(id, kNote).ok());
  engine.run();

  CHECK(engine.result(id).bypassed);
  CHECK(engine.result(other).status.ok());
  engine.open();
  engine.run();
  CHECK(engine.result(id).bypassed);
}

TEST_CASE("an order that has no meaning where it is given is refused, and leaves no trace") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun& run) {
    if (run.step != 2) return usual();
    const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
    return value == nullptr ? std::optional(Say::wait()) : usual();
  }};
  engine.world.scripts["p"] = {.children = {"a"}};
  engine.world.scripts["ended"] = {.steps = 1};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId ended = engine.submit("ended");
  engine.run();
  const ProcedureId child{root.value + 1};
  ProcedureExecutor& executor = engine.executor();

  for (const ProcedureId id : {root, child}) {
    CHECK(executor.operate().retry_now(id, kNote).code() == StatusCode::kFailedPrecondition);
    CHECK(executor.operate().skip_step(id, kNote).code() == StatusCode::kFailedPrecondition);
    CHECK(executor.operate().bypass(id, kNote).code() == StatusCode::kFailedPrecondition);
  }
  for (const auto verb : {RepairVerb::kRetryNow, RepairVerb::kSkipStep, RepairVerb::kBypass,
                          RepairVerb::kFailAndRollBack}) {
    CHECK(executor.operate().order(ended, verb, kNote).code() == StatusCode::kFailedPrecondition);
    CHECK(executor.operate().order(ProcedureId{999}, verb, kNote).code() == StatusCode::kNotFound);
    CHECK(executor.operate().preview(ended, verb).status().code() ==
          StatusCode::kFailedPrecondition);
  }
  CHECK(rows_in_store(engine, RowKind::kAudit) == 0);

  CHECK_THAT(joined(executor.operate().preview(child, RepairVerb::kFailAndRollBack)),
             ContainsSubstring("did ONE, which is undone"));
  CHECK(executor.operate().fail_and_roll_back(child, kNote).ok());
  engine.run();
  CHECK(engine.result(root).status == Status(StatusCode::kAborted, "aborted by anna: ticket 7"));
}

TEST_CASE("a retry of a running undo is refused, and a bypass waits for its end") {
  EngineWorld engine;
  engine.world.scripts["a"] = {
      .run = [](JobRun& run) { return run.step == 2 ? std::optional(Say::fail("no")) : usual(); },
      .undo =
          [](JobRun& run) {
            return run.ctx.attempt() == 1 ? std::optional(Say::retry("later")) : usual();
          }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.executor().run_until_idle(2);
  engine.faults().hold_commit(engine.faults().commits() + 1);
  engine.run();  // the record of the undo's first attempt is on its way
  REQUIRE(engine.faults().held() == 1);
  CHECK(engine.executor().operate().retry_now(id, kNote).code() == StatusCode::kUnavailable);
  if (GENERATE(false, true)) {
    std::optional<Status> bypassed;
    engine.executor().operate().order(id, RepairVerb::kBypass, kNote,
                                      [&](const Status& status) { bypassed = status; });
    engine.run();
    CHECK_FALSE(bypassed.has_value());
    engine.faults().release();
    engine.run();
    REQUIRE(bypassed.has_value());
    CHECK(bypassed->to_string() == "OK");
  } else {
    engine.faults().release();
    engine.run();
    CHECK(engine.executor().operate().bypass(id, kNote).ok());  // in its back-off
  }
  CHECK(engine.result(id).bypassed);
}

TEST_CASE("an explanation names the signal that a procedure waits for") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun& run) {
    return run.ctx.signal("approved") == nullptr ? std::optional(Say::wait()) : usual();
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  const auto why = engine.executor().inspect().explain(id);
  REQUIRE(why.status().to_string() == "OK");
  REQUIRE(why->procedures[0].reasons.size() == 1);
  CHECK(why->procedures[0].reasons[0].kind == WaitReason::Kind::kSignal);
  CHECK(why->procedures[0].reasons[0].name == "approved");
}

}  // namespace pv2::testing::repair_test
