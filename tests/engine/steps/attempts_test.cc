// SPDX-License-Identifier: Apache-2.0
//
// Kinds of errors, and how often a step may fail. A step is tried again after a transient error and
// after an ambiguous one, of which later attempts are told. When the attempts are used up, the
// procedure parks at that step, its tree goes on, and an operator decides.

#include "support/job_story.h"
#include "support/repair_orders.h"

namespace pv2::testing::attempts_test {
namespace {

using namespace std::chrono_literals;

// Fails at step 2 until `mended`.
JobScript unlucky(const bool& mended) {
  return {.run =
              [&mended](JobRun& run) {
                if (run.step != 2 || mended) return usual();
                run.world.journal.note("attempt " + std::to_string(run.ctx.attempt()));
                return std::optional(Say::retry("the shop is closed"));
              },
          .locks = LockSet().table("shop", "orders", LockMode::kExclusive)};
}

enum class CallStep : std::uint32_t { kFirst = 1, kSecond = 2 };

// The first of its two steps has two attempts, the second has three.
class Caller final : public StateMachineProcedure<CallStep> {
 public:
  static constexpr std::string_view kType = "test.Caller";
  static constexpr auto kSteps = steps(step(CallStep::kFirst, "FIRST", kUndoable, 2),
                                       step(CallStep::kSecond, "SECOND", kUndoable));
  static constexpr std::uint32_t kMaxAttempts = 3;

  explicit Caller(World& world) : world_(world) {}
  void fields(auto& /*f*/) {}
  Flow execute_from_state(CallStep step, StepContext& ctx) override {
    world_.journal.note(std::string(step == CallStep::kFirst ? "first " : "second ") +
                        std::to_string(ctx.attempt()));
    return retry(Status(StatusCode::kUnavailable, "nobody answers"));
  }

 private:
  World& world_;
};

// A CommittingJob, whose step 2 must run. It has used up its one attempt at `step`, at which it
// fails until `mended`.
ProcedureId gives_up_at(std::uint32_t step, EngineWorld& engine, const bool& mended) {
  engine.retry.max_attempts = 1;
  engine.world.scripts["a"] = {.steps = 5, .run = [step, &mended](JobRun& run) {
                                 return run.step == step && !mended
                                            ? std::optional(Say::retry("the shop is closed"))
                                            : usual();
                               }};
  engine.open();
  const ProcedureId id = engine.submit<CommittingJob>("a");
  engine.run();
  REQUIRE(engine.describe(id).parked);
  return id;
}

// An order to skip the step at which `id` gave up is refused, and leaves no trace.
void check_not_skipped(EngineWorld& engine, ProcedureId id, std::uint32_t next_step,
                       const char* why) {
  RepairNote note = kNote;
  note.next_step = next_step;
  const Status refusal = engine.executor().operate().skip_step(id, note);
  CHECK(refusal.code() == StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(refusal.message()), ContainsSubstring(why));
  CHECK(engine.executor().operate().audit(id)->empty());
  CHECK(engine.describe(id).parked);
}

}  // namespace

TEST_CASE("a step whose attempts are used up parks its procedure, with its locks and its error") {
  const auto crash = GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter);
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  engine.retry.max_attempts = 3;
  bool mended = false;
  engine.world.scripts["a"] = unlucky(mended);
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  for (int i = 0; i < 10; ++i) {
    engine.advance(10min);
    if (restart) engine.crash_and_open();
  }
  engine.run();

  const ProcedureInfo info = engine.describe(id);
  CHECK(info.parked);
  CHECK(info.state == ProcedureState::kRunnable);
  CHECK(info.attempt == 3);
  CHECK(info.step_name == "TWO");
  CHECK(info.holds_locks);
  CHECK(info.error ==
        Status(StatusCode::kUnavailable, "3 attempts at step TWO: the shop is closed"));
  for (const char* attempt : {"attempt 1", "attempt 2", "attempt 3"}) {
    CHECK(engine.world.journal.count(attempt) >= 1);
  }
  CHECK(engine.world.journal.count("attempt 4") == 0);
  CHECK(engine.executor().inspect().list({.parked = true}).procedures.size() == 1);
  const auto why = engine.executor().inspect().explain(id);
  REQUIRE(why.status().ok());
  CHECK_THAT(to_string(*why), ContainsSubstring("is parked until somebody acts") &&
                                  ContainsSubstring("3 attempts at step TWO"));

