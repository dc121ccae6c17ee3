// SPDX-License-Identifier: Apache-2.0
//
// ModifyTable and ReopenTableRegions: the new descriptor is everywhere, and every region was
// reopened, whatever fails on the way.

#include <pv2/procedures/reopen_table_regions.h>

#include <map>

#include "table_plots.h"

namespace pv2::testing::modify_table_test {
namespace {

const TableDescriptor kNew{{"default", "t"}, {"f1", "f2"}};

ProcedurePlot modifying() {
  return {.subject = modify_t(),
          .before = {create_t()},
          .arrange = write_rows,
          .check = [](MemoryCluster& cluster, Findings& findings) {
            expect_state(cluster, findings, TableState::kEnabled);
            findings.expect(cluster.snapshot().tables.at(0).descriptor == kNew,
                            "the table has the new descriptor");
            for (const RegionRow& row : cluster.snapshot().regions) {
              findings.expect(row.open_sequence > 1, "every region was reopened");
            }
            findings.expect(cluster.readable_rows(name_t()) == rows_of_t(), "no row is lost");
          }};
}
ProcedurePlot modifying_disabled() {
  return {.subject = modify_t(),
          .before = {create_t(), disable_t()},
          .check = [](MemoryCluster& cluster, Findings& findings) {
            expect_state(cluster, findings, TableState::kDisabled);
            findings.expect(cluster.snapshot().tables.at(0).descriptor == kNew,
                            "the table has the new descriptor");
          }};
}

}  // namespace

TEST_CASE("ModifyTable reopens every region with the new descriptor, whichever call fails") {
  CHECK(check_faults(modifying()) > 100);
}
TEST_CASE("ModifyTable of a disabled table opens nothing, whichever call fails") {
  CHECK(check_faults(modifying_disabled()) >= 5 * 4 * 2);
}
TEST_CASE("ModifyTable can be aborted until the descriptor is written") {
  CHECK(check_aborts(modifying()) >= 3);
}
TEST_CASE("ModifyTable ends the same whichever store write the machine crashes at") {
  check_crashes(modifying());
  check_crashes(modifying_disabled());
}
TEST_CASE(
    "ModifyTable that is aborted ends the same whichever store write the machine crashes at") {
  check_crashes_in_rollback(modifying());
}

TEST_CASE("ModifyTable refuses what it cannot change, and what was changed by someone else") {
  check_refused({
      {modify_t(), {}, StatusCode::kNotFound, "table default:t does not exist"},
      {modify_t({name_t(), {}}), {create_t()}, StatusCode::kInvalidArgument, "no column family"},
      {modify_t({meta_table(), {"f"}}), {}, StatusCode::kFailedPrecondition, "holds the catalogue"},
      {modify_t(kNew, TableDescriptor{name_t(), {"f7"}}),
       {create_t()},
       StatusCode::kFailedPrecondition,
       "it was modified meanwhile"},
  });
}

TEST_CASE("of two clients that change the same descriptor one is told to read it again") {
  MemoryCluster cluster(Delivery::kQueued);
  (void)cluster.add_server("rs1");
  DeterministicExecutor executor(cluster);
  executor.open();
  REQUIRE(create_t().submit(executor, cluster).ok());
  executor.run();

  const auto one = modify_t({name_t(), {"f1", "one"}}, table_t()).submit(executor, cluster);
  const auto two = modify_t({name_t(), {"f1", "two"}}, table_t()).submit(executor, cluster);
  executor.run();

  CHECK(executor.result(*one).state == ProcedureState::kSuccess);
  CHECK(executor.result(*two).status.code() == StatusCode::kFailedPrecondition);
  CHECK(disorder(cluster).empty());
}

TEST_CASE("regions are reopened in batches of 1, 2, 4 and so on, and never more than 64") {
  const bool restarts = GENERATE(false, true);  // between the batches
  MemoryCluster cluster(Delivery::kQueued);
  for (const char* server : {"rs1", "rs2", "rs3"}) (void)cluster.add_server(server);
  DeterministicExecutor executor(cluster);
  executor.open();
  REQUIRE(create_t(200).submit(executor, cluster).ok());
  executor.run();

  const auto id = modify_t().submit(executor, cluster);
  std::vector<std::size_t> batches;
  std::vector<std::string> progress;
  ListFilter transits;
  transits.type = "cluster.TransitRegionState";
  ListFilter reopens;
  reopens.type = "cluster.ReopenTableRegions";
  reopens.with_fields = true;
  for (ProcedureId last{}; executor->inspect().live_procedures() > 0;) {
    const auto more = executor->inspect().list(transits, last, 500).procedures;
    if (!more.empty()) {
      batches.push_back(more.size());
      last = more.back().id;
      if (restarts) {
        executor.crash();
        executor.open();
      }
      progress.push_back(executor->inspect().list(reopens).procedures.at(0).progress);
    }
    if (executor->run_until_idle(1) > 0 || cluster.deliver_one()) continue;
    if (cluster.deliver_reports(*executor) == 0) executor.let_pass(std::chrono::seconds(1));
  }

  CHECK(executor.result(*id).state == ProcedureState::kSuccess);
  CHECK(batches == std::vector<std::size_t>{1, 2, 4, 8, 16, 32, 64, 64, 9});
  CHECK(progress.front() == "0 of 1 regions; 0 of the table's 200 regions reopened before");
  CHECK(progress.back() == "0 of 9 regions; 191 of the table's 200 regions reopened before");
  CHECK(disorder(cluster).empty());
}

TEST_CASE("a region that a crash has reopened meanwhile is not reopened once more") {
  MemoryCluster cluster(Delivery::kQueued);
  const ServerName dying = cluster.add_server("rs1");
  (void)cluster.add_server("rs2");
  DeterministicExecutor executor(cluster);
  executor.open();
  REQUIRE(create_t().submit(executor, cluster).ok());
  executor.run();
  write_rows(cluster);

  const auto modify = modify_t().submit(executor, cluster);
  for (int turn = 0; turn < 20; ++turn) {
    if (executor->run_until_idle(1) == 0) (void)cluster.deliver_one();
  }
  cluster.kill_server(dying);
  (void)executor.submit(ServerCrash(cluster.ports(), dying), crash_nonce(dying));
  executor.run();
  const auto crash = executor.submit(ServerCrash(cluster.ports(), dying), crash_nonce(dying));

  CHECK(executor.result(*modify).state == ProcedureState::kSuccess);
  CHECK(executor.result(*crash).state == ProcedureState::kSuccess);
  CHECK(cluster.readable_rows(name_t()) == rows_of_t());
  CHECK(disorder(cluster) == "");
}

}  // namespace pv2::testing::modify_table_test
