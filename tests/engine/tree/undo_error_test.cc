// SPDX-License-Identifier: Apache-2.0
//
// How an undo that is tried again is shown: explain() and describe() say why it failed and at which
// step, and the history says which entries were undos; also after a restart.

#include "support/repair_orders.h"

namespace pv2::testing::undo_error_test {
namespace {

using namespace std::chrono_literals;

// Fails at step 3; the undo of step 1 is tried again.
JobScript tries_to_undo() {
  return {.run =
              [](JobRun& run) {
                return run.step == 3 ? std::optional(Say::fail("out of stock")) : usual();
              },
          .undo =
              [](JobRun& run) {
                const bool busy = run.step == 1 && run.ctx.attempt() < 3;
                return busy ? std::optional(Say::retry("the bank is closed")) : usual();
              }};
}

}  // namespace

TEST_CASE("an undo in back-off is explained by its own error and step, also after a restart") {
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["a"] = tries_to_undo();
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  if (restart) {
    engine.crash_and_open();
    engine.run();
  }

  const auto why = engine.executor().inspect().explain(id);
  REQUIRE(why.ok());
  const Explanation::Procedure& procedure = why->procedures.front();
  CHECK(procedure.undo);
  CHECK(procedure.step == 1);
  CHECK(procedure.step_name == "ONE");
  const WaitReason& reason = procedure.reasons.front();
  CHECK(reason.kind == WaitReason::Kind::kBackOff);
  CHECK(reason.attempt == 2);
  CHECK(reason.error.message() == "the bank is closed");
  CHECK_THAT(to_string(*why), ContainsSubstring("undoing step ONE"));

  const ProcedureInfo info = engine.describe(id);
  CHECK(info.undo);
  CHECK(info.step == 1);
  CHECK(info.step_name == "ONE");
  CHECK(info.error.message() == "out of stock");
  CHECK(info.undo_error.message() == "the bank is closed");
  CHECK(engine.executor().inspect().list().front().undo_error.message() == "the bank is closed");

  engine.run_to_the_end();
  CHECK(engine.result(id).status.message() == "out of stock");
}

TEST_CASE("a back-off of an undo that an operator ends keeps its error until the next attempt") {
  EngineWorld engine;
  engine.world.scripts["a"] = tries_to_undo();
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.faults().hold_commit(engine.faults().commits() + 2);  // the record of the second attempt
  REQUIRE(engine.executor().operate().retry_now(id, kNote).ok());
  CHECK(engine.describe(id).undo_error.message() == "the bank is closed");
  engine.faults().release();
  engine.run_to_the_end();
}

TEST_CASE("a history says which entries were undos, live, ended and after a restart") {
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["a"] = tries_to_undo();
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run_to_the_end();
  if (restart) engine.crash_and_open();

  const auto history = engine.executor().inspect().history(id);
  REQUIRE(history.ok());
  std::string words;
  for (const HistoryEntry& entry : *history) {
    words += std::to_string(entry.step) + (entry.undo ? " back, " : " on, ");
  }
  CHECK(words == "1 on, 2 on, 3 on, 3 back, 2 back, 1 back, 1 back, 1 back, ");
}

TEST_CASE("a restart in the middle of a rollback forgets neither error") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.steps = 2, .children = {"good", "bad"}};
  engine.world.scripts["good"] = {
      .steps = 1, .undo = [](JobRun& run) {
        return run.ctx.attempt() == 1 ? std::optional(Say::retry("the bank is closed")) : usual();
      }};
  engine.world.scripts["bad"] = {
      .steps = 1, .run = [](JobRun&) { return std::optional(Say::fail("out of stock")); }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId good{root.value + 1};
  REQUIRE(engine.describe(good).undo_error.message() == "the bank is closed");
  engine.crash_and_open();
  engine.run();
  CHECK(engine.describe(good).undo_error.message() == "the bank is closed");
  CHECK(engine.describe(root).error.message() == "out of stock");
  engine.run_to_the_end();
  CHECK(engine.result(root).status.message() == "out of stock");
}

}  // namespace pv2::testing::undo_error_test
