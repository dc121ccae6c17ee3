// SPDX-License-Identifier: Apache-2.0
//
// Failures of the ground that the engine stands on: user code that throws wherever the engine calls
// it, a stop under load, waiting where it is forbidden, and time that only the test moves.

#include <atomic>
#include <future>
#include <latch>
#include <thread>
#include <type_traits>

#include "support/engine_world.h"

namespace pv2::testing::ground_test {
namespace {

using namespace std::chrono_literals;

// A destructor that throws does not compile in a procedure, so it needs no guard.
static_assert(std::is_nothrow_destructible_v<Procedure>);

enum class Throws { kNowhere, kConstructor, kFields, kLocks, kPriority, kStep, kUndo };

// Throws in the place that the test names at the moment.
class Thrower final : public Procedure {
 public:
  static constexpr std::string_view kType = "test.Thrower";
  explicit Thrower(Throws& where) : where_(where) { maybe(Throws::kConstructor); }
  void fields(auto& f) {
    maybe(Throws::kFields);
    f(1, "runs", runs_);
  }
  LockSet locks() const override {
    maybe(Throws::kLocks);
    return LockSet().table("shop", "orders", LockMode::kExclusive);
  }
  Priority priority() const override {
    maybe(Throws::kPriority);
    return Priority::kNormal;
  }
  Outcome execute(StepContext& /*ctx*/) override {
    maybe(Throws::kStep);
    ++runs_;
    return runs_ < 3                 ? wait_for(1h)
           : where_ == Throws::kUndo ? fail(Status(StatusCode::kAborted, "x"))
                                     : done("fine");
  }
  Outcome rollback(StepContext& /*ctx*/) override {
    maybe(Throws::kUndo);
    return undone();
  }

 private:
  void maybe(Throws here) const {
    if (where_ == here) throw std::runtime_error("here");
  }

  Throws& where_;
  std::uint32_t runs_ = 0;
};

ProcedureExecutor& open(EngineWorld& engine, Throws& where) {
  auto options = engine.options();
  options.registry.add<Thrower>(where);
  return engine.open(std::move(options));
}

}  // namespace

TEST_CASE("user code that throws at a submission refuses it, and leaves no lock and no nonce") {
  EngineWorld engine;
  Throws where = Throws::kNowhere;
  ProcedureExecutor& executor = open(engine, where);
  Thrower procedure(where);
  where = GENERATE(Throws::kFields, Throws::kLocks, Throws::kPriority);
  const auto refused = executor.submit(Thrower(procedure), {.nonce = {1, 1}});
  CHECK(refused.status().code() == StatusCode::kInternal);
  CHECK_THAT(refused.status().to_string(), ContainsSubstring("threw: here"));
  CHECK(executor.inspect().live_procedures() == 0);
  CHECK(executor.inspect().locks().empty());

  where = Throws::kNowhere;
  const auto accepted = executor.submit(Thrower(procedure), {.nonce = {1, 1}});
  REQUIRE(accepted.ok());
  CHECK_FALSE(accepted->replayed);
  engine.run_to_the_end();
  CHECK(engine.result(accepted->id).result == "fine");
}

TEST_CASE("a step or undo that throws fails or parks its own tree and affects no other") {
  EngineWorld engine;
  engine.retry = {.base = 1s, .cap = 1s, .jitter_percent = 0, .undo_attempts = 2};
  engine.world.scripts["free"] = {.steps = 1};
  Throws where = Throws::kNowhere;
  ProcedureExecutor& executor = open(engine, where);
  const auto submitted = executor.submit(Thrower(where));
  REQUIRE(submitted.ok());
  engine.run();
  where = GENERATE(Throws::kConstructor, Throws::kFields, Throws::kStep, Throws::kUndo);
  for (int i = 0; i < 5; ++i) engine.advance(1h);

  switch (where) {
    case Throws::kStep: {
      const Status status = engine.result(submitted->id).status;
      CHECK_THAT(status.to_string(), ContainsSubstring("threw: here"));
      break;
    }
    default:  // an undo, or making the object from its record
      CHECK(engine.describe(submitted->id).parked);
      CHECK(engine.describe(submitted->id).holds_locks);
      CHECK_FALSE(engine.describe(submitted->id).quarantined);
      break;
  }
  const ProcedureId free = engine.submit("free");
  engine.run();
  CHECK(engine.result(free).status.ok());
}

TEST_CASE("a second stop returns when the first has ended, not before") {
  EngineWorld engine;
  std::promise<void> runs;
  std::latch may_end(1);
  std::atomic<bool> ended = false;
  engine.world.scripts["free"] = {.steps = 1};
  engine.world.scripts["slow"] = {.steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
                                    runs.set_value();
                                    may_end.wait();
                                    ended = true;
                                    return std::nullopt;
                                  }};
  const auto executor = open_with_threads(engine, engine.clock);
  REQUIRE(executor->submit(Job(engine.world, "slow")).ok());
  runs.get_future().wait();
  std::vector<std::thread> stoppers;
  std::atomic<int> early = 0;
  for (int i = 0; i < 3; ++i) {
    stoppers.emplace_back([&] {
      executor->stop();
      if (!ended) ++early;
    });
  }
  // A stop has begun when submissions are refused; until then they may still be accepted.
  while (executor->submit(Job(engine.world, "free")).status().code() != StatusCode::kStopping) {
  }
  may_end.count_down();
  for (std::thread& stopper : stoppers) stopper.join();
  CHECK(early == 0);
  executor->stop();
}

