// SPDX-License-Identifier: Apache-2.0
//
// execute(): one verb that submits, tells the result and forgets it.

#include <pv2/store/noop_procedure_store.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/engine_world.h"
#include "support/wrapped_store.h"

namespace pv2::testing::execute_test {
namespace {

using Answer = Result<ProcedureResult>;

// A type that no executor here has registered.
struct UnknownKind : JobKind {
  static constexpr std::string_view kType = "test.Unknown";
};

// An executor without threads, on a store that keeps records or on one that keeps none.
struct Ground {
  EngineWorld engine;
  std::vector<Answer> answers;

  explicit Ground(bool keeps_records = true) {
    engine.world.scripts["job"] = {};
    engine.world.scripts["other"] = {};
    engine.world.scripts["fails"] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                                       return run.step == 2 ? std::optional(Say::fail("no"))
                                                            : std::nullopt;
                                     }};
    ExecutorOptions options = engine.options();
    if (!keeps_records) options.store = noop();
    engine.open(std::move(options));
  }
  [[nodiscard]] AsyncExecutor async() { return engine.executor().async(); }
  void execute(const std::string& name, SubmitOptions options = {}) {
    async().execute(Job(engine.world, name), std::move(options),
                    [this](Answer answer) { answers.push_back(std::move(answer)); });
  }
  [[nodiscard]] StatusCode wait_code(ProcedureId id) {
    return engine.executor().wait(id, std::chrono::milliseconds(0)).status().code();
  }
  // The rows of procedures, results, nonces and dates.
  [[nodiscard]] std::size_t rows() const {
    constexpr std::size_t kWatermark = 1;
    return engine.disk->rows() - engine.disk->rows(Space::kEngine, "schema:") - kWatermark;
  }
};

// Two workers and the real clock, on a store that keeps records or on one that keeps none.
std::unique_ptr<ProcedureExecutor> open_with_workers(EngineWorld& engine, bool keeps_records) {
  if (keeps_records) return open_with_threads(engine, nullptr);
  ExecutorOptions options = engine.options();
  options.workers = 2;
  options.store = noop();
  options.clock = nullptr;
  options.log = {};
  auto executor = open_executor(std::move(options));
  executor->start();
  return executor;
}

// Does something before and after the first question about a nonce.
class AskedStore final : public WrappedStore {
 public:
  using WrappedStore::WrappedStore;
  Result<std::optional<std::string>> get(Space space, std::string_view key) override {
    if (space != Space::kNonce || !before) return WrappedStore::get(space, key);
    std::exchange(before, nullptr)();
    auto row = WrappedStore::get(space, key);
    after();
    return row;
  }

  std::function<void()> before;
  std::function<void()> after;
};

}  // namespace

TEST_CASE("execute() tells the result, and then nothing is left of the procedure") {
  const bool keeps_records = GENERATE(true, false);
  const auto [name, state] = GENERATE(table<std::string, ProcedureState>(
      {{"job", ProcedureState::kSuccess}, {"fails", ProcedureState::kRolledBack}}));
  Ground ground(keeps_records);

  ground.execute(name, {.nonce = {1, 1}});
  CHECK(ground.answers.empty());
  ground.engine.run();

  REQUIRE(ground.answers.size() == 1);
  REQUIRE(ground.answers[0].ok());
  CHECK(ground.answers[0]->state == state);
  CHECK(ground.answers[0]->result == (name == "job" ? "job done" : ""));
  CHECK(ground.wait_code(ground.answers[0]->id) == StatusCode::kExpired);
  CHECK(ground.engine.executor().inspect().live_procedures() == 0);
  if (keeps_records) CHECK(ground.rows() == 0);
  const auto again =
      ground.engine.executor().submit(Job(ground.engine.world, "other"), {.nonce = {1, 1}});
  CHECK_FALSE(again->replayed);
}

