// SPDX-License-Identifier: Apache-2.0
//
// A nonce names one submission: a repeated submission gets the same procedure, whatever happens;
// nothing is kept of a refused one; and a forgotten one is recognisable. (Rows 29-33, X7, X8.)

#include "support/engine_world.h"
#include "support/wrapped_store.h"

namespace pv2::testing::nonce_test {
namespace {

constexpr SubmitOptions keyed() { return {.nonce = {7, 1}}; }

struct Answers {
  std::vector<Result<Submitted>> all;
  auto callback() {
    return [this](Result<Submitted> answer) { all.push_back(std::move(answer)); };
  }
};

// Rows that its inner store has written can be read at once, but their commits are reported only
// when the test calls tell(). A store with its own thread is in that state after every sync.
class LateStore final : public WrappedStore, private CommitSink {
 public:
  using WrappedStore::WrappedStore;

  void hold() { holds_ = true; }
  void tell() {
    holds_ = false;
    sink_->on_committed(std::move(told_late_));
  }

  Status recover_lease(CommitSink& sink) override {
    sink_ = &sink;
    return WrappedStore::recover_lease(*this);
  }

 private:
  void on_committed(CommitList finished) noexcept override {
    if (!holds_) return sink_->on_committed(std::move(finished));
    told_late_.splice_back(std::move(finished));
  }

  CommitSink* sink_ = nullptr;
  bool holds_ = false;
  CommitList told_late_;
};

}  // namespace

TEST_CASE("a nonce whose procedure has ended gets its id and its result, also after a restart") {
  EngineWorld engine;  // behaviour.md, row 29
  const bool succeeds = GENERATE(true, false);
  engine.world.scripts["a"] = {.run = [succeeds](JobRun& run) {
    return run.step == 3 && !succeeds ? std::optional(Say::fail("no")) : std::nullopt;
  }};
  engine.open();
  const ProcedureId id = engine.submit("a", keyed());
  engine.run();
  const ProcedureResult before = engine.result(id);
  const Entries journal = engine.journal();

  for (int life = 0; life < 3; ++life) {
    const auto again = engine.executor().submit(Job(engine.world, "a"), keyed());
    REQUIRE(again.ok());
    CHECK(again->replayed);
    CHECK(again->id == id);
    engine.run();
    const ProcedureResult result = engine.result(id);
    CHECK(result.state == before.state);
    CHECK(result.status == before.status);
    CHECK(result.result == before.result);
    CHECK(result.submitted == before.submitted);
    CHECK(result.finished == before.finished);
    engine.clock->advance(std::chrono::hours(1));
    engine.open();
  }
  CHECK(engine.journal() == journal);
}

TEST_CASE("a nonce whose procedure runs gets its id, before and after a restart") {
  EngineWorld engine;  // behaviour.md, row 30
  engine.world.scripts["a"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 2) return std::nullopt;
    const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
    return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
  }};
  engine.open();
  const ProcedureId id = engine.submit("a", keyed());
  engine.run();
  CHECK(engine.submit("a", keyed()) == id);
  engine.crash_and_open();
  CHECK(engine.submit("a", keyed()) == id);
  engine.run();
  while (engine.world.answer_one("x")) engine.run();

  CHECK(engine.result(id).status.ok());
  CHECK(engine.world.journal.count("do a.1") == 1);
}

TEST_CASE("a duplicate of a submission that is not durable yet joins it and gets the same answer") {
  EngineWorld engine;  // behaviour.md, row 32
  engine.world.scripts["a"] = {};
  engine.open();
  Answers answers;
  for (int i = 0; i < 3; ++i) {
    engine.executor().async().submit(Job(engine.world, "a"), keyed(), answers.callback());
  }
  CHECK(answers.all.empty());

  SECTION("when it becomes durable") {
    engine.run();
    REQUIRE(answers.all.size() == 3);
    for (const auto& answer : answers.all) {
      REQUIRE(answer.ok());
      CHECK(answer->id == answers.all.front()->id);
    }
    CHECK_FALSE(answers.all[0]->replayed);
    CHECK(answers.all[1]->replayed);
    CHECK(answers.all[2]->replayed);
    CHECK(engine.world.journal.count("do a.1") == 1);
  }
}

