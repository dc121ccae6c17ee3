// SPDX-License-Identifier: Apache-2.0
//
// The directory of the cluster vanishes from one machine for a moment: it is unmounted there, and
// mounted again. Every path is absent then, which must not be taken for a region that was removed,
// for logs that were split, or for a region without files.

#include <leveldb/env.h>

#include <cstddef>
#include <limits>

#include "cluster/storage_fixture.h"
#include "pv2/base/clock.h"
#include "pv2/rpc/memory_transport.h"
#include "replication/queue_files.h"
#include "replication/server_replication.h"
#include "storage/peer_files.h"

namespace pv2::testing::vanished_tree_test {
namespace {

using namespace cluster;  // NOLINT: the layer under test

constexpr std::size_t kForEver = std::numeric_limits<std::size_t>::max();
// For how many calls everything is hidden.
constexpr std::size_t kCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, kForEver};

/// Hides everything during some of the calls that it gets.
class VanishingEnv final : public leveldb::EnvWrapper {
 public:
  explicit VanishingEnv(CrashEnv& env) : EnvWrapper(env.as_env()), crash_env_(env) {}

  /// From the call `begin` on, counted from now, for `count` calls.
  void hide(std::size_t begin, std::size_t count) {
    calls_ = 0;
    begin_ = begin;
    count_ = count;
  }
  /// Whether a call came while everything was hidden.
  bool show() {
    const bool was_hidden = calls_ > begin_;
    hide(kForEver, 0);
    return was_hidden;
  }
  FileTree::DirectorySync sync() {
    return [this, sync = crash_env_.directory_sync()](const std::string& directory) {
      return is_hidden() ? Status(StatusCode::kNotFound, directory) : sync(directory);
    };
  }

  bool FileExists(const std::string& file) override {
    return !is_hidden() && target()->FileExists(file);
  }
  leveldb::Status GetFileSize(const std::string& file, std::uint64_t* size) override {
    return is_hidden() ? absent(file) : target()->GetFileSize(file, size);
  }
  leveldb::Status GetChildren(const std::string& file, std::vector<std::string>* names) override {
    names->clear();
    return is_hidden() ? absent(file) : target()->GetChildren(file, names);
  }
  leveldb::Status NewSequentialFile(const std::string& file,
                                    leveldb::SequentialFile** result) override {
    return is_hidden() ? absent(file) : target()->NewSequentialFile(file, result);
  }
  leveldb::Status NewRandomAccessFile(const std::string& file,
                                      leveldb::RandomAccessFile** result) override {
    return is_hidden() ? absent(file) : target()->NewRandomAccessFile(file, result);
  }
  leveldb::Status NewWritableFile(const std::string& file,
                                  leveldb::WritableFile** result) override {
    return is_hidden() ? absent(file) : target()->NewWritableFile(file, result);
  }
  leveldb::Status CreateDir(const std::string& file) override {
    return is_hidden() ? absent(file) : target()->CreateDir(file);
  }
  leveldb::Status RemoveFile(const std::string& file) override {
    return is_hidden() ? absent(file) : target()->RemoveFile(file);
  }
  leveldb::Status RenameFile(const std::string& from, const std::string& to) override {
    return is_hidden() ? absent(from) : target()->RenameFile(from, to);
  }

 private:
  bool is_hidden() {
    const std::size_t call = calls_++;
    return call >= begin_ && call - begin_ < count_;
  }
  static leveldb::Status absent(const std::string& file) {
    return leveldb::Status::NotFound(file, "No such file or directory");
  }

  CrashEnv& crash_env_;
  std::size_t calls_ = 0;
  std::size_t begin_ = kForEver;
  std::size_t count_ = 0;
};

/// A dead server, whose log has a row that no file of the region has; and a machine from which the
/// directory of the cluster vanishes.
struct World {
  Disk disk;
  VanishingEnv env{disk.env};
  FileTree files{env, env.sync(), "1"};
  StorageServer dead{disk, 1};

  World() {
    disk.make_table({whole_table()});
    REQUIRE(dead.start().ok());
    REQUIRE(dead.open(whole_table(), 1).ok());
    REQUIRE(dead.write({put("a", "1")}).ok());
    REQUIRE(dead.flush().ok());
    REQUIRE(dead.write({put("b", "2")}).ok());
    REQUIRE(disk.logs.fence(dead.name()).ok());
  }
  [[nodiscard]] LogFile log() const {
    const auto logs = disk.logs.logs(dead.name(), cluster::LogKind::kUser);
    REQUIRE((logs.ok() && logs->size() == 1));
    return logs->front();
  }
  Result<std::shared_ptr<Region>> open(std::uint64_t opening) {
    return Region::open(files, disk.layout, dead.work, whole_table(),
                        {.families = {"f", "g"}, .descriptor = 1, .opening = opening});
  }
};

const std::map<std::string, std::string> kRows{{"a", "1"}, {"b", "2"}};

}  // namespace

TEST_CASE("a log is not split for regions that have vanished together with everything else") {
  for (const std::size_t count : kCounts) {
    bool was_hidden = true;
    for (std::size_t begin = 0; was_hidden; ++begin) {
      INFO("hidden for " << count << " calls from call " << begin);
      World world;
      const LogFile log = world.log();
      world.env.hide(begin, count);
      const auto split = split_log(world.files, world.disk.layout, world.dead.name(), log);
      was_hidden = world.env.show();
      UNSCOPED_INFO(split.status().to_string());
      const bool is_recovered = *world.disk.tables.has_recovered_edits(whole_table());
      CHECK((!split.ok() || is_recovered));
      // Whoever repeats it does the whole of it.
      REQUIRE(split_log(world.files, world.disk.layout, world.dead.name(), log).ok());
      const auto region = world.open(2);
      REQUIRE(region.ok());
      CHECK(rows_of(**region) == kRows);
    }
  }
}

