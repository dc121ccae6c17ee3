// SPDX-License-Identifier: Apache-2.0
//
// One log file, and the logs of a server: torn tails, damage, the fence, archived files.

#include "storage/write_ahead_log.h"

#include <pv2/base/frame.h>

#include <functional>
#include <utility>

#include "storage_fixture.h"

namespace pv2::testing::write_ahead_log_test {
namespace {

using cluster::ServerLog;
using cluster::WalEntry;
using cluster::WalWriter;

WalEntry entry(std::uint64_t sequence, std::string value = "v", std::string region = "r") {
  WalEntry made{.region_id = std::move(region), .table = {"default", "t"}, .sequence = sequence};
  made.cells.push_back({.row = "row", .family = "f", .qualifier = "q", .value = std::move(value)});
  return made;
}

struct Read {
  std::vector<std::uint64_t> sequences;
  Status status;
};
Read read(std::string_view bytes, std::string_view name = "log") {
  Read read;
  read.status = cluster::read_wal(bytes, name, [&](WalEntry& entry) {
    read.sequences.push_back(entry.sequence);
    return Status();
  });
  return read;
}

// A log of three entries with a sync after each, and where each begins.
struct ThreeEntries {
  ThreeEntries() {
    auto writer = *WalWriter::create(disk.files, "log", "log");
    for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) {
      starts.push_back(writer->size());
      WalEntry made = entry(sequence);
      REQUIRE(writer->append(made).ok());
      REQUIRE(writer->sync().ok());
    }
    bytes = disk.env.contents("log");
  }
  Disk disk;
  std::vector<std::size_t> starts;
  std::string bytes;
};

}  // namespace

TEST_CASE("cluster: a log that ends within an entry has the entries before it") {
  const ThreeEntries log;

  for (std::size_t size = 0; size <= log.bytes.size(); ++size) {
    const Read found = read(std::string_view(log.bytes).substr(0, size));
    INFO(size << " bytes: " << found.status.to_string());
    REQUIRE(found.status.ok());
    std::size_t whole = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t end = i < 2 ? log.starts[i + 1] : log.bytes.size();
      if (end <= size) whole = i + 1;
    }
    REQUIRE(found.sequences.size() == whole);
  }
}

TEST_CASE("cluster: damage before an entry that was written after a sync is reported") {
  const ThreeEntries log;

  for (std::size_t at = 0; at < log.starts[2]; ++at) {
    std::string damaged = log.bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    INFO("byte " << at);
    REQUIRE(read(damaged).status.code() == StatusCode::kCorruption);
  }
}

TEST_CASE("cluster: a hole in a tail that was never synced is no damage") {
  Disk disk;
  auto writer = *WalWriter::create(disk.files, "log", "log");
  WalEntry first = entry(1);
  WalEntry second = entry(2);
  WalEntry third = entry(3);
  REQUIRE(writer->append(first).ok());
  REQUIRE(writer->sync().ok());
  const std::size_t synced = writer->size();
  REQUIRE(writer->append(second).ok());
  const std::size_t end = writer->size();
  REQUIRE(writer->append(third).ok());

  // The power cut kept the third entry and lost the second one.
  std::string bytes = disk.env.contents("log");
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(synced),
            bytes.begin() + static_cast<std::ptrdiff_t>(end), '\0');

  const Read found = read(bytes);
  REQUIRE(found.status.ok());
  REQUIRE(found.sequences == std::vector<std::uint64_t>{1});
}

TEST_CASE("cluster: a value that looks like an entry of a log is none") {
  const ThreeEntries log;
  Disk disk;
  auto writer = *WalWriter::create(disk.files, "log", "log");
  WalEntry forged = entry(7, log.bytes);
  REQUIRE(writer->append(forged).ok());

  // The entry around the value is torn.
  const std::string bytes = disk.env.contents("log");
  const Read found = read(std::string_view(bytes).substr(0, bytes.size() - 1));

  REQUIRE(found.status.ok());
  REQUIRE(found.sequences.empty());
  REQUIRE(read(bytes, "another").sequences.empty());
}

TEST_CASE("cluster: what a fenced server syncs after the fence is not acknowledged") {
  Disk disk;
  StorageServer server(disk, 1);
  REQUIRE(server.start().ok());
  std::vector<StatusCode> answers;
  const auto note = [&](const Status& status) { answers.push_back(status.code()); };
  server.log->append(entry(1), note);
  server.work.run_all();

  server.log->append(entry(2), note);
  REQUIRE(disk.logs.fence(server.name()).ok());  // between the append and the sync
  server.work.run_all();
  server.log->append(entry(3), note);
  server.work.run_all();

  REQUIRE(answers == std::vector{StatusCode::kOk, StatusCode::kFenced, StatusCode::kFenced});
  REQUIRE(server.log->check_fence().code() == StatusCode::kFenced);
  // What was acknowledged is read.
  const auto logs = disk.logs.logs(server.name(), cluster::LogKind::kUser);
  REQUIRE(logs.ok());
  REQUIRE(logs->size() == 1);
  const std::string bytes = disk.env.contents("root/wals/rs1,1-splitting/u1");
  REQUIRE(read(bytes, "rs1,1,u1").sequences.front() == 1);
}

