// SPDX-License-Identifier: Apache-2.0
//
// The engine's own code on a thread of the pool finds no memory, and the process ends: what that
// code had to do would otherwise never be done, and nobody would hear of it. With a sanitizer these
// tests are left out, like those of the live table.

#include <memory>
#include <optional>
#include <string>

#include "core/run_task.h"
#include "support/engine_world.h"
#include "support/in_child.h"
#include "support/one_failure.h"
#include "support/own_malloc.h"

#if !PV2_HAS_OWN_MALLOC

namespace pv2::testing::pool_no_memory_test {
namespace {

using namespace std::chrono_literals;

// From `arm()` on, a request of this thread finds no memory.
std::optional<OneFailure> failure;
void arm(std::int64_t blocks = 0) { failure.emplace(blocks); }

}  // namespace

TEST_CASE("a task of a pool that throws ends the process") {
  const auto [text, aborted] = in_child([] {
    const int engine = 0;  // an address
    Task task([] { throw std::bad_alloc(); });
    run_task(&engine, task);
  });
  CHECK(aborted);
}

TEST_CASE("an abort is carried out, or the process ends, when the end of work finds no memory") {
  bool dies = false;
  for (const int request : {0, 1, 2, 3}) {
    CAPTURE(request);
    const auto [text, aborted] = in_child([request] {
      EngineWorld engine;
      ProcedureId id;
      engine.world.scripts["a"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
        if (run.step != 2) return usual();
        const auto* value = run.ctx.offload([&] {
          engine.executor().async().abort(id, {.reason = "no longer wanted"}, {});
          engine.run();
          arm(request);
        });
        return value == nullptr ? std::optional(Say::wait()) : usual();
      }};
      engine.open();
      id = engine.submit("a");
      engine.run();
      for (int i = 0; i < 10; ++i) engine.advance(10min);
      if (engine.executor().inspect().live_procedures() != 0) say(STDERR_FILENO, "it goes on");
    });
    CHECK(text.find("it goes on") == std::string::npos);
    dies = dies || aborted;
  }
  CHECK(dies);
}

TEST_CASE("a chore that throws when there is no memory for its name runs again, and can be ended") {
  EngineWorld engine;
  engine.open();
  int runs = 0;
  Chore chore = *engine.executor().add_chore("sweeper" + std::string(100, 'r'), 10s, [&] {
    if (++runs != 1) return;
    arm();
    throw 7;  // needs no memory of operator new
  });
  engine.advance(10s);
  CHECK(OneFailure::has_happened());
  failure.reset();
  CHECK_THAT(engine.log_lines.back(), ContainsSubstring("user code threw"));

  engine.advance(10s);
  CHECK(runs == 2);
  chore = {};
  engine.advance(1h);
  CHECK(runs == 2);
}

TEST_CASE("a listener that throws when there is no memory for its name is told the next news") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  engine.open();
  int told = 0;
  const auto subscription = engine.executor().listen([&](const ProcedureNews&) {
    if (++told != 1) return;
    arm();
    throw 7;
  });
  engine.submit("a");
  engine.run();
  failure.reset();
  const int before = told;
  engine.submit("a");
  engine.run();
  CHECK(told > before);
}

}  // namespace pv2::testing::pool_no_memory_test

#endif
