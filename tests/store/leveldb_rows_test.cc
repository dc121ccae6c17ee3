// SPDX-License-Identifier: Apache-2.0
//
// When LevelDB may stop a writer: tables on level 0 and writes to come are counted together.

#include "leveldb_rows.h"

#include <leveldb/env.h>

#include <string>

#include "store_fixture.h"
#include "support/catch.h"

namespace pv2::testing::leveldb_rows_test {
namespace {

// LevelDB's own limit, kL0_StopWritesTrigger.
constexpr std::size_t kTablesMax = 12;

Status write_row(LevelDbRows& rows, std::uint64_t segment) {
  Overlay::Checkpoint checkpoint;
  checkpoint.segment = {segment};
  checkpoint.rows.push_back({"Hkey", {.value = "value", .sequence = {segment}}});
  return rows.write_checkpoint(checkpoint, {segment + 1});
}

TEST_CASE("LevelDB may stop a write if tables on level 0 and writes to come are twelve") {
  TemporaryDirectory temporary;
  const LevelDbDirectory directory(
      temporary.path("db"),
      LevelDbFiles(*leveldb::Env::Default(), DirectorySync(&pv2::sync_directory)));
  REQUIRE(directory.create().ok());
  {
    LevelDbRows rows(directory, {.write_buffer_bytes = std::size_t{64} << 10});
    REQUIRE(rows.create().ok());
    CHECK_FALSE(rows.may_stop_within(kTablesMax - 1));
    CHECK(rows.may_stop_within(kTablesMax));
    REQUIRE(write_row(rows, 1).ok());
  }
  // Each start makes a table of the log that it finds. LevelDB compacts when there are four.
  for (std::size_t tables = 1; tables <= 3; ++tables) {
    LevelDbRows rows(directory, {.write_buffer_bytes = std::size_t{64} << 10});
    REQUIRE(rows.open({}).ok());
    REQUIRE(rows.take_over().ok());
    CHECK_FALSE(rows.may_stop_within(kTablesMax - tables - 1));
    CHECK(rows.may_stop_within(kTablesMax - tables));
    REQUIRE(write_row(rows, tables + 1).ok());
  }
}

}  // namespace
}  // namespace pv2::testing::leveldb_rows_test
