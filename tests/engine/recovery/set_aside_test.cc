// SPDX-License-Identifier: Apache-2.0
//
// Going on without a procedure that cannot be read (UnreadableRecords::kSetAside). Its rows stay as
// they are, it is listed, and its id and nonce stay taken. The known rest of its tree is
// quarantined with its locks, and everything else runs. This holds at each start with that option;
// an open() without it is refused.

#include <set>

#include "records/row_keys.h"
#include "support/engine_world.h"
#include "support/older_rows.h"
#include "support/repair_orders.h"

namespace pv2::testing::set_aside_test {
namespace {

const auto kOrders = LockSet().table("shop", "orders", LockMode::kExclusive);

JobScript asks(const LockSet& locks = {}) {
  return {.run = [](JobRun& run) -> std::optional<Outcome> {
            if (run.step != 2) return std::nullopt;
            const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
            return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
          },
          .locks = locks};
}

ProcedureExecutor& open_without(EngineWorld& engine) {
  ExecutorOptions options = engine.options();
  options.unreadable = UnreadableRecords::kSetAside;
  return engine.open(std::move(options));
}

Status refusal(EngineWorld& engine) {
  engine.close();
  return ProcedureExecutor::open(engine.options()).status();
}

std::string row(EngineWorld& engine, ProcedureId id, RowKind kind) {
  return engine.disk->get(Space::kProcedure, procedure_key(id, kind)).value_or("");
}
void damage(EngineWorld& engine, ProcedureId id, RowKind kind) {
  engine.disk->put(Space::kProcedure, procedure_key(id, kind), "damaged");
}
void erase(EngineWorld& engine, ProcedureId id, RowKind kind) {
  engine.disk->erase(Space::kProcedure, procedure_key(id, kind));
}

std::set<std::uint64_t> quarantined(EngineWorld& engine) {
  std::set<std::uint64_t> ids;
  for (const ProcedureInfo& info :
       engine.executor().inspect().list({.quarantined = true}, {}, 100).procedures)
    ids.insert(info.id.value);
  return ids;
}

// The codes of all that is answered about `id`, which has the nonce 1/1; a call that is not
// answered counts as kUnavailable.
std::set<StatusCode> answers_about(EngineWorld& engine, ProcedureId id) {
  ProcedureExecutor& executor = engine.executor();
  const OperatorConsole operate = executor.operate();
  std::set<StatusCode> codes;
  const auto waited = std::make_shared<StatusCode>(StatusCode::kUnavailable);
  const auto executed = std::make_shared<StatusCode>(StatusCode::kUnavailable);
  executor.async().wait(id, [waited](const auto& result) { *waited = result.status().code(); });
  executor.async().execute(Job(engine.world, "p"), {.nonce = {1, 1}},
                           [executed](const auto& r) { *executed = r.status().code(); });
  engine.run();
  codes.insert({*waited, *executed});
  codes.insert(executor.acknowledge(id).code());
  codes.insert(executor.signal(id, "go", "new").code());
  codes.insert(executor.abort(id, {}).code());
  for (const RepairVerb verb : {RepairVerb::kRetryNow, RepairVerb::kSkipStep,
                                RepairVerb::kFailAndRollBack, RepairVerb::kBypass}) {
    codes.insert(operate.order(id, verb, kNote).code());
    codes.insert(operate.preview(id, verb).status().code());
  }
  return codes;
}

}  // namespace

TEST_CASE("a procedure that cannot be read is set aside, and everything else runs") {
  struct Damage {
    std::string what;
    std::function<void(EngineWorld&, ProcedureId)> inflict;
    bool header_is_read;
  };
  const auto unknown_kind = [](EngineWorld& engine, ProcedureId id) {
    std::string key(std::string_view(procedure_key(id, RowKind::kHeader)));
    key.back() = 9;
    engine.disk->put(Space::kProcedure, key, "x");
  };
  const auto too_short_a_key = [](EngineWorld& engine, ProcedureId id) {
    const std::string key(std::string_view(procedure_key(id, RowKind::kHeader)));
    engine.disk->put(Space::kProcedure, key.substr(0, 8), "x");
  };
  const auto each = GENERATE_REF(
      Damage{"header", [](auto& engine, auto id) { damage(engine, id, RowKind::kHeader); }, false},
      Damage{"state", [](auto& engine, auto id) { damage(engine, id, RowKind::kState); }, true},
      Damage{"no header", [](auto& engine, auto id) { erase(engine, id, RowKind::kHeader); },
             false},
      Damage{"no state", [](auto& engine, auto id) { erase(engine, id, RowKind::kState); }, true},
      Damage{"a row of a kind that there is not", unknown_kind, true},
      Damage{"a row whose key is too short", too_short_a_key, false});
  CAPTURE(each.what);
  EngineWorld engine;
  engine.world.scripts["a"] = asks(kOrders);
  engine.world.scripts["other"] = asks();
  engine.world.scripts["new"] = {.locks = kOrders};
  engine.open();
  const ProcedureId other = engine.submit("other");
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}});
  engine.run();
  REQUIRE(engine.executor().signal(id, "go", "now").ok());
  engine.close();
  each.inflict(engine, id);
  const std::size_t rows = engine.disk->rows();
  const std::string header = row(engine, id, RowKind::kHeader);
  const std::string state = row(engine, id, RowKind::kState);

  std::set<std::uint64_t> issued{other.value, id.value};
  for (int life = 0; life < 2; ++life) {
    CHECK(refusal(engine).code() == StatusCode::kCorruption);
    ProcedureExecutor& executor = open_without(engine);
    engine.run();

    const auto unreadable = executor.inspect().unreadable();
    REQUIRE(unreadable.size() == 1);
    CHECK(unreadable[0].id == id);
    CHECK(unreadable[0].why.code() == StatusCode::kCorruption);
    CHECK_THAT(unreadable[0].why.to_string(),
               ContainsSubstring("commit") || ContainsSubstring("has a header but no state"));
    CHECK(unreadable[0].locks.empty() != each.header_is_read);
    CHECK(unreadable[0].type == (each.header_is_read ? "test.Job" : ""));
    CHECK(std::any_of(engine.log_lines.begin(), engine.log_lines.end(), [](const auto& line) {
      return line.find("is set aside, as it cannot be read") != std::string::npos;
    }));
    CHECK(executor.inspect().describe(id).status().code() == StatusCode::kNotFound);
    CHECK(executor.inspect().list().size() == 1);
    // Its id stays taken, and its nonce still names it.
    const auto again = executor.submit(Job(engine.world, "a"), {.nonce = {1, 1}});
    REQUIRE(again.ok());
    CHECK(again->id == id);
    CHECK(again->replayed);
    CHECK(executor.wait(id).status().code() == StatusCode::kCorruption);
    CHECK(executor.acknowledge(id).code() == StatusCode::kCorruption);
    CHECK(executor.signal(id, "go").code() == StatusCode::kCorruption);
    CHECK(executor.operate().bypass(id, kNote).code() == StatusCode::kCorruption);
    // Its locks are free.
    const ProcedureId fresh = engine.submit("new");
    CHECK(issued.insert(fresh.value).second);
    engine.run();
    CHECK(engine.result(fresh).status.ok());
    REQUIRE(executor.acknowledge(fresh).ok());
  }
  CHECK(engine.executor().inspect().live_procedures() == 1);
  CHECK(engine.disk->rows() == rows);
  CHECK(row(engine, id, RowKind::kHeader) == header);
  CHECK(row(engine, id, RowKind::kState) == state);
  while (engine.world.answer_one("go on")) engine.run();
  CHECK(engine.result(other).status.ok());
  CHECK(engine.world.journal.count("do a.2") == 0);
}

