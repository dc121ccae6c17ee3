// SPDX-License-Identifier: Apache-2.0
//
// "For ever" is given as the longest duration or the latest time. It means for ever wherever a time
// may be given, and no sum of times overflows.

#include <atomic>
#include <latch>
#include <thread>

#include "steps/backoff.h"
#include "support/engine_world.h"

namespace pv2::testing::endless_times_test {
namespace {

using namespace std::chrono_literals;

constexpr Duration kForEver = Duration::max();
constexpr Duration kYears = 24h * 365 * 200;

// Counts how often the engine asks whether time passes by itself, which the timers do at each look.
class CountingClock final : public Clock {
 public:
  [[nodiscard]] WallTime wall_now() const override { return system_.wall_now(); }
  [[nodiscard]] SteadyTime steady_now() const override { return system_.steady_now(); }
  [[nodiscard]] bool is_manual() const override {
    ++looks;
    return false;
  }
  mutable std::atomic<std::size_t> looks = 0;

 private:
  SystemClock system_;
};

std::unique_ptr<ProcedureExecutor> open_with_threads(World& world, std::shared_ptr<Clock> clock) {
  ExecutorOptions options;
  options.store =
      memory(std::make_shared<MemoryDisk>(), {.mode = MemoryStoreOptions::Mode::kThread});
  add_job_types(options.registry, world);
  options.clock = std::move(clock);
  options.stuck_after = Duration::zero();  // else the timers look now and then
  options.log = {};
  auto opened = ProcedureExecutor::open(std::move(options));
  REQUIRE(opened.status().to_string() == "OK");
  (*opened)->start();
  return *std::move(opened);
}

JobScript asks(Outcome waiting) {
  return {.steps = 1, .run = [waiting](JobRun& run) -> std::optional<Outcome> {
            const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
            if (run.ctx.timed_out()) run.world.journal.note("timed out");
            return value == nullptr ? std::optional(waiting) : std::nullopt;
          }};
}

}  // namespace

TEST_CASE("a sum of time stops at the ends of time") {
  constexpr WallTime kNow = WallTime(24h * 365 * 55);
  CHECK(later(kNow, 1s) == kNow + 1s);
  CHECK(later(kNow, -1s) == kNow - 1s);
  CHECK(later(kNow, kForEver) == WallTime::max());
  CHECK(later(WallTime::max(), 1us) == WallTime::max());
  CHECK(later(WallTime::min(), Duration::min()) == WallTime::min());
  CHECK(later(SteadyTime(-1h), Duration::min()) == SteadyTime::min());
  CHECK(later(SteadyTime(-1h), kForEver) == SteadyTime(kForEver - 1h));
}

TEST_CASE("a result that is kept for ever is kept") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  auto options = engine.options();
  options.retention.ttl = kForEver;
  engine.open(std::move(options));
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}});
  engine.run();
  engine.advance(kYears);
  CHECK(engine.result(id).status.ok());
  const auto again = engine.executor().submit(Job(engine.world, "a"), {.nonce = {1, 1}});
  REQUIRE(again.ok());
  CHECK(again->replayed);
}

TEST_CASE("a wait for ever does not time out, also over a restart") {
  EngineWorld engine;
  engine.world.scripts["a"] = asks(Say::wait_for(kForEver));
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.advance(kYears);
  CHECK(engine.describe(id).state == ProcedureState::kWaitingTimeout);
  engine.crash_and_open();
  engine.run();
  engine.advance(kYears);
  while (engine.world.answer_one("x")) engine.run();
  CHECK(engine.result(id).status.ok());
  CHECK(engine.world.journal.count("timed out") == 0);
}

TEST_CASE("a start that is delayed for ever does not come") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  engine.open();
  const ProcedureId ids[] = {engine.submit("a", {.delay = kForEver}),
                             engine.submit("a", {.start_at = WallTime::max()})};
  const bool restart = GENERATE(false, true);
  if (restart) engine.crash_and_open();
  engine.run();
  engine.advance(kYears);
  for (const ProcedureId id : ids) {
    CHECK(engine.describe(id).state == ProcedureState::kWaitingTimeout);
  }
  CHECK(engine.journal().empty());

  engine.submit("a", {.delay = Duration::zero()});
  engine.submit("a", {.start_at = WallTime::min()});
  engine.run();
  CHECK(engine.journal() == Entries{"do a.1", "do a.1"});
}

