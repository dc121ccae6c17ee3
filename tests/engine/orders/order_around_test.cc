// SPDX-License-Identifier: Apache-2.0
//
// While an order to end a part of a tree waits for a step, that part is stopped, but no record says
// that it failed. Members around and within it, senders of messages, and other orders about its
// tree meet what the records say.

#include "support/repair_orders.h"

namespace pv2::testing::order_around_test {
namespace {

using namespace std::chrono_literals;

using Heard = std::optional<Status>;

std::string text_of(const Heard& heard) { return heard ? heard->to_string() : "not answered"; }

/// A root "r" with a child "h" whose failure is reported. Of the children of "h", "gives up" has
/// used up its attempt, "done" has ended, and "runs" gives orders in its second step, when it is
/// told to go.
struct Around {
  Around() {
    engine.retry = {.jitter_percent = 0, .max_attempts = 1};
    auto& scripts = engine.world.scripts;
    scripts["r"] = {.run = [](JobRun& run) {
      if (run.step == 2) run.ctx.spawn(Job(run.world, "h"), kReported());
      return usual();
    }};
    scripts["h"] = {.run = [this](JobRun& run) {
      if (run.step != 2) return usual();
      for (const char* name : {"gives up", "done", "runs"}) run.spawn(name);
      if (spawn_more) spawn_more(run);
      return usual();
    }};
    scripts["gives up"] = {.run = [](JobRun& run) {
      return run.step == 2 ? std::optional(Say::retry("no")) : usual();
    }};
    scripts["done"] = {};
    scripts["runs"] = {.run = [this](JobRun& run) { return when_told(run, orders); }};
  }

  static SpawnOptions kReported() { return {.on_failure = OnFailure::kReport}; }
  /// Calls `what` in step 2, after a wait for the signal "go".
  static std::optional<Outcome> when_told(JobRun& run,
                                          const std::function<std::optional<Outcome>()>& what) {
    if (run.step != 2) return usual();
    if (run.ctx.signal("go") == nullptr) return Say::wait();
    return what ? what() : usual();
  }

  void open_and_submit() {
    engine.open();
    root = engine.submit("r");
    engine.run();
    REQUIRE(engine.describe(gives_up()).parked);
  }
  void order(ProcedureId id, RepairVerb verb, Heard& heard) {
    engine.executor().operate().order(id, verb, kNote,
                                      [&heard](const Status& status) { heard = status; });
  }
  void bypass_what_gave_up() {
    order(gives_up(), RepairVerb::kBypass, heard);
    engine.run();
    CHECK_FALSE(heard.has_value());
  }
  void abort(Heard& answer) {
    engine.executor().async().abort(root, {.reason = "stop"},
                                    [&answer](const Status& status) { answer = status; });
  }
  std::string signal(ProcedureId id) {
    Heard answer;
    engine.executor().async().signal(id, "note", {},
                                     [&](const Status& status) { answer = status; });
    engine.run();
    return text_of(answer);
  }
  void go(ProcedureId id) {
    engine.executor().async().signal(id, "go", {}, [](const Status&) {});
    engine.run();
  }
  [[nodiscard]] ProcedureId child(std::uint64_t number) const { return {root.value + number}; }
  [[nodiscard]] ProcedureId gives_up() const { return child(2); }
  [[nodiscard]] ProcedureId done() const { return child(3); }
  [[nodiscard]] ProcedureId runs() const { return child(4); }

