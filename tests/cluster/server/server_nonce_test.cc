// SPDX-License-Identifier: Apache-2.0
//
// For how long a server and its regions remember a write with a nonce, and what they do when two
// regions know the same nonce.

#include <chrono>

#include "cluster/server/region_world.h"

namespace pv2::testing::server_nonce_test {
namespace {

using namespace region_world;  // NOLINT
using namespace std::chrono_literals;

void short_retention(RegionServerOptions& options) { options.nonce_retention = 1min; }

}  // namespace

TEST_CASE("a write is remembered for as long as its client may send it") {
  World world;
  const ServerName server = world.start("rs1", short_retention);
  world.open(kRegion, server);
  CallOptions options = once(1);
  options.expires_at = world.clock->wall_now() + 10min;
  const WriteResult result = result_of(world.call(server, kRegionWrite, add_body("a"), options));

  world.run_for(9min);
  CHECK(result_of(world.call(server, kRegionWrite, add_body("a"), options)) == result);

  world.move(kRegion, world.start("rs2", short_retention));
  const ServerName second = world.rows.at(kRegion.id).server;
  CHECK(result_of(world.call(second, kRegionWrite, add_body("a"), options)) == result);
}

TEST_CASE("a compaction keeps nonces that a client may still send") {
  World world;
  const ServerName first = world.start("rs1");
  const ServerName second = world.start("rs2");
  world.open(kRegion, first);
  const WriteResult result = result_of(world.call(first, kRegionWrite, add_body("a"), once(1)));
  world.run_for(10min);
  REQUIRE(world.call(first, kRegionFlush, encoded(RegionRequest{"r1"}), reading()).ok());
  REQUIRE(world.call(first, kRegionCompact, encoded(RegionRequest{"r1"}), reading()).ok());

  world.move(kRegion, second);

  CHECK(result_of(world.call(second, kRegionWrite, add_body("a"), once(1))) == result);
}

TEST_CASE("an opening waits for a write under way with a nonce that the region knows") {
  World world;
  const TableName table{"default", "u"};
  const RegionInfo other = whole_table(table, "r2");
  world.make_table(table, {"f"}, {other});
  const ServerName first = world.start("rs1");
  const ServerName second = world.start("rs2");
  world.open(kRegion, first);
  world.open(other, second);
  const WriteResult result = result_of(world.call(first, kRegionWrite, add_body("a"), once(1)));
  world.close(kRegion);
  // A client that uses a nonce twice.
  world.process(second).holds_calls = true;
  world.process(second).link->call(std::string(kRegionWrite), put_body("a", "1", 0, "r2"),
                                   once(1, 1min), [](const CallOutcome&) {});
  world.settle();

  const auto open = world.order(RemoteKind::kOpenRegion, second, kRegion);
  const std::size_t reports = world.reports.size();
  world.dispatch(second, {open});
  world.run_for(1s);
  CHECK(world.reports.size() == reports);
  world.process(second).holds_calls = false;

  CHECK(world.report_of(open).done);
}

}  // namespace pv2::testing::server_nonce_test
