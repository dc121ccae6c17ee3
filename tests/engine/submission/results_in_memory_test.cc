// SPDX-License-Identifier: Apache-2.0
//
// Results in memory are bounded by their number and by their bytes. A result that has left memory
// is read from the store, and its nonce is still known.

#include "core/completed_results.h"
#include "support/engine_world.h"
#include "watch/persisted_image.h"

namespace pv2::testing::results_in_memory_test {
namespace {

// Gives back a result of 1000 bytes.
JobScript gives_much() {
  return {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
            return Say::done(run.name + std::string(999, '.'));
          }};
}

std::size_t in_memory(EngineWorld& engine) {
  return PersistedImage::of(engine.executor()).ended.size();
}

}  // namespace

TEST_CASE(
    "results in memory are bounded by their bytes, and those that left memory are found too") {
  EngineWorld engine;
  engine.world.scripts["a"] = gives_much();
  auto options = engine.options();
  options.max_result_bytes_in_memory = 20'000;
  engine.open(std::move(options));

  std::vector<ProcedureId> ids;
  for (std::uint64_t i = 1; i <= 100; ++i) {
    ids.push_back(engine.submit("a", {.nonce = {1, i}}));
    engine.run();
  }
  CHECK(in_memory(engine) > 5);
  CHECK(in_memory(engine) <= 20);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    CHECK(engine.result(ids[i - 1]).result.size() == 1000);
    const auto again = engine.executor().submit(Job(engine.world, "a"), {.nonce = {1, i}});
    REQUIRE(again.ok());
    CHECK(again->replayed);
    CHECK(again->id == ids[i - 1]);
  }
}

TEST_CASE("the newest result is in memory however large it is") {
  EngineWorld engine;
  engine.world.scripts["a"] = gives_much();
  auto options = engine.options();
  options.max_result_bytes_in_memory = 1;
  engine.open(std::move(options));
  engine.submit("a");
  engine.run();
  CHECK(in_memory(engine) == 1);
  const ProcedureId second = engine.submit("a");
  engine.run();
  CHECK(in_memory(engine) == 1);
  CHECK(PersistedImage::of(engine.executor()).ended.front().id == second);
}

TEST_CASE("the number and bytes of results in memory are right whichever result leaves first") {
  CompletedResults results(3, SIZE_MAX);
  const auto completed = [](std::uint64_t id) {
    Completed made;
    made.result.id = ProcedureId{id};
    made.result.result = std::string(id, 'x');
    return made;
  };
  for (std::uint64_t id = 1; id <= 3; ++id) results.add(completed(id));
  CHECK_FALSE(results.take_surplus());
  CHECK(results.erase(ProcedureId{2}));
  CHECK_FALSE(results.erase(ProcedureId{2}));
  results.add(completed(4));
  results.add(completed(5));
  const auto oldest = results.take_surplus();
  REQUIRE(oldest);
  CHECK(oldest->result.id == ProcedureId{1});
  CHECK_FALSE(results.take_surplus());
  CHECK(results.size() == 3);
  for (std::uint64_t id : {3, 4, 5}) CHECK(results.erase(ProcedureId{id}));
  CHECK(results.bytes() == 0);
}

}  // namespace pv2::testing::results_in_memory_test
