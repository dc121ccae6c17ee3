// SPDX-License-Identifier: Apache-2.0
//
// What a queue reads of the logs of its own server, and of those of a dead one.

#include "replication/log_reader.h"

#include "cluster/storage_fixture.h"

namespace pv2::testing::log_reader_test {
namespace {

using namespace cluster;  // NOLINT: the layer under test

using Sequences = std::vector<std::uint64_t>;

/// A server with one region and short logs.
struct World {
  Disk disk;
  StorageServer server{disk, 1, 400};
  std::uint64_t written = 0;

  World() {
    disk.make_table({whole_table()});
    REQUIRE(server.start().ok());
    REQUIRE(server.open(whole_table(), 1).ok());
  }
  Sequences write(int count) {
    Sequences sequences;
    for (int i = 0; i < count; ++i) {
      const auto result = server.write({put("row", std::to_string(++written))});
      REQUIRE(result.ok());
      sequences.push_back(result->sequence);
    }
    return sequences;
  }
  [[nodiscard]] LogReader reader(LogReaderLimits limits = {}) const {
    return {disk.files, disk.layout, server.name(), limits};
  }
  /// Everything from a position on, part by part.
  Sequences read(LogPosition from, bool is_dead, LogReaderLimits limits = {}) {
    Sequences sequences;
    for (;;) {
      std::optional<LogPosition> end;
      if (!is_dead) end = server.log->durable_end();
      const auto part = reader(limits).read(from, end);
      REQUIRE(part.status().to_string() == "OK");
      for (const WalEntry& entry : part->entries) sequences.push_back(entry.sequence);
      CHECK(part->next >= from);
      if (part->is_end) return sequences;
      REQUIRE(part->next > from);
      from = part->next;
    }
  }
};

const LogPosition kBegin{.log = 1, .offset = 0};

}  // namespace

TEST_CASE("a queue reads its own server's logs while they grow") {
  World world;
  CHECK(world.read(kBegin, false).empty());
  Sequences all = world.write(30);
  REQUIRE(world.server.log->file_count() > 3);
  CHECK(world.read(kBegin, false) == all);
  const LogPosition middle = world.server.log->durable_end();
  CHECK(world.reader().bytes_behind(middle, middle).value() == 0);
  const Sequences more = world.write(7);
  CHECK(world.read(middle, false) == more);
  CHECK(world.reader().bytes_behind(middle, world.server.log->durable_end()).value() > 0);
}

TEST_CASE("parts are bounded, and an entry that is larger than a part is read") {
  World world;
  Sequences all = world.write(10);
  const auto large = world.server.write({put("row", std::string(5000, 'x'))});
  REQUIRE(large.ok());
  all.push_back(large->sequence);
  CHECK(world.read(kBegin, false, {.bytes_max = 64, .entries_max = 100}) == all);
  CHECK(world.read(kBegin, false, {.bytes_max = 1 << 20, .entries_max = 1}) == all);
  const auto part = world.reader({.bytes_max = 1 << 20, .entries_max = 2})
                        .read(kBegin, world.server.log->durable_end());
  CHECK(part->entries.size() == 2);
}

TEST_CASE("logs that were moved to oldwals are read, whichever are left behind") {
  World world;
  const Sequences all = world.write(40);
  REQUIRE(world.server.flush().ok());
  REQUIRE(world.server.log->file_count() == 1);
  CHECK(world.read(kBegin, false) == all);
  // A log in the middle goes first when another region still needs the one before.
  World other;
  const Sequences some = other.write(40);
  REQUIRE(other.disk.files
              .rename(other.disk.layout.wals(other.server.name()) + "/u2",
                      other.disk.layout.old_wal(other.server.name(), "u2"))
              .ok());
  CHECK(other.read(kBegin, false) == some);
}

TEST_CASE("a queue at the end of a log passes over none, wherever the next one lies") {
  World world;
  const Sequences all = world.write(40);
  REQUIRE(world.server.log->file_count() > 3);
  const auto first = world.reader().read(kBegin, world.server.log->durable_end());
  REQUIRE(first->next == LogPosition{.log = 2, .offset = 0});
  const std::string logs = world.disk.layout.wals(world.server.name());
  const LogPosition end{.log = 1, .offset = world.disk.files.size(logs + "/u1").value()};
  REQUIRE(
      world.disk.files.rename(logs + "/u2", world.disk.layout.old_wal(world.server.name(), "u2"))
          .ok());
  const auto read = static_cast<std::ptrdiff_t>(first->entries.size());
  CHECK(world.read(end, false) == Sequences(all.begin() + read, all.end()));
}

TEST_CASE("what is not durable is not read") {
  World world;
  Sequences all = world.write(3);
  bool is_done = false;
  world.server.region().write({.mutations = {put("row", "x")}}, *world.server.log,
                              [&](const Result<WriteResult>&) { is_done = true; });
  CHECK(world.read(kBegin, false) == all);
  world.server.work.run_all();
  CHECK(is_done);
  CHECK(world.read(kBegin, false).size() == all.size() + 1);
}

TEST_CASE("of a dead server's log what was split is read, and nothing that was appended later") {
  World world;
  const Sequences all = world.write(12);
  REQUIRE(world.disk.logs.fence(world.server.name()).ok());
  CHECK(world.reader().read(kBegin, std::nullopt).status().code() == StatusCode::kUnavailable);
  const auto logs = world.disk.logs.logs(world.server.name(), cluster::LogKind::kUser);
  REQUIRE(logs.ok());
  // The server does not know yet, and appends once more.
  std::optional<Status> late;
  world.server.region().write({.mutations = {put("row", "late")}}, *world.server.log,
                              [&](const Result<WriteResult>& result) { late = result.status(); });
  world.server.work.run_all();
  REQUIRE(late);
  CHECK(late->code() == StatusCode::kFenced);
  for (const LogFile& log : *logs) REQUIRE(world.disk.logs.archive(world.server.name(), log).ok());
  REQUIRE(world.disk.logs.remove(world.server.name()).ok());
  CHECK(world.read(kBegin, true) == all);
  CHECK(world.reader().bytes_behind({.log = 1000, .offset = 0}, std::nullopt).value() == 0);
}

TEST_CASE("a server that is fenced reads no log: one that is not split yet would be passed over") {
  World world;
  const Sequences all = world.write(30);
  const LogPosition end = world.server.log->durable_end();
  REQUIRE(end.log > 2);
  REQUIRE(world.disk.logs.fence(world.server.name()).ok());
  const auto read = [&] { return world.reader().read(kBegin, end).status().code(); };
  CHECK(read() == StatusCode::kUnavailable);
  // The splitters end in any order: the last log is there first.
  auto logs = *world.disk.logs.logs(world.server.name(), cluster::LogKind::kUser);
  std::ranges::reverse(logs);
  for (const LogFile& log : logs) {
    REQUIRE(world.disk.logs.archive(world.server.name(), log).ok());
    CHECK(read() == StatusCode::kUnavailable);
    CHECK(world.reader().bytes_behind(kBegin, end).status().code() == StatusCode::kUnavailable);
  }
  REQUIRE(world.disk.logs.remove(world.server.name()).ok());
  CHECK(world.read(kBegin, true) == all);
}

TEST_CASE("a log that is gone is passed over when a later one is there") {
  World world;
  Sequences all = world.write(30);
  REQUIRE(world.server.flush().ok());
  REQUIRE(world.disk.files.remove_file(world.disk.layout.old_wal(world.server.name(), "u1")).ok());
  const Sequences left = world.read(kBegin, false);
  CHECK_FALSE(left.empty());
  CHECK(left.size() < all.size());
  CHECK(left == Sequences(all.end() - static_cast<std::ptrdiff_t>(left.size()), all.end()));
}

TEST_CASE("a torn end of a dead server's log is its end, and damage before it is told") {
  World world;
  const Sequences all = world.write(3);
  REQUIRE(testing::recover(world.disk, world.server.name()).ok());
  const std::string directory = world.disk.layout.old_wals();
  const std::string name = world.disk.files.list(directory)->front();
  const std::string path = directory + "/" + name;
  const std::string bytes = world.disk.env.contents(path);
  SECTION("the end") {
    std::string torn = bytes;
    torn.back() ^= 1;
    world.disk.env.set_contents(path, torn);
    CHECK(world.read(kBegin, true) == Sequences(all.begin(), all.end() - 1));
  }
  SECTION("the beginning") {
    std::string torn = bytes;
    torn.front() ^= 1;
    world.disk.env.set_contents(path, torn);
    CHECK(world.reader().read(kBegin, std::nullopt).status().code() == StatusCode::kCorruption);
  }
}

TEST_CASE("what a region recovers from a log whose sync has failed is shipped too") {
  World world;
  Disk& disk = world.disk;
  world.write(3);
  // The disk takes nothing for a moment. What was not written counts as written, and can be read
  // until the memory is needed for something else.
  disk.env.set_fault([](CrashEnv::Operation operation, const std::string& file) {
    const bool hit = operation == CrashEnv::Operation::kSync && file.find("/u") != file.npos;
    return hit ? leveldb::Status::IOError(file, "No space left on device") : leveldb::Status::OK();
  });
  REQUIRE_FALSE(world.server.write({put("row", "last")}).ok());
  disk.env.set_fault(nullptr);

  REQUIRE(disk.logs.fence(world.server.name()).ok());
  const FileTree splitter(disk.env, disk.env.directory_sync(), "1");
  for (const LogFile& log : *disk.logs.logs(world.server.name(), cluster::LogKind::kUser)) {
    REQUIRE(split_log(splitter, disk.layout, world.server.name(), log).ok());
    REQUIRE(disk.logs.archive(world.server.name(), log).ok());
  }
  REQUIRE(disk.logs.remove(world.server.name()).ok());
  disk.env.lose_unsynced(disk.layout.root(), CrashEnv::TornTail::kNone);

  Sequences recovered;
  for (const RecoveredFile& file :
       *read_recovered(disk.files, disk.layout, whole_table().table, whole_table().id)) {
    for (const WalEntry& entry : file.entries) recovered.push_back(entry.sequence);
  }
  CHECK(recovered.size() == 4);
  CHECK(world.read(kBegin, true) == recovered);
}

TEST_CASE("only the last log of a dead server is written again when it is split") {
  World world;
  Disk& disk = world.disk;
  world.write(31);
  REQUIRE(disk.logs.fence(world.server.name()).ok());
  const auto logs = *disk.logs.logs(world.server.name(), cluster::LogKind::kUser);
  REQUIRE(logs.size() > 3);
  std::vector<std::string> written;
  disk.env.set_fault([&](CrashEnv::Operation operation, const std::string& file) {
    if (operation == CrashEnv::Operation::kRename && file.starts_with(disk.layout.wals())) {
      written.push_back(file_name(file));
    }
    return leveldb::Status::OK();
  });
  for (const LogFile& log : logs) {
    REQUIRE(split_log(disk.files, disk.layout, world.server.name(), log).ok());
  }
  CHECK(written == std::vector<std::string>{logs.back().name + "~0"});
}

}  // namespace pv2::testing::log_reader_test
