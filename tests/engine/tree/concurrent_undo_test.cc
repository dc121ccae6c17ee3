// SPDX-License-Identifier: Apache-2.0
//
// Children that are undone at the same time, because their spawn says so: none of them waits for
// another, every other member keeps its place in the reverse order, and a parked child delays only
// the undos that come after it; wherever the machine crashes.

#include <stdexcept>

#include "support/job_story.h"
#include "support/repair_orders.h"

namespace pv2::testing::concurrent_undo_test {
namespace {

using namespace std::chrono_literals;

constexpr SpawnOptions kBeside{.undo_order = UndoOrder::kConcurrent};

// Spawns these in step 2, to be undone concurrently, and fails in step 3.
JobScript fails_after(std::vector<std::string> children) {
  return {.run = [children](JobRun& run) {
    if (run.step == 3) return std::optional(Say::fail("no"));
    for (const std::string& child : children) {
      if (run.step == 2) run.ctx.spawn(Job(run.world, child), kBeside);
    }
    return usual();
  }};
}

// Each undo waits for an answer first.
JobScript asks_to_be_undone(std::uint32_t steps = 2) {
  return {.steps = steps, .undo = [](JobRun& run) {
            const auto* value =
                run.ctx.await<std::string>([&run](auto asked) { run.world.ask(asked); });
            return value == nullptr ? std::optional(Say::wait()) : usual();
          }};
}

// None of its steps has an undo.
struct LooseJobKind : JobKind {
  static constexpr std::string_view kType = "test.LooseJob";
  static constexpr auto kSteps = steps(step(JobStep::kOne, "ONE", kNoUndo));
};
using LooseJob = ScriptedJob<LooseJobKind>;

// Cannot be made again once its undo was tried.
class Fragile final : public StateMachineProcedure<JobStep> {
 public:
  static constexpr std::string_view kType = "test.Fragile";
  static constexpr auto kSteps = pv2::steps(step(JobStep::kOne, "ONE", kUndoable));
  explicit Fragile(bool& broken) : broken_(broken) {}
  void fields(auto& f) {  // once it is broken, its record cannot be decoded
    broken_ ? f(1, "part", text_) : f(1, "part", number_);
  }
  Flow execute_from_state(JobStep, StepContext&) override { return done(); }
  Flow rollback_state(JobStep, StepContext&) override {
    broken_ = true;
    return retry(Status(StatusCode::kUnavailable, "later"));
  }

 private:
  bool& broken_;
  std::uint32_t number_ = 0;
  std::string text_;
};

std::size_t place_of(const Entries& journal, std::string_view entry) {
  return static_cast<std::size_t>(std::find(journal.begin(), journal.end(), entry) -
                                  journal.begin());
}

void answer_all(EngineWorld& engine) {
  while (engine.world.answer_one("yes")) engine.run();
}

// The root is rolled back, and each child is undone in reverse order, before step 2 of "p".
void check_undone(EngineWorld& engine, ProcedureId root, const std::vector<std::string>& children) {
  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
  const Entries journal = engine.journal();
  for (const std::string& child : children) {
    INFO(child);
    CHECK(engine.world.journal.count("undo " + child + ".2") == 1);
    CHECK(engine.world.journal.count("undo " + child + ".1") == 1);
    CHECK(place_of(journal, "undo " + child + ".2") < place_of(journal, "undo " + child + ".1"));
    CHECK(place_of(journal, "undo " + child + ".1") < place_of(journal, "undo p.2"));
  }
  CHECK(engine.executor().inspect().locks().empty());
}

// `count` undos ask; each when the one before it has its answer.
void answer_one_after_the_other(EngineWorld& engine, int count) {
  for (int undone = 0; undone < count; ++undone) {
    CHECK(engine.world.asked() == 1);
    engine.world.answer_one("yes");
    engine.run();
  }
}

}  // namespace

TEST_CASE("children whose spawn asks for concurrent undos are undone at the same time") {
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["p"] = fails_after({"x", "y", "z"});
  for (const char* child : {"x", "y", "z"}) engine.world.scripts[child] = asks_to_be_undone();
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  CHECK(engine.world.asked() == 3);
  if (restart) {
    engine.crash_and_open();
    engine.run();
    CHECK(engine.world.asked() == 6);
  }

  const auto why = engine.executor().inspect().explain(root);
  REQUIRE(why.ok());
  const WaitReason& turn = why->procedures[0].reasons[0];
  CHECK(turn.kind == WaitReason::Kind::kTurn);
  CHECK(turn.on == std::vector<ProcedureId>{{root.value + 1}, {root.value + 2}, {root.value + 3}});
  answer_all(engine);
  check_undone(engine, root, {"x", "y", "z"});
}

TEST_CASE("children whose spawn does not ask for concurrent undos are undone one at a time") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"x", "y"}, .run = [](JobRun& run) {
                                 return run.step == 3 ? std::optional(Say::fail("no")) : usual();
                               }};
  for (const char* child : {"x", "y"}) engine.world.scripts[child] = asks_to_be_undone();
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  answer_one_after_the_other(engine, 4);
  check_undone(engine, root, {"x", "y"});
}