TEST_CASE("a row whose key names no procedure is set aside by itself") {
  EngineWorld engine;
  engine.world.scripts["a"] = {};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.close();
  const std::string key = GENERATE(std::string("z"), std::string("\0", 1), std::string(9, '\xFF'));
  engine.disk->put(Space::kProcedure, key, "x");

  CHECK(refusal(engine).code() == StatusCode::kCorruption);
  open_without(engine);
  engine.run();
  CHECK(engine.executor().inspect().unreadable().size() == 1);
  CHECK(engine.result(id).status.ok());
  CHECK(engine.submit("a").value < id.value + 3'000'000);  // ids do not go on after a wild id
  CHECK(engine.disk->get(Space::kProcedure, key) == "x");
}

TEST_CASE("a tree whose root cannot be read is quarantined with its locks") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"c", "d"}};
  engine.world.scripts["c"] = asks(kOrders);
  engine.world.scripts["d"] = asks();
  engine.world.scripts["same table"] = {.locks = kOrders};
  engine.world.scripts["other"] = {};
  engine.open();
  const ProcedureId root = engine.submit("p", {.nonce = {1, 1}});
  engine.run();
  REQUIRE(engine.executor().signal(root, "go", "kept").ok());
  engine.close();
  const std::string message = *engine.disk->get(Space::kProcedure, inbox_key(root, 1));
  const std::string header = row(engine, root, RowKind::kHeader);
  const std::string state = row(engine, root, RowKind::kState);
  const auto kind = GENERATE(RowKind::kHeader, RowKind::kState);
  damage(engine, root, kind);

  for (int life = 0; life < 2; ++life) {
    open_without(engine);
    engine.submit("same table", {.nonce = {2, 2}});
    const ProcedureId other = engine.submit("other");
    engine.run();
    CHECK(quarantined(engine) ==
          std::set<std::uint64_t>{root.value, root.value + 1, root.value + 2});
    CHECK(engine.world.journal.count("do same table.1") == 0);
    CHECK(engine.result(other).status.ok());
    CHECK(engine.describe({root.value + 1}).holds_locks);
    const Status refused = engine.executor().operate().bypass({root.value + 1}, kNote);
    CHECK(refused.code() == StatusCode::kFailedPrecondition);
    CHECK_THAT(refused.to_string(), ContainsSubstring("restore a backup"));
    CHECK(answers_about(engine, root) == std::set{StatusCode::kCorruption});
    CHECK(engine.disk->get(Space::kProcedure, inbox_key(root, 1)) == message);
  }

  engine.close();
  engine.disk->put(Space::kProcedure, procedure_key(root, RowKind::kHeader), header);
  engine.disk->put(Space::kProcedure, procedure_key(root, RowKind::kState), state);
  engine.open();
  CHECK(engine.executor().inspect().unreadable().empty());
  engine.run();
  while (engine.world.answer_one("go on")) engine.run();
  CHECK(engine.result(root).status.ok());
  CHECK(engine.world.journal.count("do same table.3") == 1);
}

