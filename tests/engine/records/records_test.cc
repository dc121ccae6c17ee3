// SPDX-License-Identifier: Apache-2.0
//
// How many records each story makes. Durability is paid per record, so the counts are promises. One
// record is one commit of the engine; the commit of open() is not counted.

#include "support/engine_world.h"

namespace pv2::testing::records_test {
namespace {

using namespace std::chrono_literals;

// Runs what `submit` submits to its end, and returns how many records that made.
template <class Submit>
std::size_t records_of(EngineWorld& engine, Submit&& submit) {
  engine.open();
  const std::size_t before = engine.faults().commits();
  submit();
  engine.run_to_the_end();
  return engine.faults().commits() - before;
}

}  // namespace

TEST_CASE("an N-step state machine makes N + 1 records when nothing is contended") {
  EngineWorld engine;
  const auto steps = GENERATE(1U, 2U, 5U);
  engine.world.scripts["a"] = {.steps = steps,
                               .locks = LockSet().table("shop", "orders", LockMode::kExclusive)};

  CHECK(records_of(engine, [&] { engine.submit("a", {.nonce = {1, 1}}); }) == steps + 1);
}

TEST_CASE("the grant of a lock that was contended is one record more") {
  EngineWorld engine;
  for (const char* name : {"a", "b", "c"}) {
    engine.world.scripts[name] = {.locks = LockSet().table("shop", "orders", LockMode::kExclusive)};
  }

  const std::size_t records = records_of(engine, [&] {
    for (const char* name : {"a", "b", "c"}) engine.submit(name);
  });

  CHECK(records == 3 * (3 + 1) + 2);  // the first got it with its insert
}

TEST_CASE("each retry is one record more") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun& run) {
    return run.step == 2 && run.ctx.attempt() <= 3 ? std::optional(Say::retry("not yet"))
                                                   : std::nullopt;
  }};

  CHECK(records_of(engine, [&] { engine.submit("a"); }) == 3 + 1 + 3);
}

TEST_CASE("a wait makes a record only if it has a deadline or changed a field") {
  EngineWorld engine;
  const bool deadline = GENERATE(false, true);
  const bool change = GENERATE(false, true);
  engine.world.scripts["a"] = {.run = [deadline, change](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 2) return std::nullopt;
    const auto* value = run.ctx.offload([] { return 1; });
    if (value != nullptr) return std::nullopt;
    if (change) run.note = "asked";
    return deadline ? Say::wait_for(1h) : Say::wait();
  }};

  CHECK(records_of(engine, [&] { engine.submit("a"); }) ==
        3U + 1U + (deadline || change ? 1U : 0U));
}

TEST_CASE("a wake by one answer of several makes no record, also with a deadline") {
  EngineWorld engine;
  engine.world.scripts["a"] = {
      .steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
        const auto* one = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
        const auto* two = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
        if (one == nullptr || two == nullptr) return Say::wait_for(1h);
        return std::nullopt;
      }};
  engine.open();
  const std::size_t before = engine.faults().commits();
  engine.submit("a");
  engine.run();
  engine.world.answer_one("first");
  engine.run();
  engine.world.answer_one("second");
  engine.run();

  CHECK(engine.executor().inspect().live_procedures() == 0);
  CHECK(engine.faults().commits() - before == 3);  // insert, wait with its deadline, end
}

TEST_CASE("the first records of children are part of the record of their parent's step") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"c", "c", "c"}};
  engine.world.scripts["c"] = {.steps = 2};

  // The last record deletes the children's rows after the end.
  CHECK(records_of(engine, [&] { engine.submit("p"); }) == (3 + 1) + 3 * 2 + 1);
}

TEST_CASE("a parent whose last step spawns makes one record more, its end") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.steps = 2, .children = {"c"}};
  engine.world.scripts["c"] = {.steps = 2};

  CHECK(records_of(engine, [&] { engine.submit("p"); }) == (2 + 1) + 1 + 2 + 1);
}

TEST_CASE("each step that is undone is one record, and the last one is the end") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun& run) {
    return run.step == 3 ? std::optional(Say::fail("no")) : std::nullopt;
  }};

  CHECK(records_of(engine, [&] { engine.submit("a"); }) == (3 + 1) + 3);
}

TEST_CASE("a step writes only what changes, and the arguments are written once") {
  EngineWorld engine;
  const std::string name(2000, 'n');
  engine.world.scripts[name] = {.steps = 5};
  engine.open();
  engine.submit(name);
  engine.run();

  std::size_t large = 0;
  for (const FaultStore::Passed& row : engine.faults().trace()) large += row.value_bytes >= 2000;
  CHECK(large == 2);  // the header, and the result, which contains the name
}

