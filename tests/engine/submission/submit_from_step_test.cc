// SPDX-License-Identifier: Apache-2.0
//
// A step that submits an independent procedure: the procedure exists exactly if the step's record
// does, is not undone with the step's tree, and, with a nonce, is submitted once however often the
// step runs.

#include "support/engine_world.h"
#include "support/job_story.h"
#include "support/wrapped_store.h"

namespace pv2::testing::submit_from_step_test {
namespace {

using namespace std::chrono_literals;

// Submits a job called "other" in step 2.
JobScript submits(SubmitOptions options = {}) {
  return {.run = [options](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 2) run.ctx.submit(Job(run.world, "other"), options);
    return std::nullopt;
  }};
}

// Calls a function of the test while it is being submitted.
class Meddler final : public Procedure {
 public:
  static constexpr std::string_view kType = "test.Meddler";
  explicit Meddler(const std::function<void()>& meddle) : meddle_(meddle) {}
  void fields(auto& /*f*/) {}
  LockSet locks() const override {
    meddle_();
    return {};
  }
  Outcome execute(StepContext& /*ctx*/) override { return done(); }

 private:
  const std::function<void()>& meddle_;
};

// A disk on which nonces cannot be read while it is `bad`.
class BadDisk final : public WrappedStore {
 public:
  BadDisk(std::unique_ptr<ProcedureStore> inner, const bool& bad)
      : WrappedStore(std::move(inner)), bad_(bad) {}
  Result<std::optional<std::string>> get(Space space, std::string_view key) override {
    if (bad_ && space == Space::kNonce) return Status(StatusCode::kIoError, "the disk is slow");
    return WrappedStore::get(space, key);
  }

 private:
  const bool& bad_;
};

}  // namespace

TEST_CASE("a procedure that a step submits is in its record, and starts when that is durable") {
  EngineWorld engine;
  engine.world.scripts["a"] = submits();
  engine.world.scripts["other"] = {.steps = 2};
  engine.open();
  const std::size_t before = engine.faults().commits();
  const ProcedureId id = engine.submit("a", {.owner = "alice"});
  engine.faults().hold_commit(engine.faults().commits() + 2);  // step 1 passes, step 2 waits
  engine.run();
  CHECK(engine.executor().inspect().list().size() == 1);
  CHECK(engine.world.journal.count("do other.1") == 0);
  engine.faults().release();
  engine.executor().run_until_idle(1);
  const auto other = engine.executor().inspect().describe({id.value + 1});
  if (other.ok()) CHECK(other->owner == "alice");
  engine.run();
  CHECK(engine.result(id).status.ok());
  CHECK(engine.result({id.value + 1}).result == "other done");
  CHECK(engine.faults().commits() - before == 1 + 3 + 2);  // the insert costs no record
}

TEST_CASE("a submitted procedure lives on when the tree that submitted it is undone") {
  EngineWorld engine;
  engine.world.scripts["a"] = submits();
  const auto run = engine.world.scripts["a"].run;
  engine.world.scripts["a"].run = [run](JobRun& job) -> std::optional<Outcome> {
    if (job.step == 3) return Say::fail("no");
    return run(job);
  };
  engine.world.scripts["other"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.result({id.value + 1}).status.ok());
}

