// SPDX-License-Identifier: Apache-2.0
//
// EnableTable: all regions are open, where they were if possible, whatever fails on the way.

#include <pv2/procedures/enable_peer.h>
#include <pv2/procedures/enable_table.h>
#include <pv2/procedures/remove_peer.h>

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

TEST_CASE("EnableTable does not end while a region is closed by a crash that came meanwhile") {
  std::size_t closed_again = 0;
  for (int turns = 0;; ++turns) {
    CAPTURE(turns);
    MemoryCluster cluster(Delivery::kQueued);
    const ServerName dying = cluster.add_server("rs1");
    for (const char* host : {"rs2", "rs3"}) (void)cluster.add_server(host);
    DeterministicExecutor executor(cluster);
    executor.open();
    for (const PlotOperation& operation : {create_t(6), disable_t()}) {
      REQUIRE(operation.submit(executor, cluster).ok());
      executor.run();
    }
    const auto id = enable_t().submit(executor, cluster);
    std::set<std::string> closed;  // while EnableTable waited for its children
    bool killed = false;
    for (int turn = 0; executor->inspect().live_procedures() > 0; ++turn) {
      if (turn == turns) {
        killed = true;
        cluster.kill_server(dying);
        (void)executor.submit(ServerCrash(cluster.ports(), dying), crash_nonce(dying));
      }
      const Result<ProcedureInfo> enabling = executor->inspect().describe(*id);
      for (const RegionRow& row : cluster.snapshot().regions) {
        if (row.state != RegionState::kAbnormallyClosed) continue;
        if (enabling.ok() && enabling->state == ProcedureState::kWaiting) {
          closed.insert(row.region.id);
        }
        // Once EnableTable has ended, none of those is left.
        if (!enabling.ok()) CHECK_FALSE(closed.contains(row.region.id));
      }
      if (executor->run_until_idle(1) > 0 || cluster.deliver_one()) continue;
      if (cluster.deliver_reports(*executor) == 0) executor.let_pass(std::chrono::seconds(1));
    }
    closed_again += closed.size();
    CHECK(disorder(cluster).empty());
    if (!killed) break;
  }
  CHECK(closed_again > 0);
}

TEST_CASE("a table or a peer whose name no file can have is refused") {
  MemoryCluster cluster;
  DeterministicExecutor executor(cluster);
  executor.open();
  const std::string name(300, 'x');
  const auto table = executor.submit(EnableTable(cluster.ports(), {"default", name}));
  const auto enable = executor.submit(EnablePeer(cluster.ports(), name));
  const auto remove = executor.submit(RemovePeer(cluster.ports(), name));
  executor.settle();

  CHECK(executor.result(*table).status.code() == StatusCode::kNotFound);
  CHECK(executor.result(*enable).status.code() == StatusCode::kInvalidArgument);
  CHECK(executor.result(*remove).status.code() == StatusCode::kInvalidArgument);
}

}  // namespace pv2::testing::enable_table_test
