// SPDX-License-Identifier: Apache-2.0
//
// TruncateTable: the table is enabled and empty, with new regions, whatever fails on the way.

#include <pv2/procedures/merge_table_regions.h>
#include <pv2/procedures/split_table_region.h>

#include "region_world.h"
#include "table_plots.h"

namespace pv2::testing::truncate_table_test {
namespace {

ProcedurePlot truncating(TruncateSplits splits = TruncateSplits::kPreserve) {
  return {.subject = truncate_t(splits),
          .before = {create_t(), disable_t()},
          .check = [splits](MemoryCluster& cluster, Findings& findings) {
            expect_state(cluster, findings, TableState::kEnabled);
            const std::size_t regions = splits == TruncateSplits::kPreserve ? 3 : 1;
            findings.expect(cluster.snapshot().regions.size() == regions, "it has its regions");
            findings.expect(cluster.readable_rows(name_t()).empty(), "it is empty");
          }};
}

}  // namespace

TEST_CASE("TruncateTable leaves an empty table, whichever call fails") {
  CHECK(check_faults(truncating()) > 100);
  CHECK(check_faults(truncating(TruncateSplits::kDrop)) > 80);
}
TEST_CASE("TruncateTable can be aborted until the files go") {
  CHECK(check_aborts(truncating()) >= 6);
}
TEST_CASE("TruncateTable ends the same whichever store write the machine crashes at") {
  check_crashes(truncating());
}
TEST_CASE(
    "TruncateTable that is aborted ends the same whichever store write the machine crashes at") {
  check_crashes_in_rollback(truncating());
}

TEST_CASE("TruncateTable refuses a table that is not there or not disabled") {
  check_refused({
      {truncate_t(TruncateSplits::kDrop), {}, StatusCode::kNotFound, "does not exist"},
      {truncate_t(TruncateSplits::kDrop),
       {create_t()},
       StatusCode::kFailedPrecondition,
       "is ENABLED, not DISABLED"},
      {truncate_t(TruncateSplits::kDrop, meta_table()),
       {},
       StatusCode::kFailedPrecondition,
       "holds the catalogue"},
  });
}

TEST_CASE("TruncateTable removes the rows, and keeps no region of before") {
  MemoryCluster cluster;
  (void)cluster.add_server("rs1");
  DeterministicExecutor executor(cluster);
  executor.open();
  REQUIRE(create_t().submit(executor, cluster).ok());
  executor.run();
  write_rows(cluster);
  std::set<std::string> old;
  for (const RegionRow& row : cluster.snapshot().regions) old.insert(row.region.id);
  REQUIRE(disable_t().submit(executor, cluster).ok());
  executor.run();

  const auto id = truncate_t(TruncateSplits::kPreserve).submit(executor, cluster);
  executor.run();

  CHECK(executor.result(*id).result == "default:t");
  CHECK(cluster.readable_rows(name_t()).empty());
  for (const RegionRow& row : cluster.snapshot().regions) CHECK_FALSE(old.contains(row.region.id));
  write_rows(cluster);
  CHECK(cluster.readable_rows(name_t()) == rows_of_t());
  CHECK(disorder(cluster).empty());
}

TEST_CASE("a truncated table keeps the borders of the regions that cover it, and no others") {
  const bool merged = GENERATE(false, true);
  RegionWorld world(3);
  ClusterPorts& ports = world.cluster.ports();
  const std::vector<RegionRow> rows = world.rows();
  (void)world.must_end(
      merged ? world.submit(MergeTableRegions(ports, {rows[1].region, rows[2].region}))
             : world.submit(SplitTableRegion(ports, rows[1].region, "\x60")));
  (void)world.must_end(world.submit(DisableTable(ports, name_t())));

  (void)world.must_end(world.submit(TruncateTable(ports, name_t(), TruncateSplits::kPreserve)));

  CHECK(world.rows().size() == (merged ? 2 : 4));
  CHECK(disorder(world.cluster).empty());
}

}  // namespace pv2::testing::truncate_table_test
