// SPDX-License-Identifier: Apache-2.0
//
// A store failure is loud and final. Nothing is written after it, every caller is told, the host is
// told once, and the next run goes on from what is on the disk. (Row F14 of known-failures.md.)

#include "support/engine_world.h"

namespace pv2::testing::store_failure_test {
namespace {

const Status kGone(StatusCode::kIoError, "the disk is gone");

void fill_with_work(World& world) {
  world.scripts["p"] = {.children = {"c", "c"}};
  world.scripts["c"] = {.steps = 2};
  world.scripts["f"] = {.run = [](JobRun& run) {
    return run.step == 3 ? std::optional(Say::fail("as it was told")) : std::nullopt;
  }};
}

}  // namespace

TEST_CASE(
    "whichever commit fails, every caller is told, nothing more happens, and a restart goes on") {
  std::size_t commits = 0;
  {
    EngineWorld engine;
    fill_with_work(engine.world);
    engine.open();
    engine.submit("p");
    engine.submit("f");
    engine.run();
    commits = engine.faults().commits();
    REQUIRE(engine.executor().inspect().live_procedures() == 0);
  }
  for (std::size_t n = 2; n <= commits; ++n) {  // the first one is that of open()
    CAPTURE(n);
    EngineWorld engine;
    fill_with_work(engine.world);
    engine.open();
    engine.faults().fail_commit(n, kGone);
    std::vector<Status> answers;
    std::size_t asked = 0;
    for (const char* name : {"p", "f"}) {
      ++asked;
      engine.executor().async().submit(
          Job(engine.world, name), {.nonce = {1, asked}}, [&](const Result<Submitted>& submitted) {
            answers.push_back(submitted.status());
            if (!submitted.ok()) return;
            ++asked;
            engine.executor().async().wait(
                submitted->id, [&](const Result<ProcedureResult>& result) {
                  answers.push_back(result.ok() ? Status() : result.status());
                });
          });
    }
    while (engine.executor().health().ok()) REQUIRE(engine.executor().run_until_idle(1) <= 1);

    const Entries journal = engine.journal();
    const std::size_t passed = engine.faults().trace().size();
    engine.run();
    engine.clock->advance(std::chrono::hours(1));
    engine.run();

    CHECK(engine.journal() == journal);
    CHECK(engine.faults().trace().size() == passed);
    CHECK(engine.store_failures.size() == 1);
    CHECK_THAT(engine.executor().health().to_string(), ContainsSubstring("the disk is gone"));
    CHECK(answers.size() == asked);
    const auto refused = engine.executor().submit(Job(engine.world, "p"));
    CHECK_THAT(refused.status().to_string(), ContainsSubstring("the disk is gone"));
    CHECK(engine.faults().trace().size() == passed);

    engine.open();
    for (std::uint64_t nonce : {1, 2}) {
      engine.submit(nonce == 1 ? "p" : "f", {.nonce = {1, nonce}});
    }
    engine.run_to_the_end();
    CHECK(engine.disk->rows() - engine.disk->rows(Space::kEngine, "schema:") == 1 + 2 * 3);
  }
}

TEST_CASE("a commit that fails is an unknown outcome, and a duplicate finds out") {
  EngineWorld engine;
  engine.world.scripts["a"] = {};
  engine.open();
  const bool written = GENERATE(false, true);
  const std::size_t next = engine.faults().commits() + 1;
  written ? engine.faults().crash_after(next, FaultStore::AfterCrash::kFail)
          : engine.faults().crash_before(next, FaultStore::AfterCrash::kFail);
  const SubmitOptions keyed{.nonce = {1, 1}};

  const auto unknown = engine.executor().submit(Job(engine.world, "a"), keyed);
  CHECK(unknown.status().code() == StatusCode::kUnknownOutcome);

  engine.open();
  const auto again = engine.executor().submit(Job(engine.world, "a"), keyed);
  REQUIRE(again.ok());
  CHECK(again->replayed == written);
  engine.run();
  CHECK(engine.result(again->id).status.ok());
}

TEST_CASE("results that were durable before the failure are still told") {
  EngineWorld engine;
  engine.world.scripts["a"] = {};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.faults().fail_commit(engine.faults().commits() + 1, kGone);
  CHECK_FALSE(engine.executor().submit(Job(engine.world, "a")).ok());

  CHECK(engine.executor().wait(id)->result == "a done");
}

TEST_CASE("an acknowledgement whose commit fails has an unknown outcome") {
  EngineWorld engine;
  engine.world.scripts["a"] = {};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.faults().fail_commit(engine.faults().commits() + 1, kGone);

  CHECK(engine.executor().acknowledge(id).code() == StatusCode::kUnknownOutcome);
}

TEST_CASE(
    "an acknowledgement that waits for its tree's rows to go is answered when the store fails") {
  std::size_t last = 0;
  {
    EngineWorld engine;
    fill_with_work(engine.world);
    engine.open();
    engine.submit("p");
    engine.run();
    last = engine.faults().commits();  // deletes the rows of the children
  }
  EngineWorld engine;
  fill_with_work(engine.world);
  engine.open();
  engine.faults().hold_commit(last);
  const ProcedureId id = engine.submit("p");
  engine.run();
  REQUIRE(engine.result(id).status.ok());
  std::vector<Status> answers;
  engine.executor().async().acknowledge(id, [&](const Status& s) { answers.push_back(s); });
  engine.run();
  REQUIRE(answers.empty());

  engine.faults().fail_commit(last, kGone);
  engine.faults().release();
  engine.run();

  REQUIRE(answers.size() == 1);
  CHECK_THAT(answers.front().to_string(), ContainsSubstring("the disk is gone"));
  engine.open();
  CHECK(engine.result(id).status.ok());
  CHECK(engine.executor().acknowledge(id).ok());
}

TEST_CASE("a store that is closed under its executor is a failure like any other, not a stop") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 2) return std::nullopt;
    const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
    return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  std::vector<Status> answers;
  engine.executor().async().wait(
      id, [&](const Result<ProcedureResult>& r) { answers.push_back(r.status()); });
  engine.run();

  engine.store().close();
  engine.world.answer_one("go on");
  engine.run();

  CHECK_FALSE(engine.executor().health().ok());
  CHECK(engine.store_failures.size() == 1);
  REQUIRE(answers.size() == 1);
  CHECK_THAT(answers.front().to_string(), ContainsSubstring("the store failed"));
  CHECK_FALSE(engine.executor().submit(Job(engine.world, "a")).ok());
  engine.open();
  engine.run();
  while (engine.world.answer_one("go on")) engine.run();
  CHECK(engine.result(id).status.ok());
}

TEST_CASE(
    "an executor that is fenced by another owner stops and leaves the other's writes intact") {
  EngineWorld engine;
  engine.world.scripts["a"] = {};
  engine.open();
  const ProcedureId id = engine.submit("a");

  EngineWorld other;
  other.disk = engine.disk;
  other.world.scripts["a"] = {};
  other.open();
  engine.run();
  CHECK_FALSE(engine.executor().health().ok());
  CHECK(engine.store_failures.size() == 1);
  other.run();

  CHECK(other.result(id).status.ok());
  engine.close();
  CHECK(other.executor().health().ok());
}

}  // namespace pv2::testing::store_failure_test
