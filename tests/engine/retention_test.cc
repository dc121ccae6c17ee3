// SPDX-License-Identifier: Apache-2.0
//
// How long results are kept, and what happens when there are too many: nothing is forgotten early,
// new keyed submissions are refused, and known ones are answered. (X8; idempotency 2.4.)

#include "support/engine_world.h"
#include "support/wrapped_store.h"

namespace pv2::testing {
namespace {

using namespace std::chrono_literals;

void open(EngineWorld& engine, RetentionPolicy policy) {
  engine.world.scripts["a"] = {.steps = 1};
  engine.world.scripts["b"] = {.steps = 1};
  engine.world.scripts["c"] = {.steps = 1};
  auto options = engine.options();
  options.retention = policy;
  engine.open(std::move(options));
}

StatusCode submit_keyed(EngineWorld& engine, const std::string& name, std::uint64_t nonce) {
  return engine.executor().submit(Job(engine.world, name), {.nonce = {1, nonce}}).status().code();
}

StatusCode asked_for(EngineWorld& engine, ProcedureId id) {
  StatusCode code = StatusCode::kInternal;
  engine.executor().wait_async(
      id, [&](const Result<ProcedureResult>& result) { code = result.status().code(); });
  engine.run();
  return code;
}

}  // namespace

TEST_CASE("a result is kept for its time and then forgotten with its nonce, also after a restart") {
  EngineWorld engine;
  open(engine, {.ttl = 1h});
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}});
  engine.run();
  engine.advance(1h - 1us);
  CHECK(asked_for(engine, id) == StatusCode::kOk);
  const bool restart = GENERATE(false, true);
  if (restart) open(engine, {.ttl = 1h});
  engine.advance(1us);
  CHECK(asked_for(engine, id) == StatusCode::kExpired);
  CHECK(engine.executor().history(id).status().code() == StatusCode::kExpired);
  const auto again = engine.executor().submit(Job(engine.world, "a"), {.nonce = {1, 1}});
  REQUIRE(again.ok());
  CHECK_FALSE(again->replayed);
}

TEST_CASE("an expiry that a crash interrupts is made up for by the next run") {
  EngineWorld engine;
  open(engine, {.ttl = 1h});
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}});
  engine.run();
  engine.faults().crash_before(engine.faults().commits() + 1, FaultStore::AfterCrash::kFail);
  engine.clock->advance(2h);
  engine.run();
  open(engine, {.ttl = 1h});
  engine.run();
  CHECK(asked_for(engine, id) == StatusCode::kExpired);
}

TEST_CASE("without a time nothing is forgotten before it is acknowledged") {
  EngineWorld engine;
  open(engine, {.max_keyed_results = 10});
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}});
  engine.run();
  engine.advance(24h * 365);
  CHECK(asked_for(engine, id) == StatusCode::kOk);
}

TEST_CASE("at the limit of keyed results what is new is refused, what is known is answered") {
  EngineWorld engine;
  open(engine, {.max_keyed_results = 2});
  const ProcedureId a = engine.submit("a", {.nonce = {1, 1}});
  engine.submit("b", {.nonce = {1, 2}});
  engine.run();
  const bool restart = GENERATE(false, true);
  if (restart) open(engine, {.max_keyed_results = 2});

  CHECK(submit_keyed(engine, "c", 3) == StatusCode::kResourceExhausted);
  const auto known = engine.executor().submit(Job(engine.world, "a"), {.nonce = {1, 1}});
  REQUIRE(known.ok());
  CHECK(known->id == a);
  CHECK(known->replayed);
  CHECK(asked_for(engine, engine.submit("c")) == StatusCode::kOk);  // without a nonce

  engine.executor().acknowledge_async(a, [](const Status&) {});
  engine.run();
  CHECK(submit_keyed(engine, "c", 3) == StatusCode::kOk);
}

