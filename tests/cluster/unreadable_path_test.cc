// SPDX-License-Identifier: Apache-2.0
//
// A path that the file system cannot read, as with a bad block of the disk or a file server that
// does not answer. It must not count as a path where nothing is. Each test has one piece of code
// that would do harm if it did: make a queue again, replace its position, pass over a peer, leave
// entries of a log out, or start a dead server. The code has to return the error instead, or to
// count the peer as present, and the stored bytes stay.

#include <leveldb/env.h>

#include <algorithm>

#include "cluster/storage_fixture.h"
#include "replication/log_reader.h"
#include "replication/queue_files.h"
#include "storage/peer_files.h"

namespace pv2::testing::unreadable_path_test {
namespace {

using namespace cluster;  // NOLINT: the layer under test

const ServerName kOne{"rs1", 1};
const ServerName kTwo{"rs2", 1};

/// Looking at one path fails, as access() and stat() do with EIO.
class UnreadableEnv final : public leveldb::EnvWrapper {
 public:
  explicit UnreadableEnv(leveldb::Env& env) : EnvWrapper(&env) {}

  std::string path;

  bool FileExists(const std::string& file) override {
    return file != path && target()->FileExists(file);
  }
  leveldb::Status GetFileSize(const std::string& file, std::uint64_t* size) override {
    return file == path ? failed() : target()->GetFileSize(file, size);
  }
  leveldb::Status NewSequentialFile(const std::string& file,
                                    leveldb::SequentialFile** result) override {
    if (file != path) return target()->NewSequentialFile(file, result);
    *result = nullptr;
    return failed();
  }

 private:
  [[nodiscard]] leveldb::Status failed() const {
    return leveldb::Status::IOError(path, "Input/output error");
  }
};

struct World {
  Disk disk;
  UnreadableEnv env{*disk.env.as_env()};
  FileTree files{env, disk.env.directory_sync(), "1", disk.env.everything_sync()};
  QueueFiles queues{files, disk.layout};

  [[nodiscard]] std::optional<LogPosition> position(const ServerName& server) const {
    return QueueFiles(disk.files, disk.layout).position("p", server, kOne).value();
  }
};

}  // namespace

TEST_CASE("a path that cannot be looked at is neither there nor absent") {
  World world;
  CHECK_FALSE(world.files.is_there("root/a").value());
  REQUIRE(world.disk.files.make_directories("root/a").ok());
  CHECK(world.files.is_there("root/a").value());
  world.env.path = "root/a";
  CHECK(world.files.is_there("root/a").status().code() == StatusCode::kIoError);
}

TEST_CASE("a queue that cannot be looked at is not made anew, and no later position replaces it") {
  World world;
  REQUIRE(world.queues.make("p", kOne, {1, 5}).ok());
  REQUIRE(world.queues.make("p", kTwo, {4, 0}).ok());
  world.env.path = world.disk.layout.queue_position("p", kOne, kOne);
  CHECK(world.queues.make("p", kOne, {9, 0}).status().code() == StatusCode::kIoError);
  CHECK(world.position(kOne) == LogPosition{1, 5});

  world.env.path.clear();
  REQUIRE(world.queues.claim("p", kOne, kTwo).ok());
  REQUIRE(world.queues.make("p", kOne, {9, 0}).ok());
  world.env.path = world.disk.layout.queue_position("p", kTwo, kOne);
  CHECK(world.queues.claim("p", kOne, kTwo).code() == StatusCode::kIoError);
  CHECK(world.position(kTwo) == LogPosition{1, 5});
  world.env.path.clear();
  CHECK(world.queues.claim("p", kOne, kTwo).ok());
  CHECK(world.position(kTwo) == LogPosition{1, 5});
}

TEST_CASE("a peer that cannot be looked at is among the peers") {
  World world;
  const PeerFiles peers(world.files, world.disk.layout);
  for (const char* id : {"p", "q"}) REQUIRE(peers.write({.id = id, .config = {"/other", {}}}).ok());
  world.env.path = world.disk.layout.peer("p") + "/config";
  CHECK(peers.ids().value() == std::vector<std::string>{"p", "q"});
  const auto found = peers.list();
  REQUIRE(found.ok());
  CHECK(found->unreadable.contains("p"));
  CHECK(found->peers.size() == 1);
}

TEST_CASE("logs of a dead server that perhaps wait to be split are not passed over") {
  World world;
  const LogReader reader(world.files, world.disk.layout, kOne);
  world.env.path = world.disk.layout.splitting(kOne);
  CHECK(reader.read({1, 0}, std::nullopt).status().code() == StatusCode::kIoError);
}

TEST_CASE("entries of a region whose directory cannot be looked at are not left out of a split") {
  World world;
  world.disk.make_table({whole_table()});
  StorageServer server(world.disk, 1);
  REQUIRE(server.start().ok());
  REQUIRE(server.open(whole_table(), 1).ok());
  REQUIRE(server.write({put("a", "1")}).ok());
  REQUIRE(world.disk.logs.fence(server.name()).ok());
  const auto logs = world.disk.logs.logs(server.name(), cluster::LogKind::kUser);
  REQUIRE((logs.ok() && logs->size() == 1));
  world.env.path = world.disk.layout.region_info(whole_table().table, whole_table().id);
  const auto failed = split_log(world.files, world.disk.layout, server.name(), logs->front());
  CHECK(failed.status().code() == StatusCode::kIoError);
  world.env.path.clear();
  CHECK(split_log(world.files, world.disk.layout, server.name(), logs->front()).ok());
}

TEST_CASE("a server that was perhaps declared dead does not start") {
  World world;
  world.env.path = world.disk.layout.splitting(kOne);
  ManualWorkQueue work;
  const auto log = ServerLog::open(world.files, world.disk.layout, work, kOne,
                                   {.kind = cluster::LogKind::kUser});
  CHECK(log.status().code() == StatusCode::kIoError);
}

}  // namespace pv2::testing::unreadable_path_test