  mended = true;
  order(engine, id, RepairVerb::kRetryNow, crash);
  engine.run();
  CHECK(engine.result(id).status.ok());
  CHECK(engine.executor().inspect().locks().empty());
  CHECK(engine.executor().operate().audit(id)->front().step == 2);
}

TEST_CASE("a step that must run is not skipped, whatever the order says, and its retry goes on") {
  EngineWorld engine;
  bool mended = false;
  const ProcedureId id = gives_up_at(2, engine, mended);  // CHECK
  for (const std::uint32_t next : {0U, 3U}) {
    check_not_skipped(engine, id, next, "failed at CHECK, which must run");
  }
  const OperatorConsole operate = engine.executor().operate();
  CHECK(operate.preview(id, RepairVerb::kSkipStep).status().code() ==
        StatusCode::kFailedPrecondition);

  mended = true;
  REQUIRE(operate.retry_now(id, kNote).ok());
  engine.run();
  CHECK(engine.result(id).result == "a done");
  CHECK(engine.world.journal.count("do a.2") == 1);
}

TEST_CASE("an order skips a step that used up its attempts, or rolls back or bypasses its tree") {
  const auto verb =
      GENERATE(RepairVerb::kSkipStep, RepairVerb::kFailAndRollBack, RepairVerb::kBypass);
  const auto crash = GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter);
  const bool child = GENERATE(false, true);
  EngineWorld engine;
  engine.retry.max_attempts = 1;
  const bool mended = false;
  engine.world.scripts["p"] = {.children = {"a", "b"}};
  engine.world.scripts["a"] = unlucky(mended);
  engine.world.scripts["b"] = {};
  engine.open();
  const ProcedureId root = engine.submit(child ? "p" : "a");
  engine.run();
  const ProcedureId parked{root.value + (child ? 1 : 0)};
  REQUIRE(engine.describe(parked).parked);
  if (child) {
    CHECK(engine.world.journal.count("do b.3") == 1);  // the sibling goes on
    CHECK_FALSE(engine.describe(root).parked);
  }
  CHECK(engine.executor().operate().preview(root, verb).ok());
  order(engine, GENERATE(false, true) ? root : parked, verb, crash, root);
  engine.run();

  const ProcedureResult result = engine.result(root);
  CHECK(result.status.ok() == (verb == RepairVerb::kSkipStep));
  CHECK(result.bypassed == (verb == RepairVerb::kBypass));
  CHECK(engine.world.journal.count("do a.3") == (verb == RepairVerb::kSkipStep ? 1 : 0));
  const bool undone = verb == RepairVerb::kFailAndRollBack;
  CHECK(engine.world.journal.count("undo a.2") == (undone ? 1 : 0));  // it may have been half done
  CHECK(engine.world.journal.count("undo a.1") == (undone ? 1 : 0));
  CHECK(engine.world.journal.count("undo b.1") == (undone && child ? 1 : 0));
  CHECK(engine.executor().inspect().locks().empty());
  CHECK(engine.executor().operate().audit(root)->size() == 1);
}

TEST_CASE("an abort of a tree in which a step used up its attempts survives any crash") {
  JobPlot plot;
  plot.scripts["p"] = {.children = {"a", "b"}};
  plot.scripts["a"] = {
      .run = [](JobRun& run) { return run.step == 2 ? std::optional(Say::retry("no")) : usual(); }};
  plot.scripts["b"] = {};
  plot.roots = {{"p", false}};
  plot.repairs = RepairVerb::kFailAndRollBack;
  plot.check = [](const auto& journal, const auto&) { check_all_undone(journal); };
  crash_everywhere(plot, {.twice = true, .retry = {.max_attempts = 2}});
}

