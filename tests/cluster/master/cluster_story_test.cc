// SPDX-License-Identifier: Apache-2.0
//
// A whole cluster: tables are created and used while servers and masters die.

#include <pv2/procedures/create_table.h>
#include <pv2/procedures/delete_table.h>
#include <pv2/procedures/disable_table.h>

#include "cluster/master/cluster_world.h"

namespace pv2::testing::cluster_story_test {
namespace {

using namespace pv2::testing::cluster_world;  // NOLINT: of the test
using namespace std::chrono_literals;

const TableName kTable{"default", "t"};

CreateTable create(std::size_t regions) {
  return {ports_elsewhere(), {kTable, {"f"}}, even_split_keys(regions)};
}

struct World : ClusterWorld {
  World() {
    start_master();
    for (const char* host : {"rs1", "rs2", "rs3"}) start_server(host);
    run_until_quiet();
  }
};

}  // namespace

TEST_CASE("a new cluster makes its catalogue, a table is created, and rows are read and written") {
  World world;
  CHECK(world.run(create(4)).status.to_string() == "OK");
  const auto client = world.connect();
  CHECK(world.put(*client, kTable, "a", "1").ok());
  CHECK(world.put(*client, kTable, "z", "2").ok());
  CHECK(world.get(*client, kTable, "a") == "1");
  CHECK(world.get(*client, kTable, "z") == "2");
  CHECK(world.disorder().empty());
}

TEST_CASE("a server that leaves is not waited for, and nothing is missed") {
  World world;
  REQUIRE(world.run(create(6)).status.ok());
  const auto client = world.connect();
  REQUIRE(world.put(*client, kTable, "a", "1").ok());
  const SteadyTime begin = world.clock->steady_now();
  for (const ServerName& server : world.servers()) {
    if (world.servers().size() > 1) world.end_server(server);
    world.run_until_quiet();
  }
  CHECK(world.regions_on(world.servers().front()).size() == 7);
  CHECK(world.get(*client, kTable, "a") == "1");
  CHECK(world.put(*client, kTable, "z", "2").ok());
  // By the manual clock: two leases have ten seconds each.
  CHECK(world.clock->steady_now() - begin < 10s);
}

TEST_CASE("a server dies, also the one with the catalogue: what was acknowledged is read") {
  World world;
  REQUIRE(world.run(create(6)).status.ok());
  const auto client = world.connect();
  for (int i = 0; i < 60; ++i) {
    REQUIRE(world.put(*client, kTable, std::string(1, static_cast<char>(4 * i)), "v").ok());
  }
  world.start_server("rs4");
  const ServerName victim = world.master().servers().meta.server;
  world.kill_server(victim);
  world.run_for(15s);
  world.run_until_quiet();
  CHECK(world.master().servers().meta.server != victim);
  CHECK(world.disorder().empty());
  for (int i = 0; i < 60; ++i) {
    CHECK(world.get(*client, kTable, std::string(1, static_cast<char>(4 * i))) == "v");
  }
}

TEST_CASE("the master dies while a table is created: the next master finishes it") {
  World world;
  const ProcedureId id = world.submit(create(5), Nonce{7, 7});
  world.kill_master();
  world.run_for(1s);
  world.start_master();
  CHECK(world.result_of(id).status.to_string() == "OK");
  CHECK(world.disorder().empty());
  const auto client = world.connect();
  CHECK(world.put(*client, kTable, "a", "1").ok());
}

TEST_CASE("a whole cluster ends and starts again") {
  World world;
  REQUIRE(world.run(create(5)).status.ok());
  const auto client = world.connect();
  REQUIRE(world.put(*client, kTable, "a", "1").ok());
  world.kill_master();
  for (const ServerName& name : world.servers()) world.kill_server(name);
  world.start_master();
  for (const char* host : {"rs1", "rs2"}) world.start_server(host);
  world.run_for(15s);
  world.run_until_quiet();
  CHECK(world.get(*client, kTable, "a") == "1");
  CHECK(world.disorder().empty());
  CHECK(world.run(DisableTable(ports_elsewhere(), kTable)).status.to_string() == "OK");
  CHECK(world.run(DeleteTable(ports_elsewhere(), kTable)).status.to_string() == "OK");
}

}  // namespace pv2::testing::cluster_story_test