TEST_CASE("who executes what was submitted before waits for that, and takes its result") {
  const bool keeps_records = GENERATE(true, false);
  enum class Was { kOnItsWay, kLive, kEnded };
  const Was was = GENERATE(Was::kOnItsWay, Was::kLive, Was::kEnded);
  Ground ground(keeps_records);
  EngineWorld& engine = ground.engine;

  if (was == Was::kOnItsWay && keeps_records) {
    engine.faults().hold_commit(engine.faults().commits() + 1);
  }
  ProcedureId first;
  ground.async().submit(Job(engine.world, "job"), {.nonce = {1, 1}},
                        [&](const Result<Submitted>& submitted) { first = submitted->id; });
  if (was == Was::kLive) engine.executor().run_until_idle(1);
  if (was == Was::kEnded) engine.run();
  ground.execute("job", {.nonce = {1, 1}});
  ground.execute("job", {.nonce = {1, 1}});
  if (keeps_records) engine.faults().release();
  engine.run();

  REQUIRE(ground.answers.size() == 2);
  for (const Answer& answer : ground.answers) {
    REQUIRE(answer.ok());
    CHECK(answer->id == first);
    CHECK(answer->result == "job done");
  }
  CHECK(engine.world.journal.count("do job.1") == 1);
  CHECK(ground.wait_code(first) == StatusCode::kExpired);
  if (keeps_records) CHECK(ground.rows() == 0);
}

TEST_CASE("others may wait for a procedure that is executed, until it ends") {
  Ground ground(GENERATE(true, false));
  EngineWorld& engine = ground.engine;
  const AsyncExecutor async = engine.executor().async(CallbackThread::kEngine);
  ground.execute("job", {.nonce = {1, 1}});
  std::vector<std::string> told;
  async.submit(
      Job(engine.world, "job"), {.nonce = {1, 1}}, [&](const Result<Submitted>& submitted) {
        CHECK(submitted->replayed);
        async.wait(submitted->id, [&](const Answer& answer) { told.push_back(answer->result); });
      });
  engine.run();
  CHECK(ground.answers.size() == 1);
  CHECK(told == std::vector<std::string>{"job done"});
}

TEST_CASE("what cannot be submitted is refused once, and nothing is started") {
  Ground ground;
  ground.execute("other", {.nonce = {1, 1}});
  ground.execute("job", {.nonce = {1, 1}});
  ground.execute("job", {.delay = Duration(-1)});
  ground.async().execute(ScriptedJob<UnknownKind>(ground.engine.world, "job"), {},
                         [&](Answer answer) { ground.answers.push_back(std::move(answer)); });
  ground.engine.run();

  std::vector<StatusCode> codes;
  for (const Answer& answer : ground.answers) codes.push_back(answer.status().code());
  std::sort(codes.begin(), codes.end());
  CHECK(codes == std::vector{StatusCode::kOk, StatusCode::kInvalidArgument,
                             StatusCode::kInvalidArgument, StatusCode::kKeyReused});
  CHECK(ground.engine.world.journal.count("do job.1") == 0);
}

TEST_CASE("the result goes even if nobody takes it, or the callback throws") {
  const bool keeps_records = GENERATE(true, false);
  const bool throws = GENERATE(true, false);
  const auto thread = GENERATE(CallbackThread::kPool, CallbackThread::kEngine);
  const Nonce nonce = GENERATE(Nonce(), Nonce{1, 1});
  Ground ground(keeps_records);
  ProcedureId id;
  ResultCallback done;
  if (throws) {
    done = [&](const Answer& answer) {
      id = answer->id;
      throw std::runtime_error("of the host");
    };
  }
  ground.engine.executor().async(thread).execute(Job(ground.engine.world, "job"), {.nonce = nonce},
                                                 std::move(done));
  ground.engine.run();
  CHECK(ground.engine.world.journal.count("do job.3") == 1);
  if (keeps_records) CHECK(ground.rows() == 0);
  if (throws) CHECK(ground.wait_code(id) == StatusCode::kExpired);
}

