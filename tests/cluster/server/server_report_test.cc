// SPDX-License-Identifier: Apache-2.0
//
// What a server tells the master, and where it looks for the master.

#include <pv2/rpc/rpc_server.h>

#include <chrono>

#include "cluster/server/region_world.h"

namespace pv2::testing::server_report_test {
namespace {

using namespace region_world;  // NOLINT
using namespace std::chrono_literals;

}  // namespace

TEST_CASE("a copy of a dispatch that comes minutes later does nothing") {
  World world;
  const ServerName server = world.start("rs1");
  const auto open = world.order(RemoteKind::kOpenRegion, server, kRegion);
  world.dispatch(server, {open});
  REQUIRE(world.report_of(open).done);

  world.run_for(30min);
  CHECK(world.dispatch(server, {open}).answers.at(0).accepted);
  world.run_for(1s);

  CHECK(world.reports.size() == 1);
}

TEST_CASE("a report says which master the server has heard") {
  World world;
  const ServerName server = world.start("rs1");
  world.start_master(7);
  const auto open = world.order(RemoteKind::kOpenRegion, server, kRegion);
  world.dispatch(server, {open}, 7);
  world.report_of(open);

  CHECK(world.reported_epoch == 7);
}

TEST_CASE("a region is opened with a sequence above the one that the master knows") {
  World world;
  const ServerName server = world.start("rs1");
  auto open = world.order(RemoteKind::kOpenRegion, server, kRegion);
  open.sequence = 1000;
  world.dispatch(server, {open});

  CHECK(world.report_of(open).sequence > 1000);
  CHECK(world.process(server).server->status().regions.at(0).sequence > 1000);
}

TEST_CASE("reports on regions with long keys go in messages that the master takes") {
  World world;
  const ServerName server = world.start("rs1");
  const std::string padding(2048, 'k');
  const auto key = [&](int i) { return padding + std::to_string(10'000 + i); };
  std::vector<RegionInfo> regions;
  for (int i = 0; i < 1100; ++i) {
    regions.push_back({kTable, "r" + std::to_string(10'000 + i), key(i), key(i + 1)});
  }
  // Nobody takes a report before all of them wait.
  world.stop_master();
  std::vector<RemoteOperation> orders;
  for (const RegionInfo& region : regions) {
    orders.push_back(world.order(RemoteKind::kRefreshPeer, server, region));
    orders.back().peer = region.id;
  }
  for (std::size_t i = 0; i < orders.size(); i += 100) {
    world.dispatch(server, {orders.begin() + static_cast<std::ptrdiff_t>(i),
                            orders.begin() + static_cast<std::ptrdiff_t>(i + 100)});
  }
  world.start_master(1);

  world.run_until([&] { return world.reports.size() >= orders.size(); });

  CHECK(world.reports.size() == orders.size());
}

TEST_CASE("a server leaves a master that still answers when another one has taken its place") {
  World world;
  world.start("rs1");
  const std::size_t before = world.heartbeats;
  world.run_until([&] { return world.heartbeats > before; });

  std::size_t heartbeats = 0;
  RpcServerOptions options{.transport = world.transport, .address = "next:0"};
  options.methods[std::string(kMasterHeartbeat)] = [&](IncomingCall call) {
    ++heartbeats;
    call.reply(encoded(HeartbeatReply{2, 10s, false}));
  };
  auto next = RpcServer::open(std::move(options));
  REQUIRE(next.ok());
  REQUIRE(world.files.write(world.layout.master_address(), (*next)->address()).ok());

  world.run_until([&] { return heartbeats >= 3; });
}

}  // namespace pv2::testing::server_report_test
