// SPDX-License-Identifier: Apache-2.0
//
// Meaningless input of a caller is refused with an error that names it, and has no effect.

#include "support/repair_orders.h"

namespace pv2::testing::refused_input_test {
namespace {

using namespace std::chrono_literals;

void check_refused(const Status& status, const std::string& named) {
  INFO(status.to_string());
  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(status.to_string(), ContainsSubstring(named));
}

/// Another class under the type name of Job, which is registered.
class Namesake final : public Procedure {
 public:
  static constexpr std::string_view kType = Job::kType;
  void fields(auto& /*f*/) {}
  Outcome execute(StepContext& /*ctx*/) override { return done(); }
};

/// What only others may start.
class Helper final : public Procedure {
 public:
  static constexpr std::string_view kType = "test.Helper";
  static constexpr bool kChildOnly = true;
  void fields(auto& /*f*/) {}
  Outcome execute(StepContext& /*ctx*/) override { return done("helped"); }
};

}  // namespace

TEST_CASE("a class that is a child only is spawned, and refused where it is submitted") {
  EngineWorld engine;
  engine.world.scripts["submits"] = {.steps = 1, .run = [](JobRun& run) {
                                       run.ctx.submit(Helper());
                                       return usual();
                                     }};
  engine.world.scripts["spawns"] = {.steps = 1, .run = [](JobRun& run) {
                                      run.ctx.spawn(Helper());
                                      return usual();
                                    }};
  ExecutorOptions options = engine.options();
  options.registry.add<Helper>();
  ProcedureExecutor& executor = engine.open(std::move(options));

  check_refused(executor.submit(Helper()).status(), "submit the procedure that starts it");
  CHECK(executor.inspect().live_procedures() == 0);
  const ProcedureId submits = engine.submit("submits");
  const ProcedureId spawns = engine.submit("spawns");
  engine.run();

  CHECK_THAT(engine.result(submits).status.to_string(), ContainsSubstring("test.Helper"));
  CHECK(engine.result(spawns).status.to_string() == "OK");
}

TEST_CASE("a procedure of another class than the one registered under its name is refused") {
  EngineWorld engine;
  engine.world.scripts["submits"] = {.steps = 1, .run = [](JobRun& run) {
                                       run.ctx.submit(Namesake());
                                       return usual();
                                     }};
  engine.world.scripts["spawns"] = {.steps = 1, .run = [](JobRun& run) {
                                      run.ctx.spawn(Namesake());
                                      return usual();
                                    }};
  ProcedureExecutor& executor = engine.open();
  check_refused(executor.submit(Namesake()).status(), "another class called 'test.Job'");
  CHECK(executor.inspect().live_procedures() == 0);
  for (const std::string name : {"submits", "spawns"}) {
    const ProcedureId id = engine.submit(name);
    engine.run();
    CHECK_THAT(engine.result(id).status.to_string(), ContainsSubstring("another class called"));
  }
}

TEST_CASE("an empty chore or listener, and a chore without a period, are refused") {
  EngineWorld engine;
  ProcedureExecutor& executor = engine.open();
  int runs = 0;

  check_refused(executor.listen({}).status(), "listener is empty");
  check_refused(executor.add_chore("sweeper", 1s, {}).status(), "sweeper");
  check_refused(executor.add_chore("sweeper", 0s, [&] { ++runs; }).status(), "period");
  check_refused(executor.add_chore("sweeper", -1s, [&] { ++runs; }).status(), "period");
  engine.advance(1h);
  CHECK(runs == 0);
}

TEST_CASE("a negative delay is refused, and a start in the past means at once") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  ProcedureExecutor& executor = engine.open();

  check_refused(executor.submit(Job(engine.world, "a"), {.delay = -1us}).status(), "delay");
  CHECK(executor.inspect().live_procedures() == 0);
  const ProcedureId none = engine.submit("a", {.delay = 0us});
  const ProcedureId past = engine.submit("a", {.start_at = engine.clock->wall_now() - 1h});
  engine.run();
  CHECK(engine.result(none).status.ok());
  CHECK(engine.result(past).status.ok());
}

TEST_CASE("an executor with a negative stuck_after is not opened") {
  EngineWorld engine;
  auto options = engine.options();
  options.stuck_after = -1s;
  check_refused(ProcedureExecutor::open(std::move(options)).status(), "stuck_after");
}

TEST_CASE("an option with a value that its enumeration does not have is refused") {
  EngineWorld engine;
  auto options = engine.options();
  options.deadlock_policy = static_cast<DeadlockPolicy>(2);
  check_refused(ProcedureExecutor::open(std::move(options)).status(), "deadlock_policy");
  options = engine.options();
  options.unreadable = static_cast<UnreadableRecords>(2);
  check_refused(ProcedureExecutor::open(std::move(options)).status(), "unreadable");
}

TEST_CASE("a lock with a mode or scope that does not exist is refused, also in a child") {
  EngineWorld engine;
  const auto table = [](LockMode mode) { return LockSet().table("shop", "t", mode); };
  const auto mode = static_cast<LockMode>(GENERATE(0, 3, 7));
  engine.world.scripts["mode"] = {.locks = table(mode)};
  engine.world.scripts["scope"] = {
      .locks = table(LockMode::kShared).scope(static_cast<LockScope>(GENERATE(0, 4)))};
  engine.world.scripts["parent"] = {.children = {"mode"}};
  engine.open();
  check_refused(engine.executor().submit(Job(engine.world, "mode")).status(), "LockMode");
  check_refused(engine.executor().submit(Job(engine.world, "scope")).status(), "LockScope");
  const ProcedureId parent = engine.submit("parent");
  engine.run_to_the_end();
  check_refused(engine.result(parent).status, "LockMode");
  engine.open();
  CHECK(engine.executor().inspect().live_procedures() == 0);
}