TEST_CASE("a duplicate of a submission whose record fails gets the same unknown outcome") {
  EngineWorld engine;  // behaviour.md, row 33, X7
  engine.world.scripts["a"] = {};
  engine.open();
  engine.faults().fail_commit(engine.faults().commits() + 1, Status(StatusCode::kIoError, "gone"));
  Answers answers;
  for (int i = 0; i < 2; ++i) {
    engine.executor().async().submit(Job(engine.world, "a"), keyed(), answers.callback());
  }
  engine.run();

  REQUIRE(answers.all.size() == 2);
  for (const auto& answer : answers.all) {
    CHECK(answer.status().code() == StatusCode::kUnknownOutcome);
  }
}

TEST_CASE("the same nonce with another argument, type or owner is an error and starts nothing") {
  EngineWorld engine;
  engine.world.scripts["a"] = engine.world.scripts["b"] = {};
  engine.open();
  const ProcedureId id = engine.submit("a", keyed());
  for (int life = 0; life < 2; ++life) {
    auto& executor = engine.executor();
    const Result<Submitted> answers[] = {
        executor.submit(Job(engine.world, "b"), keyed()),
        executor.submit(FinalJob(engine.world, "a"), keyed()),
        executor.submit(Job(engine.world, "a"), {.nonce = {7, 1}, .owner = "somebody else"})};
    for (const auto& answer : answers) {
      CHECK(answer.status().code() == StatusCode::kKeyReused);
      CHECK_THAT(std::string(answer.status().message()), ContainsSubstring("7/1"));
    }
    engine.run();
    engine.crash_and_open();
  }
  CHECK(engine.result(id).status.ok());
  CHECK(engine.world.journal.count("do b.1") == 0);
}

TEST_CASE(
    "equal nonces of two groups are different, and submissions without a nonce are not joined") {
  EngineWorld engine;
  engine.world.scripts["a"] = {};
  engine.open();
  const ProcedureId ids[] = {
      engine.submit("a", {.nonce = {1, 5}}), engine.submit("a", {.nonce = {2, 5}}),
      engine.submit("a", {.nonce = {1, 0}}), engine.submit("a", {.nonce = {1, 0}})};
  CHECK(ids[0] != ids[1]);
  CHECK(ids[2] != ids[3]);
}

TEST_CASE("nothing is kept of a refused submission, and its nonce may be used again") {
  EngineWorld engine;
  engine.max_live_procedures = 1;
  engine.world.scripts["a"] = {};
  engine.open();
  engine.submit("a");
  const std::size_t rows = engine.disk->rows();

  const auto refused = engine.executor().submit(Job(engine.world, "a"), keyed());
  CHECK(refused.status().code() == StatusCode::kResourceExhausted);
  CHECK(engine.disk->rows() == rows);

  engine.run();
  const auto accepted = engine.executor().submit(Job(engine.world, "a"), keyed());
  REQUIRE(accepted.ok());
  CHECK_FALSE(accepted->replayed);
}

TEST_CASE("a nonce lives as long as its result: both are gone once the result is acknowledged") {
  EngineWorld engine;  // X8
  engine.world.scripts["a"] = {};
  engine.open();
  const ProcedureId first = engine.submit("a", keyed());
  CHECK(engine.executor().acknowledge(first).code() == StatusCode::kFailedPrecondition);
  engine.run();
  REQUIRE(engine.executor().acknowledge(first).ok());
  CHECK(engine.disk->rows() - engine.disk->rows(Space::kEngine) == 0);
  engine.crash_and_open();

  CHECK(engine.executor().wait(first).status().code() == StatusCode::kExpired);
  CHECK(engine.executor().acknowledge(first).code() == StatusCode::kExpired);
  const auto second = engine.executor().submit(Job(engine.world, "a"), keyed());
  REQUIRE(second.ok());
  CHECK_FALSE(second->replayed);
  CHECK(second->id != first);
}

TEST_CASE("old nonces are looked up on the disk, not kept in memory") {
  EngineWorld engine;
  engine.max_results_in_memory = 2;
  engine.world.scripts["a"] = engine.world.scripts["b"] = {};
  engine.open();
  std::vector<ProcedureId> ids;
  for (std::uint64_t i = 1; i <= 5; ++i) {
    ids.push_back(engine.submit("a", {.nonce = {1, i}}));
    engine.run();
  }
  for (int life = 0; life < 2; ++life) {
    for (std::uint64_t i = 1; i <= 5; ++i) {
      const auto again = engine.executor().submit(Job(engine.world, "a"), {.nonce = {1, i}});
      REQUIRE(again.ok());
      CHECK(again->id == ids[i - 1]);
      CHECK(again->replayed);
      CHECK(engine.result(again->id).result == "a done");
    }
    CHECK(engine.executor().submit(Job(engine.world, "b"), {.nonce = {1, 1}}).status().code() ==
          StatusCode::kKeyReused);
    engine.open();
  }
}

