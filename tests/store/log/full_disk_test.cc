// SPDX-License-Identifier: Apache-2.0
//
// A disk that is full before, while and after the log makes its files: every commit that was
// acknowledged is there, reading goes on, and commits go on after a restart with space.

#include <string>
#include <vector>

#include "../store_fixture.h"
#include "log/segment_pool.h"
#include "support/catch.h"

namespace pv2::testing::full_disk_test {
namespace {

using Committer = LevelDbOptions::Committer;

std::size_t used(const CrashEnv& env) {
  std::size_t bytes = 0;
  for (const std::string& file : env.files()) bytes += env.contents(file).size();
  return bytes;
}

// Commits until one fails, at most `commits`. Returns how many were acknowledged.
int commit_until_full(Writer& writer, int& next, int commits, Status& failed) {
  int acknowledged = 0;
  for (; acknowledged < commits; ++acknowledged) {
    const std::string key = std::to_string(100'000 + next);
    failed = writer.commit(
        [&](RowBatch& batch) { batch.insert(Space::kHost, key, std::string(200, 'v')); });
    if (!failed.ok()) break;
    ++next;
  }
  return acknowledged;
}

void must_have(Writer& writer, int rows) {
  const auto found = scan_rows(writer.store(), Space::kHost, "");
  REQUIRE(found.size() >= static_cast<std::size_t>(rows));
  for (int row = 0; row < rows; ++row) {
    REQUIRE(found[row].starts_with(std::to_string(100'000 + row) + "="));
  }
}

// Files of 2000 bytes; between 0 and 9000 bytes are free, so the disk is full before the first
// file, in any of them, or in the database.
TEST_CASE("however little space there is, nothing is lost, and with space all goes on") {
  for (std::size_t space = 0; space < 9'000; space += 150) {
    INFO("free: " << space);
    CrashEnv env(space);
    int next = 0;
    bool full = false;
    {
      Writer writer(on_crash_env(env, 2'000, 3));
      REQUIRE(writer.open().ok());
      env.set_space(used(env) + space);
      Status failed;
      full = commit_until_full(writer, next, 200, failed) < 200;
      REQUIRE(full);
      INFO(failed.to_string());
      REQUIRE(failed.code() == StatusCode::kStorageFull);
      REQUIRE_THAT(std::string(failed.message()), ContainsSubstring("No space left on device"));
      must_have(writer, next);
      if (space % 300 == 0) writer.store().close();
    }
    if (space % 600 == 0) {
      env.crash(CrashEnv::TornTail::kRandom);
      env.reboot();
    }
    {
      Writer writer(on_crash_env(env, 2'000, 3));  // still full: it can be read
      const Status opened = writer.open();
      INFO(opened.to_string());
      REQUIRE(opened.ok());
      must_have(writer, next);
      writer.store().close();
    }
    env.set_space(SIZE_MAX);
    Writer writer(on_crash_env(env, 2'000, 3));
    REQUIRE(writer.open().ok());
    must_have(writer, next);
    const auto found = scan_rows(writer.store(), Space::kHost, "").size();
    next = static_cast<int>(found);  // one that failed may be there
    Status failed;
    REQUIRE(commit_until_full(writer, next, 60, failed) == 60);
    must_have(writer, next);
    writer.store().close();
  }
}

// A failed operation of each kind that making, writing or recycling a file does.
TEST_CASE("wherever the log meets a full disk, a restart has all that was acknowledged") {
  const auto committer = GENERATE(Committer::kPump, Committer::kThread);
  int failures = 0;
  for (int failing = 0; failing < 120; ++failing) {
    INFO("operation " << failing << " fails");
    CrashEnv env(static_cast<std::uint64_t>(failing));
    int acknowledged = 0;
    {
      RecordingSink sink;
      LevelDbOptions options = on_crash_env(env, 1'000, 3);
      options.committer = committer;
      LevelDbProcedureStore store("store", options);
      REQUIRE(store.recover_lease(sink).ok());
      std::atomic<int> operation = 0;
      env.set_fault([&](CrashEnv::Operation, const std::string& file) {
        const bool of_log = file.find(SegmentPool::kFilePrefix) != std::string::npos;
        return of_log && operation++ == failing
                   ? leveldb::Status::IOError(file, "No space left on device")
                   : leveldb::Status::OK();
      });
      std::deque<Request> requests;
      for (int i = 0; i < 40; ++i) {
        Request& request = requests.emplace_back();
        request.batch.insert(Space::kHost, std::to_string(100'000 + i), std::string(100, 'v'));
        store.commit(request);
        sink.wait_for(requests.size(), store);
        if (!request.status.ok()) {
          REQUIRE(request.status.code() == StatusCode::kStorageFull);
          ++failures;
          break;
        }
        ++acknowledged;
      }
      env.set_fault(nullptr);
      store.close();
    }
    env.crash(CrashEnv::TornTail::kRandom);
    env.reboot();
    Writer writer(on_crash_env(env, 1'000, 3));
    const Status opened = writer.open();
    INFO(opened.to_string());
    REQUIRE(opened.ok());
    must_have(writer, acknowledged);
    REQUIRE(writer.write("more").ok());
    writer.store().close();
  }
  REQUIRE(failures > 0);
}

// The zeros that did not fit are given back, so the database has the space to take the rows.
TEST_CASE("a file that does not fit on the disk takes no space from the database") {
  CrashEnv env;
  Writer writer(on_crash_env(env));  // the second file has 256 KiB
  REQUIRE(writer.open().ok());
  REQUIRE(writer.write("first").ok());
  env.set_space(used(env) + 200'000);
  int next = 0;
  Status failed;
  // 300 bytes each, so three times the first file.
  const int acknowledged = commit_until_full(writer, next, 600, failed);
  INFO(failed.to_string());
  REQUIRE(acknowledged == 600);
  writer.store().close();
}

}  // namespace
}  // namespace pv2::testing::full_disk_test
