// SPDX-License-Identifier: Apache-2.0
//
// An operator ends the undo of a split or merge that cannot go on. What it leaves behind is said
// before, blocks nobody, and can be repaired with the usual operations.

#include <pv2/engine/operator_console.h>
#include <pv2/procedures/merge_table_regions.h>
#include <pv2/procedures/split_table_region.h>

#include "region_world.h"

namespace pv2::testing::bypass_test {
namespace {

// As many undos fail as it takes until the tree is parked.
constexpr unsigned kUndoAttempts = RetryPolicy().undo_attempts;

ProcedureId split(RegionWorld& world) {
  return world.submit(SplitTableRegion(world.cluster.ports(), world.row().region, "m"));
}
ProcedureId merge(RegionWorld& world) {
  return world.submit(
      MergeTableRegions(world.cluster.ports(), {world.row(0).region, world.row(1).region}));
}

/// Aborts the operation when its files are there, lets their removal fail until the tree is parked,
/// and bypasses it.
void bypass_undo_of(const std::function<ProcedureId(RegionWorld&)>& submit, std::size_t regions) {
  RegionWorld world(regions);
  const ProcedureId id = submit(world);
  world.run_to(ClusterCall::kCarrySequences);
  world.cluster.fail_next(ClusterCall::kRemoveRegions, ClusterFault::kFail, kUndoAttempts);
  REQUIRE(world.abort(id).ok());
  world.executor.run();
  REQUIRE(world.executor->inspect().describe(id)->parked);

  const auto preview = world.executor->operate().preview(id, RepairVerb::kBypass);
  REQUIRE(preview.ok());
  CHECK_FALSE(preview->empty());
  std::optional<Status> answer;
  world.executor->operate().order(id, RepairVerb::kBypass, {.who = "test", .why = "it is stuck"},
                                  [&](const Status& status) { answer = status; });
  world.executor.run();

  REQUIRE(answer.has_value());
  CHECK(answer->to_string() == "OK");
  CHECK(world.executor.result(id).bypassed);
  CHECK(world.executor->inspect().locks().empty());
  for (const RegionRow& row : world.rows()) {
    CHECK(row.state == RegionState::kClosed);
    (void)world.must_end(
        world.submit(TransitRegionState::assign(world.cluster.ports(), row.region)));
  }
  world.check_rows();
  (void)world.must_end(submit(world));
  world.write_rows();
  world.check_end();
}

}  // namespace

TEST_CASE("a split whose undo was bypassed leaves a closed region, which can be split again") {
  bypass_undo_of(split, 1);
}

TEST_CASE("a merge whose undo was bypassed leaves closed regions, which can be merged again") {
  bypass_undo_of(merge, 2);
}

}  // namespace pv2::testing::bypass_test