TEST_CASE("the step table sets the attempts of a step, else the class, else the executor") {
  EngineWorld engine;
  engine.retry.max_attempts = 5;
  ExecutorOptions options = engine.options();
  options.registry.add<Caller>(engine.world);
  engine.open(std::move(options));
  const auto submitted = engine.executor().submit(Caller(engine.world));
  REQUIRE(submitted.ok());
  engine.run();
  for (int i = 0; i < 10; ++i) engine.advance(10min);
  CHECK(engine.world.journal.count("first 2") == 1);
  CHECK(engine.world.journal.count("first 3") == 0);
  REQUIRE(engine.executor().operate().skip_step(submitted->id, kNote).ok());
  engine.run();
  for (int i = 0; i < 10; ++i) engine.advance(10min);
  CHECK(engine.world.journal.count("second 3") == 1);
  CHECK(engine.world.journal.count("second 4") == 0);
  REQUIRE(engine.describe(submitted->id).parked);
  REQUIRE(engine.executor().operate().retry_now(submitted->id, kNote).ok());
  engine.run();
  for (int i = 0; i < 10; ++i) engine.advance(10min);
  CHECK(engine.world.journal.count("second 1") == 2);  // fresh attempts
}

TEST_CASE("later attempts know that an earlier one may have had its effect, over crashes") {
  EngineWorld engine;
  engine.world.scripts["a"] = {
      .run =
          [](JobRun& run) {
            if (run.step != 2) {
              CHECK_FALSE(run.ctx.unsure());
              return run.step == 3 ? std::optional(Say::fail("no")) : usual();
            }
            run.world.journal.note(run.ctx.unsure() ? "unsure" : "sure");
            if (run.ctx.attempt() == 1) {
              return std::optional(Say::retry("not sent"));
            }
            if (run.ctx.attempt() == 2) {
              return std::optional(Say::unsure(Status(StatusCode::kDeadlineExceeded, "no answer")));
            }
            if (run.ctx.attempt() == 3) {
              return std::optional(Say::retry("not sent"));
            }
            return usual();
          },
      .undo =
          [](JobRun& run) {
            CHECK_FALSE(run.ctx.unsure());
            return usual();
          }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  const bool restart = GENERATE(false, true);
  for (int i = 0; i < 3; ++i) {
    if (restart) engine.crash_and_open();
    engine.advance(10min);
  }
  engine.run();
  CHECK(engine.world.journal.count("sure") == 2);
  CHECK(engine.world.journal.count("unsure") == 2);
  CHECK_FALSE(engine.result(id).status.ok());
}

TEST_CASE("later attempts at an undo know that an earlier one may have had its effect") {
  const std::uint32_t unsure_at = GENERATE(1, 2, 3);  // the third one parks
  const bool restart = GENERATE(false, true);
  CAPTURE(unsure_at, restart);
  EngineWorld engine;
  engine.retry = {.base = 1s, .cap = 1s, .jitter_percent = 0, .undo_attempts = 3};
  bool mended = false;
  engine.world.scripts["a"] = {
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .undo = [&](JobRun& run) -> std::optional<Outcome> {
        const std::uint32_t attempt = run.ctx.attempt();
        CHECK(run.ctx.unsure() == (run.step == 2 && (mended || attempt > unsure_at)));
        if (run.step != 2 || mended) return usual();
        if (attempt != unsure_at) return Say::retry("not sent");
        return Say::unsure(Status(StatusCode::kDeadlineExceeded, "no answer"));
      }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  for (int i = 0; i < 3; ++i) engine.advance(1s);
  REQUIRE(engine.describe(id).parked);
  if (restart) engine.crash_and_open();
  mended = true;
  REQUIRE(engine.executor().operate().retry_now(id, kNote).ok());
  engine.run();

  CHECK(engine.world.journal.count("undo a.2") == 1);
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
}

TEST_CASE("a step whose record is too large still knows that an attempt may have had its effect") {
  EngineWorld engine;
  engine.retry = {.base = 1s, .cap = 1s, .jitter_percent = 0};
  engine.store_options.limits = {.batch_operations = 64, .batch_bytes = 64 << 10};
  bool mended = false;
  engine.world.scripts["a"] = {.steps = 4, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step != 4) return usual();
                                 CHECK(run.ctx.unsure() == (mended || run.ctx.attempt() == 2));
                                 if (run.ctx.attempt() == 1 && !mended) {
                                   return Say::unsure(Status(StatusCode::kUnavailable, "cut"));
                                 }
                                 if (!mended) run.note = std::string(60 << 10, 'x');
                                 return usual();
                               }};
  engine.open();
  const ProcedureId id = engine.submit<CommittingJob>("a");
  engine.run();
  engine.advance(1s);
  REQUIRE(engine.describe(id).parked);
  mended = true;
  REQUIRE(engine.executor().operate().retry_now(id, kNote).ok());
  engine.run();

  CHECK(engine.result(id).status.to_string() == "OK");
}