  EngineWorld engine;
  ProcedureId root;
  std::function<void(JobRun&)> spawn_more;
  std::function<std::optional<Outcome>()> orders;
  Heard heard;
};

/// Adds a child "commits" of "h", which waits in the step that is its point of no return.
void spawn_who_commits(Around& around) {
  around.spawn_more = [](JobRun& run) { run.ctx.spawn(CommittingJob(run.world, "commits")); };
  around.engine.world.scripts["commits"] = {.steps = 5, .run = [](JobRun& run) {
                                              const bool waits =
                                                  run.step == 3 && run.ctx.signal("go") == nullptr;
                                              return waits ? std::optional(Say::wait()) : usual();
                                            }};
}

/// Adds a child "d" of "h", whose failure is reported and which is parked in its undo.
void spawn_who_parks(Around& around) {
  around.spawn_more = [](JobRun& run) { run.ctx.spawn(Job(run.world, "d"), Around::kReported()); };
  around.engine.world.scripts["d"] = stuck_everywhere();
}

}  // namespace

TEST_CASE("a tree in which a point of no return has begun is not aborted while a bypass waits") {
  Around around;
  spawn_who_commits(around);
  Heard aborted;
  around.orders = [&] {
    around.bypass_what_gave_up();
    around.abort(aborted);
    around.engine.run();
    return usual();
  };
  around.open_and_submit();
  around.go(around.runs());
  CHECK_THAT(text_of(aborted), ContainsSubstring("has begun its point of no return"));
  CHECK(text_of(around.heard) == "OK");
  CHECK(around.engine.world.journal.count("undo commits.1") == 0);
  CHECK(around.engine.result(around.root).status.ok());
}

TEST_CASE(
    "while a bypass waits a tree that has begun a point of no return is not undone for a "
    "deadlock") {
  Around around;
  EngineWorld& engine = around.engine;
  spawn_who_commits(around);
  const LockSet a = LockSet().table("shop", "a", LockMode::kExclusive);
  const LockSet b = LockSet().table("shop", "b", LockMode::kExclusive);
  auto& scripts = engine.world.scripts;
  const auto holds = [&](const char* child, const LockSet& locks) {
    return JobScript{.run =
                         [child](JobRun& run) {
                           return Around::when_told(run, [&run, child] {
                             run.spawn(child);
                             return usual();
                           });
                         },
                     .locks = locks};
  };
  scripts["old"] = holds("wants b", a);
  scripts["young"] = holds("wants a", b);
  scripts["wants b"] = {.locks = b};
  scripts["wants a"] = {.locks = a};
  scripts["r"] = {.run = [](JobRun& run) {
    if (run.step != 2) return usual();
    run.ctx.spawn(Job(run.world, "h"), Around::kReported());
    run.spawn("young");
    return usual();
  }};
  engine.open();
  const ProcedureId old = engine.submit("old");
  engine.run();
  around.root = engine.submit("r");
  engine.run();
  const ProcedureId young = around.child(2);
  around.orders = [&] {
    around.order(around.child(3), RepairVerb::kBypass, around.heard);
    engine.run();
    around.go(old);
    around.go(young);
    return usual();
  };
  around.go(around.child(5));
  CHECK(text_of(around.heard) == "OK");
  CHECK(engine.result(old).status.code() == StatusCode::kDeadlock);
  CHECK(engine.result(around.root).status.ok());
}

TEST_CASE(
    "an order to a root is about the failed domain around a parked child, not about that child") {
  const auto verb = GENERATE(RepairVerb::kRetryNow, RepairVerb::kSkipStep,
                             RepairVerb::kFailAndRollBack, RepairVerb::kBypass);
  Around around;
  spawn_who_parks(around);
  EngineWorld& engine = around.engine;
  engine.world.scripts["gives up"] = {.run = [](JobRun& run) {
    return Around::when_told(run, [] { return std::optional(Say::fail("bad")); });
  }};
  Heard heard;
  Status preview;
  around.orders = [&] {  // "h" fails while this step runs
    around.go(around.gives_up());
    preview = engine.executor().operate().preview(around.root, verb).status();
    around.order(around.root, verb, heard);
    engine.run();
    return usual();
  };
  engine.open();
  around.root = engine.submit("r");
  engine.run();
  REQUIRE(engine.describe(around.child(5)).parked);
  around.go(around.runs());
  const bool can_be = verb == RepairVerb::kFailAndRollBack || verb == RepairVerb::kBypass;
  CHECK(preview.ok() == can_be);
  CHECK(heard.value_or(Status(StatusCode::kInternal, "")).ok() == can_be);
  if (verb == RepairVerb::kBypass) CHECK(engine.result(around.root).status.ok());
  if (!can_be) CHECK(engine.executor().operate().audit(around.root)->empty());
}

TEST_CASE("an order to a root is refused while a bypass waits around a parked child") {
  const auto verb = GENERATE(RepairVerb::kRetryNow, RepairVerb::kSkipStep, RepairVerb::kBypass);
  Around around;
  spawn_who_parks(around);
  EngineWorld& engine = around.engine;
  Heard second;
  Status preview;
  around.orders = [&] {
    around.bypass_what_gave_up();
    preview = engine.executor().operate().preview(around.root, verb).status();
    around.order(around.root, verb, second);
    engine.run();
    return usual();
  };
  around.open_and_submit();
  around.go(around.runs());
  CHECK(text_of(around.heard) == "OK");
  CHECK(preview.code() == StatusCode::kUnavailable);
  CHECK_THAT(text_of(second), ContainsSubstring("UNAVAILABLE"));
  CHECK(engine.executor().operate().audit(around.root)->size() == 1);
  CHECK(engine.result(around.root).status.ok());
}

TEST_CASE("a root whose bypass waits may be aborted, and is still bypassed") {
  Around around;
  EngineWorld& engine = around.engine;
  engine.world.scripts["r"] = engine.world.scripts["h"];
  Heard aborted;
  std::string to_done;
  around.orders = [&] {
    around.order(around.root, RepairVerb::kBypass, around.heard);
    engine.run();
    around.abort(aborted);
    engine.run();
    to_done = around.signal(around.child(2));  // an undo may ask for the signal
    return usual();
  };
  engine.open();
  around.root = engine.submit("r");
  engine.run();
  around.go(around.child(3));
  CHECK(text_of(aborted) == "OK");
  CHECK(text_of(around.heard) == "OK");
  CHECK(to_done == "OK");
  CHECK(engine.result(around.root).bypassed);
  CHECK_THAT(engine.result(around.root).status.to_string(),
             ContainsSubstring("it had failed with ABORTED: aborted: stop"));
  CHECK(engine.world.journal.count("undo done.3") == 0);
  CHECK(engine.executor().operate().audit(around.root)->size() == 2);
}

TEST_CASE(
    "an abort that is durable after its tree's end is refused, also while work is outstanding") {
  const bool by_order = GENERATE(false, true);
  Around around;
  EngineWorld& engine = around.engine;
  auto& scripts = engine.world.scripts;
  scripts["r"] = scripts["h"];
  Heard aborted;
  scripts["runs"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 2) return usual();
    if (run.ctx.signal("go") == nullptr) return Say::wait();
    run.ctx.offload([&] {
      around.order(around.root, RepairVerb::kBypass, around.heard);
      by_order ? around.order(around.child(1), RepairVerb::kFailAndRollBack, aborted)
               : around.abort(aborted);
      engine.run();  // the tree has ended in the store, and waits for this work
      CHECK(text_of(around.heard) == "OK");
    });
    return Say::wait();
  }};
  engine.open();
  around.root = engine.submit("r");
  engine.run();
  around.go(around.child(3));
  CHECK_THAT(text_of(aborted), ContainsSubstring("ended before the message was durable"));
  engine.open();
  engine.run();
  CHECK(engine.result(around.root).bypassed);
  CHECK(engine.executor().operate().audit(around.root)->size() == 1);
}