TEST_CASE("a region that vanishes while it is opened is not opened without its files") {
  for (const std::size_t count : kCounts) {
    bool was_hidden = true;
    for (std::size_t begin = 0; was_hidden; ++begin) {
      INFO("hidden for " << count << " calls from call " << begin);
      World world;
      REQUIRE(split_log(world.files, world.disk.layout, world.dead.name(), world.log()).ok());
      world.env.hide(begin, count);
      const auto first = world.open(2);
      was_hidden = world.env.show();
      if (first.ok()) CHECK(rows_of(**first) == kRows);
      const auto second = world.open(3);
      REQUIRE(second.status().to_string() == "OK");
      CHECK(rows_of(**second) == kRows);
    }
  }
}

TEST_CASE("a region is not opened with an empty list when its claim has vanished") {
  World world;
  REQUIRE(world.open(2).ok());
  const auto read = [&](std::uint64_t claimed) {
    return read_region_files(world.files, world.disk.layout, whole_table().table, whole_table().id,
                             claimed);
  };
  CHECK(read(2)->opening == 2);
  CHECK(read(3).status().code() == StatusCode::kUnavailable);
  world.env.hide(0, kForEver);
  CHECK(read(2).status().code() == StatusCode::kUnavailable);
}

TEST_CASE("logs that have vanished do not count as split") {
  World world;
  const LogDirectories logs(world.files, world.disk.layout);
  const auto look = [&] { return logs.logs(world.dead.name(), cluster::LogKind::kUser); };
  for (const std::size_t count : kCounts) {
    INFO("hidden for " << count << " calls");
    world.env.hide(0, count);
    CHECK(look().status().code() == StatusCode::kUnavailable);
    world.env.show();
    CHECK(look()->size() == 1);
  }
  REQUIRE(world.disk.logs.archive(world.dead.name(), world.log()).ok());
  REQUIRE(world.disk.logs.remove(world.dead.name()).ok());
  CHECK(look()->empty());
}

TEST_CASE("a fence makes no directory where the cluster is not mounted") {
  World world;
  StorageServer lives(world.disk, 2);
  REQUIRE(lives.start().ok());
  // The file system below the mount point is empty, and can be written.
  Disk below;
  below.env.RemoveFile(below.layout.cluster_id());
  CHECK(below.logs.fence(lives.name()).code() == StatusCode::kUnavailable);
  CHECK(below.env.files().empty());
  const auto looked = world.disk.logs.logs(lives.name(), cluster::LogKind::kUser);
  CHECK(looked.status().code() == StatusCode::kUnavailable);
  CHECK_THAT(looked.status().to_string(), ContainsSubstring("is not fenced"));
}

TEST_CASE("edits that have vanished for a moment are still to be recovered") {
  World world;
  REQUIRE(split_log(world.files, world.disk.layout, world.dead.name(), world.log()).ok());
  const TableDirectories tables(world.files, world.disk.layout);
  for (const std::size_t count : kCounts) {
    INFO("hidden for " << count << " calls");
    world.env.hide(0, count);
    const Result<bool> has_edits = tables.has_recovered_edits(whole_table());
    world.env.show();
    CHECK((!has_edits.ok() || *has_edits));
  }
}

TEST_CASE("queues of a peer that has vanished are not claimed, and peers that have are not none") {
  World world;
  const ServerName other{"rs2", 1};
  const QueueFiles queues(world.disk.files, world.disk.layout);
  for (const ServerName& server : {world.dead.name(), other}) {
    REQUIRE(queues.make("p", server, {1, 0}).ok());
  }
  REQUIRE(PeerFiles(world.disk.files, world.disk.layout).write({"p", {"/other", {}}}).ok());
  ManualWorkQueue work;
  const auto log = *ServerLog::open(world.files, world.disk.layout, work, other);
  const auto clock = std::make_shared<ManualClock>();
  const auto transport = std::make_shared<MemoryTransport>(clock);
  ServerReplication replication({.server = other,
                                 .files = world.files,
                                 .layout = world.disk.layout,
                                 .log = *log,
                                 .work = work,
                                 .transport = transport,
                                 .clock = clock,
                                 .check_lease = [] { return Status(); }});
  const auto claim = [&] {
    std::optional<Status> status;
    replication.claim_queues(world.dead.name(), "p", [&](Status done) { status = done; });
    work.run_all();
    transport->run_until_idle();
    REQUIRE(status);
    return *status;
  };
  for (const std::size_t count : kCounts) {
    INFO("hidden for " << count << " calls");
    world.env.hide(0, count);
    const auto ids = PeerFiles(world.files, world.disk.layout).ids();
    CHECK((ids.status().code() == StatusCode::kUnavailable || ids->size() == 1));
    world.env.hide(0, count);
    static_cast<void>(claim().ok());
    world.env.show();
    const auto all = queues.all();
    CHECK((all.ok() && all->size() == 2));
  }
  CHECK(claim().ok());
  CHECK(queues.queues("p", other)->size() == 2);
}

}  // namespace pv2::testing::vanished_tree_test