TEST_CASE("a step that fails, retries, throws or waits submits nothing") {
  EngineWorld engine;
  engine.retry = {.base = 1s, .cap = 1s, .jitter_percent = 0};
  const int what = GENERATE(0, 1, 2, 3);
  engine.world.scripts["a"] = {.steps = 1, .run = [what](JobRun& run) -> std::optional<Outcome> {
                                 if (run.ctx.attempt() == 2) return std::nullopt;
                                 run.ctx.submit(Job(run.world, "other"), {.nonce = {7, 7}});
                                 switch (what) {
                                   case 0:
                                     return Say::fail("no");
                                   case 1:
                                     return Say::retry("later");
                                   case 2:
                                     throw std::runtime_error("oops");
                                   default:
                                     return Say::wait_for(1h);
                                 }
                               }};
  engine.world.scripts["other"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.advance(1s);
  CHECK(engine.result(id).status.ok() == (what == 1));
  CHECK(engine.world.journal.count("do other.1") == 0);
  CHECK(engine.executor().inspect().live_procedures() == 0);
  const auto free = engine.executor().submit(Job(engine.world, "other"), {.nonce = {7, 7}});
  REQUIRE(free.ok());
  CHECK_FALSE(free->replayed);
}

TEST_CASE("a step submits a nonce once, whichever step or client submits it before or after") {
  EngineWorld engine;
  engine.world.scripts["a"] = submits({.nonce = {7, 7}});
  engine.world.scripts["b"] = submits({.nonce = {7, 7}});
  engine.world.scripts["other"] = {.steps = 1};
  engine.world.scripts["else"] = {.steps = 1};
  engine.open();
  const ProcedureId a = engine.submit("a");
  const ProcedureId b = engine.submit("b");
  engine.run();  // one of them waits until the other's record is durable, and no longer
  CHECK(engine.result(a).status.ok());
  CHECK(engine.result(b).status.ok());
  CHECK(engine.world.journal.count("do other.1") == 1);
  const auto again = engine.executor().submit(Job(engine.world, "other"), {.nonce = {7, 7}});
  REQUIRE(again.ok());
  CHECK(again->replayed);

  engine.world.scripts["misuses"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    run.ctx.submit(Job(run.world, "else"), {.nonce = {7, 7}});
    return std::nullopt;
  }};
  const ProcedureId misuse = engine.submit("misuses");
  engine.run();
  CHECK(engine.result(misuse).status.code() == StatusCode::kKeyReused);
  CHECK(engine.world.journal.count("do else.1") == 0);
}

TEST_CASE("a step does not end on a submission that another step is only about to make") {
  const bool gives_up = GENERATE(false, true);  // or the machine crashes
  const std::uint32_t max_attempts = GENERATE(0U, 1U);
  EngineWorld engine;
  engine.retry.max_attempts = max_attempts;
  ProcedureId b;
  const std::function<void()> meddle = [&] {  // b's step runs and is recorded before that of a
    engine.executor().async().submit(Job(engine.world, "b"), {},
                                     [&b](const Result<Submitted>& answer) { b = answer->id; });
    engine.run();
    if (gives_up) throw std::runtime_error("no locks");
    engine.faults().crash_before(engine.faults().commits() + 1, FaultStore::AfterCrash::kFail);
  };
  engine.world.scripts["other"] = {.steps = 1};
  engine.world.scripts["a"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 if (run.world.journal.count("a once") != 0) return std::nullopt;
                                 run.world.journal.note("a once");
                                 run.ctx.submit(Job(run.world, "other"), {.nonce = {7, 7}});
                                 run.ctx.submit(Meddler(meddle));
                                 return std::nullopt;
                               }};
  engine.world.scripts["b"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.ctx.timed_out()) run.world.journal.note("timed out");
                                 CHECK(run.ctx.attempt() == 1);
                                 run.ctx.submit(Job(run.world, "other"), {.nonce = {7, 7}});
                                 return std::nullopt;
                               }};
  const auto open = [&] {
    ExecutorOptions options = engine.options();
    options.registry.add<Meddler>(meddle);
    engine.open(std::move(options));
  };
  open();
  const ProcedureId a = engine.submit("a");
  engine.run();
  if (!gives_up) open();
  CHECK(engine.executor().inspect().history(b)->front().outcome == Outcome::Kind::kRetry);
  if (gives_up) CHECK(engine.executor().inspect().live_procedures() == 0);  // no time had to pass
  engine.run_to_the_end();

  CHECK(engine.result(a).status.ok() == !gives_up);
  CHECK(engine.result(b).result == "b done");
  CHECK(engine.world.journal.count("timed out") == 0);
  CHECK(engine.world.journal.count("do other.1") == 1);
  const auto again = engine.executor().submit(Job(engine.world, "other"), {.nonce = {7, 7}});
  REQUIRE(again.ok());
  CHECK(again->replayed);
}