TEST_CASE("children of two spawns that ask for concurrent undos are undone one after the other") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.steps = 4, .run = [](JobRun& run) {
                                 if (run.step == 4) return std::optional(Say::fail("no"));
                                 if (run.step == 2) run.ctx.spawn(Job(run.world, "x"), kBeside);
                                 if (run.step == 3) run.ctx.spawn(Job(run.world, "y"), kBeside);
                                 return usual();
                               }};
  for (const char* child : {"x", "y"}) engine.world.scripts[child] = asks_to_be_undone();
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  CHECK(engine.world.asked() == 1);
  answer_all(engine);
  check_undone(engine, root, {"x", "y"});
  CHECK(place_of(engine.journal(), "undo y.1") < place_of(engine.journal(), "undo x.2"));
}

TEST_CASE("a concurrent undo still waits for a lock that another one needs") {
  EngineWorld engine;
  engine.world.scripts["p"] = fails_after({"x", "y"});
  for (const char* child : {"x", "y"}) {
    engine.world.scripts[child] = asks_to_be_undone();
    engine.world.scripts[child].locks = LockSet().table("shop", "orders", LockMode::kExclusive);
  }
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  answer_one_after_the_other(engine, 4);
  check_undone(engine, root, {"x", "y"});
}

TEST_CASE("a sibling that holds its locks for its own children closes no cycle of waits") {
  EngineWorld engine;
  const LockSet locks = LockSet().table("shop", "orders", LockMode::kExclusive);
  engine.world.scripts["p"] = {.run = [](JobRun& run) {
    for (const char* child : {"y", "x"}) {
      if (run.step == 2) run.ctx.spawn(Job(run.world, child), kBeside);
    }
    return usual();
  }};
  engine.world.scripts["y"] = {.steps = 1, .locks = locks};
  engine.world.scripts["x"] = {.children = {"deep"}, .locks = locks};
  engine.world.scripts["deep"] = asks_to_be_undone();
  engine.world.scripts["deep"].run = [](JobRun&) { return std::optional(Say::fail("no")); };
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  REQUIRE(engine.world.asked() == 1);
  CHECK(engine.executor().inspect().explain({root.value + 1})->procedures[0].reasons[0].kind ==
        WaitReason::Kind::kLock);
  CHECK_FALSE(engine.describe(root).parked);
  answer_all(engine);
  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
  CHECK(engine.world.journal.count("undo y.1") == 1);
  for (const std::string& line : engine.log_lines) {
    CHECK(line.find("deadlock") == std::string::npos);
  }
}

