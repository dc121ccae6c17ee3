// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint that was being written when the power went off. The file of LevelDB's log may have
// grown without its bytes, so any of its pages may be zeros. The step log still has the rows.

#include <string>

#include "step_files.h"
#include "store_fixture.h"
#include "support/catch.h"

namespace pv2::testing::unsynced_checkpoint_test {
namespace {

constexpr std::size_t kPageBytes = 4'096;

// A store that died in the sync of its last checkpoint, and the log of its database before that.
struct Cut {
  CrashEnv env;
  std::string log;
  std::size_t synced = 0;
  int acknowledged = 0;

  Cut() {
    Writer writer(on_crash_env(env, 20'000, 4));
    REQUIRE(writer.open().ok());
    bool is_cut = false;
    env.set_fault([&](CrashEnv::Operation operation, const std::string& file) {
      if (!file.ends_with(".log") || acknowledged < 100) return leveldb::Status::OK();
      if (operation == CrashEnv::Operation::kAppend && log.empty()) {
        log = file;
        synced = env.contents(file).size();
      }
      is_cut = is_cut || operation == CrashEnv::Operation::kSync;
      return is_cut ? leveldb::Status::IOError(file, "killed") : leveldb::Status::OK();
    });
    const auto commit = [&] {
      return writer.commit([&](RowBatch& batch) {
        batch.insert(Space::kHost, std::to_string(100'000 + acknowledged), std::string(600, 'v'));
      });
    };
    while (commit().ok()) ++acknowledged;
    env.set_fault(nullptr);
  }
};

TEST_CASE("a checkpoint of which any pages are lost is no damage, and no row is lost with it") {
  Cut cut;
  const std::string whole = cut.env.contents(cut.log);
  REQUIRE(whole.size() > cut.synced + 3 * kPageBytes);
  Random random(1);
  for (int round = 0; round < 60; ++round) {
    std::string bytes = whole;
    for (std::size_t at = cut.synced; at < bytes.size();) {
      const std::size_t page = std::min(kPageBytes - at % kPageBytes, bytes.size() - at);
      const bool is_lost = round == 0 || random.below(2) == 0;
      if (is_lost) bytes.replace(at, page, page, '\0');
      at += page;
    }
    if (round % 3 == 1) bytes.resize(cut.synced + random.below(bytes.size() - cut.synced));
    CrashEnv disk(static_cast<std::uint64_t>(round));
    copy_files(cut.env, disk);
    disk.set_contents(cut.log, bytes);
    for (const bool commits : {false, true}) {
      Writer writer(on_crash_env(disk, 20'000, 4));
      const Status opened = writer.open();
      INFO("round " << round << ": " << opened.to_string());
      REQUIRE(opened.ok());
      const auto rows = scan_rows(writer.store(), Space::kHost, "1");
      REQUIRE(rows.size() >= static_cast<std::size_t>(cut.acknowledged));
      if (commits) REQUIRE(writer.write("more").ok());
      if (commits) writer.store().close();
    }
  }
}

// The step log has the rows no more: its files were used again.
TEST_CASE("damage of a checkpoint that was needed is refused by the name of its log") {
  CrashEnv env;
  {
    Writer writer(on_crash_env(env, 4'096, 4));
    REQUIRE(writer.open().ok());
    for (int i = 0; i < 100; ++i) {
      REQUIRE(writer
                  .commit([i](RowBatch& batch) {
                    batch.insert(Space::kHost, std::to_string(i), std::string(300, 'v'));
                  })
                  .ok());
    }
    writer.store().close();
  }
  const std::string log = last_database_log(env);
  const std::string whole = env.contents(log);
  REQUIRE(whole.size() > 500);
  const bool is_cut = GENERATE(false, true);
  for (std::size_t at = 0; at < whole.size() / 2; at += 7) {
    CrashEnv disk;
    copy_files(env, disk);
    std::string bytes = whole.substr(0, is_cut ? at : whole.size());
    if (!is_cut) bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    disk.set_contents(log, bytes);
    Writer writer(on_crash_env(disk, 4'096, 4));
    const Status refused = writer.open();
    INFO("byte " << at << " of " << whole.size() << ": " << refused.to_string());
    REQUIRE(refused.code() == StatusCode::kCorruption);
    REQUIRE_THAT(std::string(refused.message()), ContainsSubstring(name_in_store(log)));
  }
}

}  // namespace
}  // namespace pv2::testing::unsynced_checkpoint_test