TEST_CASE("an undo that is skipped though it was unsure leaves no doubt about the next one") {
  EngineWorld engine;
  engine.retry.undo_attempts = 1;
  engine.world.scripts["a"] = {
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .undo = [&](JobRun& run) -> std::optional<Outcome> {
        CHECK_FALSE(run.ctx.unsure());
        if (run.step != 2) return usual();
        return Say::unsure(Status(StatusCode::kDeadlineExceeded, "no answer"));
      }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  REQUIRE(engine.executor().operate().skip_step(id, kNote).ok());
  engine.run();

  CHECK(engine.world.journal.count("undo a.1") == 1);
}

TEST_CASE("an undo does not take the doubt about a step for its own") {
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  engine.retry = {.base = 1s, .cap = 1s, .jitter_percent = 0};
  engine.world.scripts["a"] = {
      .run = [](JobRun& run) -> std::optional<Outcome> {
        if (run.step != 2) return usual();
        if (run.ctx.unsure()) return Say::fail("no");
        return Say::unsure(Status(StatusCode::kDeadlineExceeded, "no answer"));
      },
      .undo = [](JobRun& run) -> std::optional<Outcome> {
        run.world.journal.note("undo attempt " + std::to_string(run.ctx.attempt()));
        CHECK_FALSE(run.ctx.unsure());
        return run.ctx.attempt() == 1 ? std::optional(Say::retry("closed")) : usual();
      }};
  engine.open();
  // Step 2 of this type has no undo, so the first undo is that of step 1.
  const ProcedureId id =
      GENERATE(false, true) ? engine.submit<CommittingJob>("a") : engine.submit("a");
  engine.run();
  for (int i = 0; i < 4; ++i) {
    if (restart) engine.crash_and_open();
    engine.advance(1s);
  }

  CHECK(engine.world.journal.count("undo attempt 2") >= 1);
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
}

TEST_CASE("the code of an error says whether it is transient, ambiguous or permanent") {
  EngineWorld engine;
  engine.retry.max_attempts = 1;
  engine.world.scripts["a"] = {.run = [](JobRun& run) {
    if (run.step == 2) return std::optional(Say::failed(Status(StatusCode::kUnavailable, "t")));
    return usual();
  }};
  engine.world.scripts["b"] = {.run = [](JobRun& run) {
    if (run.step == 2) return std::optional(Say::failed(Status(StatusCode::kUnknownOutcome, "u")));
    return usual();
  }};
  engine.world.scripts["c"] = {.run = [](JobRun& run) {
    if (run.step == 2) return std::optional(Say::failed(Status(StatusCode::kNotFound, "p")));
    return usual();
  }};
  engine.open();
  const ProcedureId a = engine.submit("a");
  const ProcedureId b = engine.submit("b");
  const ProcedureId c = engine.submit("c");
  engine.run();
  CHECK(engine.describe(a).error == Status(StatusCode::kUnavailable, "1 attempt at step TWO: t"));
  CHECK(engine.describe(b).error ==
        Status(StatusCode::kUnknownOutcome,
               "1 attempt at step TWO, of which one may have had its effect: u"));
  CHECK(engine.result(c).status == Status(StatusCode::kNotFound, "p"));
}

TEST_CASE(
    "a procedure bypassed while it waits for children has no result, before and after a crash") {
  EngineWorld engine;
  engine.retry.max_attempts = 1;
  engine.world.scripts["p"] = {.steps = 2, .children = {"c"}};
  engine.world.scripts["c"] = {.run = [](JobRun&) { return std::optional(Say::retry("late")); }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  REQUIRE(engine.executor().operate().bypass(root, kNote).to_string() == "OK");

  const ProcedureResult told = engine.result(root);
  CHECK(told.bypassed);
  CHECK(told.result.empty());
  engine.crash_and_open();
  CHECK(engine.result(root).result.empty());
}

TEST_CASE("a step, or an undo, that goes on failing is reported after 10, 20, 40 ... attempts") {
  const bool undo = GENERATE(false, true);
  EngineWorld engine;
  engine.retry.undo_attempts = 1000;
  const auto again = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 2 && run.ctx.attempt() <= 85) return Say::retry("the shop is closed");
    return std::nullopt;
  };
  if (undo) {
    engine.world.scripts["a"] = {
        .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
        .undo = again};
  } else {
    engine.world.scripts["a"] = {.run = again};
  }
  engine.open();
  std::vector<std::uint32_t> told;  // the attempts that were reported
  std::uint32_t attempt = 0;
  const auto news_heard = engine.executor().listen([&](const ProcedureNews& news) {
    if (news.kind != ProcedureNews::Kind::kRetrying) return;
    CHECK(news.error == Status(StatusCode::kUnavailable, "the shop is closed"));
    told.push_back(attempt);
  });
  const ProcedureId id = engine.submit("a");
  engine.run();
  while (engine.executor().inspect().live_procedures() != 0) {
    attempt = engine.describe(id).attempt;  // the next one
    engine.advance(15min);
  }
  CHECK(told == std::vector<std::uint32_t>{10, 20, 40, 80});
  std::vector<std::string> lines;
  for (const std::string& line : engine.log_lines) {
    if (line.find("goes on trying") != line.npos) lines.push_back(line);
  }
  const std::string where = undo ? " times to undo step TWO" : " times at step TWO";
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "procedure " + std::to_string(id.value) + " (test.Job) has failed 10" + where +
                        " and goes on trying: UNAVAILABLE: the shop is closed");
  CHECK_THAT(lines[3], ContainsSubstring(" failed 80" + where));
}

