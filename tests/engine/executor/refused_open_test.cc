// SPDX-License-Identifier: Apache-2.0
//
// An open that is refused by the engine, which reads what the store cannot judge, leaves a store on
// disk as it was: every name and every byte.

#include <pv2/store/leveldb_procedure_store.h>

#include "records/row_keys.h"
#include "records/watermark.h"
#include "support/engine_world.h"
#include "support/temporary_directory.h"

namespace pv2::testing::refused_open_test {
namespace {

class OnDisk {
 public:
  OnDisk() { engine_.world.scripts["a"] = {}; }

  [[nodiscard]] const std::string& path() const { return path_; }
  Result<std::unique_ptr<ProcedureExecutor>> open() {
    ExecutorOptions options = engine_.options();
    options.store = leveldb(path_, {.committer = LevelDbOptions::Committer::kPump});
    return ProcedureExecutor::open(std::move(options));
  }
  ProcedureId submit(ProcedureExecutor& executor) {
    const auto submitted = executor.submit(Job(engine_.world, "a"), {.nonce = Nonce{1, 2}});
    REQUIRE(submitted.ok());
    return submitted->id;
  }

 private:
  const TemporaryDirectory directory_;
  const std::string path_ = directory_.path("store");
  EngineWorld engine_;
};

std::string key_of(ProcedureId id, RowKind kind) {
  const auto key = procedure_key(id, kind);
  return std::string(std::string_view(key));
}

// Puts `value` under `key`, past the engine.
void put_row(const std::string& path, Space space, const std::string& key,
             const std::string& value) {
  class Sink final : public CommitSink {
    void on_committed(CommitList finished) noexcept override { (void)finished; }
  } sink;
  struct Request final : CommitRequest {
  } request;
  LevelDbProcedureStore store(path, {.committer = LevelDbOptions::Committer::kPump});
  REQUIRE(store.recover_lease(sink).ok());
  request.batch.put(space, key, value);
  store.commit(request);
  store.pump();
  REQUIRE(request.status.ok());
  store.close();
}

}  // namespace

TEST_CASE("an open that meets a damaged record of the engine leaves every byte as it was") {
  struct Damage {
    std::string what;
    Space space;
    std::string key;
  };
  OnDisk disk;
  ProcedureId id;
  {
    auto executor = disk.open();
    REQUIRE(executor.ok());
    id = disk.submit(**executor);
  }
  const std::vector<Damage> all = {
      {"the header of a procedure", Space::kProcedure, key_of(id, RowKind::kHeader)},
      {"the state of a procedure", Space::kProcedure, key_of(id, RowKind::kState)},
      {"the next id", Space::kEngine, std::string(kWatermarkKey)},
      {"a limit", Space::kEngine, limit_key({ResourceClass::kHostFirst, "x"})},
  };
  for (const Damage& damage : all) {
    INFO("damaged: " << damage.what);
    OnDisk copy;
    std::filesystem::copy(disk.path(), copy.path());
    put_row(copy.path(), damage.space, damage.key, "damaged");
    const auto before = fingerprint(copy.path());

    const Status refused = copy.open().status();

    INFO(refused.to_string());
    REQUIRE(refused.code() == StatusCode::kCorruption);
    REQUIRE(fingerprint(copy.path()) == before);
  }
}

TEST_CASE("an open that is refused for its options leaves every byte as it was") {
  OnDisk disk;
  disk.submit(**disk.open());
  const auto before = fingerprint(disk.path());
  ExecutorOptions options;
  options.store = leveldb(disk.path());
  options.workers = 1;
  options.reserved_workers = 1;
  REQUIRE_FALSE(ProcedureExecutor::open(std::move(options)).ok());
  REQUIRE(fingerprint(disk.path()) == before);
}

TEST_CASE(
    "a store that is removed under its executor fails it, and nothing later is acknowledged") {
  OnDisk disk;
  auto executor = disk.open();
  REQUIRE(executor.ok());
  disk.submit(**executor);
  std::filesystem::remove_all(disk.path());

  const Status refused = (*executor)->signal(ProcedureId{1}, "a signal");

  REQUIRE_FALSE(refused.ok());
  REQUIRE((*executor)->health().code() == StatusCode::kIoError);
  REQUIRE_THAT(std::string((*executor)->health().message()),
               ContainsSubstring("store " + disk.path() + " was removed, moved or replaced"));
}

TEST_CASE("a store with anything of the engine, but without the row of the next id, is not new") {
  // Of Space::kEngine, the schemas of types are left.
  const Space left = GENERATE(Space::kProcedure, Space::kResult, Space::kNonce, Space::kEngine);
  CAPTURE(static_cast<char>(left));
  EngineWorld engine;
  engine.world.scripts["a"] = {};
  engine.open();
  engine.submit("a", {.nonce = {1, 1}});
  if (left != Space::kProcedure) engine.run();
  std::vector<std::pair<Space, std::string>> others;
  for (const Space space : {Space::kEngine, Space::kProcedure, Space::kResult, Space::kNonce}) {
    const Status scanned = engine.store().scan(space, "", [&](const StoredRow& row) {
      const bool stays = space == left && row.key != kWatermarkKey;
      if (!stays) others.emplace_back(space, row.key);
      return Status();
    });
    REQUIRE(scanned.ok());
  }
  engine.close();
  for (const auto& [space, key] : others) REQUIRE(engine.disk->erase(space, key));
  REQUIRE(engine.disk->rows() != 0);

  const Status refused = ProcedureExecutor::open(engine.options()).status();

  CHECK(refused.code() == StatusCode::kCorruption);
  CHECK_THAT(refused.to_string(), ContainsSubstring("the next id (next_id) is missing"));
}

TEST_CASE("an open that meets a next id that no counter reaches is refused") {
  EngineWorld engine;
  engine.open();
  engine.close();
  std::string row;
  encode_watermark({.next_id = UINT64_MAX - 10, .age = {}}, row);
  engine.disk->put(Space::kEngine, kWatermarkKey, row);
  const Status refused = ProcedureExecutor::open(engine.options()).status();
  CHECK(refused.code() == StatusCode::kCorruption);
  CHECK_THAT(refused.to_string(), ContainsSubstring("which no counter reaches"));
}

}  // namespace pv2::testing::refused_open_test
