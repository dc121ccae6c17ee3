// SPDX-License-Identifier: Apache-2.0
//
// A tree that is being undone, or has a member that used up its attempts, is bypassed while one of
// its steps runs. The order waits for that step, no other step begins, and the order is answered
// when it is durable. An order that can no longer be carried out is refused and changes nothing.

#include <atomic>

#include "support/repair_orders.h"

namespace pv2::testing::waiting_order_test {
namespace {

using namespace std::chrono_literals;

using Heard = std::optional<Status>;

/// A root whose children "b" and "a" are undone in this order; "a" gives orders in its undo of step
/// 2, whose answer is then `says`.
struct Loop {
  explicit Loop(UndoOrder undo_order = UndoOrder::kReverse) {
    engine.retry.jitter_percent = 0;
    engine.world.scripts["p"] = {.run = [undo_order](JobRun& run) {
      if (run.step == 3) return std::optional(Say::fail("no"));
      if (run.step != 2) return usual();
      for (const char* name : {"b", "a"}) {
        run.ctx.spawn(Job(run.world, name), {.undo_order = undo_order});
      }
      return usual();
    }};
    engine.world.scripts["b"] = {.steps = 2};
    engine.world.scripts["a"] = {.steps = 2,
                                 .undo =
                                     [this](JobRun& run) {
                                       if (run.step != 2) return usual();
                                       engine.world.journal.note("begins");
                                       if (orders) orders();
                                       engine.world.journal.note("ends");
                                       return says();
                                     },
                                 .locks = LockSet().table("shop", "orders", LockMode::kExclusive)};
  }

  void bypass(ProcedureId id, Heard& heard) {
    engine.executor().operate().order(id, RepairVerb::kBypass, kNote, [&](const Status& status) {
      heard = status;
      engine.world.journal.note("answered " + status.to_string());
    });
  }

  EngineWorld engine;
  std::function<void()> orders;
  std::function<std::optional<Outcome>()> says = usual;
};

std::string text_of(const Heard& heard) { return heard ? heard->to_string() : "not answered"; }

}  // namespace

TEST_CASE("a tree that is being undone is bypassed when the undo step under way has ended") {
  const std::optional<Outcome> answer =
      GENERATE(as<std::optional<Outcome>>(), std::nullopt, Say::retry("busy"), Say::wait_for(1h),
               Say::fail("stuck"));
  const bool by_child = GENERATE(false, true);
  Loop loop(GENERATE(UndoOrder::kReverse, UndoOrder::kConcurrent));
  EngineWorld& engine = loop.engine;
  Heard heard;
  std::vector<std::string> preview;
  loop.says = [&] { return answer; };
  loop.orders = [&] {
    const ProcedureId root = engine.executor().inspect().list().front().id;
    const ProcedureId target{root.value + (by_child ? 1 : 0)};
    const auto lines = engine.executor().operate().preview(target, RepairVerb::kBypass);
    REQUIRE(lines.status().to_string() == "OK");
    preview = *lines;
    loop.bypass(target, heard);
    CHECK_FALSE(heard.has_value());
  };
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();

  CHECK(text_of(heard) == "OK");
  CHECK(engine.result(root).bypassed);
  CHECK(engine.world.journal.count("begins") == 1);
  CHECK(engine.world.journal.count("undo a.1") == 0);
  CHECK(engine.world.journal.count("undo p.1") == 0);
  CHECK(engine.executor().inspect().locks().empty());
  CHECK(engine.executor().operate().audit(root)->size() == 1);
  CHECK_THAT(preview.back(), ContainsSubstring("ends as bypassed"));
  engine.advance(2h);
  CHECK(engine.world.journal.count("begins") == 1);
}

TEST_CASE("crashed anywhere, an order that waits for an undo step is carried out whole or not") {
  crash_at_each_commit([](const CrashAtCommit& at) {
    Loop loop;
    EngineWorld& engine = loop.engine;
    std::vector<std::unique_ptr<Heard>> answers;
    loop.orders = [&] {
      answers.push_back(std::make_unique<Heard>());
      loop.bypass(engine.executor().inspect().list().front().id, *answers.back());
    };
    engine.open();
    at.arm(engine);
    const SubmitOptions options{.nonce = Nonce{1, 1}};
    (void)engine.executor().submit(Job(engine.world, "p"), options);
    engine.run();
    const bool crashed = !engine.executor().health().ok();
    const bool was_durable =
        !answers.empty() && answers.front()->has_value() && answers.front()->value().ok();
    engine.open();
    if (crashed && was_durable) CHECK(engine.executor().inspect().live_procedures() == 0);
    const std::size_t begun = engine.world.journal.count("begins");
    const ProcedureId root = engine.submit("p", options);
    engine.run();
    CHECK(engine.executor().inspect().live_procedures() == 0);
    if (was_durable) CHECK(engine.world.journal.count("begins") == begun);
    const ProcedureResult result = engine.result(root);
    CHECK(result.state == ProcedureState::kRolledBack);
    const auto audit = engine.executor().operate().audit(root);
    REQUIRE(audit.status().to_string() == "OK");
    CHECK(audit->size() == (result.bypassed ? 1 : 0));
    if (result.bypassed) CHECK(engine.world.journal.count("undo p.1") == 0);
    // The record of that undo was durable, and the order was not: the tree is undone.
    if (!result.bypassed) CHECK(engine.world.journal.count("undo p.1") == 1);
    if (!crashed) CHECK(result.bypassed);
    return crashed;
  });
}

TEST_CASE(
    "while an order waits no undo step begins, also of members that are undone concurrently") {
  EngineWorld engine;
  Heard heard;
  constexpr int kMany = 100;  // more than a worker takes at once
  engine.world.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 3) return std::optional(Say::fail("no"));
    for (int i = 0; run.step == 2 && i < kMany; ++i) {
      run.ctx.spawn(Job(run.world, "c"), {.undo_order = UndoOrder::kConcurrent});
    }
    return usual();
  }};
  engine.world.scripts["c"] = {.steps = 1, .undo = [&](JobRun& run) {
                                 if (run.world.journal.count("undo c.1") == 0) {
                                   engine.executor().operate().order(
                                       engine.executor().inspect().list().front().id,
                                       RepairVerb::kBypass, kNote,
                                       [&](const Status& status) { heard = status; });
                                 }
                                 return usual();
                               }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  CHECK(text_of(heard) == "OK");
  CHECK(engine.result(root).bypassed);
  CHECK(engine.world.journal.count("undo c.1") == 1);
  CHECK(engine.executor().inspect().live_procedures() == 0);
}