TEST_CASE("an order without who or why, or with a step that it does not take, is refused") {
  EngineWorld engine;
  bool mended = false;
  engine.world.scripts["a"] = stuck(mended);
  ProcedureExecutor& executor = engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  REQUIRE(engine.describe(id).parked);

  for (const auto verb : {RepairVerb::kRetryNow, RepairVerb::kSkipStep,
                          RepairVerb::kFailAndRollBack, RepairVerb::kBypass}) {
    INFO(to_string(verb));
    check_refused(executor.operate().order(id, verb, {}), "RepairNote::who");
    check_refused(executor.operate().order(id, verb, {.who = "anna"}), "RepairNote::why");
    check_refused(executor.operate().order(id, verb, {.why = "ticket 7"}), "RepairNote::who");
    if (verb == RepairVerb::kSkipStep) continue;
    check_refused(
        executor.operate().order(id, verb, {.who = "anna", .why = "ticket 7", .next_step = 1}),
        "next_step");
  }
  check_refused(
      executor.operate().skip_step(id, {.who = "anna", .why = "ticket 7", .next_step = 1}),
      "next_step");
  const auto none = static_cast<RepairVerb>(77);
  check_refused(executor.operate().order(id, none, kNote), "77");
  check_refused(executor.operate().preview(id, none).status(), "77");
  CHECK(executor.operate().audit(id)->empty());
  CHECK(engine.describe(id).parked);
}

TEST_CASE(
    "a skip to a step that the type does not have is refused, and to one that it has is done") {
  EngineWorld engine;
  engine.retry.max_attempts = 1;
  engine.world.scripts["a"] = {.run = [](JobRun& run) {
    return run.step == 1 ? std::optional(Say::retry("busy")) : usual();
  }};
  ProcedureExecutor& executor = engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();

  check_refused(
      executor.operate().skip_step(id, {.who = "anna", .why = "ticket 7", .next_step = 99}), "99");
  REQUIRE(
      executor.operate().skip_step(id, {.who = "anna", .why = "ticket 7", .next_step = 3}).ok());
  engine.run();
  CHECK(engine.result(id).status.ok());
  CHECK(engine.world.journal.count("do a.2") == 0);
}

TEST_CASE("an undo that answers done() parks its tree, and the error says what was meant") {
  EngineWorld engine;
  engine.world.scripts["a"] = {
      .run = [](JobRun& run) { return run.step == 2 ? std::optional(Say::fail("no")) : usual(); },
      .undo = [](JobRun&) { return std::optional(Say::done("all is well")); }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  const ProcedureInfo info = engine.describe(id);
  CHECK(info.parked);
  CHECK_THAT(info.error.to_string(), ContainsSubstring("undone() was meant"));
}

TEST_CASE("a step that asks for a signal with a name that cannot be sent fails") {
  const std::string name = GENERATE(std::string(), std::string(257, 'n'));
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1, .run = [&name](JobRun& run) {
                                 (void)run.ctx.signal(name);
                                 return std::optional(Say::wait());
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  check_refused(engine.result(id).status, "signal");
}

TEST_CASE("a wait without a positive time is over at once") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun& run) {
                                 return run.ctx.timed_out() ? usual()
                                                            : std::optional(Say::wait_for(-1h));
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.result(id).status.ok());
  CHECK(engine.executor().wait(id, -5ms).ok());
  const ProcedureId asks = engine.submit("a", {.delay = 1h});
  CHECK(engine.executor().wait(asks, -5ms).status().code() == StatusCode::kDeadlineExceeded);
}

TEST_CASE("a caller that wants no answer gives an empty callback, and the verb has its effect") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun& run) {
                                 return run.ctx.signal("go") == nullptr ? std::optional(Say::wait())
                                                                        : usual();
                               }};
  ProcedureExecutor& executor = engine.open();
  executor.async().submit(Job(engine.world, "a"), {}, {});
  executor.async().submit(Job(engine.world, "a"), {.delay = -1s}, {});
  engine.run();
  REQUIRE(executor.inspect().live_procedures() == 1);
  const ProcedureId id = executor.inspect().list().front().id;

  executor.async().wait(id, {});
  executor.async().signal(id, "", "", {});
  executor.operate().order(id, RepairVerb::kBypass, kNote, {});
  executor.async().acknowledge(id, {});
  engine.run();
  executor.async().signal(id, "go", "", {});
  engine.run();
  CHECK(engine.result(id).status.ok());
  executor.async().abort(id, {}, {});
  executor.async().acknowledge(id, {});
  engine.run();
  CHECK(executor.wait(id).status().code() == StatusCode::kExpired);
}

TEST_CASE(
    "an owner or lock names too large for the store are refused, and others are not affected") {
  EngineWorld engine;
  engine.world.scripts["plain"] = {.steps = 1};
  engine.world.scripts["huge"] = {
      .steps = 1, .locks = LockSet().server(std::string(20'000'000, 's'), LockMode::kExclusive)};
  engine.open();

  const auto owner =
      engine.executor().submit(Job(engine.world, "plain"), {.owner = std::string(20'000'000, 'o')});
  CHECK(owner.status().code() == StatusCode::kInvalidArgument);
  const auto locks = engine.executor().submit(Job(engine.world, "huge"));
  CHECK(locks.status().code() == StatusCode::kInvalidArgument);

  CHECK(engine.executor().health().ok());
  CHECK(engine.executor().inspect().live_procedures() == 0);
  const ProcedureId plain = engine.submit("plain");
  engine.run();
  CHECK(engine.result(plain).status.ok());
}

}  // namespace pv2::testing::refused_input_test
