// SPDX-License-Identifier: Apache-2.0
//
// The shortest stories: a procedure runs to its end, is undone, retries, has work done elsewhere,
// and has children. Read these first; each behaviour has a file of its own.

#include "support/engine_world.h"

namespace pv2::testing::smoke_test {
namespace {

using namespace std::chrono_literals;

// Three steps under a lock; the third fails if `fails`.
JobScript order(bool fails = false) {
  return {.run = [fails](JobRun& run) -> std::optional<Outcome> {
            if (run.step == 3 && fails) return Say::fail("no carrier");
            return std::nullopt;
          },
          .locks = LockSet().table("shop", "orders", LockMode::kExclusive)};
}

std::size_t rows_but_for_schemas(const EngineWorld& engine) {
  return engine.disk->rows() - engine.disk->rows(Space::kEngine, "schema:");
}

}  // namespace

TEST_CASE("a state machine runs its steps in order and keeps its result") {
  EngineWorld engine;
  engine.world.scripts["o-42"] = engine.world.scripts["o-43"] = order();
  engine.open();
  const ProcedureId id = engine.submit("o-42", {.nonce = {1, 7}});
  engine.run();
  CHECK(engine.result(id).status.ok());
  CHECK(engine.result(id).result == "o-42 done");
  CHECK(engine.journal() == Entries{"do o-42.1", "do o-42.2", "do o-42.3"});

  const auto again = engine.executor().submit(Job(engine.world, "o-42"), {.nonce = {1, 7}});
  REQUIRE(again.ok());
  CHECK(again->id == id);
  CHECK(again->replayed);
  const auto other = engine.executor().submit(Job(engine.world, "o-43"), {.nonce = {1, 7}});
  CHECK(other.status().code() == StatusCode::kKeyReused);

  engine.open();
  CHECK(engine.submit("o-42", {.nonce = {1, 7}}) == id);
  CHECK(engine.result(id).result == "o-42 done");
  REQUIRE(engine.executor().acknowledge(id).ok());
  CHECK(engine.executor().wait(id).status().code() == StatusCode::kExpired);
  CHECK(engine.disk->rows() - engine.disk->rows(Space::kEngine) == 0);
}

TEST_CASE("a failed step undoes what was done, newest first") {
  EngineWorld engine;
  engine.world.scripts["a"] = order(true);
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.result(id).status.message() == "no carrier");
  CHECK(engine.journal() == Entries{"do a.1", "do a.2", "undo a.3", "undo a.2", "undo a.1"});
  CHECK(engine.executor().inspect().locks().empty());
}

TEST_CASE("a retry waits for its back-off, also over a restart") {
  EngineWorld engine;
  engine.world.scripts["a"].run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 2 && run.ctx.attempt() <= 2) return Say::retry("the bank is closed");
    return std::nullopt;
  };
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.describe(id).attempt == 2);
  engine.open();
  engine.run();
  CHECK(engine.describe(id).attempt == 2);
  CHECK(engine.describe(id).error.message() == "the bank is closed");
  engine.advance(1200ms);
  CHECK(engine.describe(id).attempt == 3);
  engine.advance(3s);
  CHECK(engine.result(id).status.ok());
}

TEST_CASE("offloaded work reaches the next run of its step") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 auto* const work =
                                     run.ctx.offload([] { return std::string("receipt"); });
                                 return work == nullptr ? Say::wait() : Say::done(**work);
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.result(id).result == "receipt");
}

TEST_CASE("a parent goes on when all its children have finished, and sees their results") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"c", "c", "c"},
                               .run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step != 3) return std::nullopt;
                                 std::string all;
                                 for (const auto& child : run.ctx.children()) {
                                   all += std::string(child.result) + ";";
                                 }
                                 return Say::done(all);
                               }};
  engine.world.scripts["c"] = order();
  engine.open();
  const ProcedureId id = engine.submit("p");
  engine.run();
  CHECK(engine.result(id).result == "c done;c done;c done;");
  CHECK(engine.executor().inspect().live_procedures() == 0);
  CHECK(rows_but_for_schemas(engine) == 3);  // the watermark, and the root's result and date
}

TEST_CASE("a child that fails undoes its whole tree") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.steps = 2, .children = {"c", "c"}};
  engine.world.scripts["c"] = order(true);
  engine.open();
  const ProcedureId id = engine.submit("p");
  engine.run();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.journal().back() == "undo p.1");
  CHECK(engine.executor().inspect().locks().empty());
  CHECK(rows_but_for_schemas(engine) == 3);
}

}  // namespace pv2::testing::smoke_test