TEST_CASE("an order that waits is refused when the tree ends first") {
  Loop loop;
  EngineWorld& engine = loop.engine;
  engine.world.scripts["p"] = {
      .steps = 2,
      .run = [](JobRun& run) { return run.step == 2 ? std::optional(Say::fail("no")) : usual(); },
      .undo =
          [&](JobRun& run) {
            if (run.step == 1 && loop.orders) loop.orders();
            return usual();
          }};
  Heard heard;
  loop.orders = [&] { loop.bypass(engine.executor().inspect().list().front().id, heard); };
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  REQUIRE(heard.has_value());
  CHECK(heard->code() == StatusCode::kFailedPrecondition);
  CHECK_THAT(heard->to_string(), ContainsSubstring("ended before it could be bypassed"));
  CHECK_FALSE(engine.result(root).bypassed);
  CHECK(engine.executor().operate().audit(root)->empty());
}

TEST_CASE("an order that waits to end a child is refused when its whole tree fails meanwhile") {
  Loop loop;
  EngineWorld& engine = loop.engine;
  engine.world.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) run.ctx.spawn(Job(run.world, "bad"), {.on_failure = OnFailure::kReport});
    return usual();
  }};
  ProcedureId root;
  Heard heard;
  Heard aborted;
  engine.world.scripts["bad"] = {
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .undo =
          [&](JobRun& run) {
            if (run.step == 2 && !heard) {
              loop.bypass({root.value + 1}, heard);
              engine.executor().async().abort(root, {.reason = "stop"},
                                              [&](const Status& status) { aborted = status; });
            }
            return usual();
          }};
  engine.open();
  engine.executor().async().submit(Job(engine.world, "p"), {},
                                   [&](const Result<Submitted>& one) { root = one->id; });
  engine.run();
  CHECK(text_of(aborted) == "OK");
  REQUIRE(heard.has_value());
  CHECK(heard->code() == StatusCode::kFailedPrecondition);
  CHECK_THAT(heard->to_string(), ContainsSubstring("failed around"));
  CHECK(engine.result(root).status.code() == StatusCode::kAborted);
  CHECK_FALSE(engine.result(root).bypassed);
  CHECK(engine.world.journal.count("undo bad.1") == 1);
  CHECK(engine.world.journal.count("undo p.1") == 1);
}

