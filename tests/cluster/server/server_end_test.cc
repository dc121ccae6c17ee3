// SPDX-License-Identifier: Apache-2.0
//
// When a server ends itself, and what it is not to be moved by.

#include <chrono>

#include "cluster/server/region_world.h"
#include "storage/log_directories.h"

namespace pv2::testing::server_end_test {
namespace {

using namespace region_world;  // NOLINT
using namespace std::chrono_literals;

}  // namespace

TEST_CASE("a deposed master does not end a server") {
  World world;
  const ServerName server = world.start("rs1");
  world.start_master(2);
  world.run_until([&] { return world.process(server).server->status().epoch == 2; });

  world.start_master(1);
  world.dead.insert(server);
  const std::size_t before = world.heartbeats;
  world.run_until([&] { return world.heartbeats > before + 3; });

  CHECK_FALSE(world.process(server).end.has_value());
}

TEST_CASE("a server that has heard of no master for too long ends itself") {
  World world;
  const ServerName server =
      world.start("rs1", [](RegionServerOptions& options) { options.silence_max = 1min; });
  world.stop_master();

  world.run_for(50s);
  CHECK_FALSE(world.process(server).end.has_value());
  world.run_for(20s);

  REQUIRE(world.process(server).end.has_value());
  CHECK(world.process(server).end->code() == StatusCode::kDeadlineExceeded);
}

// Changes of peers do not wait for such a server, so it must not ship any more.
TEST_CASE("a server that the master has taken for dead, or that leaves, has no lease") {
  World world;
  const ServerName server = world.start("rs1");
  world.run_for(5s);
  REQUIRE(world.process(server).check_lease().ok());

  if (GENERATE(false, true)) {
    world.dead.insert(server);
    world.run_until([&] { return world.process(server).end.has_value(); });
  } else {
    world.process(server).server->stop([] {});
    world.run_until([&] { return world.left.contains(server); });
  }

  CHECK(world.process(server).check_lease().code() == StatusCode::kUnavailable);
  world.run_for(5s);
  CHECK(world.process(server).check_lease().code() == StatusCode::kUnavailable);
}

TEST_CASE("a server that finds the fence while it opens a region ends itself") {
  World world;
  const ServerName server = world.start("rs1");
  REQUIRE(LogDirectories(world.files, world.layout).fence(server).ok());

  world.dispatch(server, {world.order(RemoteKind::kOpenRegion, server, kRegion)});
  world.run_for(1s);

  CHECK(world.reports.empty());
  REQUIRE(world.process(server).end.has_value());
  CHECK(world.process(server).end->code() == StatusCode::kFenced);
}

TEST_CASE("a server that finds a later opening of its region ends itself") {
  World world;
  const ServerName old = world.start("rs1");
  const ServerName other = world.start("rs2");
  world.open(kRegion, old);
  result_of(world.call(old, kRegionWrite, put_body("a", "1"), once(1)));
  // A master that had fenced the old server and split its logs would do this.
  world.open(kRegion, other);

  const std::string region = encoded(RegionRequest{"r1"});
  CHECK_FALSE(world.call(old, kRegionFlush, region, reading()).ok());

  REQUIRE(world.process(old).end.has_value());
  CHECK(world.process(old).end->code() == StatusCode::kFenced);
  CHECK_FALSE(world.process(other).end.has_value());
}

}  // namespace pv2::testing::server_end_test