TEST_CASE("a step that exceeds what a batch may hold fails before anything is written") {
  EngineWorld engine;
  engine.store_options.limits = {.batch_operations = 20, .batch_bytes = 32 << 10};
  engine.world.scripts["a"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 2) return std::nullopt;
    for (int i = 0; i < 30; ++i) run.ctx.put_row("row " + std::to_string(i), "x");
    return std::nullopt;
  }};
  engine.world.scripts["c"] = {.steps = 1};
  engine.world.scripts["p"] = {.children = std::vector<std::string>(12, "c")};
  engine.open();
  const ProcedureId rows = engine.submit("a");
  const ProcedureId children = engine.submit("p");
  engine.run_to_the_end();

  for (const ProcedureId id : {rows, children}) {
    CHECK(engine.result(id).state == ProcedureState::kRolledBack);
    CHECK(engine.result(id).status.code() == StatusCode::kInvalidArgument);
  }
  CHECK(engine.faults().rows(Space::kHost, RowOperation::kPut) == 0);
  CHECK(engine.executor().health().ok());
  CHECK(engine.executor().inspect().locks().empty());
}

TEST_CASE(
    "the descendants' rows of a large tree are deleted in bounded batches, also after a crash") {
  EngineWorld engine;
  engine.world.scripts["c"] = {.steps = 1};
  engine.world.scripts["p"] = {.children = std::vector<std::string>(1500, "c")};
  engine.max_live_procedures = 2000;
  engine.open();
  const ProcedureId id = engine.submit("p");
  std::optional<Result<ProcedureResult>> ended;
  engine.executor().async().wait(id, [&](Result<ProcedureResult> r) { ended = std::move(r); });
  while (!ended) engine.executor().run_until_idle(1);
  engine.crash_and_open();

  engine.run();

  std::map<std::size_t, std::size_t> deletions;
  for (const FaultStore::Passed& row : engine.faults().trace()) {
    if (row.operation == RowOperation::kDelete) ++deletions[row.commit];
  }
  for (const auto& [commit, rows] : deletions) CHECK(rows <= 1024);
  CHECK(engine.disk->rows() - engine.disk->rows(Space::kEngine, "schema:") ==
        1 + 2);  // the bound of ids; result and date of the root
}

// A store forgets a row that was inserted and deleted before anything else has it. A row that may
// have been there before leaves a deletion that it has to write.
TEST_CASE("each row of a life is inserted, so that nothing of it need be left after its end") {
  EngineWorld engine;
  engine.world.scripts["c"] = {.steps = 2};
  engine.world.scripts["p"] = {.children = {"c", "c"}};
  engine.open();
  std::size_t before = engine.faults().trace().size();
  const ProcedureId id = engine.submit("p", {.nonce = {1, 2}});
  engine.run_to_the_end();
  REQUIRE(engine.result(id).status.ok());
  REQUIRE(engine.executor().acknowledge(id).ok());
  engine.run();

  for (const FaultStore::Passed& row : engine.faults().trace()) {
    if (before != 0) {
      --before;
      continue;
    }
    INFO("space " << static_cast<char>(row.space));
    CHECK(row.operation != RowOperation::kPut);
  }
  CHECK(engine.faults().rows(Space::kResult, RowOperation::kInsert) == 1);
  CHECK(engine.faults().rows(Space::kResult, RowOperation::kDelete) == 1);
}

TEST_CASE("state machines that yield before each step take turns, forward and back") {
  EngineWorld engine;  // behaviour.md, row 21
  for (const char* name : {"a", "b", "c"}) {
    engine.world.scripts[name] = {.run = [](JobRun& run) -> std::optional<Outcome> {
      if (run.note != run.label()) {
        run.note = run.label();
        return Say::again();
      }
      return run.step == 3 ? std::optional(Say::fail("back")) : std::nullopt;
    }};
  }
  engine.open();
  const std::size_t before = engine.faults().commits();
  for (const char* name : {"a", "b", "c"}) engine.submit(name);
  while (engine.executor().inspect().live_procedures() != 0) engine.executor().run_until_idle(1);

  Entries expected;
  for (const char* step : {".1", ".2"}) {
    for (const char* name : {"a", "b", "c"}) expected.push_back("do " + std::string(name) + step);
  }
  const Entries journal = engine.journal();
  CHECK(Entries(journal.begin(), journal.begin() + 6) == expected);
  for (const char* name : {"a", "b", "c"}) {
    Entries undone;
    for (const std::string& entry : journal) {
      if (entry.starts_with("undo " + std::string(name))) undone.push_back(entry.substr(6));
    }
    CHECK(undone == Entries{".3", ".2", ".1"});
  }
  // Each makes the insert, three yields, two steps, the failure and three undone steps.
  CHECK(engine.faults().commits() - before == 3 * (1 + 3 + 2 + 1 + 3));
}

TEST_CASE("a step that yields five times makes five records more and is done once") {
  EngineWorld engine;  // behaviour.md, row 23
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 run.note += "x";
                                 return run.note.size() <= 5 ? std::optional(Say::again())
                                                             : std::nullopt;
                               }};
  engine.open();
  const std::size_t before = engine.faults().commits();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.journal() == Entries{"do a.1"});
  CHECK(engine.faults().commits() - before == 1 + 5 + 1);
  CHECK(engine.result(id).status.ok());
}

}  // namespace pv2::testing::records_test
