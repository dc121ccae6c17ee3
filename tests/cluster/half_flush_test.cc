// SPDX-License-Identifier: Apache-2.0
//
// A flush that ends between the rename of the list of files and the sync of the directory: the list
// can be read, and is not durable. The server may live on, and take the flush for failed.

#include "storage_fixture.h"

namespace pv2::testing::half_flush_test {
namespace {

// Every sync of the region's directory fails after the list was renamed; so does everything from
// then on if the process is dead.
enum class After { kLivesOn, kIsDead };

// A server with one acknowledged row, and its disk.
struct World {
  World() {
    disk.make_table({whole_table()});
    REQUIRE(server->start().ok());
    REQUIRE(server->open(whole_table(), 1).ok());
    REQUIRE(server->write({put("row", "acknowledged")}).ok());
  }

  void flush_half(After after) {
    const std::string directory = disk.layout.region(whole_table().table, whole_table().id);
    const std::string list = disk.layout.region_files(whole_table().table, whole_table().id, 1);
    bool is_renamed = false;
    bool is_over = false;
    disk.env.set_fault([&](CrashEnv::Operation operation, const std::string& file) {
      const bool hit = is_renamed && operation == CrashEnv::Operation::kSync && file == directory;
      if (operation == CrashEnv::Operation::kRename && file.starts_with(list)) is_renamed = true;
      is_over = is_over || hit;
      return hit || (is_over && after == After::kIsDead)
                 ? leveldb::Status::IOError(file, "Too many open files")
                 : leveldb::Status::OK();
    });
    REQUIRE_FALSE(server->flush().ok());
    disk.env.set_fault(nullptr);
  }

  std::map<std::string, std::string> rows_elsewhere() {
    StorageServer next(disk, 2);
    REQUIRE(next.start().ok());
    REQUIRE(next.open(whole_table(), 2).ok());
    return rows_of(next.region());
  }

  Disk disk;
  std::unique_ptr<StorageServer> server = std::make_unique<StorageServer>(disk, 1);
};

const std::map<std::string, std::string> kAll{{"row", "acknowledged"}};

}  // namespace

TEST_CASE("cluster: a server whose log was split by the list of a failed flush keeps that list") {
  World world;
  world.flush_half(After::kLivesOn);
  REQUIRE(recover(world.disk, world.server->name()).ok());

  SECTION("it ends in its next flush") { world.flush_half(After::kIsDead); }
  SECTION("it flushes, and compacts its files") {
    REQUIRE(world.server->flush().ok());
    REQUIRE(world.server->compact().ok());
  }

  world.server.reset();
  REQUIRE(world.rows_elsewhere() == kAll);
}

TEST_CASE("cluster: the next job goes on with the list of a flush that failed") {
  World world;
  world.flush_half(After::kLivesOn);
  REQUIRE(world.server->region().file_count() == 0);

  SECTION("a flush") { REQUIRE(world.server->flush().ok()); }
  SECTION("a compaction") { REQUIRE(world.server->compact().ok()); }
  SECTION("a close") {
    REQUIRE(world.server->close().ok());
    REQUIRE(world.rows_elsewhere() == kAll);
    return;
  }

  REQUIRE(world.server->region().file_count() == 1);
  REQUIRE(world.server->region().memory_bytes() == 0);
  REQUIRE(rows_of(world.server->region()) == kAll);
}

TEST_CASE("cluster: a log is not archived before the list that it was split by is durable") {
  World world;
  world.flush_half(After::kIsDead);
  const ServerName dead = world.server->name();
  world.server.reset();
  REQUIRE(recover(world.disk, dead).ok());

  world.disk.env.crash();
  world.disk.env.reboot();

  REQUIRE(world.rows_elsewhere() == kAll);
}

}  // namespace pv2::testing::half_flush_test