TEST_CASE("two acknowledgements of one result do not touch the nonce's next procedure") {
  EngineWorld engine;
  engine.world.scripts["a"] = {};
  engine.open();
  const ProcedureId first = engine.submit("a", keyed());
  engine.run();
  std::vector<Status> acknowledged;
  const auto note = [&](const Status& status) { acknowledged.push_back(status); };
  engine.executor().async().acknowledge(first, note);
  engine.executor().async().acknowledge(first, note);
  engine.store().pump_some(1);
  Answers answers;
  engine.executor().async().submit(Job(engine.world, "a"), keyed(), answers.callback());
  engine.executor().run_until_idle();

  REQUIRE(acknowledged.size() == 2);
  CHECK(acknowledged[0].ok());
  REQUIRE(answers.all.size() == 1);
  REQUIRE(answers.all[0].ok());
  engine.open();
  const auto again = engine.executor().submit(Job(engine.world, "a"), keyed());
  REQUIRE(again.ok());
  CHECK(again->id == answers.all[0]->id);
  CHECK(again->replayed == !answers.all[0]->replayed);
}

TEST_CASE("an acknowledgement leaves alone a newer procedure with the same nonce") {
  EngineWorld engine;
  engine.world.scripts["a"] = {};
  engine.open();
  const ProcedureId first = engine.submit("a", keyed());
  engine.run();
  auto options = engine.options();
  auto store = std::make_unique<LateStore>(std::move(options.store));
  LateStore& late = *store;
  options.store = std::move(store);
  engine.open(std::move(options));  // the first result is on the disk only

  late.hold();
  Status acknowledged(StatusCode::kInternal, "not answered");
  engine.executor().async().acknowledge(first,
                                        [&](const Status& status) { acknowledged = status; });
  late.pump();  // the rows are gone, and the engine has not been told
  Answers answers;
  engine.executor().async().submit(Job(engine.world, "a"), keyed(), answers.callback());
  late.tell();
  engine.executor().async().submit(Job(engine.world, "a"), keyed(), answers.callback());
  engine.run();

  CHECK(acknowledged.ok());
  REQUIRE(answers.all.size() == 2);
  REQUIRE(answers.all[0].ok());
  REQUIRE(answers.all[1].ok());
  CHECK(answers.all[0]->id != first);
  CHECK_FALSE(answers.all[0]->replayed);
  CHECK(answers.all[1]->id == answers.all[0]->id);
  CHECK(answers.all[1]->replayed);
  CHECK(engine.world.journal.count("do a.1") == 2);
}

TEST_CASE("an id is never issued twice, whatever crashed and was deleted") {
  EngineWorld engine;  // behaviour.md, row 76
  engine.world.scripts["a"] = {};
  engine.open();
  ProcedureId highest;
  for (int life = 0; life < 4; ++life) {
    const ProcedureId id = engine.submit("a");
    CHECK(id > highest);
    highest = id;
    engine.run();
    REQUIRE(engine.executor().acknowledge(id).ok());
    life % 2 == 0 ? engine.crash_and_open() : engine.open();
    CHECK(engine.executor().wait(highest).status().code() == StatusCode::kExpired);
  }
}

TEST_CASE("a retry whose nonce is forgotten is refused if its expires_at has passed") {
  using namespace std::chrono_literals;
  EngineWorld engine;
  engine.world.scripts["a"] = {};
  engine.open();
  SubmitOptions options = keyed();
  options.expires_at = engine.clock->wall_now() + 1h;
  const ProcedureId id = engine.submit("a", options);
  engine.run();

  engine.clock->advance(2h);
  const auto known = engine.executor().submit(Job(engine.world, "a"), options);
  REQUIRE(known.ok());  // late, but the nonce is still known
  CHECK(known->id == id);

  REQUIRE(engine.executor().acknowledge(id).ok());
  engine.run();
  for (int life = 0; life < 2; ++life) {
    const Entries before = engine.journal();
    const auto late = engine.executor().submit(Job(engine.world, "a"), options);
    CHECK(late.status().code() == StatusCode::kExpired);
    engine.run();
    CHECK(engine.journal() == before);
    CHECK(engine.executor().inspect().live_procedures() == 0);
    engine.open();
  }
}