TEST_CASE("after a crash the result of execute() is kept, and the same nonce takes it") {
  Ground ground;
  EngineWorld& engine = ground.engine;
  engine.retry = {.base = std::chrono::microseconds(1), .jitter_percent = 0};
  const std::size_t before = engine.faults().commits();
  // The insert, three steps, and not the acknowledgement; or fewer.
  const std::size_t lost_from = GENERATE(range(2, 6));
  engine.faults().crash_before(before + lost_from);
  ground.execute("job", {.nonce = {1, 1}});
  engine.run();
  CHECK(ground.answers.size() == (lost_from == 5 ? 1 : 0));

  engine.crash_and_open();
  ground.answers.clear();
  engine.run();
  CHECK(engine.disk->rows(Space::kResult, "") == 1);
  ground.execute("job", {.nonce = {1, 1}});
  engine.run();

  REQUIRE(ground.answers.size() == 1);
  CHECK(ground.answers[0]->result == "job done");
  CHECK(ground.rows() == 0);
  CHECK(engine.world.journal.count("do job.3") >= 1);
}

TEST_CASE("when its store fails, execute() is told of that once") {
  Ground ground;
  EngineWorld& engine = ground.engine;
  const std::size_t nth = GENERATE(1, 2, 4, 5);
  engine.faults().fail_commit(engine.faults().commits() + nth, Status(StatusCode::kIoError, "bad"));
  ground.execute("job", {.nonce = {1, 1}});
  ground.execute("job", {.nonce = {1, 1}});  // joins
  engine.run();
  REQUIRE(ground.answers.size() == 2);
  // Whether the insert is durable is not known. The fifth commit only deletes the result.
  const StatusCode expected = nth == 1   ? StatusCode::kUnknownOutcome
                              : nth == 5 ? StatusCode::kOk
                                         : StatusCode::kIoError;
  for (const Answer& answer : ground.answers) CHECK(answer.status().code() == expected);
}

TEST_CASE("a stop answers execute(), and the procedure goes on in the next life") {
  Ground ground;
  EngineWorld& engine = ground.engine;
  ground.execute("job", {.nonce = {1, 1}});
  engine.executor().run_until_idle(1);
  engine.close();
  REQUIRE(ground.answers.size() == 1);
  CHECK(ground.answers[0].status().code() == StatusCode::kStopping);

  engine.open();
  engine.run();
  ground.execute("job", {.nonce = {1, 1}});
  engine.run();
  REQUIRE(ground.answers.size() == 2);
  CHECK(ground.answers[1]->result == "job done");
  CHECK(engine.world.journal.count("do job.1") == 1);
}

TEST_CASE("a stop answers each execute() whose first record is on its way") {
  Ground ground;
  EngineWorld& engine = ground.engine;
  const bool fails = GENERATE(false, true);
  if (fails)
    engine.faults().fail_commit(engine.faults().commits() + 1, Status(StatusCode::kIoError, "bad"));
  for (int i = 0; i < 3; ++i) ground.execute("job", {.nonce = {1, 1}});
  engine.close();
  REQUIRE(ground.answers.size() == 3);
  for (const Answer& answer : ground.answers) {
    CHECK(answer.status().code() == (fails ? StatusCode::kUnknownOutcome : StatusCode::kStopping));
  }
  if (fails) return;
  CHECK_THAT(std::string(ground.answers[0].status().message()), Catch::Contains("goes on when"));
  engine.open();
  engine.run();
  CHECK(engine.world.journal.count("do job.3") == 1);
}

TEST_CASE("without a nonce the result is deleted while its callback runs") {
  Ground ground;
  EngineWorld& engine = ground.engine;
  ground.async().execute(Job(engine.world, "job"), {}, [&](const Answer& answer) {
    engine.executor().run_until_idle();
    CHECK(ground.rows() == 0);
    ground.answers.push_back(answer);
  });
  engine.run();
  REQUIRE(ground.answers.size() == 1);
  CHECK(ground.answers[0].ok());
}

