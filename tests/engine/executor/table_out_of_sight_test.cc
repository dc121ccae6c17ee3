// SPDX-License-Identifier: Apache-2.0
//
// An engine whose store cannot open a table for a moment. Rows in it are not absent: nothing is
// done twice, whichever look fails.

#include <pv2/store/leveldb_procedure_store.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "support/crash_env.h"
#include "support/engine_world.h"
#include "support/sight_env.h"

namespace pv2::testing::table_out_of_sight_test {
namespace {

using Look = SightEnv::Look;

// An engine on files in memory, of which it keeps one result in its own memory.
struct Machine {
  CrashEnv disk;
  SightEnv sight{disk};
  EngineWorld engine;

  Machine() {
    engine.world.scripts["a"] = {};
    engine.max_results_in_memory = 1;
  }
  std::unique_ptr<ProcedureStore> open_store() {
    return leveldb("store", {.committer = LevelDbOptions::Committer::kPump,
                             .env = static_cast<leveldb::Env*>(&sight),
                             .segment_files = disk.as_segment_files(),
                             .sync_directory = disk.directory_sync()});
  }
  Result<std::unique_ptr<ProcedureExecutor>> open() {
    ExecutorOptions options = engine.options();
    options.store = open_store();
    return ProcedureExecutor::open(std::move(options));
  }
  void commit_host_row() {
    class Sink final : public CommitSink {
      void on_committed(CommitList finished) noexcept override { (void)finished; }
    } sink;
    struct Request final : CommitRequest {
    } request;
    const auto store = open_store();
    REQUIRE(store->recover_lease(sink).ok());
    request.batch.put(Space::kHost, "key", "value");
    store->commit(request);
    store->pump();
    REQUIRE(request.status.ok());
    store->close();
  }
  Result<Submitted> submit(ProcedureExecutor& executor, std::uint64_t nonce) {
    auto submitted = executor.submit(Job(engine.world, "a"), {.nonce = Nonce{3, nonce}});
    executor.run_until_idle();
    return submitted;
  }
};

TEST_CASE("work is not done twice because a table cannot be opened for a moment") {
  constexpr std::uint64_t kNonces = 10;
  Machine machine;
  // Each life moves what the one before has written one place on: log, LevelDB's log, table.
  for (std::uint64_t life = 0; life < 4; ++life) {
    auto executor = machine.open();
    REQUIRE(executor.ok());
    (*executor)->start();
    for (std::uint64_t nonce = 1; nonce <= kNonces; ++nonce) {
      REQUIRE(machine.submit(**executor, life * kNonces + nonce).ok());
    }
  }
  // So that the row of the next id is in a table, too.
  for (int life = 0; life < 3; ++life) machine.commit_host_row();
  int replayed = 0;
  int refused = 0;
  bool hid = true;
  for (int hidden = 0; hid; ++hidden) {
    INFO("the table that is opened as number " << hidden << " is hidden");
    int opened = 0;
    hid = false;
    machine.sight.set_sight([&](Look look, const std::string& file) {
      // For a table that is not there LevelDB looks under an older name.
      const bool hides = look == Look::kTable && file.ends_with(".ldb") && opened++ == hidden;
      hid = hid || hides;
      return hides ? SightEnv::hidden(file) : leveldb::Status::OK();
    });
    auto executor = machine.open();
    if (!executor.ok()) {
      CHECK(executor.status().code() == StatusCode::kIoError);
      ++refused;
      continue;
    }
    (*executor)->start();
    const auto submitted = machine.submit(**executor, 3);
    machine.sight.set_sight({});
    if (!submitted.ok()) {
      ++refused;
      continue;
    }
    CHECK(submitted->replayed);
    ++replayed;
  }
  CHECK(replayed != 0);
  CHECK(refused != 0);
}

}  // namespace
}  // namespace pv2::testing::table_out_of_sight_test
