// SPDX-License-Identifier: Apache-2.0
//
// When a region refuses: while it closes, and after its log has failed.

#include <memory>
#include <optional>

#include "storage_fixture.h"

namespace pv2::testing::region_refusal_test {
namespace {

/// A log that answers when the test says so.
class TestLog final : public cluster::EntryLog {
 public:
  void append(cluster::WalEntry, Done done) override { waiting = std::move(done); }
  Done waiting;
};

struct OpenRegion {
  OpenRegion() : server(disk, 1) {
    disk.make_table({whole_table()});
    REQUIRE(server.start().ok());
    REQUIRE(server.open(whole_table(), 1).ok());
  }
  /// The answer, if there is one already.
  std::optional<Status> write(cluster::EntryLog& log) {
    const auto answer = std::make_shared<std::optional<Status>>();
    server.region().write(
        {.mutations = {put("a", "1")}}, log,
        [answer](const Result<cluster::WriteResult>& done) { *answer = done.status(); });
    return *answer;
  }
  Disk disk;
  StorageServer server;
};

}  // namespace

TEST_CASE("cluster: a region refuses everything after its log has failed") {
  OpenRegion open;
  TestLog log;
  std::optional<Status> answer;
  open.server.region().write(
      {.mutations = {put("a", "1")}}, log,
      [&](const Result<cluster::WriteResult>& done) { answer = done.status(); });
  log.waiting({StatusCode::kStorageFull, "the disk is gone"});
  REQUIRE(answer.has_value());
  REQUIRE(answer->code() == StatusCode::kStorageFull);

  REQUIRE(open.server.region().status().code() == StatusCode::kStorageFull);
  REQUIRE_FALSE(open.server.region().get("a").ok());
  REQUIRE_FALSE(open.server.write({put("b", "1")}).ok());
  REQUIRE_FALSE(open.server.flush().ok());
}

TEST_CASE("cluster: a scan waits for the writes before it, and for none after the log has failed") {
  OpenRegion open;
  TestLog log;
  REQUIRE_FALSE(open.write(log));
  int scans = 0;
  open.server.region().when_visible([&] { ++scans; });
  CHECK(scans == 0);

  // The write never becomes visible.
  log.waiting({StatusCode::kStorageFull, "the disk is gone"});
  CHECK(scans == 1);
  open.server.region().when_visible([&] { ++scans; });
  CHECK(scans == 2);
}

TEST_CASE("cluster: a region that closes takes no write, and waits for those under way") {
  OpenRegion open;
  TestLog log;
  bool is_acknowledged = false;
  open.server.region().write(
      {.mutations = {put("a", "1")}}, log,
      [&](const Result<cluster::WriteResult>& done) { is_acknowledged = done.ok(); });
  std::optional<Status> closed;
  open.server.region().close([&](const Result<std::uint64_t>& done) { closed = done.status(); });
  open.server.work.run_all();
  REQUIRE_FALSE(closed.has_value());

  const std::optional<Status> late = open.write(*open.server.log);
  REQUIRE(late.has_value());
  REQUIRE(late->code() == StatusCode::kUnavailable);
  log.waiting({});
  open.server.work.run_all();

  REQUIRE(is_acknowledged);
  REQUIRE(closed.has_value());
  REQUIRE(closed->ok());
  REQUIRE(open.server.open(whole_table(), 2).ok());
  REQUIRE(rows_of(open.server.region()).at("a") == "1");
}

}  // namespace pv2::testing::region_refusal_test