TEST_CASE("a retry that comes too late is refused although the wall clock was set back") {
  using namespace std::chrono_literals;
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  auto executor_options = engine.options();
  executor_options.retention.ttl = 1h;
  engine.open(std::move(executor_options));
  engine.run();
  engine.advance(61min);  // the wall clock is beyond doubt
  SubmitOptions options{.nonce = {1, 1}, .expires_at = engine.clock->wall_now() + 50min};
  engine.submit("a", options);
  engine.run();
  engine.advance(61min);  // the result is forgotten with its nonce
  engine.clock->jump_wall(GENERATE(Duration(-30min), Duration(-24h)));

  const auto late = engine.executor().submit(Job(engine.world, "a"), options);
  CHECK(late.status().code() == StatusCode::kExpired);
  engine.run();
  CHECK(engine.world.journal.count("do a.1") == 1);
}

TEST_CASE("an expires_at beyond the time for which nonces are kept is refused") {
  using namespace std::chrono_literals;
  EngineWorld engine;
  engine.world.scripts["a"] = {};
  auto executor_options = engine.options();
  executor_options.retention.ttl = 1h;
  engine.open(std::move(executor_options));
  const WallTime now = engine.clock->wall_now();

  SubmitOptions options{.expires_at = now + 1min};
  CHECK(engine.executor().submit(Job(engine.world, "a"), options).status().code() ==
        StatusCode::kInvalidArgument);
  options.nonce = keyed().nonce;
  options.expires_at = now + 1h;
  CHECK(engine.executor().submit(Job(engine.world, "a"), options).status().code() ==
        StatusCode::kInvalidArgument);
  options.expires_at = WallTime::max();
  CHECK(engine.executor().submit(Job(engine.world, "a"), options).status().code() ==
        StatusCode::kInvalidArgument);
  options.expires_at = now + 59min;
  CHECK(engine.executor().submit(Job(engine.world, "a"), options).ok());
}

TEST_CASE("a duplicate gets its answer also when no new procedure would be accepted") {
  EngineWorld engine;
  engine.max_live_procedures = 1;
  engine.world.scripts["plain"] = {.steps = 1};
  engine.open();
  const ProcedureId first = engine.submit("plain", {.nonce = {1, 7}});

  const auto again = engine.executor().submit(Job(engine.world, "plain"), {.nonce = {1, 7}});
  const auto other = engine.executor().submit(Job(engine.world, "plain"), {.nonce = {1, 8}});

  REQUIRE(again.status().to_string() == "OK");
  CHECK(again->id == first);
  CHECK(again->replayed);
  CHECK(other.status().code() == StatusCode::kResourceExhausted);
}

TEST_CASE("a submission that expires while the store is asked for its nonce is refused") {
  using namespace std::chrono_literals;
  // A store that takes two hours to say that it does not have a nonce.
  class Slow final : public WrappedStore {
   public:
    Slow(std::unique_ptr<ProcedureStore> inner, std::shared_ptr<ManualClock> clock)
        : WrappedStore(std::move(inner)), clock_(std::move(clock)) {}
    Result<std::optional<std::string>> get(Space space, std::string_view key) override {
      if (space == Space::kNonce) clock_->advance(2h);
      return WrappedStore::get(space, key);
    }

   private:
    const std::shared_ptr<ManualClock> clock_;
  };
  EngineWorld engine;
  engine.world.scripts["a"] = {};
  engine.open();  // so that the store may know nonces
  engine.close();
  ExecutorOptions slow = engine.options();
  slow.store = std::make_unique<Slow>(memory(engine.disk), engine.clock);
  ProcedureExecutor& executor = engine.open(std::move(slow));
  SubmitOptions options = keyed();
  options.expires_at = engine.clock->wall_now() + 1h;
  CHECK(executor.submit(Job(engine.world, "a"), options).status().code() == StatusCode::kExpired);
  options.expires_at = engine.clock->wall_now() + 3h;
  CHECK(executor.submit(Job(engine.world, "a"), options).ok());
}

}  // namespace pv2::testing::nonce_test
