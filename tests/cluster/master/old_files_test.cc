// SPDX-License-Identifier: Apache-2.0
//
// Which old logs and archived store files are removed, and when.

#include "master/old_files.h"

#include <leveldb/env.h>

#include <chrono>
#include <string>
#include <vector>

#include "cluster/storage_fixture.h"

namespace pv2::testing::old_files_test {
namespace {

using namespace cluster;  // NOLINT: the layer under test
using namespace std::chrono_literals;

const ServerName kDead{"rs1", 1};
const ServerName kHolder{"rs2", 1};

struct World {
  Disk disk;
  QueueFiles queues{disk.files, disk.layout};
  OldFiles old_files{
      disk.files, disk.layout, {.logs_kept = 10s, .archive_kept = 10s, .removals_max = 2}};
  SteadyTime now{};

  void add_logs(int count) {
    for (int i = 1; i <= count; ++i) {
      const std::string log = "u" + std::to_string(i);
      // The last one was split when the server was dead.
      disk.env.set_contents(
          i < count ? disk.layout.old_wal(kDead, log) : disk.layout.old_wal(kDead, log, 5),
          "bytes");
    }
  }
  struct Removed {
    std::size_t logs;
    std::size_t regions;
  };
  Removed sweep(Duration later = 0s) {
    now += later;
    const OldFiles::Sweep logs = old_files.sweep_logs(now);
    const OldFiles::Sweep archive = old_files.sweep_archive(now);
    INFO(logs.status.to_string() + ", " + archive.status.to_string());
    REQUIRE((logs.status.ok() && archive.status.ok()));
    return {logs.removed, archive.removed};
  }
  [[nodiscard]] std::vector<std::string> logs() const {
    return *disk.files.list(disk.layout.old_wals());
  }
};

}  // namespace

TEST_CASE("a log that nobody needs is removed after a while, some in each sweep") {
  World world;
  world.add_logs(3);
  CHECK(world.sweep().logs == 0);
  CHECK(world.sweep(9s).logs == 0);
  CHECK(world.sweep(1s).logs == 2);
  CHECK(world.sweep().logs == 1);
  CHECK(world.logs().empty());
}

TEST_CASE("a log that a queue has to ship stays, whoever has the queue") {
  World world;
  world.add_logs(4);
  REQUIRE(world.queues.make("p", kDead, {3, 0}).ok());
  REQUIRE(world.queues.make("p", kHolder, {1, 0}).ok());
  REQUIRE(world.queues.make("other", kDead, {4, 5}).ok());
  world.sweep();
  CHECK(world.sweep(20s).logs == 2);
  CHECK(world.logs() == std::vector<std::string>{"rs1,1,u3", "rs1,1,u4,5"});
  REQUIRE(world.queues.claim("p", kDead, kHolder).ok());
  CHECK(world.sweep(20s).logs == 0);
  CHECK(world.sweep(20s).logs == 0);
  REQUIRE(world.queues.finish("p", kHolder, kDead, {}).ok());
  // It counts from the moment that nobody needs it.
  CHECK(world.sweep().logs == 0);
  CHECK(world.sweep(10s).logs == 1);
  CHECK(world.logs() == std::vector<std::string>{"rs1,1,u4,5"});
}

TEST_CASE("a log that is needed again for a moment is counted anew") {
  World world;
  world.add_logs(1);
  world.sweep();
  REQUIRE(world.queues.make("p", kDead, {1, 0}).ok());
  world.sweep(5s);
  REQUIRE(world.queues.finish("p", kDead, kDead, {}).ok());
  CHECK(world.sweep(5s).logs == 0);
  CHECK(world.sweep(9s).logs == 0);
  CHECK(world.sweep(1s).logs == 1);
}

TEST_CASE("while a position cannot be read, no log of its owner is removed") {
  World world;
  world.add_logs(2);
  const ClusterLayout& layout = world.disk.layout;
  world.disk.env.set_contents(layout.old_wal(kHolder, "u1"), "of another server");
  world.disk.env.set_contents(layout.old_wals() + "/notes.txt", "of somebody");
  REQUIRE(world.queues.make("p", kDead, {2, 0}).ok());
  world.disk.env.set_contents(layout.queue_position("p", kDead, kDead), "x");
  CHECK(world.old_files.sweep_logs(world.now).status.code() == StatusCode::kCorruption);
  CHECK(world.old_files.sweep_logs(world.now + 20s).status.code() == StatusCode::kCorruption);
  CHECK(world.logs() == std::vector<std::string>{"notes.txt", "rs1,1,u1", "rs1,1,u2,5"});
  REQUIRE(world.queues.remove_all("p", kDead).ok());
  world.sweep(20s);
  world.sweep(20s);
  CHECK(world.logs() == std::vector<std::string>{"notes.txt"});
}

TEST_CASE("archived files stay while a region refers to them") {
  World world;
  Disk& disk = world.disk;
  disk.make_table({whole_table()});
  StorageServer server(disk, 1);
  REQUIRE(server.start().ok());
  REQUIRE(server.open(whole_table(), 1).ok());
  REQUIRE(server.write({put("a", "1"), put("z", "2")}).ok());
  REQUIRE(server.close().ok());
  const TableName table = whole_table().table;
  const RegionInfo low{table, "00000000000000b1", "", "m"};
  const RegionInfo high{table, "00000000000000b2", "m", ""};
  REQUIRE(disk.tables.make_daughters(whole_table(), {low, high}).ok());
  REQUIRE(disk.tables.archive_regions(table, {whole_table().id}).ok());
  const std::string archived = disk.layout.archive(table, whole_table().id);
  REQUIRE(disk.files.list(archived)->size() == 1);

  world.sweep();
  CHECK(world.sweep(20s).regions == 0);
  REQUIRE(server.open(low, 2).ok());
  REQUIRE(server.open(high, 3).ok());
  CHECK(world.sweep(20s).regions == 0);
  REQUIRE(server.compact({}, low.id).ok());
  CHECK(world.sweep(20s).regions == 0);
  CHECK(server.region(high.id).get("z")->front().value == "2");
  REQUIRE(server.compact({}, high.id).ok());
  CHECK(world.sweep().regions == 0);
  CHECK(world.sweep(10s).regions == 1);
  CHECK(disk.files.list("root/archive/default")->empty());
  CHECK(server.region(low.id).get("a")->front().value == "1");
  CHECK(server.region(high.id).get("z")->front().value == "2");
}

namespace {

/// A directory that cannot be seen when it is listed the next time.
class BlinkingEnv final : public leveldb::EnvWrapper {
 public:
  explicit BlinkingEnv(CrashEnv& env) : EnvWrapper(env.as_env()) {}
  leveldb::Status GetChildren(const std::string& directory,
                              std::vector<std::string>* names) override {
    if (directory != hidden) return target()->GetChildren(directory, names);
    hidden.clear();
    names->clear();
    return leveldb::Status::NotFound(directory, "cannot be seen");
  }
  std::string hidden;
};

}  // namespace

TEST_CASE("an archive whose regions cannot be seen for a moment keeps them") {
  Disk disk;
  disk.env.set_contents(disk.layout.archived_file({"default", "t"}, "r1", "f1-1"), "x");
  BlinkingEnv env(disk.env);
  const FileTree files(env, disk.env.directory_sync(), "0", disk.env.everything_sync());
  OldFiles old_files(files, disk.layout, {.archive_kept = 10s});
  env.hidden = parent_directory(disk.layout.archive({"default", "t"}, "r1"));

  CHECK(old_files.sweep_archive(SteadyTime()).removed == 0);

  CHECK(env.hidden.empty());
  CHECK(disk.files.exists(disk.layout.archived_file({"default", "t"}, "r1", "f1-1")));
}

TEST_CASE("a region that is half archived keeps what is in the archive") {
  World world;
  Disk& disk = world.disk;
  disk.make_table({whole_table()});
  disk.env.set_contents(disk.layout.archived_file(whole_table().table, whole_table().id, "f1-1"),
                        "x");
  world.sweep();
  CHECK(world.sweep(20s).regions == 0);
  REQUIRE(disk.tables.remove_regions(whole_table().table, {whole_table().id}).ok());
  world.sweep();
  CHECK(world.sweep(10s).regions == 1);
}

// The server that recorded the position, or merged the files, died before the sync of the
// directory.
TEST_CASE("a power cut brings back no position that needs a log which a sweep has removed") {
  World world;
  Disk& disk = world.disk;
  world.add_logs(3);
  REQUIRE(disk.files.make_directories(disk.layout.old_wals()).ok());
  REQUIRE(world.queues.make("p", kHolder, {1, 0}).ok());
  REQUIRE(world.queues.make("p", kDead, {1, 0}).ok());
  const FileTree unsynced(disk.env, [](const std::string&) { return Status(); });
  const QueueProgress progress{.from = {1, 0}, .to = {3, 0}};
  REQUIRE(QueueFiles(unsynced, disk.layout).record("p", kDead, kDead, progress).ok());
  world.sweep();
  CHECK(world.sweep(20s).logs == 2);
  disk.env.crash();
  disk.env.reboot();
  CHECK(world.logs() == std::vector<std::string>{"rs1,1,u3,5"});
  CHECK(**world.queues.position("p", kDead, kDead) == LogPosition{3, 0});
}

TEST_CASE("a power cut brings back no reference to a file which a sweep has removed") {
  World world;
  Disk& disk = world.disk;
  disk.make_table({whole_table()});
  const TableName table = whole_table().table;
  const RegionInfo low{table, "00000000000000b1", "", "m"};
  const RegionInfo high{table, "00000000000000b2", "m", ""};
  {
    StorageServer server(disk, 1);
    REQUIRE(server.start().ok());
    REQUIRE(server.open(whole_table(), 1).ok());
    REQUIRE(server.write({put("a", "1"), put("z", "2")}).ok());
    REQUIRE(server.close().ok());
    REQUIRE(disk.tables.make_daughters(whole_table(), {low, high}).ok());
    REQUIRE(disk.tables.archive_regions(table, {whole_table().id}).ok());
    REQUIRE(server.open(low, 2).ok());
    REQUIRE(server.open(high, 3).ok());
    REQUIRE(server.compact({}, high.id).ok());
    const std::string directory = disk.layout.region(table, low.id);
    bool is_renamed = false;
    disk.env.set_fault([&](CrashEnv::Operation operation, const std::string& file) {
      if (is_renamed) return leveldb::Status::IOError(file, "the server is dead");
      is_renamed = operation == CrashEnv::Operation::kRename &&
                   file.starts_with(disk.layout.region_files(table, low.id, 2));
      return leveldb::Status();
    });
    REQUIRE_FALSE(server.compact({}, low.id).ok());
    disk.env.set_fault({});
  }
  world.sweep();
  CHECK(world.sweep(20s).regions == 1);
  disk.env.crash();
  disk.env.reboot();
  StorageServer next(disk, 2);
  REQUIRE(next.start().ok());
  REQUIRE(next.open(low, 4).ok());
  CHECK(next.region(low.id).get("a")->front().value == "1");
}

TEST_CASE("wherever the power goes out, a later sweep removes the rest and nothing else") {
  bool was_cut = true;
  for (std::size_t at = 0; was_cut; ++at) {
    INFO("before operation " << at);
    World world;
    world.add_logs(4);
    for (const char* region : {"r1", "r2"}) {
      world.disk.env.set_contents(world.disk.layout.archived_file({"default", "t"}, region, "f1-1"),
                                  "x");
    }
    REQUIRE(world.disk.files.make_directories(world.disk.layout.old_wals()).ok());
    REQUIRE(world.queues.make("p", kHolder, {1, 0}).ok());
    REQUIRE(world.queues.make("p", kDead, {4, 0}).ok());
    world.sweep();
    world.disk.env.crash_before_operation(at, CrashEnv::TornTail::kRandom);
    const SteadyTime later = world.now + 10s;
    was_cut = !world.old_files.sweep_logs(later).status.ok() ||
              !world.old_files.sweep_archive(later).status.ok();
    world.disk.env.crash();
    world.disk.env.reboot();
    OldFiles next(world.disk.files, world.disk.layout, {.logs_kept = 10s, .archive_kept = 10s});
    next.sweep_logs(world.now);
    next.sweep_archive(world.now);
    CHECK(next.sweep_logs(later).status.ok());
    CHECK(next.sweep_archive(later).status.ok());
    CHECK(world.logs() == std::vector<std::string>{"rs1,1,u4,5"});
    CHECK_FALSE(world.disk.files.exists("root/archive/default/t"));
  }
}

}  // namespace pv2::testing::old_files_test