TEST_CASE("a tree does not end while a record of one of its members is on the way") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) {
      run.ctx.spawn(LooseJob(run.world, "bad"));
      run.spawn("idle");
    }
    return usual();
  }};
  const auto locks = [](const char* table) {
    return LockSet().table("shop", table, LockMode::kExclusive);
  };
  engine.world.scripts["bad"] = {.run = [](JobRun&) { return std::optional(Say::fail("no")); },
                                 .locks = locks("goods"),
                                 .priority = Priority::kHigh};
  engine.world.scripts["idle"] = {.locks = locks("orders")};
  auto options = engine.options();
  options.registry.add<LooseJob>(engine.world);
  engine.open(std::move(options));
  const ProcedureId root = engine.submit<CommittingJob>("p");
  engine.executor().run_until_idle(2);
  // After the record of the failure, and that of the member in the middle of a step.
  engine.faults().hold_commit(engine.faults().commits() + 3);
  engine.executor().run_until_idle(1);
  engine.run();
  CHECK(engine.faults().held() == 2);  // records that give locks back
  CHECK(engine.world.journal.count("do idle.1") == 0);
  CHECK(engine.world.journal.count("undo p.1") == 0);
  engine.faults().release();
  engine.run();
  CHECK(engine.world.journal.count("undo p.1") == 1);
  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
}

