// SPDX-License-Identifier: Apache-2.0
//
// How long results are kept, and what happens when there are too many: nothing is forgotten early,
// new keyed submissions are refused, and known ones are answered. (X8; idempotency 2.4.)

#include "support/engine_world.h"

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

TEST_CASE("at the limit of bytes it is the same") {
  EngineWorld engine;
  open(engine, {.max_bytes = 1});
  CHECK(submit_keyed(engine, "a", 1) == StatusCode::kOk);  // nothing is kept yet
  engine.run();
  CHECK(submit_keyed(engine, "b", 2) == StatusCode::kResourceExhausted);
}

TEST_CASE("a time to live that clients could outlast is refused") {
  EngineWorld engine;
  auto options = engine.options();
  options.retention.ttl = 29min;
  CHECK(ProcedureExecutor::open(std::move(options)).status().code() ==
        StatusCode::kInvalidArgument);
}

}  // namespace pv2::testing
