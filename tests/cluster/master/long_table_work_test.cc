// SPDX-License-Identifier: Apache-2.0
//
// The master's work on the files of a large table takes minutes: nobody but that table waits.

#include <pv2/procedures/create_table.h>
#include <pv2/procedures/delete_table.h>
#include <pv2/procedures/disable_table.h>

#include "cluster/master/cluster_world.h"

namespace pv2::testing::long_table_work_test {

using namespace pv2::testing::cluster_world;  // NOLINT: of the test

TEST_CASE("a server that dies is recovered while the files of a large table are being moved") {
  const TableName large{"default", "large"};
  const TableName other{"default", "t"};
  ClusterWorld world;
  world.start_master();
  for (const char* host : {"rs1", "rs2", "rs3"}) world.start_server(host);
  world.run_until_quiet();
  for (const TableName& table : {large, other}) {
    REQUIRE(
        world.run(CreateTable(ports_elsewhere(), {table, {"f"}}, even_split_keys(6))).status.ok());
  }
  const auto client = world.connect();
  REQUIRE(world.put(*client, other, "a", "1").ok());
  REQUIRE(world.run(DisableTable(ports_elsewhere(), large)).status.ok());

  world.hold_table_work = true;
  const ProcedureId deletion = world.submit(DeleteTable(ports_elsewhere(), large));
  const bool has_catalogue = GENERATE(false, true);
  ServerName dead = world.master().servers().meta.server;
  for (const ServerName& server : world.servers()) {
    if (!has_catalogue && server != world.master().servers().meta.server) dead = server;
  }
  world.kill_server(dead);
  world.run_until(
      [&] { return world.master().rows().server(dead).state == ServerState::kRetired; });

  CHECK(world.get(*client, other, "a") == "1");
  CHECK(world.put(*client, other, "b", "2").ok());
  world.hold_table_work = false;
  CHECK(world.result_of(deletion).status.to_string() == "OK");
  world.run_until_quiet();
  CHECK(world.disorder().empty());
}

}  // namespace pv2::testing::long_table_work_test
