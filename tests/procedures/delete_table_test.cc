// SPDX-License-Identifier: Apache-2.0
//
// DeleteTable: nothing of the table is left, whatever fails on the way.

#include <pv2/procedures/catalogue_limits.h>

#include "table_plots.h"

namespace pv2::testing::delete_table_test {
namespace {

ProcedurePlot deleting() {
  return {.subject = delete_t(),
          .before = {create_t(), disable_t()},
          .check = [](MemoryCluster& cluster, Findings& findings) {
            const ClusterSnapshot left = cluster.snapshot();
            findings.expect(left.tables.empty(), "no table is left");
            findings.expect(left.regions.empty(), "no region row is left");
            findings.expect(left.directories.empty(), "no directory is left");
            findings.expect(left.cached.empty(), "the cache has forgotten the table");
          }};
}

}  // namespace

TEST_CASE("DeleteTable leaves nothing of the table, whichever call fails") {
  CHECK(check_faults(deleting()) >= 7 * 4 * 2);
}
TEST_CASE("DeleteTable can be aborted until the files go") { CHECK(check_aborts(deleting()) == 5); }
TEST_CASE("DeleteTable ends the same whichever store write the machine crashes at") {
  check_crashes(deleting());
}
TEST_CASE(
    "DeleteTable that is aborted ends the same whichever store write the machine crashes at") {
  check_crashes_in_rollback(deleting());
}

TEST_CASE("DeleteTable refuses a table that is not there or not disabled") {
  check_refused({
      {delete_t(), {}, StatusCode::kNotFound, "table default:t does not exist"},
      {delete_t(), {create_t()}, StatusCode::kFailedPrecondition, "is ENABLED, not DISABLED"},
      {delete_t(meta_table()), {}, StatusCode::kFailedPrecondition, "holds the catalogue"},
  });
}

TEST_CASE("a table that splits have given more regions than a write may have can be deleted") {
  MemoryCluster cluster;
  cluster.add_server("rs1");
  DeterministicExecutor executor(cluster);
  executor.open();
  (void)executor.submit(CreateTable(cluster.ports(), table_t(), {}));
  executor.run();
  (void)executor.submit(DisableTable(cluster.ports(), name_t()));
  executor.run();
  for (const std::string half : {"a", "b"}) {
    CatalogueWrite more{.effect_key = half};
    for (std::size_t i = 0; i < kRowsPerWriteMax / 2; ++i) {
      const std::string key = half + std::to_string(i);
      more.regions.push_back({{name_t(), key, key, key + "!"}, RegionState::kClosed, {}, 0});
    }
    cluster.ports().catalogue.write(std::move(more), nobody<Result<Applied>>());
  }
  REQUIRE(cluster.snapshot().regions.size() > kRowsPerWriteMax);

  cluster.fail_next(ClusterCall::kWrite, ClusterFault::kLoseReply);
  const Result<ProcedureId> id = executor.submit(DeleteTable(cluster.ports(), name_t()));
  executor.run();

  CHECK(executor.result(*id).status.to_string() == "OK");
  CHECK(find_disorder(cluster.snapshot()).empty());
  CHECK(cluster.snapshot().regions.empty());
}

TEST_CASE("a table that was deleted can be created again, and is empty") {
  const ProcedurePlot plot{.subject = create_t(),
                           .before = {create_t(), disable_t(), enable_t(), disable_t(), delete_t()},
                           .check = [](MemoryCluster& cluster, Findings& findings) {
                             findings.expect(cluster.readable_rows(name_t()).empty(),
                                             "the table is empty");
                           }};

  ProcedureDrill drill(plot);
  drill.run([] {});

  drill.check_success();
}

}  // namespace pv2::testing::delete_table_test