TEST_CASE("a child that is being undone on its own is bypassed between two of its undo steps") {
  Loop loop;
  EngineWorld& engine = loop.engine;
  engine.world.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) run.ctx.spawn(Job(run.world, "bad"), {.on_failure = OnFailure::kReport});
    return usual();
  }};
  Heard heard;
  ProcedureId root;
  engine.world.scripts["bad"] = {
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .undo =
          [&](JobRun& run) {
            if (run.step == 2) loop.bypass({root.value + 1}, heard);
            return usual();
          }};
  engine.open();
  engine.executor().async().submit(Job(engine.world, "p"), {},
                                   [&](const Result<Submitted>& one) { root = one->id; });
  engine.run();
  CHECK(text_of(heard) == "OK");
  CHECK(engine.result(root).status.ok());
  CHECK(engine.world.journal.count("undo bad.2") == 1);
  CHECK(engine.world.journal.count("undo bad.1") == 0);
}

TEST_CASE("a second order is refused while the first waits, and a stop ends that wait") {
  Loop loop;
  EngineWorld& engine = loop.engine;
  Heard first;
  Heard second;
  Heard retried;
  std::optional<ProcedureId> root;
  loop.orders = [&] {
    root = engine.executor().inspect().list().front().id;
    loop.bypass(*root, first);
    loop.bypass(*root, second);
    const auto explained = engine.executor().inspect().explain(*root);
    REQUIRE(explained.ok());
    CHECK(explained->procedures.at(0).reasons.at(0).kind == WaitReason::Kind::kTreeInFlight);
  };
  engine.open();
  engine.submit("p");
  bool held = false;
  loop.says = [&]() -> std::optional<Outcome> {
    if (!std::exchange(held, true)) engine.faults().hold_commit(engine.faults().commits() + 1);
    return std::nullopt;
  };
  engine.run();
  REQUIRE(second.has_value());
  CHECK(second->code() == StatusCode::kUnavailable);
  CHECK_THAT(second->to_string(), ContainsSubstring("waits until a step has ended"));
  CHECK_FALSE(first.has_value());
  CHECK(engine.faults().held() == 1);
  engine.executor().stop();
  REQUIRE(first.has_value());
  CHECK(first->code() == StatusCode::kStopping);
  engine.faults().release();
  engine.close();
  loop.orders = {};
  engine.open();
  engine.run();
  CHECK_FALSE(engine.result(*root).bypassed);
}

TEST_CASE("a tree whose undo never ends is bypassed while workers try it again and again") {
  World world;
  std::atomic<int> tries = 0;
  world.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 3) return std::optional(Say::fail("no"));
    for (int i = 0; run.step == 2 && i < 8; ++i) {
      run.ctx.spawn(Job(run.world, "c"), {.undo_order = UndoOrder::kConcurrent});
    }
    return usual();
  }};
  world.scripts["c"] = {.steps = 1, .undo = [&](JobRun&) {
                          ++tries;
                          tries.notify_all();
                          return std::optional(Say::retry("busy"));
                        }};
  ExecutorOptions options;
  options.store =
      memory(std::make_shared<MemoryDisk>(), {.mode = MemoryStoreOptions::Mode::kThread});
  add_job_types(options.registry, world);
  options.workers = 3;
  options.retry = {.base = 0ms, .undo_attempts = UINT32_MAX};
  options.log = [](LogLevel, std::string_view) {};
  auto executor = *ProcedureExecutor::open(std::move(options));
  executor->start();
  for (int round = 0; round < 20; ++round) {
    tries = 0;
    const ProcedureId root = executor->submit(Job(world, "p"))->id;
    for (int seen = tries; seen < 50; seen = tries) tries.wait(seen);
    REQUIRE(executor->operate().bypass(root, kNote).to_string() == "OK");
    const auto result = executor->wait(root);
    REQUIRE(result.status().to_string() == "OK");
    REQUIRE(result->bypassed);
    REQUIRE(executor->operate().audit(root)->size() == 1);
  }
  REQUIRE(executor->inspect().live_procedures() == 0);
}

