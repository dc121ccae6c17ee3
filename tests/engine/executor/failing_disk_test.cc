// SPDX-License-Identifier: Apache-2.0
//
// The engine on LevelDB on a disk that fails. Each operation of the file system fails in turn:
// once, from then on for ever, or for lack of space. Every client is told, and when the disk works
// again the work goes on, with each effect counted once.

#include "pv2/store/leveldb_procedure_store.h"
#include "support/crash_env.h"
#include "support/engine_world.h"

namespace pv2::testing::failing_disk_test {
namespace {

enum class Fault { kOnce, kForEver, kNoSpace };

// One machine with its disk, and the clients of two submissions.
struct Machine {
  CrashEnv env;
  EngineWorld engine;  // its executor has files on `env`
  std::size_t told = 0;

  Machine() {
    const auto counts = [](JobRun& run) -> std::optional<Outcome> {
      const auto row = run.ctx.get_row("steps");
      if (!row.ok()) return Say::retry(row.status().to_string());
      run.ctx.put_row("steps", std::to_string(*row ? std::stoi(**row) + 1 : 1));
      return std::nullopt;
    };
    engine.world.scripts["p"] = {.children = {"c"}, .run = counts};
    engine.world.scripts["c"] = {.steps = 2, .run = counts};
    engine.world.scripts["f"] = {.steps = 2, .run = [](JobRun& run) {
                                   return run.step == 2 ? std::optional(Say::fail("as told"))
                                                        : std::nullopt;
                                 }};
  }
  ExecutorOptions options() {
    ExecutorOptions made = engine.options();
    // Small, so that a table is written too.
    made.store = leveldb("store", {.write_buffer_bytes = 64 << 10,
                                   .committer = LevelDbOptions::Committer::kPump,
                                   .env = env.as_env(),
                                   .segment_files = env.as_segment_files(),
                                   .sync_directory = env.directory_sync()});
    return made;
  }
  // The fault comes with operation `n` (0: the next one). With kNoSpace no space is left from then
  // on.
  void spoil(std::size_t n, Fault fault) {
    env.set_fault([this, left = n, fault, full = false](CrashEnv::Operation,
                                                        const std::string& file) mutable {
      if (left != 0) {
        --left;
        return leveldb::Status::OK();
      }
      if (fault == Fault::kNoSpace) {
        if (!full) env.set_space(0);
        full = true;
        return leveldb::Status::OK();
      }
      if (fault == Fault::kOnce) left = SIZE_MAX;
      return leveldb::Status::IOError(file, "the disk is on fire");
    });
  }
  void mend() {
    env.set_fault(nullptr);
    env.set_space(SIZE_MAX);
  }
  // Both clients submit, and wait for the end of what was accepted. Each gets one answer.
  void submit_both(ProcedureExecutor& executor) {
    for (const char* name : {"p", "f"}) {
      executor.async().submit(Job(engine.world, name), {.nonce = {1, name[0] == 'p' ? 1U : 2U}},
                              [this, &executor](const Result<Submitted>& submitted) {
                                if (!submitted.ok()) return void(++told);
                                executor.async().wait(
                                    submitted->id,
                                    [this](const Result<ProcedureResult>&) { ++told; });
                              });
    }
    executor.run_until_idle();
  }
};

}  // namespace

TEST_CASE("an executor that cannot open its store for lack of space says so, and opens later") {
  Machine machine;
  const bool exists = GENERATE(false, true);
  if (exists) {
    machine.submit_both(machine.engine.open(machine.options()));
    machine.engine.close();
  }
  machine.env.set_space(0);
  const auto refused = ProcedureExecutor::open(machine.options());
  CHECK(refused.status().code() == StatusCode::kStorageFull);

  machine.mend();
  machine.told = 0;
  machine.submit_both(machine.engine.open(machine.options()));
  CHECK(machine.told == 2);
}

TEST_CASE(
    "whichever operation of the file system fails, every client is told and a restart goes on") {
  const auto fault = GENERATE(Fault::kOnce, Fault::kForEver, Fault::kNoSpace);
  std::size_t operations = 0;
  {
    Machine machine;
    machine.submit_both(machine.engine.open(machine.options()));
    REQUIRE(machine.told == 2);
    machine.engine.close();
    operations = machine.env.operations();
  }
  REQUIRE(operations > 20);
  for (std::size_t n = 0; n < operations; ++n) {
    CAPTURE(static_cast<int>(fault), n);
    Machine machine;
    machine.spoil(n, fault);
    auto opened = ProcedureExecutor::open(machine.options());
    if (!opened.ok()) {
      CHECK_FALSE(opened.status().message().empty());
    } else {
      machine.submit_both(**opened);
      REQUIRE(machine.told == 2);
      const Status health = (*opened)->health();
      CHECK(machine.engine.store_failures.size() == (health.ok() ? 0 : 1));
      if (!health.ok()) CHECK_FALSE((*opened)->submit(Job(machine.engine.world, "p")).ok());
      opened.value().reset();
    }

    machine.mend();
    machine.told = 0;
    ProcedureExecutor& executor = machine.engine.open(machine.options());
    machine.submit_both(executor);
    CHECK(machine.told == 2);
    CHECK(executor.inspect().live_procedures() == 0);
    std::string counted;
    machine.engine.world.scripts["asks"] = {.steps = 1, .run = [&](JobRun& run) {
                                              counted = run.ctx.get_row("steps").value().value();
                                              return std::optional<Outcome>();
                                            }};
    machine.engine.submit("asks");
    machine.engine.run();
    CHECK(counted == "5");  // three steps of p, two of c, each once
  }
}

}  // namespace pv2::testing::failing_disk_test