TEST_CASE("cluster: the logs of a server are listed in the order in which they were written") {
  Disk disk;
  StorageServer server(disk, 1, 1);  // a log for each entry
  REQUIRE(server.start().ok());
  for (std::uint64_t sequence = 1; sequence <= 10; ++sequence) {
    server.log->append(entry(sequence), [](const Status&) {});
    server.work.run_all();
  }
  REQUIRE(disk.logs.fence(server.name()).ok());

  const auto logs = disk.logs.logs(server.name(), cluster::LogKind::kUser);

  REQUIRE(logs.ok());
  REQUIRE(logs->size() == 11);
  for (std::size_t i = 0; i < logs->size(); ++i) {
    REQUIRE((*logs)[i].name == "u" + std::to_string(i + 1));
  }
}

TEST_CASE("cluster: a server that was fenced before it started never starts") {
  Disk disk;
  REQUIRE(disk.logs.fence({"rs1", 1}).ok());
  REQUIRE(disk.logs.fence({"rs1", 1}).ok());

  StorageServer server(disk, 1);

  REQUIRE(server.start().code() == StatusCode::kFenced);
  StorageServer other(disk, 2);
  REQUIRE(other.start().ok());
}

TEST_CASE("cluster: a start code is used for one log only") {
  Disk disk;
  StorageServer server(disk, 1);
  REQUIRE(server.start().ok());

  StorageServer again(disk, 1);

  REQUIRE(again.start().code() == StatusCode::kFailedPrecondition);
}