TEST_CASE("a step that is put off for a nonce goes on as soon as the nonce is durable") {
  EngineWorld engine;
  ProcedureId b;
  const std::function<void()> meddle = [&] {  // b's back-off is recorded before the step of a
    engine.executor().async().submit(Job(engine.world, "b"), {},
                                     [&b](const Result<Submitted>& answer) { b = answer->id; });
    engine.run();
    CHECK(engine.describe(b).state == ProcedureState::kWaitingTimeout);
  };
  engine.world.scripts["other"] = {.steps = 1};
  engine.world.scripts["a"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 run.ctx.submit(Job(run.world, "other"), {.nonce = {7, 7}});
                                 run.ctx.submit(Meddler(meddle));
                                 return std::nullopt;
                               }};
  engine.world.scripts["b"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 CHECK_FALSE(run.ctx.timed_out());
                                 run.ctx.submit(Job(run.world, "other"), {.nonce = {7, 7}});
                                 return std::nullopt;
                               }};
  ExecutorOptions options = engine.options();
  options.registry.add<Meddler>(meddle);
  engine.open(std::move(options));
  engine.submit("a");
  engine.run();  // no time passes

  CHECK(engine.executor().inspect().live_procedures() == 0);
  CHECK(engine.result(b).status.ok());
  CHECK(engine.world.journal.count("do other.1") == 1);
}

TEST_CASE("a step whose nonce cannot be looked up on the disk backs off, and the attempt counts") {
  const bool parks = GENERATE(false, true);
  EngineWorld engine;
  engine.retry = {.base = 1s, .cap = 1s, .jitter_percent = 0, .max_attempts = parks ? 3U : 0U};
  engine.max_results_in_memory = 0;  // so the store is asked
  engine.world.scripts["a"] = submits({.nonce = {7, 7}});
  engine.world.scripts["other"] = {.steps = 1};
  bool bad = false;
  const auto open = [&] {
    ExecutorOptions options = engine.options();
    options.store = std::make_unique<BadDisk>(std::move(options.store), bad);
    engine.open(std::move(options));
  };
  open();
  engine.submit("other", {.nonce = {1, 1}});
  engine.run();
  bad = true;
  const ProcedureId a = engine.submit("a");
  engine.run();
  CHECK(engine.describe(a).state == ProcedureState::kWaitingTimeout);
  CHECK(engine.describe(a).attempt == 2);
  CHECK_THAT(engine.describe(a).error.to_string(), ContainsSubstring("looking for a nonce"));
  engine.crash_and_open();
  open();
  CHECK(engine.describe(a).attempt == 2);
  engine.advance(1s);
  engine.advance(1s);
  CHECK(engine.describe(a).parked == parks);
  CHECK(engine.world.journal.count("do other.1") == 1);
  bad = false;
  if (parks)
    REQUIRE(engine.executor().operate().retry_now(a, {.who = "anna", .why = "a new disk"}).ok());
  engine.run_to_the_end();

  CHECK(engine.result(a).status.to_string() == "OK");
  CHECK(engine.world.journal.count("do other.1") == 2);
  CHECK(engine.submit("other", {.nonce = {7, 7}}).value != 0);
  CHECK(engine.world.journal.count("do other.1") == 2);
}

TEST_CASE("when the store has failed too, a nonce that cannot be looked up ends the run loudly") {
  EngineWorld engine;
  engine.max_results_in_memory = 0;
  engine.world.scripts["a"] = submits({.nonce = {7, 7}});
  engine.world.scripts["other"] = {.steps = 1};
  bool bad = false;
  ExecutorOptions options = engine.options();
  options.store = std::make_unique<BadDisk>(std::move(options.store), bad);
  engine.open(std::move(options));
  engine.submit("other", {.nonce = {1, 1}});
  engine.run();
  engine.submit("a");
  bad = true;
  engine.executor().run_until_idle(1);
  engine.faults().fail_commit(engine.faults().commits() + 1,
                              Status(StatusCode::kIoError, "the disk is gone"));
  engine.run();

  CHECK(engine.executor().health().code() == StatusCode::kIoError);
  REQUIRE(engine.store_failures.size() == 1);
  CHECK_THAT(engine.store_failures[0].to_string(), ContainsSubstring("the disk is gone"));
}

