// SPDX-License-Identifier: Apache-2.0
//
// Host rows that are bound to a lock key: only a procedure that holds the key exclusively may write
// them. Of any other step that writes them, nothing is written at all.

#include "steps/row_bindings.h"

#include "support/engine_world.h"

namespace pv2::testing::row_bindings_test {
namespace {

const auto kWrites = LockSet().table("shop", "orders", LockMode::kExclusive);
const auto kReads = LockSet().table("shop", "orders", LockMode::kShared);

JobScript writes(std::string row, LockSet locks) {
  return {.steps = 1,
          .run = [row = std::move(row)](JobRun& run) -> std::optional<Outcome> {
            run.ctx.put_row("free/" + run.name, "1");
            run.ctx.put_row(row, "1");
            return std::nullopt;
          },
          .locks = std::move(locks)};
}

void open(EngineWorld& engine) {
  auto options = engine.options();
  options.row_bindings = {{"orders/", {ResourceClass::kTable, "shop:orders"}},
                          {"orders/audit/", {ResourceClass::kHostFirst, "audit"}}};
  engine.open(std::move(options));
}

bool has_row(EngineWorld& engine, const std::string& row) {
  return engine.disk->get(Space::kHost, row).has_value();
}

}  // namespace

TEST_CASE("a procedure writes a bound row if it or an ancestor holds the key exclusively") {
  EngineWorld engine;
  engine.world.scripts["holder"] = writes("orders/1", kWrites);
  engine.world.scripts["parent"] = {.children = {"child"}, .locks = kWrites};
  engine.world.scripts["child"] = writes("orders/2", {});
  engine.world.scripts["free"] = writes("parcels/3", {});
  open(engine);
  for (const char* name : {"holder", "parent", "free"}) engine.submit(name);
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 0);
  for (const char* row : {"orders/1", "orders/2", "parcels/3", "free/child"}) {
    CHECK(has_row(engine, row));
  }
}

TEST_CASE("a step that writes a bound row without its exclusive key fails, and writes nothing") {
  EngineWorld engine;
  const LockSet locks = GENERATE(LockSet(), kReads);
  engine.world.scripts["reader"] = writes("orders/1", locks);
  engine.world.scripts["audits"] = writes("orders/audit/1", kWrites);  // the longer prefix counts
  open(engine);
  const ProcedureId reader = engine.submit("reader");
  const ProcedureId audits = engine.submit("audits");
  engine.run();
  const Status refused = engine.result(reader).status;
  CHECK(refused.code() == StatusCode::kFailedPrecondition);
  CHECK_THAT(refused.to_string(), ContainsSubstring("bound to table shop:orders"));
  CHECK(engine.result(audits).status.code() == StatusCode::kFailedPrecondition);
  CHECK_FALSE(has_row(engine, "orders/1"));
  CHECK_FALSE(has_row(engine, "free/reader"));
}

TEST_CASE("an undo that writes a bound row without its key is parked") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 2,
                               .run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 2) return Say::fail("no");
                                 return std::nullopt;
                               },
                               .undo = [](JobRun& run) -> std::optional<Outcome> {
                                 run.ctx.erase_row("orders/1");
                                 return std::nullopt;
                               }};
  open(engine);
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.describe(id).parked);
  CHECK_THAT(engine.describe(id).error.to_string(),
             ContainsSubstring("bound to table shop:orders"));
}

TEST_CASE("row bindings with an empty prefix, or with one prefix twice, are refused") {
  EngineWorld engine;
  auto options = engine.options();
  SECTION("empty") { options.row_bindings = {{"", {ResourceClass::kTable, "t"}}}; }
  SECTION("twice") {
    options.row_bindings = {{"a", {ResourceClass::kTable, "t"}},
                            {"a", {ResourceClass::kTable, "u"}}};
  }
  CHECK(ProcedureExecutor::open(std::move(options)).status().code() ==
        StatusCode::kInvalidArgument);
}

}  // namespace pv2::testing::row_bindings_test
