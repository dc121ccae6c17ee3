// SPDX-License-Identifier: Apache-2.0
//
// Results: every waiting caller is told; they are the same for ever, are read from the store when
// they have left memory, and are gone once they were acknowledged. (Rows 8, 35, 38; X8.)

#include <pv2/store/noop_procedure_store.h>

#include "records/row_keys.h"
#include "support/engine_world.h"

namespace pv2::testing::results_test {
namespace {

using namespace std::chrono_literals;

}  // namespace

TEST_CASE("a result is the same for ever: state, status, bytes and times") {
  EngineWorld engine;
  const bool fails = GENERATE(false, true);
  std::string bytes = "with a zero:";
  bytes.push_back('\0');
  bytes += "\xff";
  engine.world.scripts["a"] = {.run = [bytes, fails](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 3) return std::nullopt;
    return fails ? Say::fail(bytes) : Say::done(bytes);
  }};
  engine.open();
  engine.clock->advance(7s);
  const ProcedureId id = engine.submit("a", {.owner = "alice"});
  engine.clock->advance(5s);
  engine.run();
  const ProcedureResult first = engine.result(id);
  CHECK(first.result == (fails ? "" : bytes));
  CHECK(first.status.message() == (fails ? bytes : ""));
  CHECK(first.finished - first.submitted == 5s);

  for (int life = 0; life < 3; ++life) {
    engine.clock->advance(1h);
    life == 0 ? void() : void(engine.crash_and_open());
    const ProcedureResult again = engine.result(id);
    CHECK(again.id == id);
    CHECK(again.state == first.state);
    CHECK(again.status == first.status);
    CHECK(again.result == first.result);
    CHECK(again.submitted == first.submitted);
    CHECK(again.finished == first.finished);
  }
}

TEST_CASE("every waiting caller is told once, when the end is durable and not before") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("a");
  int told = 0;
  for (int i = 0; i < 3; ++i) {
    engine.executor().async().wait(id, [&](const Result<ProcedureResult>& result) {
      CHECK(result.ok());
      ++told;
    });
  }
  engine.faults().hold_commit(engine.faults().commits() + 1);
  engine.run();
  CHECK(engine.world.journal.count("do a.1") == 1);
  CHECK(told == 0);
  CHECK(engine.executor().wait(id, 0ms).status().code() == StatusCode::kDeadlineExceeded);
  engine.faults().release();
  engine.run();
  CHECK(told == 3);
}

TEST_CASE("a thousand callers that wait for one result are told in their order") {
  EngineWorld engine;
  engine.world.scripts["a"] = {
      .steps = 1, .run = [](JobRun&) { return std::optional(Say::done("the result")); }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  std::vector<int> told;
  for (int i = 0; i < 1000; ++i) {
    engine.executor().async().wait(id, [&told, i](const Result<ProcedureResult>& result) {
      CHECK(result->result == "the result");
      told.push_back(i);
    });
  }
  engine.run();
  CHECK(told.size() == 1000);
  CHECK(std::is_sorted(told.begin(), told.end()));
}

TEST_CASE("an id that was never issued, an old one and a live one are told apart") {
  EngineWorld engine;
  engine.world.scripts["a"] = {};
  engine.open();
  const ProcedureId id = engine.submit("a");
  const ProcedureId never{id.value + 1};
  const auto wait_code = [&](ProcedureId which) {
    return engine.executor().wait(which, 0ms).status().code();
  };
  CHECK(wait_code(id) == StatusCode::kDeadlineExceeded);
  CHECK(wait_code(never) == StatusCode::kNotFound);
  CHECK(wait_code(ProcedureId{}) == StatusCode::kNotFound);
  CHECK(engine.executor().acknowledge(never).code() == StatusCode::kNotFound);
  CHECK(engine.executor().inspect().describe(never).status().code() == StatusCode::kNotFound);
  engine.run();
  CHECK(wait_code(id) == StatusCode::kOk);
  REQUIRE(engine.executor().acknowledge(id).ok());
  CHECK(wait_code(id) == StatusCode::kExpired);
}

TEST_CASE("results beyond the limit leave memory and are read from the store") {
  EngineWorld engine;
  engine.max_results_in_memory = 2;
  for (const char* name : {"a", "b", "c", "d", "e"}) engine.world.scripts[name] = {.steps = 1};
  engine.open();
  std::vector<ProcedureId> ids;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    ids.push_back(engine.submit(name, {.nonce = {1, ids.size() + 1}}));
    engine.run();
  }
  CHECK(engine.result(ids[0]).result == "a done");
  CHECK(engine.result(ids[4]).result == "e done");
  REQUIRE(engine.executor().acknowledge(ids[0]).ok());
  REQUIRE(engine.executor().acknowledge(ids[4]).ok());
  CHECK(engine.disk->rows() - engine.disk->rows(Space::kEngine, "schema:") == 1 + 3 * 3);
  CHECK(engine.executor().acknowledge(ids[0]).code() == StatusCode::kExpired);
  CHECK(engine.executor().submit(Job(engine.world, "a"), {.nonce = {1, 1}})->replayed == false);
}