TEST_CASE("cluster: entries that wait together share one sync") {
  Disk disk;
  StorageServer server(disk, 1);
  REQUIRE(server.start().ok());
  int syncs = 0;
  disk.env.set_fault([&](CrashEnv::Operation operation, const std::string&) {
    if (operation == CrashEnv::Operation::kSync) ++syncs;
    return leveldb::Status::OK();
  });
  std::vector<std::uint64_t> order;
  for (std::uint64_t sequence = 1; sequence <= 10; ++sequence) {
    server.log->append(entry(sequence), [&order, sequence](const Status& status) {
      REQUIRE(status.ok());
      order.push_back(sequence);
    });
  }

  server.work.run_all();

  REQUIRE(syncs == 1);
  REQUIRE(order == std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
}

TEST_CASE("cluster: after a failed sync nothing is acknowledged any more") {
  Disk disk;
  StorageServer server(disk, 1);
  REQUIRE(server.start().ok());
  bool fails = true;
  disk.env.set_fault([&](CrashEnv::Operation operation, const std::string& file) {
    const bool hit = fails && operation == CrashEnv::Operation::kSync;
    return hit ? leveldb::Status::IOError(file, "broken") : leveldb::Status::OK();
  });
  std::vector<StatusCode> answers;
  const auto note = [&](const Status& status) { answers.push_back(status.code()); };
  server.log->append(entry(1), note);
  server.work.run_all();
  fails = false;  // the kernel may have thrown the pages away
  server.log->append(entry(2), note);
  server.work.run_all();

  REQUIRE(answers == std::vector{StatusCode::kIoError, StatusCode::kIoError});
}

TEST_CASE("cluster: a log file is archived when every region in it has flushed beyond it") {
  Disk disk;
  StorageServer server(disk, 1, /*log_bytes=*/300);
  REQUIRE(server.start().ok());
  const auto write = [&](const std::string& region, std::uint64_t sequence) {
    server.log->append(entry(sequence, std::string(400, 'v'), region), [](const Status&) {});
    server.work.run_all();
  };
  write("a", 1);  // u1
  write("b", 1);  // u2
  write("a", 2);  // u3; u4 is empty
  REQUIRE(server.log->file_count() == 4);
  REQUIRE(server.log->regions_to_flush(2) == std::vector<std::string>{"a", "b"});

  server.log->flushed("a", 1);
  server.work.run_all();
  REQUIRE(server.log->file_count() == 3);
  REQUIRE(server.log->regions_to_flush(2) == std::vector<std::string>{"b"});
  server.log->flushed("a", 2);
  server.log->flushed("b", 1);
  server.work.run_all();

  REQUIRE(server.log->file_count() == 1);
  REQUIRE(disk.files.list("root/oldwals")->size() == 3);
  REQUIRE(*disk.files.list("root/wals/rs1,1") == std::vector<std::string>{"u4"});
}

TEST_CASE("cluster: a write that changes nothing does not keep its log") {
  RegionInfo other = whole_table();
  other.id = "00000000000000bb";
  Disk disk;
  disk.make_table({whole_table(), other});
  StorageServer server(disk, 1, /*log_bytes=*/100);
  REQUIRE(server.start().ok());
  REQUIRE(server.open(whole_table(), 1).ok());
  REQUIRE(server.open(other, 2).ok());
  const auto written = server.write({erase_row("absent")});
  REQUIRE(written.ok());
  for (int i = 0; i < 3; ++i) {
    REQUIRE(server.write({put("row", std::string(200, 'v'))}, {}, other.id).ok());
  }
  REQUIRE(server.flush(other.id).ok());
  REQUIRE(server.log->file_count() > 1);
  REQUIRE(server.log->regions_to_flush(1) == std::vector{whole_table().id});

  SECTION("after a flush") {
    REQUIRE(server.flush().ok());
    REQUIRE(server.region().file_count() == 0);
  }
  SECTION("after a close") { REQUIRE(server.close().ok()); }
  SECTION("after a close while it is under way") {
    std::optional<Status> second;
    server.region().write(
        {.mutations = {erase_row("absent")}}, *server.log,
        [&](const Result<cluster::WriteResult>& done) { second = done.status(); });
    REQUIRE(server.close().ok());
    REQUIRE(second.has_value());
    REQUIRE(second->ok());
  }

  REQUIRE(server.log->file_count() == 1);
  REQUIRE(server.log->regions_to_flush(1).empty());
  REQUIRE(server.open(whole_table(), 3).ok());
  REQUIRE(server.region().open_sequence() > written->sequence);
}

namespace {

/// A disk on which something happens before somebody looks for a file.
class WatchedEnv final : public leveldb::EnvWrapper {
 public:
  explicit WatchedEnv(CrashEnv& env) : EnvWrapper(&env) {}
  bool FileExists(const std::string& file) override {
    if (before_look) std::exchange(before_look, nullptr)();
    return target()->FileExists(file);
  }
  std::function<void()> before_look;
};

struct WatchedDisk : Disk {
  WatchedEnv watched{env};
  cluster::FileTree watched_files{watched, env.directory_sync()};
};

}  // namespace

TEST_CASE("cluster: a log that goes on to another file during a look at the fence is not fenced") {
  WatchedDisk disk;
  cluster::ManualWorkQueue work;
  const ServerName name{"rs1", 1};
  const auto log =
      ServerLog::open(disk.watched_files, disk.layout, work, name, {.file_bytes_max = 100});
  REQUIRE(log.ok());
  std::uint64_t sequence = 0;
  const auto roll = [&] {
    cluster::WalEntry entry{.region_id = "r", .sequence = ++sequence};
    entry.cells.push_back({.row = "a", .family = "f", .value = std::string(200, 'v')});
    (*log)->append(std::move(entry), [](const Status& status) { REQUIRE(status.ok()); });
    work.run_all();
    (*log)->flushed("r", sequence);
    work.run_all();
    REQUIRE((*log)->file_count() == 1);
  };

  disk.watched.before_look = roll;
  REQUIRE((*log)->check_fence().ok());

  // And one that is taken over meanwhile is fenced.
  disk.watched.before_look = [&] {
    roll();
    REQUIRE(disk.logs.fence(name).ok());
  };
  REQUIRE((*log)->check_fence().code() == StatusCode::kFenced);
}

TEST_CASE("cluster: of two fences the second leaves no directory that looks unfenced") {
  WatchedDisk disk;
  cluster::ManualWorkQueue work;
  const ServerName name{"rs1", 1};
  const auto log = ServerLog::open(disk.files, disk.layout, work, name);
  REQUIRE(log.ok());

  // Between its look for another fence and its look for the directory.
  disk.watched.before_look = [&] {
    disk.watched.before_look = [&] { REQUIRE(disk.logs.fence(name).ok()); };
  };
  CHECK(cluster::LogDirectories(disk.watched_files, disk.layout).fence(name).ok());

  CHECK_FALSE(disk.files.exists(disk.layout.wals(name)));
  CHECK(disk.logs.logs(name, cluster::LogKind::kUser)->size() == 1);
}

TEST_CASE("cluster: the log of the catalogue does not give a retired server its directory back") {
  Disk disk;
  cluster::ManualWorkQueue work;
  const ServerName name{"rs1", 1};
  const auto log = ServerLog::open(disk.files, disk.layout, work, name, {.file_bytes_max = 1});
  REQUIRE(log.ok());
  Status meta_log;
  // When its first write is durable, and before its log goes on to another file.
  (*log)->append(entry(1), [&](const Status& status) {
    REQUIRE(status.ok());
    REQUIRE(disk.logs.fence(name).ok());
    for (const cluster::LogFile& file : *disk.logs.logs(name, cluster::LogKind::kUser)) {
      REQUIRE(disk.logs.archive(name, file).ok());
    }
    REQUIRE(disk.logs.remove(name).ok());
    meta_log =
        ServerLog::open(disk.files, disk.layout, work, name, {.kind = cluster::LogKind::kMeta})
            .status();
  });
  work.run_all();

  CHECK(meta_log.code() == StatusCode::kFenced);
  CHECK((*log)->check_fence().code() == StatusCode::kFenced);
  Status second;
  (*log)->append(entry(2), [&](const Status& status) { second = status; });
  work.run_all();
  CHECK(second.code() == StatusCode::kFenced);
  CHECK(!disk.files.exists(disk.layout.wals(name)));
}

}  // namespace pv2::testing::write_ahead_log_test
