// SPDX-License-Identifier: Apache-2.0
//
// Procedures whose state is as large as a step may write, or a little smaller. Each later record
// repeats that state and has more to say, so each has to fit the store all the same: a retry is
// made, and a tree that fails or is aborted is undone. An operator has nothing to do.

#include "support/engine_world.h"

namespace pv2::testing::largest_state_test {
namespace {

constexpr std::size_t kBatchBytes = 64 << 10;

std::string error_of(std::size_t bytes) { return std::string(bytes, 'e'); }

/// A job of three steps, the first of which makes its state that large.
JobScript job_of(std::size_t bytes, std::function<std::optional<Outcome>(JobRun&)> last_step) {
  return {.run = [bytes, last_step = std::move(last_step)](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 1) run.note.assign(bytes, 'n');
    return run.step == 3 ? last_step(run) : usual();
  }};
}

/// An engine whose store takes kBatchBytes in a batch.
struct SmallStore : EngineWorld {
  SmallStore() { store_options.limits = {.batch_operations = 64, .batch_bytes = kBatchBytes}; }

  /// How "a" ends. Nothing may park on the way.
  ProcedureResult end_of_a(AbortOptions* abort = nullptr) {
    open();
    const ProcedureId id = submit("a");
    run();
    if (abort != nullptr) {
      const Status aborted = executor().abort(id, *abort);
      CHECK((aborted.ok() || executor().inspect().live_procedures() == 0));
    }
    for (int i = 0; i < 100 && executor().inspect().live_procedures() != 0; ++i) {
      const ProcedureInfo info = describe(id);
      INFO(info.error.to_string());
      REQUIRE_FALSE(info.parked);
      advance(std::chrono::hours(1));
    }
    return result(id);
  }
};

/// The largest state with which all three steps succeed.
std::size_t largest_state() {
  std::size_t fits = 1000;
  std::size_t too_many = kBatchBytes;
  while (too_many - fits > 1) {
    const std::size_t middle = (fits + too_many) / 2;
    SmallStore engine;
    engine.world.scripts["a"] = job_of(middle, [](JobRun&) { return usual(); });
    (engine.end_of_a().status.ok() ? fits : too_many) = middle;
  }
  return fits;
}

/// Around the largest state, and as far below it as one error and two errors are long.
std::vector<std::size_t> states_around(std::size_t largest) {
  return {largest + 60, largest + 1,    largest,        largest - 30,
          largest - 60, largest - 1300, largest - 2200, largest - 4300};
}

bool has_ended_well(const ProcedureResult& result) {
  return result.state == ProcedureState::kSuccess || result.state == ProcedureState::kRolledBack;
}

}  // namespace

TEST_CASE("a procedure with a large state is tried again after its step asked for it") {
  const std::size_t largest = largest_state();
  for (const std::size_t bytes : states_around(largest)) {
    SmallStore engine;
    engine.world.scripts["a"] = job_of(bytes, [](JobRun& run) -> std::optional<Outcome> {
      if (run.ctx.attempt() <= 12) return Say::retry(error_of(2048));  // more than a history has
      return usual();
    });

    const ProcedureResult result = engine.end_of_a();

    INFO("M - " << kBatchBytes - bytes << ": " << result.status.to_string());
    CHECK(has_ended_well(result));
    // The record of the end repeats the history of the attempts.
    if (bytes + 200 < largest) CHECK(result.state == ProcedureState::kSuccess);
  }
}

TEST_CASE("a tree with a large state is undone, whichever way it fails") {
  const std::size_t largest = largest_state();
  const std::size_t error_bytes = GENERATE(10, 2048);
  const bool undo_is_retried = GENERATE(false, true);
  for (const std::size_t bytes : states_around(largest)) {
    SmallStore engine;
    JobScript script = job_of(bytes, [&](JobRun&) { return Say::fail(error_of(error_bytes)); });
    script.undo = [&](JobRun& run) -> std::optional<Outcome> {
      if (undo_is_retried && run.ctx.attempt() <= 9) return Say::retry(error_of(2048));
      return usual();
    };
    engine.world.scripts["a"] = std::move(script);

    const ProcedureResult result = engine.end_of_a();

    INFO("M - " << kBatchBytes - bytes << ": " << result.status.to_string());
    CHECK(result.state == ProcedureState::kRolledBack);
    if (bytes <= largest) CHECK_THAT(result.status.to_string(), ContainsSubstring("eeee"));
  }
}