TEST_CASE("a manual clock that is moved to the end of time stays there") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("a", {.delay = 1h});
  engine.advance(kForEver);
  engine.advance(kForEver);
  CHECK(engine.clock->steady_now() == SteadyTime::max());
  CHECK(engine.result(id).status.ok());
}

TEST_CASE(
    "a caller that waits for a result without a limit is answered only by the end or stop()") {
  const bool manual = GENERATE(false, true);
  World world;
  world.scripts["a"] = asks(Say::wait());
  std::shared_ptr<Clock> clock = std::make_shared<SystemClock>();
  if (manual) clock = std::make_shared<ManualClock>();
  const auto executor = open_with_threads(world, clock);
  const auto submitted = executor->submit(Job(world, "a"));
  REQUIRE(submitted.ok());
  std::latch asks_now(1);
  StatusCode code = StatusCode::kOk;
  std::thread waiter([&] {
    asks_now.count_down();
    code = executor->wait(submitted->id, std::chrono::milliseconds::max()).status().code();
  });
  asks_now.wait();
  for (int i = 0; manual && i < 100; ++i) static_cast<ManualClock&>(*clock).advance(24h);
  executor->stop();
  waiter.join();
  CHECK(code == StatusCode::kStopping);

  CHECK(executor->wait(submitted->id, std::chrono::milliseconds::min()).status().code() ==
        StatusCode::kStopping);
}

TEST_CASE("a back-off without a bound grows and does not overflow") {
  Random random(7);
  const RetryPolicy policy{.base = 1s, .cap = kForEver, .jitter_percent = 100};
  Duration before{};
  for (std::uint32_t attempt = 1; attempt < 100; ++attempt) {
    CAPTURE(attempt);
    const Duration delay =
        backoff_delay({.base = 1s, .cap = kForEver, .jitter_percent = 0}, attempt, random);
    CHECK(delay >= before);
    CHECK(backoff_delay(policy, attempt, random) >= delay);
    before = delay;
  }
  CHECK(before == kForEver);

  EngineWorld engine;
  engine.retry = {.base = kForEver, .cap = kForEver, .jitter_percent = 100};
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun&) { return Say::retry("no"); }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.advance(kYears);
  CHECK(engine.describe(id).attempt == 2);
}

TEST_CASE("a back-off that makes no sense is refused by open") {
  const RetryPolicy policies[] = {{.base = -1s}, {.cap = -1us}, {.jitter_percent = 101}};
  for (const RetryPolicy& policy : policies) {
    EngineWorld engine;
    auto options = engine.options();
    options.retry = policy;
    const Status refused = ProcedureExecutor::open(std::move(options)).status();
    CHECK(refused.code() == StatusCode::kInvalidArgument);
    CHECK_THAT(refused.to_string(), ContainsSubstring("RetryPolicy"));
  }
}

TEST_CASE("a chore with an endless period, and a step that may take for ever, are never due") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  auto options = engine.options();
  options.stuck_after = kForEver;
  engine.open(std::move(options));
  int ran = 0;
  const auto chore = engine.executor().add_chore("never", kForEver, [&] { ++ran; });
  engine.advance(kYears);
  CHECK(ran == 0);
}

TEST_CASE("the timer thread sleeps while the next deadline is the end of time") {
  World world;
  world.scripts["later"] = world.scripts["now"] = {.steps = 1};
  const auto clock = std::make_shared<CountingClock>();
  const auto executor = open_with_threads(world, clock);
  REQUIRE(executor->submit(Job(world, "later"), {.start_at = WallTime::max()}).ok());
  for (int i = 0; i < 300; ++i) {
    const auto now = executor->submit(Job(world, "now"));
    REQUIRE(now.ok());
    CHECK(executor->wait(now->id)->status.ok());
  }
  CHECK(clock->looks < 300);  // else it would look a hundred times per submission
}

}  // namespace pv2::testing::endless_times_test