TEST_CASE("a step does not fail because of a nonce that another step was only about to use") {
  EngineWorld engine;
  ProcedureId b;
  const std::function<void()> meddle = [&] {
    engine.executor().async().submit(Job(engine.world, "b"), {},
                                     [&b](const Result<Submitted>& answer) { b = answer->id; });
    engine.run();
    throw std::runtime_error("no locks");
  };
  engine.world.scripts["other"] = {.steps = 1};
  engine.world.scripts["else"] = {.steps = 1};
  engine.world.scripts["a"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 run.ctx.submit(Job(run.world, "other"), {.nonce = {7, 7}});
                                 run.ctx.submit(Meddler(meddle));
                                 return std::nullopt;
                               }};
  engine.world.scripts["b"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 run.ctx.submit(Job(run.world, "else"), {.nonce = {7, 7}});
                                 return std::nullopt;
                               }};
  ExecutorOptions options = engine.options();
  options.registry.add<Meddler>(meddle);
  engine.open(std::move(options));
  engine.submit("a");
  engine.run_to_the_end();
  CHECK(engine.result(b).status.to_string() == "OK");
  CHECK(engine.world.journal.count("do else.1") == 1);
}

TEST_CASE("a step that submits the same nonce twice submits once") {
  EngineWorld engine;
  engine.world.scripts["other"] = {.steps = 1};
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 run.ctx.submit(Job(run.world, "other"), {.nonce = {7, 7}});
                                 run.ctx.submit(Job(run.world, "other"), {.nonce = {7, 7}});
                                 return std::nullopt;
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.result(id).status.ok());
  CHECK(engine.world.journal.count("do other.1") == 1);
}

TEST_CASE("a submission by a step whose record is refused is given up, and its nonce is free") {
  EngineWorld engine;
  std::optional<Result<Submitted>> joined;
  engine.store_options.limits = {.batch_operations = 10, .batch_bytes = 1 << 20};
  engine.world.scripts["other"] = {.steps = 1};
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 run.ctx.submit(Job(run.world, "other"), {.nonce = {7, 7}});
                                 for (int i = 0; i < 20; ++i)
                                   run.ctx.put_row("row" + std::to_string(i), "x");  // too many
                                 return std::nullopt;
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.result(id).status.code() == StatusCode::kInvalidArgument);
  CHECK(engine.executor().inspect().live_procedures() == 0);
  CHECK(engine.executor().inspect().locks().empty());
  const auto free = engine.executor().submit(Job(engine.world, "other"), {.nonce = {7, 7}});
  REQUIRE(free.ok());
  CHECK_FALSE(free->replayed);
}

TEST_CASE("an undo that submits is parked") {
  EngineWorld engine;
  engine.world.scripts["other"] = {.steps = 1};
  engine.world.scripts["a"] = {.steps = 2,
                               .run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 2) return Say::fail("no");
                                 return std::nullopt;
                               },
                               .undo = [](JobRun& run) -> std::optional<Outcome> {
                                 run.ctx.submit(Job(run.world, "other"));
                                 return std::nullopt;
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.describe(id).parked);
  CHECK(engine.world.journal.count("do other.1") == 0);
}

TEST_CASE("wherever the process dies, a step and a client that submit one nonce submit it once") {
  JobPlot plot;
  plot.scripts["a"] = submits({.nonce = {9, 2}});  // the nonce of the second client
  plot.scripts["other"] = {.steps = 2};
  plot.roots = {{"a"}, {"other"}};
  crash_everywhere(plot, {.twice = true, .power_cuts = true});
}

}  // namespace pv2::testing::submit_from_step_test
