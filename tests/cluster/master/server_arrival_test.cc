// SPDX-License-Identifier: Apache-2.0
//
// Servers that the master has not heard of yet. The random simulation has found these cases.

#include <pv2/procedures/add_peer.h>
#include <pv2/procedures/create_table.h>

#include "cluster/master/cluster_world.h"

namespace pv2::testing::server_arrival_test {
namespace {

using namespace pv2::testing::cluster_world;  // NOLINT: of the test
using namespace std::chrono_literals;

struct World : ClusterWorld {
  World() {
    start_master();
    start_server("rs1");
    run_until_quiet();
  }
};

}  // namespace

TEST_CASE("a peer is added: a server that the new master has not heard yet knows it at the end") {
  World world;
  REQUIRE(world.run(CreateTable(ports_elsewhere(), {{"default", "t"}, {"f"}})).status.ok());
  const ServerName server = world.servers().front();
  world.kill_master();
  world.stop_server(server);
  world.start_master();
  const ProcedureId added = world.submit(AddPeer(ports_elsewhere(), PeerRow{"p", {"/other", {}}}));
  world.run_for(2s);

  world.resume_server(server);
  CHECK(world.result_of(added).status.ok());

  REQUIRE(world.status_of(server).peers.size() == 1);
  CHECK(world.status_of(server).peers.front().peer.id == "p");
}

TEST_CASE("the logs of a server that died before the master heard of it are not left over") {
  World world;
  const ServerName unheard = world.start_server("rs2");
  world.kill_server(unheard);
  REQUIRE(world.files.exists(world.layout.wals(unheard)));

  world.run_for(7 * world.lease + 2 * world.lease);
  world.run_until_quiet();

  CHECK(!world.files.exists(world.layout.wals(unheard)));
  CHECK(!world.files.exists(world.layout.splitting(unheard)));
  CHECK(world.disorder().empty());
}

TEST_CASE("the directory that a dead server makes anew before it notices is removed") {
  const bool is_fenced = GENERATE(false, true);
  World world;
  world.start_server("rs2");
  world.run_for(1s);
  const ServerName dead = world.servers().front();
  world.kill_server(dead);
  world.run_for(2 * world.lease);
  world.run_until_quiet();
  REQUIRE(world.master().rows().server(dead).state == ServerState::kRetired);
  // As a server does that was slow to start. A second ServerCrash may have fenced it.
  const std::string directory = is_fenced ? world.layout.splitting(dead) : world.layout.wals(dead);
  REQUIRE(world.files.make_directories(directory).ok());
  REQUIRE(world.files.write(directory + "/u1", "nobody was told of it").ok());

  world.run_for(7 * world.lease);

  CHECK(!world.files.exists(directory));
}

}  // namespace pv2::testing::server_arrival_test