TEST_CASE("an order to a member of a tree that is just being bypassed is refused") {
  const auto verb = GENERATE(RepairVerb::kRetryNow, RepairVerb::kSkipStep, RepairVerb::kBypass);
  const bool to_root = GENERATE(false, true);
  EngineWorld engine;
  engine.retry.max_attempts = 1;
  engine.world.scripts["p"] = {.children = {"c"}};
  engine.world.scripts["c"] = {.run = [](JobRun&) { return std::optional(Say::retry("late")); }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId child = engine.executor().inspect().list()[1].id;
  engine.faults().hold_commit(engine.faults().commits() + 1);
  Status first;
  Status second;
  engine.executor().operate().order(root, RepairVerb::kBypass, kNote,
                                    [&first](const Status& status) { first = status; });
  engine.executor().operate().order(to_root ? root : child, verb, kNote,
                                    [&second](const Status& status) { second = status; });
  engine.run();
  CHECK(engine.executor().operate().preview(to_root ? root : child, verb).status() == second);
  engine.faults().release();
  engine.run();

  CHECK(first.to_string() == "OK");
  CHECK(second.code() == StatusCode::kUnavailable);
  CHECK(engine.result(root).bypassed);
  CHECK(engine.executor().operate().audit(root)->size() == 1);
}

TEST_CASE("an order that skips a step does not pass over one that must run") {
  EngineWorld engine;
  bool mended = false;
  const ProcedureId id = gives_up_at(1, engine, mended);
  for (const std::uint32_t beyond : {3U, 4U, 5U}) {
    check_not_skipped(engine, id, beyond, "failed at ONE, and CHECK lies between, which must run");
  }
  RepairNote note = kNote;
  note.next_step = GENERATE(0U, 1U, 2U);
  mended = true;
  CHECK(engine.executor().operate().skip_step(id, note).ok());
  engine.run();
  CHECK(engine.result(id).result == "a done");
  CHECK(engine.world.journal.count("do a.2") == 1);
}

}  // namespace pv2::testing::attempts_test