TEST_CASE(
    "an executor that is destroyed under load finishes the running steps and begins no more") {
  EngineWorld engine;
  engine.world.scripts["parent"] = {.children = {"child", "child"}};
  engine.world.scripts["child"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 2) return std::nullopt;
    return run.ctx.offload([] {}) == nullptr ? std::optional(Say::wait()) : std::nullopt;
  }};
  for (int round = 0; round < 5; ++round) {
    auto executor = open_with_threads(engine, engine.clock);
    const auto news_heard = executor->listen(
        [&](const ProcedureNews& news) { (void)executor->inspect().explain(news.id); });
    for (int i = 0; i < 20; ++i) {
      executor->async().submit(Job(engine.world, "parent"), {}, [](const Result<Submitted>&) {});
    }
    executor->stop();  // without waiting for any submission
    executor.reset();
  }
  engine.open();
  engine.run_to_the_end();
  CHECK(engine.world.journal.count("do parent.3") <= 100);
}

TEST_CASE("a verb that blocks is refused on every thread of the executor") {
  EngineWorld engine;
  std::vector<StatusCode> refused;
  ProcedureExecutor* executor = nullptr;
  const auto tries = [&] {
    refused.push_back(executor->wait({1}).status().code());
    refused.push_back(executor->submit(Job(engine.world, "free")).status().code());
    refused.push_back(executor->acknowledge({1}).code());
    executor->stop();  // only logs
  };
  engine.world.scripts["free"] = {.steps = 1};
  engine.world.scripts["a"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 tries();
                                 return run.ctx.offload([&] { tries(); }) == nullptr
                                            ? std::optional(Say::wait())
                                            : std::nullopt;
                               }};
  executor = &engine.open();
  const auto news_heard = executor->listen([&](const ProcedureNews&) { tries(); });
  const auto chore = executor->add_chore("chore", 1s, [&] { tries(); });
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.advance(1s);
  CHECK(engine.result(id).status.ok());
  // Two runs of the step, the offloaded work, two pieces of news, and the chore.
  CHECK(refused.size() == 3 * 6);
  CHECK(std::count(refused.begin(), refused.end(), StatusCode::kFailedPrecondition) == 3 * 6);
}

TEST_CASE("a wait with a timeout ends by the executor's clock, and the procedure goes on") {
  EngineWorld engine;
  std::promise<Completion<std::string>> asked;
  engine.world.scripts["waits"] = {
      .steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
        const auto* value = run.ctx.await<std::string>([&](auto c) { asked.set_value(c); });
        return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
      }};
  const auto executor = open_with_threads(engine, engine.clock);
  const ProcedureId id = executor->submit(Job(engine.world, "waits"))->id;
  CHECK(executor->wait(id, 0ms).status().code() == StatusCode::kDeadlineExceeded);
  std::atomic<bool> told = false;
  StatusCode code = StatusCode::kOk;
  std::thread waiter([&] {
    code = executor->wait(id, 10h).status().code();
    told = true;
  });
  while (!told) engine.clock->advance(1h);
  waiter.join();
  CHECK(code == StatusCode::kDeadlineExceeded);
  std::thread patient([&] { CHECK(executor->wait(id, 1h).ok()); });
  asked.get_future().get()("go on");  // while no time passes
  patient.join();
}

}  // namespace pv2::testing::ground_test
