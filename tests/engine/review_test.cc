// SPDX-License-Identifier: Apache-2.0
//
// Defects that reading the engine brought to light, each as the story in which it would show. They
// run on one thread, on the memory store.

#include <pv2/engine/inspection.h>
#include <pv2/engine/procedure_executor.h>

#include <string>

#include "support/catch.h"
#include "support/engine_world.h"

namespace pv2::testing {
namespace {

using namespace std::chrono_literals;

LockSet table(LockScope scope) {
  return LockSet().table("shop", "orders", LockMode::kExclusive).scope(scope);
}

}  // namespace

TEST_CASE(
    "a step that waits gives its locks back in its record, so the next owner's is no conflict") {
  EngineWorld engine;
  engine.world.scripts["first"] = {
      .steps = 1,
      .run = [](JobRun& run) -> std::optional<Outcome> {
        const auto* answer = run.ctx.await<std::string>(
            [&](Completion<std::string> completion) { run.world.ask(std::move(completion)); });
        if (answer == nullptr) return Say::wait();
        return std::nullopt;
      },
      .locks = table(LockScope::kStep)};
  engine.world.scripts["second"] = {
      .steps = 1,
      .run = [](JobRun&) -> std::optional<Outcome> { return Say::wait_for(1h); },
      .locks = table(LockScope::kOperation)};
  engine.open();
  const ProcedureId first = engine.submit("first");
  const ProcedureId second = engine.submit("second");
  engine.run();
  REQUIRE(engine.describe(second).holds_locks);
  CHECK_FALSE(engine.describe(first).holds_locks);

  engine.crash_and_open();

  CHECK_FALSE(engine.describe(first).quarantined);
  CHECK_FALSE(engine.describe(second).quarantined);
  CHECK(engine.describe(second).holds_locks);
}

TEST_CASE("an owner or lock names too large for the store are refused, and nothing else suffers") {
  EngineWorld engine;
  engine.world.scripts["plain"] = {.steps = 1};
  engine.world.scripts["huge"] = {
      .steps = 1, .locks = LockSet().server(std::string(20'000'000, 's'), LockMode::kExclusive)};
  engine.open();

  const auto owner =
      engine.executor().submit(Job(engine.world, "plain"), {.owner = std::string(20'000'000, 'o')});
  CHECK(owner.status().code() == StatusCode::kInvalidArgument);
  const auto locks = engine.executor().submit(Job(engine.world, "huge"));
  CHECK(locks.status().code() == StatusCode::kInvalidArgument);

  CHECK(engine.executor().health().ok());
  CHECK(engine.executor().inspect().live_procedures() == 0);
  const ProcedureId plain = engine.submit("plain");
  engine.run();
  CHECK(engine.result(plain).status.ok());
}

TEST_CASE("a duplicate gets its answer also when no new procedure would be accepted") {
  EngineWorld engine;
  engine.max_live_procedures = 1;
  engine.world.scripts["plain"] = {.steps = 1};
  engine.open();
  const ProcedureId first = engine.submit("plain", {.nonce = {1, 7}});

  const auto again = engine.executor().submit(Job(engine.world, "plain"), {.nonce = {1, 7}});
  const auto other = engine.executor().submit(Job(engine.world, "plain"), {.nonce = {1, 8}});

  REQUIRE(again.status().to_string() == "OK");
  CHECK(again->id == first);
  CHECK(again->replayed);
  CHECK(other.status().code() == StatusCode::kResourceExhausted);
}

TEST_CASE("a step that repeats itself after spawning is undone after its children") {
  EngineWorld engine;
  engine.world.scripts["child"] = {.steps = 1};
  engine.world.scripts["parent"] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                                      if (run.step == 2) return Say::fail("no");
                                      run.effect();
                                      if (!run.note.empty()) return Say::next(2);
                                      run.note = "spawned";
                                      run.spawn("child");
                                      return Say::again();
                                    }};
  engine.open();
  engine.submit("parent");
  engine.run();

  CHECK(engine.journal() == Entries{"do parent.1", "do child.1", "do parent.1", "undo parent.2",
                                    "undo child.1", "undo parent.1"});
}

TEST_CASE("a tree that lost one of its middle members is frozen whole") {
  EngineWorld engine;
  engine.world.scripts["leaf"] = {
      .steps = 1, .run = [](JobRun&) -> std::optional<Outcome> { return Say::wait_for(1h); }};
  engine.world.scripts["middle"] = {.children = {"leaf"}};
  engine.world.scripts["root"] = {.children = {"middle"}};
  engine.open();
  const ProcedureId root = engine.submit("root");
  engine.run();
  ProcedureId middle;
  for (const ProcedureInfo& info : engine.executor().inspect().list()) {
    if (info.parent == root) middle = info.id;
  }
  REQUIRE(middle);
  engine.close();
  for (const char kind : {1, 2}) {
    std::string key(8, '\0');
    for (int i = 0; i < 8; ++i) key[7 - i] = static_cast<char>(middle.value >> (8 * i));
    REQUIRE(engine.disk->erase(Space::kProcedure, key + kind));
  }

  engine.open();
  engine.advance(2h);

  REQUIRE(engine.executor().inspect().list().size() == 2);
  for (const ProcedureInfo& info : engine.executor().inspect().list()) CHECK(info.quarantined);
}

TEST_CASE("stop() on a thread of the executor does not wait for itself") {
  EngineWorld engine;
  engine.world.scripts["stopper"] = {.steps = 1, .run = [&](JobRun&) -> std::optional<Outcome> {
                                       engine.executor().stop();
                                       return std::nullopt;
                                     }};
  engine.open();
  const ProcedureId id = engine.submit("stopper");
  engine.run();

  CHECK(engine.result(id).status.ok());
  CHECK(engine.log_lines.size() == 1);
}

}  // namespace pv2::testing