TEST_CASE("a signal to an ended member of a stopped part is answered as the records say") {
  enum class Fails { kNobody, kBeside, kWithin };
  const Fails fails = GENERATE(Fails::kNobody, Fails::kBeside, Fails::kWithin);
  Around around;
  EngineWorld& engine = around.engine;
  auto& scripts = engine.world.scripts;
  around.spawn_more = [](JobRun& run) {
    run.spawn("beside");
    run.ctx.spawn(Job(run.world, "d"), Around::kReported());
  };
  const auto orders_and = [&](Fails which) {
    return [&, which](JobRun& run) {
      return Around::when_told(run, [&] {
        around.bypass_what_gave_up();
        return which == fails ? std::optional(Say::fail("no")) : usual();
      });
    };
  };
  scripts["beside"] = {.run = orders_and(Fails::kBeside)};
  scripts["d"] = {.children = {"d done", "within"}};
  scripts["d done"] = {};
  scripts["within"] = {.run = orders_and(Fails::kWithin)};
  const ProcedureId* told = nullptr;
  std::string to_done;
  std::string to_d_done;
  ProcedureId d_done;
  around.orders = [&] {  // meanwhile another step gives the order, and may fail
    around.go(*told);
    to_done = around.signal(around.done());
    to_d_done = around.signal(d_done);
    return usual();
  };
  around.open_and_submit();
  d_done = around.child(7);
  const ProcedureId beside = around.child(5);
  const ProcedureId within = around.child(8);
  told = fails == Fails::kWithin ? &within : &beside;
  around.go(around.runs());
  CHECK(text_of(around.heard) == "OK");
  const bool failed = fails == Fails::kBeside;
  CHECK((to_done == "OK") == failed);
  CHECK((to_d_done == "OK") == (fails != Fails::kNobody));
  CHECK(engine.result(around.root).status.ok());
}