namespace {

/// A root with five children. "gives up" has used up its attempt, "in line" waits for a lock of
/// another procedure, "late" waits for a time, and "bad", whose failure is reported, is being
/// undone. "runs" gives orders in its second step, when it is told to go, and spawns "child".
struct Crowd {
  Crowd() {
    const LockSet locks = LockSet().table("shop", "orders", LockMode::kExclusive);
    auto& scripts = engine.world.scripts;
    engine.retry = {.jitter_percent = 0, .max_attempts = 1};
    scripts["keeps"] = {.run =
                            [](JobRun& run) {
                              return run.step == 2 && !run.ctx.timed_out()
                                         ? std::optional(Say::wait_for(10h))
                                         : usual();
                            },
                        .locks = locks};
    scripts["p"] = {.run = [](JobRun& run) {
      if (run.step != 2) return usual();
      for (const char* name : {"gives up", "in line", "late", "runs"}) run.spawn(name);
      run.ctx.spawn(Job(run.world, "bad"), {.on_failure = OnFailure::kReport});
      return usual();
    }};
    scripts["gives up"] = {.run = [](JobRun& run) {
      return run.step == 2 ? std::optional(Say::retry("no")) : usual();
    }};
    scripts["in line"] = {.locks = locks};
    scripts["late"] = {.run = [](JobRun& run) {
      return run.step == 2 && !run.ctx.timed_out() ? std::optional(Say::wait_for(1h)) : usual();
    }};
    scripts["runs"] = {.run = [this](JobRun& run) {
      if (run.step != 2) return usual();
      if (!run.ctx.signal("go")) return std::optional(Say::wait());
      engine.world.journal.note("begins");
      if (orders) orders();
      run.spawn("child");
      return usual();
    }};
    scripts["bad"] = {
        .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
        .undo =
            [](JobRun& run) {
              return run.ctx.attempt() == 1 ? std::optional(Say::retry("busy")) : usual();
            }};
    scripts["child"] = {};
  }
  // Runs until every member is in that state.
  void open_and_submit() {
    engine.open();
    engine.submit("keeps");
    engine.run();
    root = engine.submit("p");
    engine.run();
    REQUIRE(engine.describe(gives_up()).parked);
    REQUIRE(engine.world.journal.count("undo bad.1") == 0);
  }
  void bypass(ProcedureId id) {
    engine.executor().operate().order(id, RepairVerb::kBypass, kNote,
                                      [this](const Status& status) { heard = status; });
  }
  void go() {
    engine.executor().async().signal(runs(), "go", {}, [](const Status&) {});
    engine.run();
  }
  [[nodiscard]] ProcedureId gives_up() const { return {root.value + 1}; }
  [[nodiscard]] ProcedureId in_line() const { return {root.value + 2}; }
  [[nodiscard]] ProcedureId runs() const { return {root.value + 4}; }

  EngineWorld engine;
  std::function<void()> orders;
  Heard heard;
  ProcedureId root;
};

}  // namespace

TEST_CASE(
    "a member that is out of attempts is bypassed while others of its tree run, wait and queue") {
  Crowd crowd;
  EngineWorld& engine = crowd.engine;
  const bool by_root = GENERATE(false, true);
  std::string preview;
  Heard retried;
  Heard aborted;
  crowd.orders = [&] {
    const ProcedureId target = by_root ? crowd.root : crowd.gives_up();
    preview = joined(engine.executor().operate().preview(target, RepairVerb::kBypass));
    crowd.bypass(target);
    CHECK_FALSE(crowd.heard.has_value());
    engine.executor().operate().order(crowd.gives_up(), RepairVerb::kRetryNow, kNote,
                                      [&](const Status& status) { retried = status; });
    engine.executor().async().abort(crowd.root, {.reason = "stop"},
                                    [&](const Status& status) { aborted = status; });
    const auto why = engine.executor().inspect().explain(crowd.in_line());
    REQUIRE(why.status().to_string() == "OK");
    const WaitReason& reason = why->procedures.at(0).reasons.at(0);
    CHECK(reason.kind == WaitReason::Kind::kTreeInFlight);
    CHECK(reason.on == std::vector{crowd.runs()});
  };
  crowd.open_and_submit();
  crowd.go();

  CHECK(text_of(crowd.heard) == "OK");
  CHECK_THAT(preview,
             ContainsSubstring("waits until procedure " + std::to_string(crowd.runs().value)));
  CHECK_THAT(text_of(retried), ContainsSubstring("UNAVAILABLE") && ContainsSubstring("waits"));
  CHECK(text_of(aborted) == "OK");
  CHECK(engine.result(crowd.root).bypassed);
  CHECK(engine.world.journal.count("do runs.2") == 1);
  for (const char* never : {"do runs.3", "do child.1", "do in line.1", "undo bad.1"}) {
    CHECK(engine.world.journal.count(never) == 0);
  }
  engine.advance(20h);  // the lock is free
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 0);
  CHECK(engine.world.journal.count("undo bad.1") == 0);
}

