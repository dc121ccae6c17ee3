// SPDX-License-Identifier: Apache-2.0
//
// DeleteTable: nothing of the table is left, whatever fails on the way.

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