TEST_CASE("a result that does not fit one batch with its arguments is kept, found and forgotten") {
  EngineWorld engine;
  engine.store_options.limits = {.batch_operations = 64, .batch_bytes = 64 << 10};
  engine.max_results_in_memory = GENERATE(0, 10);
  const std::string name(20'000, 'n');
  engine.world.scripts[name] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                                  if (run.step == 1) run.note.assign(40'000, 'n');
                                  if (run.step == 2) return Say::done(std::string(10, 'r'));
                                  return std::nullopt;
                                }};
  engine.world.scripts["small"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit(name, {.nonce = {1, 1}});
  engine.run();
  const ProcedureId small = engine.submit("small");
  engine.run();
  CHECK(engine.disk->rows(Space::kResult) == 1);
  CHECK(engine.disk->rows(Space::kProcedure) == 2);
  if (GENERATE(false, true)) engine.open();
  CHECK(engine.result(id).result == "rrrrrrrrrr");
  CHECK(engine.executor().inspect().history(id)->size() == 2);
  CHECK(engine.executor().submit(Job(engine.world, name), {.nonce = {1, 1}})->replayed);
  REQUIRE(engine.executor().acknowledge(id).ok());
  REQUIRE(engine.executor().acknowledge(small).ok());
  CHECK(engine.disk->rows() - engine.disk->rows(Space::kEngine, "schema:") == 1);
}

TEST_CASE("an abort takes back a success that was too large to be moved, also over a restart") {
  const bool crash = GENERATE(false, true);
  EngineWorld engine;
  engine.store_options.limits = {.batch_operations = 64, .batch_bytes = 64 << 10};
  const std::string name(20'000, 'n');
  engine.world.scripts[name] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                                  if (run.step == 1) run.note.assign(46'000, 'n');
                                  return std::nullopt;
                                }};
  engine.open();
  const ProcedureId id = engine.submit(name, {.nonce = {1, 1}});
  engine.executor().run_until_idle(1);
  const std::size_t abort = engine.faults().commits() + 1;
  engine.faults().hold_commit(abort);
  if (crash) engine.faults().crash_before(abort + 2, FaultStore::AfterCrash::kFail);
  engine.executor().async().abort(id, {}, [](const Status&) {});
  engine.run();
  engine.faults().release();
  engine.run();
  if (crash) engine.open();
  engine.run();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.world.journal.count("undo " + name + ".1") == 1);
  REQUIRE(engine.executor().acknowledge(id).ok());
  CHECK(engine.disk->rows() - engine.disk->rows(Space::kEngine, "schema:") == 1);
}