TEST_CASE("execute() blocks its thread, unless that is one of the executor's") {
  EngineWorld engine;
  engine.world.scripts["job"] = {};
  std::atomic<bool> refused = false;
  std::atomic<ProcedureExecutor*> executor = nullptr;
  engine.world.scripts["asks"] = {
      .steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
        const Answer answer = executor.load()->execute(Job(run.world, "job"));
        refused = answer.status().code() == StatusCode::kFailedPrecondition;
        return std::nullopt;
      }};
  const auto owner = open_with_threads(engine, nullptr);
  executor = owner.get();

  const Answer answer = owner->execute(Job(engine.world, "job"), {.nonce = {1, 1}});
  REQUIRE(answer.ok());
  CHECK(answer->result == "job done");
  REQUIRE(owner->execute(Job(engine.world, "asks")).ok());
  CHECK(refused);
  owner->stop();
  const Status refusal = owner->execute(Job(engine.world, "job")).status();
  CHECK(refusal.code() == StatusCode::kStopping);
  CHECK_THAT(std::string(refusal.message()), Catch::Contains("this call has started nothing"));
  CHECK(engine.disk->rows(Space::kResult, "") == 0);
  CHECK(engine.disk->rows(Space::kNonce, "") == 0);
}

TEST_CASE("many threads execute under few nonces, and each gets a result") {
  EngineWorld engine;
  constexpr int kThreads = 4;
  constexpr int kEach = 300;
  engine.world.scripts["job"] = {.steps = 1};
  const auto executor = open_with_workers(engine, GENERATE(false, true));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        const unsigned value = 1 + static_cast<unsigned>(i) % 3;
        const Answer answer = executor->execute(Job(engine.world, "job"), {.nonce = {1, value}});
        if (!answer.ok() || answer->result != "job done") ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  executor->stop();
  CHECK(wrong == 0);
  CHECK(engine.disk->rows(Space::kResult, "") == 0);
  CHECK(engine.disk->rows(Space::kNonce, "") == 0);
}

TEST_CASE("many threads execute at at the same time, and each gets its own result") {
  EngineWorld engine;
  constexpr int kThreads = 4;
  constexpr int kEach = 50;
  for (int i = 0; i < kThreads * kEach; ++i) engine.world.scripts["job" + std::to_string(i)] = {};
  const auto executor = open_with_workers(engine, GENERATE(false, true));
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kEach; ++i) {
        const std::string name = "job" + std::to_string(thread * kEach + i);
        const Answer answer = executor->execute(Job(engine.world, name));
        if (answer.ok() && answer->result == name + " done") ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  executor->stop();
  CHECK(right == kThreads * kEach);
  CHECK(engine.disk->rows(Space::kResult, "") == 0);
}

TEST_CASE("an execute() that asks the store for its nonce while a stop comes is answered") {
  EngineWorld engine;
  engine.world.scripts["job"] = {};
  engine.world.scripts["held"] = {
      .run = [](JobRun&) { return Say::wait_for(std::chrono::hours(1)); }};
  engine.open();  // so that the next life finds a store that may know nonces
  engine.submit("job");
  engine.run();
  engine.close();
  ExecutorOptions options = engine.options();
  auto owned = std::make_unique<AskedStore>(std::move(options.store));
  AskedStore& store = *owned;
  options.store = std::move(owned);
  engine.open(std::move(options));
  store.before = [&] {  // another caller is first
    engine.executor().async().submit(Job(engine.world, "held"), {.nonce = {1, 1}}, {});
    engine.run();
  };
  store.after = [&] { engine.executor().stop(); };
  std::vector<StatusCode> answers;
  engine.executor().async().execute(
      Job(engine.world, "held"), {.nonce = {1, 1}},
      [&](const Answer& answer) { answers.push_back(answer.status().code()); });
  REQUIRE(answers == std::vector{StatusCode::kStopping});
}

}  // namespace pv2::testing::execute_test