TEST_CASE("a tree with a member out of attempts is bypassed at once when none of its steps runs") {
  Crowd crowd;
  crowd.open_and_submit();
  EngineWorld& engine = crowd.engine;
  const std::size_t commits = engine.faults().commits();
  CHECK_THAT(joined(engine.executor().operate().preview(crowd.root, RepairVerb::kBypass)),
             !ContainsSubstring("the order waits"));
  REQUIRE(engine.executor().operate().bypass(crowd.root, kNote).to_string() == "OK");
  CHECK(engine.faults().commits() <= commits + 2);  // the order; the children's rows go
  engine.run();
  CHECK(engine.result(crowd.root).bypassed);
  CHECK_THAT(engine.result(crowd.root).status.to_string(), !ContainsSubstring("it had failed"));
  CHECK(engine.executor().inspect().live_procedures() == 1);
}

TEST_CASE("crashed anywhere, an order that waits for a step that goes forward is whole or not") {
  crash_at_each_commit([](const CrashAtCommit& at) {
    Crowd crowd;
    EngineWorld& engine = crowd.engine;
    crowd.orders = [&] { crowd.bypass(crowd.root); };
    crowd.open_and_submit();
    at.arm(engine);
    crowd.go();
    const bool crashed = !engine.executor().health().ok();
    const bool was_durable = crowd.heard && crowd.heard->ok();
    CHECK((crashed || was_durable));
    crowd.orders = {};
    if (crashed) engine.open();
    engine.run();
    const bool has_ended = engine.executor().wait(crowd.root, 0ms).ok();
    CHECK((has_ended || !was_durable));
    if (!has_ended) {  // nothing of the order is left, and the tree goes forward
      REQUIRE(engine.describe(crowd.gives_up()).parked);
      crowd.go();
      CHECK(engine.world.journal.count("do child.3") == 1);
      REQUIRE(engine.executor().operate().bypass(crowd.root, kNote).to_string() == "OK");
      engine.run();
    }
    CHECK(engine.result(crowd.root).bypassed);
    CHECK(engine.executor().operate().audit(crowd.root)->size() == 1);
    return crashed;
  });
}

TEST_CASE(
    "a part that was stopped for an order is undone by its records when its tree fails first") {
  const bool restart = GENERATE(false, true);
  Crowd crowd;
  EngineWorld& engine = crowd.engine;
  engine.world.scripts["top"] = {.run = [](JobRun& run) {
    if (run.step == 2) run.ctx.spawn(Job(run.world, "p"), {.on_failure = OnFailure::kReport});
    return usual();
  }};
  Heard aborted;
  crowd.orders = [&] {
    crowd.bypass(crowd.gives_up());
    engine.executor().async().abort({crowd.root.value - 1}, {.reason = "stop"},
                                    [&](const Status& status) { aborted = status; });
    engine.executor().async().signal({crowd.root.value + 3}, "late", {}, [](const Status&) {});
  };
  engine.open();
  engine.submit("keeps");
  engine.run();
  const ProcedureId top = engine.submit("top");
  crowd.root = {top.value + 1};
  engine.run();
  REQUIRE(engine.describe(crowd.gives_up()).parked);
  crowd.go();
  CHECK(text_of(aborted) == "OK");
  REQUIRE(crowd.heard.has_value());
  CHECK_THAT(text_of(crowd.heard), ContainsSubstring("failed around"));
  if (restart) {
    const std::string before = states(engine);
    engine.open();
    CHECK(states(engine) == before);
  }
  engine.run_to_the_end();
  const ProcedureResult result = engine.result(top);
  CHECK(result.status.code() == StatusCode::kAborted);
  CHECK_FALSE(result.bypassed);
  for (const char* once : {"undo runs.2", "undo gives up.2", "undo late.1", "undo p.2"}) {
    CHECK(engine.world.journal.count(once) == 1);
  }
  CHECK(engine.world.journal.count("undo in line.1") == 0);
  CHECK(engine.world.journal.count("undo child.1") == 0);
  CHECK(engine.executor().operate().audit(top)->size() == 1);  // of the abort
}

TEST_CASE("a tree is not bypassed while a skip of one of its steps is on its way") {
  Crowd crowd;
  EngineWorld& engine = crowd.engine;
  crowd.open_and_submit();
  engine.faults().hold_commit(engine.faults().commits() + 1);
  Heard skipped;
  engine.executor().operate().order(crowd.gives_up(), RepairVerb::kSkipStep, kNote,
                                    [&](const Status& status) { skipped = status; });
  crowd.bypass(crowd.root);
  engine.run();
  CHECK_THAT(text_of(crowd.heard), ContainsSubstring("UNAVAILABLE"));
  engine.faults().release();
  engine.run();
  CHECK(text_of(skipped) == "OK");
  CHECK(engine.world.journal.count("do gives up.3") == 1);
}

}  // namespace pv2::testing::waiting_order_test
