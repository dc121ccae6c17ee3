// SPDX-License-Identifier: Apache-2.0
//
// A store of many chunks, which several threads decode: everything is loaded, whatever the chunks,
// and what cannot be read ends open(), wherever it is.

#include "records/row_keys.h"
#include "support/engine_world.h"

namespace pv2::testing::chunked_scan_test {
namespace {

constexpr int kProcedures = 600;

// Procedures that wait, a parent and its child in turn, with 16 KiB each: about ten chunks.
struct Stored {
  EngineWorld engine;
  std::vector<ProcedureId> live;  // in order of id

  Stored() {
    const auto waits = [](JobRun& run) -> std::optional<Outcome> {
      run.note.assign(16'000, 'n');
      return Say::wait_for(std::chrono::hours(1));
    };
    engine.world.scripts["waits"] = {.run = waits};
    engine.world.scripts["parent"] = {.children = {"waits"}};
    engine.max_live_procedures = 2 * kProcedures;
    engine.open();
    for (int i = 0; i < kProcedures / 2; ++i) {
      engine.submit(i % 2 == 0 ? "waits" : "parent");
      engine.submit("waits");
    }
    engine.run();
    for (const ProcedureInfo& info :
         engine.executor().inspect().list({}, {}, 2 * kProcedures).procedures) {
      live.push_back(info.id);
    }
    engine.close();
  }
  [[nodiscard]] ExecutorOptions options(unsigned workers) {
    ExecutorOptions options = engine.options();
    options.workers = workers;
    options.store =
        memory(engine.disk, {.mode = options.workers == 0 ? MemoryStoreOptions::Mode::kPump
                                                          : MemoryStoreOptions::Mode::kThread});
    return options;
  }
};

}  // namespace

TEST_CASE("a store of many chunks is loaded whole, and each procedure is in its tree") {
  const unsigned workers = GENERATE(0U, 2U);
  Stored stored;
  const auto executor = open_executor(stored.options(workers));
  REQUIRE(stored.live.size() == kProcedures + kProcedures / 4);
  CHECK(executor->inspect().live_procedures() == stored.live.size());
  CHECK(executor->inspect().list({.quarantined = true}, {}, 10).procedures.empty());
  for (const ProcedureId id : stored.live) {
    REQUIRE(executor->inspect().describe(id).status().to_string() == "OK");
  }
}

TEST_CASE("open() ends at the first record that it cannot read, in whatever chunk that is") {
  const unsigned workers = GENERATE(0U, 2U);
  const std::size_t percent = GENERATE(0, 50, 99);
  Stored stored;
  const ProcedureId id = stored.live[stored.live.size() * percent / 100];
  const auto header = procedure_key(id, RowKind::kHeader);
  const std::string row = stored.engine.disk->get(Space::kProcedure, header).value_or("");
  stored.engine.disk->put(Space::kProcedure, header, "damaged");
  const auto opened = ProcedureExecutor::open(stored.options(workers));
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.status().code() == StatusCode::kCorruption);
  CHECK_THAT(std::string(opened.status().message()), Catch::Contains(std::to_string(id.value)));

  stored.engine.disk->put(Space::kProcedure, header, row);
  CHECK(open_executor(stored.options(workers))->inspect().live_procedures() == stored.live.size());
}

}  // namespace pv2::testing::chunked_scan_test