TEST_CASE("what is live with a nonce counts to the limit too, as it will have a result") {
  EngineWorld engine;
  engine.world.scripts["asks"] = {
      .steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
        const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
        return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
      }};
  open(engine, {.max_keyed_results = 3});
  engine.submit("asks", {.nonce = {1, 1}});
  const ProcedureId ended = engine.submit("a", {.nonce = {1, 2}});
  engine.run();
  const int restarts = GENERATE(0, 1);
  if (restarts != 0) open(engine, {.max_keyed_results = 3});
  engine.submit("asks", {.nonce = {1, 3}});

  CHECK(submit_keyed(engine, "c", 4) == StatusCode::kResourceExhausted);
  CHECK(submit_keyed(engine, "asks", 1) == StatusCode::kOk);  // known
  engine.submit("c");                                         // without a nonce
  engine.run();
  CHECK(submit_keyed(engine, "c", 4) == StatusCode::kResourceExhausted);
  CHECK(engine.executor().acknowledge(ended).ok());
  CHECK(submit_keyed(engine, "c", 4) == StatusCode::kOk);
  CHECK(submit_keyed(engine, "c", 5) == StatusCode::kResourceExhausted);
}

TEST_CASE("what a step submits counts to the limit, and no more when the step did not end") {
  EngineWorld engine;
  engine.world.scripts["submitter"] = {.steps = 1,
                                       .run = [](JobRun& run) -> std::optional<Outcome> {
                                         run.ctx.submit(Job(run.world, "a"), {.nonce = {1, 1}});
                                         // This one is refused, and so the other withdrawn.
                                         run.ctx.submit(Job(run.world, "b"), {.nonce = {1, 1}});
                                         return std::nullopt;
                                       }};
  open(engine, {.max_keyed_results = 1});
  const ProcedureId id = engine.submit("submitter");
  engine.run();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(submit_keyed(engine, "c", 2) == StatusCode::kOk);
  CHECK(submit_keyed(engine, "c", 3) == StatusCode::kResourceExhausted);
}

TEST_CASE("at the limit of bytes it is the same") {
  EngineWorld engine;
  open(engine, {.max_bytes = 1});
  const ProcedureId a = engine.submit("a", {.nonce = {1, 1}});  // nothing is kept yet
  engine.run();
  CHECK(submit_keyed(engine, "b", 2) == StatusCode::kResourceExhausted);

  engine.executor().acknowledge_async(a, [](const Status&) {});
  engine.run();
  CHECK(submit_keyed(engine, "b", 2) == StatusCode::kOk);
}

TEST_CASE("what could not be deleted when its time was over is deleted later") {
  // What has left memory is read before it is deleted, and the disk may not answer just then.
  class Unreadable final : public WrappedStore {
   public:
    using WrappedStore::WrappedStore;
    Result<std::optional<std::string>> get(Space space, std::string_view key) override {
      if (fails) return Status(StatusCode::kIoError, "cannot be read just now");
      return WrappedStore::get(space, key);
    }
    bool fails = false;
  };
  EngineWorld engine;
  open(engine, {.ttl = 1h});
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}});
  engine.run();
  auto options = engine.options();
  options.retention.ttl = 1h;
  auto store = std::make_unique<Unreadable>(std::move(options.store));
  Unreadable& unreadable = *store;
  options.store = std::move(store);
  engine.open(std::move(options));

  unreadable.fails = true;
  engine.advance(1h);
  engine.advance(1h);
  unreadable.fails = false;
  CHECK(asked_for(engine, id) == StatusCode::kOk);
  engine.advance(1h);
  CHECK(asked_for(engine, id) == StatusCode::kExpired);
}

TEST_CASE("a time to live that clients could outlast is refused") {
  EngineWorld engine;
  auto options = engine.options();
  options.retention.ttl = 29min;
  CHECK(ProcedureExecutor::open(std::move(options)).status().code() ==
        StatusCode::kInvalidArgument);
}

}  // namespace pv2::testing