TEST_CASE("an acknowledgement deletes its root last, after every chunk of its descendants") {
  EngineWorld engine;
  engine.max_live_procedures = 2000;
  engine.world.scripts["p"] = {.children = std::vector<std::string>(1200, "c")};
  engine.world.scripts["c"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("p");
  std::optional<Status> acknowledged;
  engine.executor().async().wait(id, [&](const Result<ProcedureResult>&) {
    engine.executor().async().acknowledge(id, [&](const Status& s) { acknowledged = s; });
  });
  engine.run();
  REQUIRE(acknowledged.has_value());
  CHECK(acknowledged->ok());
  CHECK(engine.disk->rows() - engine.disk->rows(Space::kEngine) == 0);

  std::size_t last_descendant = 0;
  std::size_t root = 0;
  for (const FaultStore::Passed& row : engine.faults().trace()) {
    if (row.operation != RowOperation::kDelete) continue;
    if (row.space == Space::kResult) root = row.commit;
    if (row.space == Space::kProcedure && id_in_key(row.key) != id) last_descendant = row.commit;
  }
  CHECK(last_descendant < root);  // else a crash between them leaves a tree that looks torn
  engine.crash_and_open();
  CHECK(engine.executor().inspect().list().empty());
}

TEST_CASE("describe and list show live procedures as their last records say") {
  EngineWorld engine;  // behaviour.md, rows 66, 126
  engine.world.scripts["a"] = {.locks = LockSet().table("shop", "orders", LockMode::kShared)};
  engine.open();
  engine.clock->advance(3s);
  const ProcedureId id = engine.submit("a", {.owner = "alice"});
  engine.executor().run_until_idle(1);
  engine.faults().hold_commit(engine.faults().commits() + 1);
  engine.executor().run_until_idle(1);  // step 2 has run; its record is on the way

  const ProcedureInfo info = engine.describe(id);
  CHECK(info.type == "test.Job");
  CHECK(info.owner == "alice");
  CHECK(info.state == ProcedureState::kRunnable);
  CHECK(info.step_name == "TWO");
  CHECK(info.holds_locks);
  REQUIRE(info.history.size() == 1);
  CHECK(info.history[0].step == 1);
  CHECK(info.history[0].outcome == Outcome::Kind::kNext);
  CHECK(in_words(engine.executor().inspect().list()) == Entries{in_words(info)});
  engine.faults().release();
  engine.run();
  CHECK(engine.executor().inspect().list().empty());
}

TEST_CASE("with a store that keeps nothing, acknowledged results take no place in memory") {
  EngineWorld engine;
  engine.max_results_in_memory = 5;
  engine.world.scripts["a"] = {.steps = 1};
  auto options = engine.options();
  options.store = noop();
  engine.open(std::move(options));
  const auto is_kept = [&](ProcedureId id) {
    StatusCode code = StatusCode::kInternal;
    engine.executor().async().wait(
        id, [&](const Result<ProcedureResult>& result) { code = result.status().code(); });
    engine.run();
    return code == StatusCode::kOk;
  };
  std::vector<ProcedureId> kept;
  for (int i = 0; i < 100; ++i) {
    const ProcedureId id = engine.submit("a");
    engine.run();
    if (i % 30 == 0) {
      kept.push_back(id);
    } else {
      engine.executor().async().acknowledge(id, [](const Status&) {});
      engine.run();
    }
  }
  REQUIRE(kept.size() == 4);
  for (const ProcedureId id : kept) CHECK(is_kept(id));

  const ProcedureId two_more[] = {engine.submit("a"), engine.submit("a")};
  engine.run();
  CHECK_FALSE(is_kept(kept.front()));  // the oldest, and no other
  CHECK(is_kept(kept[1]));
  for (const ProcedureId id : two_more) CHECK(is_kept(id));
}

TEST_CASE("the history keeps the last eight steps, over restarts") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 2 && run.ctx.attempt() <= 20) return Say::retry("again");
    return std::nullopt;
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  for (int i = 0; i < 11; ++i) engine.advance(1h);
  const auto before = in_words(engine.describe(id));
  CHECK(engine.describe(id).history.size() == 8);
  CHECK(engine.describe(id).history.back().attempt == 12);
  engine.crash_and_open();
  CHECK(in_words(engine.describe(id)) == before);
}

TEST_CASE("the result of a tree survives restarts, whether it succeeded or failed") {
  EngineWorld engine;  // behaviour.md, rows 35, 38
  const bool failing = GENERATE(false, true);
  engine.world.scripts["a"] = {.children = {"b", "c"}};
  engine.world.scripts["b"] = {.steps = 1};
  engine.world.scripts["c"] = {.steps = 2};
  if (failing) {
    engine.world.scripts["c"].run = [](JobRun&) { return std::optional(Say::fail("no")); };
  }
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  const ProcedureResult before = engine.result(id);
  CHECK(before.status.ok() == !failing);
  const Entries journal = engine.journal();
  for (int life = 0; life < 2; ++life) {
    engine.crash_and_open();
    engine.run();
    CHECK(engine.result(id).status == before.status);
    CHECK(engine.result(id).result == before.result);
    CHECK(engine.result(id).finished == before.finished);
    CHECK(engine.executor().inspect().list().empty());
  }
  CHECK(engine.journal() == journal);
}

}  // namespace pv2::testing::results_test
