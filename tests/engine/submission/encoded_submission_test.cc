// SPDX-License-Identifier: Apache-2.0
//
// A procedure that is submitted by the name of its type and its encoded arguments, as a server
// submits it for a caller elsewhere; and what finds a submission by its nonce, or takes a wait
// back.

#include "support/engine_world.h"

namespace pv2::testing::encoded_submission_test {
namespace {

using namespace std::chrono_literals;

std::string arguments_of(World& world, const std::string& name) {
  Job job(world, name);
  std::string bytes;
  encode_fields(job, FieldSelection::kArguments, bytes);
  return bytes;
}

// The answer to a verb that runs on the pool.
template <class T>
struct Answer {
  std::shared_ptr<std::optional<T>> value = std::make_shared<std::optional<T>>();
  auto callback() const {
    return [kept = value](T given) { kept->emplace(std::move(given)); };
  }
};

Result<Submitted> submit(EngineWorld& engine, std::string_view type, std::string_view arguments,
                         SubmitOptions options = {}) {
  const Answer<Result<Submitted>> answer;
  engine.executor().async().submit_encoded(type, arguments, std::move(options), answer.callback());
  engine.executor().run_until_idle(0);  // the store and the pool, no step
  engine.run();
  REQUIRE(answer.value->has_value());
  return **answer.value;
}

EngineWorld& with_job(EngineWorld& engine) {
  engine.world.scripts["a"] = {};
  engine.world.scripts["b"] = {};
  engine.open();
  return engine;
}

}  // namespace

TEST_CASE("a procedure that is submitted as bytes runs like one that is submitted as an object") {
  EngineWorld engine;
  with_job(engine);

  const auto submitted =
      submit(engine, Job::kType, arguments_of(engine.world, "a"), {.owner = "o"});

  REQUIRE(submitted.status().to_string() == "OK");
  CHECK(engine.result(submitted->id).result == "a done");
  CHECK(engine.journal() == Entries{"do a.1", "do a.2", "do a.3"});
}

TEST_CASE("bytes and an object with the same arguments are duplicates of each other") {
  EngineWorld engine;
  with_job(engine);
  const SubmitOptions keyed{.nonce = {7, 1}, .owner = "o"};
  const std::string bytes = arguments_of(engine.world, "a");

  SECTION("the object is first") {
    const ProcedureId id = engine.submit("a", keyed);
    const auto again = submit(engine, Job::kType, bytes, keyed);
    REQUIRE(again.status().to_string() == "OK");
    CHECK(again->id == id);
    CHECK(again->replayed);
  }
  SECTION("the bytes are first") {
    const auto first = submit(engine, Job::kType, bytes, keyed);
    REQUIRE(first.status().to_string() == "OK");
    CHECK_FALSE(first->replayed);
    CHECK(engine.submit("a", keyed) == first->id);
  }
  SECTION("other arguments are no duplicate") {
    engine.submit("b", keyed);
    CHECK(submit(engine, Job::kType, bytes, keyed).status().code() == StatusCode::kKeyReused);
  }
  engine.run();
  CHECK(engine.journal().size() == 3);
}

TEST_CASE("bytes that are no arguments of a known type are refused, and nothing is kept of them") {
  EngineWorld engine;
  with_job(engine);
  const std::string good = arguments_of(engine.world, "a");
  std::string unknown_field = good;
  append_varint_field(unknown_field, 9, 1);
  std::string state_field = good;
  append_length_delimited(state_field, 2, "a note");
  std::string number;
  append_varint_field(number, 1, 5);
  const std::vector<std::pair<std::string, std::string>> refused{
      {"test.Nothing", good},
      {std::string(100'000, 'x'), good},
      {std::string(Job::kType), good.substr(0, good.size() - 1)},
      {std::string(Job::kType), number},
      {std::string(Job::kType), unknown_field},
      {std::string(Job::kType), state_field},
  };
  const std::size_t commits = engine.faults().commits();

  for (const auto& [type, bytes] : refused) {
    const auto answer = submit(engine, type, bytes, {.nonce = {7, 1}});
    CAPTURE(answer.status().to_string());
    CHECK(answer.status().code() == StatusCode::kInvalidArgument);
    CHECK(answer.status().message().size() < 1000);
  }

  CHECK(engine.faults().commits() == commits);
  CHECK(submit(engine, Job::kType, good, {.nonce = {7, 1}}).ok());
}

TEST_CASE("a nonce finds its procedure while it lives, when it has ended, and after a restart") {
  EngineWorld engine;
  engine.max_results_in_memory = 1;
  with_job(engine);
  const ProcedureId id = engine.submit("a", {.nonce = {7, 1}});

  CHECK(*engine.executor().find({7, 1}) == id);
  engine.run_to_the_end();
  CHECK(*engine.executor().find({7, 1}) == id);
  for (std::uint64_t value = 2; value < 5; ++value) engine.submit("b", {.nonce = {7, value}});
  engine.run_to_the_end();
  CHECK(*engine.executor().find({7, 1}) == id);  // only the store knows it now
  engine.open();
  CHECK(*engine.executor().find({7, 1}) == id);

  REQUIRE(engine.executor().acknowledge(id).ok());
  CHECK(engine.executor().find({7, 1}).status().code() == StatusCode::kNotFound);
  CHECK(engine.executor().find({8, 1}).status().code() == StatusCode::kNotFound);
  CHECK(engine.executor().find({8, 0}).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("who looks for a nonce that is just being submitted waits until it is durable") {
  EngineWorld engine;
  engine.store_options.mode = MemoryStoreOptions::Mode::kPump;
  with_job(engine);
  const Answer<Result<Submitted>> submitted;
  const Answer<Result<Submitted>> found;
  engine.executor().async().submit(Job(engine.world, "a"), {.nonce = {7, 1}}, submitted.callback());

  engine.executor().async().find({7, 1}, found.callback());
  CHECK_FALSE(found.value->has_value());
  engine.run();

  REQUIRE(submitted.value->has_value());
  REQUIRE(found.value->has_value());
  CHECK((**found.value)->id == (**submitted.value)->id);
  CHECK((**found.value)->replayed);
}

TEST_CASE("a wait that is taken back gets no answer, and leaves nothing behind") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun&) { return Say::wait_for(1h); }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  const auto alive = std::make_shared<int>(1);
  const auto count = [alive](const Result<ProcedureResult>&) { ++*alive; };

  const WaitTicket ticket = engine.executor().async().wait(id, count);
  CHECK(alive.use_count() == 3);
  CHECK(engine.executor().async().withdraw(ticket));
  CHECK(alive.use_count() == 2);
  CHECK_FALSE(engine.executor().async().withdraw(ticket));

  REQUIRE(engine.executor().abort(id).ok());
  engine.run();
  CHECK(*alive == 1);
  CHECK_FALSE(engine.executor().async().withdraw(engine.executor().async().wait(id, count)));
  engine.run();
  CHECK(*alive == 2);
}

TEST_CASE("work that is handed in runs on the pool") {
  EngineWorld engine;
  engine.open();
  int runs = 0;

  engine.executor().async().run([&runs] { ++runs; });
  engine.executor().async().run({});
  CHECK(runs == 0);
  engine.run();

  CHECK(runs == 1);
}

}  // namespace pv2::testing::encoded_submission_test