TEST_CASE("a step with the largest state may wait") {
  const std::size_t largest = largest_state();
  for (const std::size_t bytes : {largest, largest - 30}) {
    SmallStore engine;
    int runs = 0;
    engine.world.scripts["a"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
      if (run.step == 1) run.note.assign(bytes, 'n');
      if (run.step != 2) return usual();
      ++runs;
      return run.ctx.timed_out() ? usual() : Say::wait_for(std::chrono::minutes(1));
    }};
    const ProcedureResult result = engine.end_of_a();
    INFO("M - " << kBatchBytes - bytes << ": " << result.status.to_string());
    CHECK(has_ended_well(result));
    CHECK(runs == 2);
  }
}

TEST_CASE("a procedure with a large state is undone when it is aborted") {
  const std::size_t largest = largest_state();
  AbortOptions abort{.reason = std::string(1024, 'r'), .who = std::string(256, 'w')};
  for (const std::size_t bytes : states_around(largest)) {
    SmallStore engine;
    engine.world.scripts["a"] =
        job_of(bytes, [](JobRun&) { return Say::wait_for(std::chrono::hours(10'000)); });

    const ProcedureResult result = engine.end_of_a(&abort);

    INFO("M - " << kBatchBytes - bytes << ": " << result.status.to_string());
    CHECK(result.state == ProcedureState::kRolledBack);
  }
}

TEST_CASE("a parent and a child with large states are undone, whichever of them fails") {
  const std::size_t largest = largest_state();
  const bool child_fails = GENERATE(false, true);
  for (const std::size_t bytes : states_around(largest)) {
    SmallStore engine;
    JobScript parent = job_of(bytes, [&](JobRun&) -> std::optional<Outcome> {
      if (!child_fails) return Say::fail(error_of(2048));
      return usual();
    });
    parent.children = {"c"};
    engine.world.scripts["a"] = std::move(parent);
    engine.world.scripts["c"] = job_of(bytes, [&](JobRun&) -> std::optional<Outcome> {
      if (child_fails) return Say::fail(error_of(2048));
      return usual();
    });

    const ProcedureResult result = engine.end_of_a();

    INFO("M - " << kBatchBytes - bytes << ": " << result.status.to_string());
    CHECK(result.state == ProcedureState::kRolledBack);
  }
}

TEST_CASE("an undo may enlarge a state while later records have room, else it parks") {
  const std::size_t largest = largest_state();
  const std::size_t more = GENERATE(1, 100, 1000, 2500, 4000, 7000);
  SmallStore engine;
  JobScript script = job_of(largest - 300, [](JobRun&) { return Say::fail(error_of(2048)); });
  script.undo = [more](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 3) run.note.append(more, 'u');
    if (run.step == 2 && run.ctx.attempt() == 1) return Say::retry(error_of(2048));
    if (run.step == 1) return Say::fail(error_of(2048));
    return usual();
  };
  engine.world.scripts["a"] = std::move(script);
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.advance(std::chrono::hours(1));

  const ProcedureInfo info = engine.describe(id);
  REQUIRE(info.parked);
  const bool fits = info.error.to_string().find("cannot undo step ONE") != std::string::npos;
  if (!fits) CHECK_THAT(info.error.to_string(), ContainsSubstring("step THREE of procedure"));
  if (more <= 100) CHECK(fits);
  if (more >= 4000) CHECK_FALSE(fits);
  const RepairNote note{.who = std::string(256, 'w'), .why = std::string(1024, 'y')};
  CHECK(engine.executor().operate().retry_now(id, note).ok());
  engine.run();
  CHECK(engine.executor().operate().bypass(id, note).ok());
  engine.run();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.executor().health().ok());
}

}  // namespace pv2::testing::largest_state_test