TEST_CASE("a part that is being repaired when a bypass stops the domain around it goes forward") {
  const RepairVerb verb = GENERATE(RepairVerb::kRetryNow, RepairVerb::kSkipStep);
  const bool within = GENERATE(false, true);  // what failed within it was forgotten when it parked
  Around around;
  EngineWorld& engine = around.engine;
  auto& scripts = engine.world.scripts;
  around.spawn_more = [](JobRun& run) {
    run.ctx.spawn(CommittingJob(run.world, "d"), Around::kReported());
  };
  scripts["d"] = {.steps = 5, .run = [&](JobRun& run) -> std::optional<Outcome> {
                    if (within && run.step == 2) {
                      run.ctx.spawn(Job(run.world, "e"), Around::kReported());
                      run.ctx.spawn(CommittingJob(run.world, "m"));
                    }
                    if (!within && run.step == 5) return Say::fail("beyond");
                    return usual();
                  }};
  scripts["m"] = {.steps = 5, .run = [](JobRun& run) -> std::optional<Outcome> {
                    if (run.step != 5) return usual();
                    return run.ctx.signal("go") == nullptr ? Say::wait() : Say::fail("beyond");
                  }};
  scripts["e"] = stuck_everywhere();
  Heard repaired;
  around.orders = [&]() -> std::optional<Outcome> {
    const ProcedureId failed = within ? around.child(7) : around.child(5);
    around.order(failed, verb, repaired);  // the record of this order is on its way
    around.order(around.gives_up(), RepairVerb::kBypass, around.heard);
    engine.run();
    CHECK(text_of(repaired) == "OK");
    CHECK_FALSE(around.heard.has_value());
    CHECK_FALSE(engine.describe(around.child(5)).parked);
    CHECK_FALSE(engine.describe(failed).parked);
    Heard aborted;
    around.abort(aborted);
    engine.run();
    CHECK_THAT(text_of(aborted), ContainsSubstring("has passed its point of no return"));
    return usual();
  };
  around.open_and_submit();
  if (within) around.go(around.child(7));
  REQUIRE(engine.describe(around.child(5)).parked);
  around.go(around.runs());
  CHECK(text_of(around.heard) == "OK");
  CHECK(engine.result(around.root).status.ok());
  CHECK(engine.executor().operate().audit(around.root)->size() == 2);
}

TEST_CASE(
    "a part that was stopped for an order goes forward again when its tree does, and is as it "
    "was") {
  const bool restart = GENERATE(false, true);
  Around around;
  EngineWorld& engine = around.engine;
  auto& scripts = engine.world.scripts;
  bool mended = false;
  scripts["r"] = {.steps = 5, .run = [](JobRun& run) {
                    if (run.step != 4) return usual();
                    run.ctx.spawn(Job(run.world, "h"), Around::kReported());
                    run.spawn("fails");
                    return usual();
                  }};
  scripts["fails"] = {.run = [&](JobRun& run) {
    return Around::when_told(run,
                             [&] { return mended ? usual() : std::optional(Say::fail("bad")); });
  }};
  scripts["gives up"] = {.run = [&](JobRun& run) {
    return run.step == 2 && !mended ? std::optional(Say::retry("no")) : usual();
  }};
  around.spawn_more = [](JobRun& run) { run.spawn("waits"); };
  std::string to_done;
  scripts["waits"] = {.run = [&](JobRun& run) {
    return Around::when_told(run, [&] {
      to_done = around.signal(around.child(4));
      return usual();
    });
  }};
  const ProcedureId* gives_up = nullptr;
  const ProcedureId* who_fails = nullptr;
  around.orders = [&] {
    around.order(*gives_up, RepairVerb::kBypass, around.heard);
    engine.run();
    around.go(*who_fails);
    return usual();
  };
  engine.open();
  around.root = engine.submit<CommittingJob>("r");
  engine.run();
  const ProcedureId fails = around.child(2);
  const ProcedureId given_up = around.child(3);
  who_fails = &fails;
  gives_up = &given_up;
  REQUIRE(engine.describe(given_up).parked);
  around.go(around.child(5));
  CHECK_THAT(text_of(around.heard), ContainsSubstring("failed around"));
  REQUIRE(engine.describe(around.root).parked);
  const auto compare = [&] {
    const std::string before = states(engine);
    if (restart) engine.open();
    CHECK(states(engine) == before);
  };
  compare();
  REQUIRE(engine.executor().operate().retry_now(around.root, kNote).to_string() == "OK");
  mended = true;
  around.go(fails);
  compare();
  around.go(around.child(6));
  CHECK_THAT(to_done, ContainsSubstring("FAILED_PRECONDITION"));
  REQUIRE(engine.executor().operate().retry_now(given_up, kNote).to_string() == "OK");
  engine.run_to_the_end();
  CHECK(engine.result(around.root).status.ok());
}

}  // namespace pv2::testing::order_around_test