TEST_CASE("a tree with a child that cannot be read is quarantined, and does not go on without it") {
  EngineWorld engine;
  const std::size_t children = GENERATE(1U, 2U, 3U);
  const std::size_t which = GENERATE(0U, 1U, 2U);
  const auto kind = GENERATE(RowKind::kHeader, RowKind::kState);
  if (which >= children) return;
  engine.world.scripts["p"] = {.children = std::vector<std::string>(children, "c")};
  engine.world.scripts["c"] = asks();
  engine.world.scripts["other"] = asks();
  engine.open();
  engine.submit("other");
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId later = engine.submit("other");
  engine.run();
  engine.close();
  const ProcedureId child{root.value + 1 + which};
  damage(engine, child, kind);

  open_without(engine);
  engine.run();
  while (engine.world.answer_one("go on")) engine.run();
  REQUIRE(engine.executor().inspect().unreadable().size() == 1);
  CHECK(engine.executor().inspect().unreadable()[0].root ==
        (kind == RowKind::kState ? root : ProcedureId()));
  CHECK(quarantined(engine).contains(root.value));
  CHECK(quarantined(engine).size() == children);  // the root, and all others
  CHECK_THAT(engine.describe(root).error.to_string(),
             ContainsSubstring("procedure " + std::to_string(child.value)));
  CHECK(engine.world.journal.count("do p.3") == 0);
  CHECK(engine.result(later).status.ok());
}

TEST_CASE("several members in a row that cannot be read freeze the rest of their tree") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"c", "c", "c", "c"}};
  engine.world.scripts["c"] = asks();
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  engine.close();
  for (const std::uint64_t child : {2U, 3U, 4U}) {
    damage(engine, {root.value + child}, RowKind::kHeader);
  }
  open_without(engine);
  CHECK(engine.executor().inspect().unreadable().size() == 3);
  CHECK(quarantined(engine) == std::set<std::uint64_t>{root.value, root.value + 1});
}

TEST_CASE(
    "an ended procedure that cannot be read has no result, and keeps its rows and its nonce") {
  const bool older = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"c"}};
  engine.world.scripts["c"] = {.steps = 1};
  engine.open();
  const ProcedureId root = engine.submit("p", {.nonce = {1, 1}});
  engine.run();
  engine.close();
  if (older) {
    leave_among_live_ones(*engine.disk, root);
    damage(engine, root, RowKind::kState);
  } else {
    engine.disk->put(Space::kResult, result_key(root), "damaged");
  }
  const std::size_t rows = engine.disk->rows();
  open_without(engine);
  engine.run();

  CHECK(engine.executor().wait(root).status().code() == StatusCode::kCorruption);
  CHECK(engine.submit("p", {.nonce = {1, 1}}) == root);
  CHECK(engine.executor().inspect().live_procedures() == 0);
  CHECK(engine.disk->rows() == rows);
}

TEST_CASE(
    "a damaged result that an abort may take back is set aside, and its members are quarantined") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"c"}, .run = asks().run};
  engine.world.scripts["c"] = {.steps = 1};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  REQUIRE(engine.world.answer_one("go on"));
  engine.executor().run_until_idle(2);  // step 2 and the child that it spawns; step 3 is left
  engine.faults().hold_commit(engine.faults().commits() + 1);
  engine.faults().crash_before(engine.faults().commits() + 3, FaultStore::AfterCrash::kFail);
  engine.executor().async().abort(root, {}, [](const Status&) {});
  engine.run();
  engine.faults().release();
  engine.run();
  engine.close();
  REQUIRE(engine.disk->get(Space::kResult, result_key(root)).has_value());
  engine.disk->put(Space::kResult, result_key(root), "damaged");
  const std::size_t rows = engine.disk->rows();

  CHECK(refusal(engine).code() == StatusCode::kCorruption);
  open_without(engine);
  engine.run();
  REQUIRE(engine.executor().inspect().unreadable().size() == 1);
  CHECK(engine.executor().inspect().unreadable().front().id == root);
  CHECK(engine.executor().inspect().unreadable().front().root == root);
  CHECK(quarantined(engine) == std::set<std::uint64_t>{root.value, root.value + 1});
  CHECK(engine.disk->rows() == rows);
}

}  // namespace pv2::testing::set_aside_test
