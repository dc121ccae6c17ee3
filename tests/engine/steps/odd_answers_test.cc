// SPDX-License-Identifier: Apache-2.0
//
// Outcomes that no helper of Procedure makes: an Outcome is plain data, so its kind may be any
// number.

#include "support/engine_world.h"

namespace pv2::testing::odd_answers_test {
namespace {

Outcome of_kind(unsigned kind) { return {.kind = static_cast<Outcome::Kind>(kind)}; }

}  // namespace

TEST_CASE("an outcome of a kind that does not exist fails the step, and the error says so") {
  const unsigned kind = GENERATE(11U, 16U, 200U, 255U);
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [kind](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 2) return of_kind(kind);
    return std::nullopt;
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();

  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.result(id).status.code() == StatusCode::kInternal);
  CHECK_THAT(engine.result(id).status.to_string(),
             ContainsSubstring("step TWO answered an Outcome of kind " + std::to_string(kind)));
  CHECK(engine.world.journal.count("undo a.1") == 1);
}

TEST_CASE("an undo that answers an outcome of a kind that does not exist is parked") {
  EngineWorld engine;
  bool odd = true;
  engine.world.scripts["a"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 2) return Say::fail("no");
                                 return std::nullopt;
                               },
                               .undo = [&odd](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 1 && odd) return of_kind(99);
                                 return std::nullopt;
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();

  CHECK(engine.describe(id).parked);
  CHECK_THAT(engine.describe(id).error.to_string(), ContainsSubstring("an Outcome of kind 99"));
  const auto history = *engine.executor().inspect().history(id);
  REQUIRE_FALSE(history.empty());
  CHECK(history.back().outcome == Outcome::Kind::kFail);

  odd = false;
  CHECK(engine.executor().operate().retry_now(id, {.who = "anna", .why = "mended"}).ok());
  engine.run();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
}

}  // namespace pv2::testing::odd_answers_test
