// SPDX-License-Identifier: Apache-2.0
//
// Who opens a store reads what is live, wherever it is, and not the results below the mark.

#include <optional>
#include <string>
#include <vector>

#include "live_marker.h"
#include "record_codec.h"
#include "support/catch.h"
#include "support/engine_world.h"

namespace pv2::testing {
namespace {

/// Marks after every few ids, in the engines that are opened meanwhile.
class OftenMarked {
 public:
  explicit OftenMarked(std::uint64_t every) { LiveMarker::every = every; }
  ~OftenMarked() { LiveMarker::every = LiveMarker::kEvery; }
  OftenMarked(const OftenMarked&) = delete;
  OftenMarked& operator=(const OftenMarked&) = delete;
};

std::optional<LiveMark> mark_of(const EngineWorld& engine) {
  const auto row = engine.disk->get(Space::kEngine, kLiveMarkKey);
  if (!row) return std::nullopt;
  auto mark = decode_live_mark(*row);
  REQUIRE(mark.ok());
  return *std::move(mark);
}

void run_many(EngineWorld& engine, const std::string& name, int count) {
  for (int i = 0; i < count; ++i) {
    engine.submit(name);
    engine.run();
  }
}

}  // namespace

TEST_CASE("who opens a store does not read the results that are kept, until they are asked for") {
  const OftenMarked often(16);
  EngineWorld engine;
  engine.max_results_in_memory = 1;
  engine.world.scripts["a"] = {.steps = 2};
  engine.open();
  const ProcedureId first = engine.submit("a", {.nonce = Nonce{1, 2}});
  run_many(engine, "a", 200);
  REQUIRE(mark_of(engine).has_value());
  CHECK(mark_of(engine)->from.value > 180);
  CHECK(mark_of(engine)->below.empty());
  const ProcedureId unread{first.value + 7};
  engine.disk->put(Space::kProcedure, procedure_key(unread, RowKind::kHeader), "damaged");

  engine.crash_and_open();  // a damaged row that is read is refused

  std::optional<Status> answer;
  engine.executor().wait_async(
      unread, [&](const Result<ProcedureResult>& result) { answer = result.status(); });
  engine.run();
  REQUIRE(answer.has_value());
  CHECK(answer->code() == StatusCode::kCorruption);
  CHECK(engine.result(first).status.ok());
  const auto again = engine.executor().submit(Job(engine.world, "a"), {.nonce = Nonce{1, 2}});
  REQUIRE(again.ok());
  CHECK(again->id == first);
  CHECK(again->replayed);
  CHECK(engine.executor().acknowledge(first).ok());
  CHECK(engine.submit("a", {.nonce = Nonce{1, 2}}) != first);
}

TEST_CASE("what is live below the mark is found, with its children, its messages and its locks") {
  const OftenMarked often(16);
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"c", "d"}};
  engine.world.scripts["c"] = {.steps = 1};
  engine.world.scripts["d"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.ctx.signal("go") == nullptr) return Say::wait();
    return std::nullopt;
  }};
  engine.world.scripts["d"].locks = LockSet().table("shop", "orders", LockMode::kExclusive);
  engine.world.scripts["a"] = {.steps = 2};
  engine.open();
  const ProcedureId parent = engine.submit("p");
  engine.run();
  const ProcedureId waiting{parent.value + 2};
  REQUIRE(engine.executor().signal(waiting, "other").ok());
  run_many(engine, "a", 100);
  const auto mark = mark_of(engine);
  REQUIRE(mark.has_value());
  REQUIRE(mark->below == std::vector<ProcedureId>{parent, {parent.value + 1}, waiting});

  engine.crash_and_open();
  engine.run();

  CHECK(engine.executor().live_procedures() == 3);
  CHECK(engine.describe(waiting).holds_locks);
  REQUIRE(engine.executor().signal(waiting, "go").ok());
  engine.run();
  CHECK(engine.result(parent).status.ok());
  run_many(engine, "a", 40);
  CHECK(mark_of(engine)->below.empty());
}

TEST_CASE("limits of what is kept have every result counted, whatever is marked") {
  const OftenMarked often(16);
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  engine.open();
  for (std::uint64_t i = 1; i <= 100; ++i) {
    engine.submit("a", {.nonce = Nonce{1, i}});
    engine.run();
  }
  REQUIRE(mark_of(engine).has_value());
  ExecutorOptions options = engine.options();
  options.retention.max_keyed_results = 100;
  engine.open(std::move(options));
  CHECK(engine.executor().submit(Job(engine.world, "a"), {.nonce = Nonce{2, 1}}).status().code() ==
        StatusCode::kResourceExhausted);
}

TEST_CASE("a mark that cannot be read is none") {
  const OftenMarked often(16);
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  engine.open();
  const ProcedureId first = engine.submit("a");
  run_many(engine, "a", 100);
  engine.disk->put(Space::kEngine, kLiveMarkKey, "damaged");
  engine.open();
  CHECK(engine.result(first).status.ok());
}

TEST_CASE("no mark goes above children whose record is on the way, or above rows that are left") {
  const OftenMarked often(1);
  EngineWorld engine;
  engine.world.scripts["loop"] = {.steps = 6, .run = [](JobRun& run) -> std::optional<Outcome> {
                                    if (run.step < 6) run.spawn("leaf");
                                    return std::nullopt;
                                  }};
  engine.world.scripts["leaf"] = {.steps = 1};
  engine.open();
  for (int i = 0; i < 20; ++i) engine.submit("loop");
  engine.run();
  CHECK(engine.executor().live_procedures() == 0);
  for (std::size_t commits = 1; commits < 40; ++commits) {
    for (int i = 0; i < 3; ++i) engine.submit("loop");
    engine.faults().crash_before(engine.faults().commits() + commits,
                                 FaultStore::AfterCrash::kFail);
    engine.run();
    engine.open();
    engine.run_to_the_end();
    for (const auto& line : engine.log_lines) {
      INFO(line);
      CHECK(line.find("no record") == std::string::npos);
    }
  }
}

}  // namespace pv2::testing
