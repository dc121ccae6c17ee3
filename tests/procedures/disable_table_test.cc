// SPDX-License-Identifier: Apache-2.0
//
// DisableTable and CloseTableRegions: all regions are closed, with their edits in their files,
// whatever fails on the way and whichever server dies.

#include <pv2/procedures/close_table_regions.h>

#include "table_plots.h"

namespace pv2::testing::disable_table_test {
namespace {

ProcedurePlot disabling() {
  return {.subject = disable_t(),
          .before = {create_t()},
          .arrange = write_rows,
          .check = [](MemoryCluster& cluster, Findings& findings) {
            expect_state(cluster, findings, TableState::kDisabled);
          }};
}

}  // namespace

TEST_CASE("DisableTable closes every region, whichever call fails") {
  CHECK(check_faults(disabling()) > 100);
}
TEST_CASE("DisableTable can be aborted until the table is DISABLING") {
  CHECK(check_aborts(disabling()) >= 4);
}
TEST_CASE("DisableTable ends the same whichever store write the machine crashes at") {
  check_crashes(disabling());
}
TEST_CASE(
    "DisableTable that is aborted ends the same whichever store write the machine crashes at") {
  check_crashes_in_rollback(disabling());
}

TEST_CASE("DisableTable refuses a table that is not there or disabled already") {
  check_refused({
      {disable_t(), {}, StatusCode::kNotFound, "table default:t does not exist"},
      {disable_t(), {create_t(), disable_t()}, StatusCode::kFailedPrecondition, "disabled already"},
      {disable_t(meta_table()), {}, StatusCode::kFailedPrecondition, "holds the catalogue"},
  });
}

TEST_CASE("the rows of a table that was disabled can be read when it is enabled again") {
  ProcedurePlot plot = disabling();
  plot.subject = enable_t();
  plot.before = {create_t(), disable_t()};
  plot.arrange = {};
  MemoryCluster cluster;
  (void)cluster.add_server("rs1");
  DeterministicExecutor executor(cluster);
  executor.open();
  REQUIRE(create_t().submit(executor, cluster).ok());
  executor.run();
  write_rows(cluster);

  REQUIRE(disable_t().submit(executor, cluster).ok());
  executor.run();
  CHECK(cluster.readable_rows(name_t()).empty());
  REQUIRE(enable_t().submit(executor, cluster).ok());
  executor.run();

  CHECK(cluster.readable_rows(name_t()) == rows_of_t());
  CHECK(disorder(cluster).empty());
}

TEST_CASE("a table that an operation has left ENABLING or DISABLING can be disabled") {
  const TableState left = GENERATE(TableState::kEnabling, TableState::kDisabling);
  ProcedurePlot plot = disabling();
  plot.arrange = [left](MemoryCluster& cluster) {
    CatalogueWrite write;
    write.effect_key = "by hand";
    write.tables = {{table_t(), left}};
    cluster.ports().catalogue.write(std::move(write), nobody<Result<Applied>>());
    (void)cluster.deliver_all();
  };

  ProcedureDrill drill(plot);
  drill.run([] {});

  drill.check_success();
}

TEST_CASE("DisableTable and the crash of a server at any moment of it lose no row") {
  const bool crash_comes_first = GENERATE(false, true);
  std::size_t turns = 1000;
  for (std::size_t moment = 0; moment < turns; ++moment) {
    CAPTURE(moment);
    MemoryCluster cluster(Delivery::kQueued);
    const ServerName dying = cluster.add_server("rs1");
    (void)cluster.add_server("rs2");
    DeterministicExecutor executor(cluster);
    executor.open();
    REQUIRE(create_t().submit(executor, cluster).ok());
    executor.run();
    write_rows(cluster);

    // In the middle of everything the answer may not come at once: it is asked for again.
    const auto submitted = [&](auto procedure, Nonce nonce) {
      for (;;) {
        if (const auto id = executor.submit(procedure, nonce); id.ok()) return *id;
      }
    };
    ProcedureId disable;
    const auto begin = [&](bool crash) {
      if (!crash) {
        disable = submitted(DisableTable(cluster.ports(), name_t()), {1, 1});
        return;
      }
      cluster.kill_server(dying);
      (void)submitted(ServerCrash(cluster.ports(), dying), crash_nonce(dying));
    };
    begin(crash_comes_first);
    std::size_t turn = 0;
    for (; turn < moment && executor->inspect().live_procedures() > 0; ++turn) {
      if (executor->run_until_idle(1) > 0 || cluster.deliver_one()) continue;
      if (cluster.deliver_reports(*executor) == 0) executor.let_pass(std::chrono::seconds(1));
    }
    if (turn < moment) turns = turn;  // the last play: it had ended before
    begin(!crash_comes_first);
    while (executor->inspect().live_procedures() > 0) {
      // When DisableTable ends every region is closed, and not only when ServerCrash ends.
      if (!executor->inspect().describe(disable).ok()) {
        for (const RegionRow& row : cluster.snapshot().regions) {
          REQUIRE(row.state == RegionState::kClosed);
        }
      }
      if (executor->run_until_idle(1) > 0 || cluster.deliver_one()) continue;
      if (cluster.deliver_reports(*executor) == 0) executor.let_pass(std::chrono::seconds(1));
    }
    const auto crash = executor.submit(ServerCrash(cluster.ports(), dying), crash_nonce(dying));

    REQUIRE(executor.result(disable).state == ProcedureState::kSuccess);
    REQUIRE(executor.result(*crash).state == ProcedureState::kSuccess);
    REQUIRE(disorder(cluster) == "");
    REQUIRE(enable_t().submit(executor, cluster).ok());
    executor.run();
    REQUIRE(cluster.readable_rows(name_t()) == rows_of_t());
  }
  CHECK(turns < 1000);
}

}  // namespace pv2::testing::disable_table_test
