// SPDX-License-Identifier: Apache-2.0
//
// EnableTable: all regions are open, where they were if possible, whatever fails on the way.

#include <map>

#include "table_plots.h"

namespace pv2::testing::enable_table_test {
namespace {

ProcedurePlot enabling() {
  return {.subject = enable_t(),
          .before = {create_t(), disable_t()},
          .check = [](MemoryCluster& cluster, Findings& findings) {
            expect_state(cluster, findings, TableState::kEnabled);
          }};
}

std::map<std::string, ServerName> homes(const MemoryCluster& cluster) {
  std::map<std::string, ServerName> homes;
  for (const RegionRow& row : cluster.snapshot().regions) homes[row.region.id] = row.server;
  return homes;
}

}  // namespace

TEST_CASE("EnableTable opens every region, whichever call fails") {
  CHECK(check_faults(enabling()) > 100);
}
TEST_CASE("EnableTable can be aborted until the table is ENABLING") {
  CHECK(check_aborts(enabling()) >= 4);
}
TEST_CASE("EnableTable ends the same whichever store write the machine crashes at") {
  check_crashes(enabling());
}
TEST_CASE(
    "EnableTable that is aborted ends the same whichever store write the machine crashes at") {
  check_crashes_in_rollback(enabling());
}

TEST_CASE("EnableTable refuses a table that is not there or not disabled") {
  check_refused({
      {enable_t(), {}, StatusCode::kNotFound, "table default:t does not exist"},
      {enable_t(), {create_t()}, StatusCode::kFailedPrecondition, "is ENABLED, not DISABLED"},
      {enable_t(),
       {create_t(), disable_t()},
       StatusCode::kFailedPrecondition,
       "has no descriptor in its directory",
       [](MemoryCluster& cluster) {
         cluster.ports().files.archive_table(name_t(), "by hand", nobody<Status>());
         (void)cluster.deliver_all();
       }},
  });
}

TEST_CASE("EnableTable opens each region on the server that had it last, and all rows are there") {
  std::map<std::string, ServerName> before;
  ProcedurePlot plot = enabling();
  plot.servers = {"rs1", "rs2", "rs3"};
  plot.arrange = [&](MemoryCluster& cluster) {
    before = homes(cluster);
    (void)cluster.add_server("rs0");  // the first in order of name
  };

  ProcedureDrill drill(plot);
  drill.run([] {});

  drill.check_success();
  CHECK(homes(drill.cluster()) == before);
}

TEST_CASE("EnableTable opens regions elsewhere when their last server is gone") {
  ProcedurePlot plot = enabling();
  plot.before.push_back(crash_first());

  ProcedureDrill drill(plot);
  drill.run([] {});

  drill.check_success();
}

}  // namespace pv2::testing::enable_table_test