TEST_CASE("an undo that is parked alone is explained by its step, before and after a restart") {
  EngineWorld engine;
  engine.world.scripts["p"] = {
      .run = [](JobRun& run) { return run.step == 2 ? std::optional(Say::fail("no")) : usual(); },
      .undo =
          [](JobRun& run) { return run.step == 1 ? std::optional(Say::fail("stuck")) : usual(); }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  REQUIRE(engine.describe(root).parked);
  CHECK(engine.executor().inspect().explain(root)->procedures[0].step == 1);
  engine.crash_and_open();
  engine.run();
  REQUIRE(engine.describe(root).parked);
  CHECK(engine.executor().inspect().explain(root)->procedures[0].step == 1);
}

TEST_CASE("a tree that is quarantined while it is undone is frozen, with all its undos") {
  const bool grant_on_its_way = GENERATE(false, true);
  EngineWorld engine;
  bool broken = false;
  const auto asks = [](JobRun& run) {
    return run.ctx.await<std::string>([&run](auto asked) { run.world.ask(asked); }) == nullptr;
  };
  engine.world.scripts["p"] = {.run = [&](JobRun& run) {
    if (run.step == 3) return std::optional(asks(run) ? Say::wait() : Say::fail("no"));
    if (run.step == 2) run.ctx.spawn(Fragile(broken), kBeside);
    if (run.step == 2) run.ctx.spawn(Job(run.world, "asks"), kBeside);
    return usual();
  }};
  engine.world.scripts["asks"] = asks_to_be_undone();
  engine.world.scripts["asks"].locks = LockSet().table("shop", "orders", LockMode::kExclusive);
  engine.world.scripts["outsider"] = {
      .steps = 1,
      .run = [&](JobRun& run) { return asks(run) ? std::optional(Say::wait()) : usual(); },
      .locks = engine.world.scripts["asks"].locks};
  auto options = engine.options();
  options.registry.add<Fragile>(broken);
  engine.open(std::move(options));
  const ProcedureId root = engine.submit("p");
  if (grant_on_its_way) {
    engine.run();
    engine.submit("outsider");
    engine.run();
    engine.world.answer_one("fail");
    engine.run();
    REQUIRE(engine.world.asked() == 1);
    engine.world.answer_one("give the lock back");
    engine.faults().hold_commit(engine.faults().commits() + 2);  // the record of the grant
    engine.run();
    REQUIRE(engine.faults().held() == 1);
    engine.advance(1h);
    REQUIRE(engine.describe(root).quarantined);
    engine.faults().release();
    engine.run();
    CHECK(engine.world.asked() == 0);
  } else {
    engine.run();
    engine.world.answer_one("fail");
    engine.run();
    REQUIRE(engine.world.asked() == 1);
    engine.advance(1h);
    REQUIRE(engine.describe(root).quarantined);
  }
  answer_all(engine);
  engine.advance(1h);
  CHECK(engine.world.journal.count("undo asks.2") == 0);
  CHECK_FALSE(engine.executor().inspect().locks().empty());

  REQUIRE(engine.executor().operate().order(root, RepairVerb::kBypass, kNote).to_string() == "OK");
  engine.run();
  CHECK(engine.result(root).bypassed);
  CHECK(engine.executor().inspect().locks().empty());
}

TEST_CASE("a member that never began is not undone, also after a restart of its parked tree") {
  EngineWorld engine;
  bool mended = false;
  engine.world.scripts["p"] = {.children = {"stuck", "idle"}};
  engine.world.scripts["stuck"] = stuck(mended);
  engine.world.scripts["idle"] = {};
  engine.open();
  const ProcedureId root = engine.submit("p");
  while (!engine.describe(root).parked) engine.executor().run_until_idle(1);
  REQUIRE(engine.world.journal.count("do idle.1") == 0);
  engine.crash_and_open();
  engine.run();
  CHECK(engine.describe(root).parked);
  CHECK(engine.world.journal.count("undo idle.1") == 0);

  mended = true;
  REQUIRE(engine.executor().operate().order(root, RepairVerb::kRetryNow, kNote).to_string() ==
          "OK");
  engine.run();
  CHECK(engine.world.journal.count("undo idle.1") == 0);
  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
}

TEST_CASE("a parked undo delays only the undos that have to come after it") {
  const bool restart = GENERATE(false, true);
  const auto verb = GENERATE(RepairVerb::kSkipStep, RepairVerb::kRetryNow, RepairVerb::kBypass);
  const auto crash = GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter);
  const bool by_root = GENERATE(false, true);
  EngineWorld engine;
  bool mended = false;
  engine.retry.jitter_percent = 0;
  engine.world.scripts["p"] = fails_after({"asks", "tries", "stuck"});
  engine.world.scripts["asks"] = asks_to_be_undone();
  engine.world.scripts["tries"] = {.steps = 2, .undo = [&](JobRun& run) {
                                     const bool first = run.ctx.attempt() == 1;
                                     return first ? std::optional(Say::retry("busy")) : usual();
                                   }};
  engine.world.scripts["stuck"] = {.steps = 2, .undo = [&](JobRun& run) {
                                     const bool fails = run.step == 2 && !mended;
                                     return fails ? std::optional(Say::fail("stuck")) : usual();
                                   }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  if (restart) {
    engine.crash_and_open();
    engine.run();
  }
  const ProcedureId asks{root.value + 1}, tries{root.value + 2}, stuck{root.value + 3};
  const auto reason = [&](ProcedureId id) {
    return engine.executor().inspect().explain(id)->procedures.at(0).reasons.at(0).kind;
  };
  REQUIRE(engine.describe(root).parked);
  REQUIRE(engine.describe(stuck).parked);
  CHECK(reason(root) == WaitReason::Kind::kParked);
  CHECK(reason(stuck) == WaitReason::Kind::kParked);
  CHECK(reason(asks) == WaitReason::Kind::kValue);
  CHECK(reason(tries) == WaitReason::Kind::kBackOff);
  if (verb != RepairVerb::kBypass) {  // else both are in the middle of their undo
    engine.run();
    for (int i = 0; i < 2; ++i) engine.advance(1h);
    answer_all(engine);
    for (const char* undo : {"undo asks.1", "undo tries.1"}) {
      CHECK(engine.world.journal.count(undo) == 1);
    }
    CHECK(engine.executor().operate().order(asks, verb, kNote).code() ==
          StatusCode::kFailedPrecondition);
  }
  CHECK(engine.world.journal.count("undo stuck.1") == 0);

  mended = verb == RepairVerb::kRetryNow;
  order(engine, by_root ? root : stuck, verb, crash, root);
  engine.run();
  answer_all(engine);
  for (int i = 0; i < 2; ++i) engine.advance(1h);
  CHECK(engine.result(root).bypassed == (verb == RepairVerb::kBypass));
  if (verb == RepairVerb::kBypass) return;
  CHECK(engine.world.journal.count("undo stuck.2") == (mended ? 1 : 0));
  if (!mended) engine.world.journal.note("undo asks.1");
  check_undone(engine, root, {"tries"});
}

TEST_CASE("a tree is bypassed while one undo is parked and another one waits for a lock") {
  EngineWorld engine;
  engine.world.scripts["p"] = fails_after({"in line", "stuck"});
  engine.world.scripts["p"].run = [then = engine.world.scripts["p"].run](JobRun& run) {
    const auto ask = [&run](auto asked) { run.world.ask(asked); };
    const bool early = run.step == 3 && run.ctx.await<std::string>(ask) == nullptr;
    return early ? std::optional(Say::wait()) : then(run);
  };
  const LockSet locks = LockSet().table("shop", "orders", LockMode::kExclusive);
  engine.world.scripts["in line"] = {.steps = 1, .locks = locks};
  engine.world.scripts["stuck"] = {
      .steps = 1, .undo = [](JobRun&) { return std::optional(Say::fail("stuck")); }};
  engine.world.scripts["outsider"] = {
      .steps = 1, .run = [](JobRun&) { return std::optional(Say::wait_for(1h)); }, .locks = locks};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  engine.submit("outsider");
  engine.run();
  engine.world.answer_one("go on, and fail");
  engine.run();
  REQUIRE(engine.describe({root.value + 2}).parked);
  REQUIRE(engine.executor().inspect().explain({root.value + 1})->procedures[0].reasons[0].kind ==
          WaitReason::Kind::kLock);

  REQUIRE(engine.executor().operate().order(root, RepairVerb::kBypass, kNote).to_string() == "OK");
  engine.run();
  CHECK(engine.result(root).bypassed);
  CHECK(engine.world.journal.count("undo in line.1") == 0);
  REQUIRE(engine.executor().inspect().locks().size() ==
          2);  // the outsider's table, and its namespace
}

TEST_CASE("the back-off of an undo ends when ordered while the undo of a sibling is parked") {
  const auto crash = GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter);
  EngineWorld engine;
  engine.retry = {.base = 1h, .cap = 1h, .jitter_percent = 0};
  bool mended = false;
  engine.world.scripts["p"] = fails_after({"stuck", "tries"});
  engine.world.scripts["stuck"] = {.steps = 1, .undo = [&](JobRun&) {
                                     return mended ? usual() : std::optional(Say::fail("stuck"));
                                   }};
  engine.world.scripts["tries"] = {.steps = 1, .undo = [](JobRun& run) {
                                     const bool first = run.ctx.attempt() == 1;
                                     return first ? std::optional(Say::retry("busy")) : usual();
                                   }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId stuck{root.value + 1}, tries{root.value + 2};
  REQUIRE(engine.describe(stuck).parked);
  CHECK(engine.executor().operate().preview(tries, RepairVerb::kRetryNow).status().to_string() ==
        "OK");
  order(engine, tries, RepairVerb::kRetryNow, crash, root);
  engine.run();

  CHECK(engine.world.journal.count("undo tries.1") == 1);
  CHECK(engine.world.journal.count("undo stuck.1") == 0);
  REQUIRE(engine.describe(stuck).parked);
  mended = true;
  CHECK(engine.executor().operate().retry_now(root, kNote).to_string() == "OK");
  engine.run();
  CHECK(engine.world.journal.count("undo stuck.1") == 1);
  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
}

TEST_CASE("two undos that are parked at the same time need an order each") {
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  bool mended = false;
  engine.world.scripts["p"] = fails_after({"x", "y", "z"});
  engine.world.scripts["z"] = {.steps = 2};
  for (const char* child : {"x", "y"}) {
    engine.world.scripts[child] = {.steps = 2, .undo = [&](JobRun&) {
                                     return mended ? usual() : std::optional(Say::fail("stuck"));
                                   }};
  }
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  if (restart) {
    engine.crash_and_open();
    engine.run();
  }
  const ProcedureId x{root.value + 1}, y{root.value + 2}, z{root.value + 3};
  CHECK_FALSE(engine.executor().operate().order(z, RepairVerb::kRetryNow, kNote).ok());
  mended = true;
  REQUIRE(engine.executor().operate().order(y, RepairVerb::kRetryNow, kNote).to_string() == "OK");
  engine.run();
  CHECK(engine.world.journal.count("undo y.1") == 1);
  CHECK(engine.world.journal.count("undo p.2") == 0);
  CHECK_FALSE(engine.executor().operate().order(y, RepairVerb::kRetryNow, kNote).ok());
  CHECK(engine.describe(x).parked);
  REQUIRE(engine.executor().operate().order(root, RepairVerb::kRetryNow, kNote).to_string() ==
          "OK");
  engine.run();
  check_undone(engine, root, {"x", "y", "z"});
}

TEST_CASE("crashed anywhere, children are undone concurrently and once, each in its own order") {
  JobPlot plot;
  plot.scripts["p"] = fails_after({"x", "y"});
  plot.scripts["x"] = {.steps = 2, .children = {"deep"}};
  plot.scripts["deep"] = {.steps = 1};
  plot.scripts["y"] = {.steps = 2};
  plot.scripts["y"].locks = LockSet().table("shop", "orders", LockMode::kExclusive);
  plot.roots = {{.name = "p", .succeeds = false}};
  plot.check = [](const Entries& journal, const auto&) {
    const auto last = [&](const std::string& entry) {
      return journal.rend() - std::find(journal.rbegin(), journal.rend(), entry);
    };
    const auto first = [&](const std::string& entry) {
      return std::find(journal.begin(), journal.end(), entry) - journal.begin() + 1;
    };
    CHECK(last("undo deep.1") < first("undo x.2"));
    CHECK(last("undo x.2") < first("undo x.1"));
    CHECK(last("undo y.2") < first("undo y.1"));
    CHECK(last("undo x.1") < first("undo p.2"));
    CHECK(last("undo y.1") < first("undo p.2"));
  };
  crash_everywhere(plot);
}

TEST_CASE("crashed anywhere, concurrent undos that wait or are tried again come to their end") {
  JobPlot plot;
  plot.scripts["p"] = fails_after({"x", "y", "z"});
  plot.scripts["x"] = asks_to_be_undone();
  plot.scripts["y"] = {.steps = 2, .undo = [](JobRun& run) {
                         const bool first = run.ctx.attempt() == 1;
                         return first ? std::optional(Say::retry("busy")) : usual();
                       }};
  plot.scripts["z"] = {.steps = 2, .undo = [](JobRun& run) {
                         const bool fails = run.step == 2 && run.ctx.attempt() < 3;
                         return fails ? std::optional(Say::fail("stuck")) : usual();
                       }};
  plot.roots = {{.name = "p", .succeeds = false}};
  plot.repairs = RepairVerb::kSkipStep;
  plot.roots[0].succeeds = std::nullopt;
  crash_everywhere(plot);
}

TEST_CASE("crashed anywhere, a failure around concurrent undos takes them over") {
  for (const std::size_t at : {6U, 9U, 10U, 11U}) {
    JobPlot plot;
    plot.scripts["top"] = {.run = [](JobRun& run) {
      if (run.step == 2) {
        run.ctx.spawn(Job(run.world, "p"),
                      {.on_failure = OnFailure::kReport, .undo_order = UndoOrder::kConcurrent});
        run.ctx.spawn(Job(run.world, "other"), kBeside);
      }
      return usual();
    }};
    plot.scripts["p"] = fails_after({"x", "y"});
    plot.scripts["x"] = plot.scripts["y"] = asks_to_be_undone();
    plot.scripts["other"] = {.steps = 2};
    plot.roots = {{.name = "top", .succeeds = std::nullopt, .aborts_at = at}};
    crash_everywhere(plot);
  }
}

}  // namespace pv2::testing::concurrent_undo_test
