// SPDX-License-Identifier: Apache-2.0
//
// MergeTableRegions: one region with all rows of its parents, or the parents as they were, whatever
// dies, fails or is aborted meanwhile.

#include <pv2/engine/inspection.h>
#include <pv2/procedures/disable_table.h>
#include <pv2/procedures/merge_table_regions.h>

#include "procedure_drill.h"
#include "procedure_story.h"
#include "region_undo.h"
#include "region_world.h"

namespace pv2::testing::merge_table_regions_test {
namespace {

std::vector<RegionInfo> regions_of(MemoryCluster& cluster) {
  std::vector<RegionInfo> regions;
  for (const RegionRow& row : cluster.snapshot().regions) {
    // The merged region covers everything; only its parents are meant.
    if (row.region.start_key.empty() && row.region.end_key.empty()) continue;
    regions.push_back(row.region);
  }
  std::ranges::sort(regions, {}, &RegionInfo::start_key);
  return regions;
}

auto create(std::size_t regions) {
  return operation([=](MemoryCluster& cluster) {
    return CreateTable(cluster.ports(), table_t(), even_split_keys(regions));
  });
}
auto disable() {
  return operation(
      [](MemoryCluster& cluster) { return DisableTable(cluster.ports(), table_t().name); });
}
auto merge_all() {
  return operation([](MemoryCluster& cluster) {
    return MergeTableRegions(cluster.ports(), regions_of(cluster));
  });
}
auto merge_of(std::vector<std::size_t> indexes) {
  return operation([=](MemoryCluster& cluster) {
    std::vector<RegionInfo> parents;
    for (const std::size_t index : indexes) parents.push_back(regions_of(cluster).at(index));
    return MergeTableRegions(cluster.ports(), parents);
  });
}
auto merge_with(std::function<void(std::vector<RegionInfo>&)> change) {
  return operation([=](MemoryCluster& cluster) {
    std::vector<RegionInfo> parents = regions_of(cluster);
    change(parents);
    return MergeTableRegions(cluster.ports(), parents);
  });
}
ProcedurePlot merging() {
  return {.subject = merge_all(),
          .before = {create(2)},
          .arrange =
              [](MemoryCluster& cluster) {
                for (const char* row : {"A", "Z", "\xa1", "\xf1"}) {
                  (void)cluster.write_row(table_t().name, row);
                }
              },
          .check =
              [](MemoryCluster& cluster, Findings& findings) {
                findings.expect(cluster.readable_rows(table_t().name).size() == 4,
                                "every row is there");
                std::size_t open = 0;
                for (const RegionRow& row : cluster.snapshot().regions) {
                  open += row.state == RegionState::kOpen ? 1 : 0;
                }
                findings.expect(open == 1, "one region is open");
              }};
}
ProcedureId begin_merge(RegionWorld& world) {
  return world.submit(MergeTableRegions(world.cluster.ports(), regions_of(world.cluster)));
}

}  // namespace

TEST_CASE("merged regions are one region with all their rows and a higher sequence") {
  const std::size_t parents = GENERATE(2u, 5u);
  RegionWorld world(parents, 3, GENERATE(Delivery::kInline, Delivery::kQueued));

  const std::string id = world.must_end(begin_merge(world));

  for (const RegionRow& row : world.rows()) {
    const bool is_merged = row.region.id == id;
    CHECK(row.state == (is_merged ? RegionState::kOpen : RegionState::kSplit));
    if (is_merged) CHECK(row.open_sequence > 1);
  }
  CHECK(world.rows().size() == parents + 1);
  world.write_rows();
  world.check_end();
}

TEST_CASE("some neighbours are merged and the others stay") {
  RegionWorld world(4);
  const std::vector<RegionInfo> regions = regions_of(world.cluster);

  (void)world.must_end(
      world.submit(MergeTableRegions(world.cluster.ports(), {regions[2], regions[1]})));

  world.check_end();
}

TEST_CASE("merges that cannot be are refused, and change nothing") {
  check_refused({
      {merge_of({}), {create(2)}, StatusCode::kInvalidArgument, "two regions or more"},
      {merge_of({0}), {create(2)}, StatusCode::kInvalidArgument, "two regions or more"},
      {merge_of({0, 0}), {create(3)}, StatusCode::kInvalidArgument, "no neighbours"},
      {merge_of({0, 2}), {create(3)}, StatusCode::kInvalidArgument, "no neighbours"},
      {merge_with([](auto& parents) { parents.back().table.table = "u"; }),
       {create(2)},
       StatusCode::kInvalidArgument,
       "different tables"},
      {merge_with([](auto& parents) { parents.back().id = "00000000000000aa"; }),
       {create(2)},
       StatusCode::kNotFound,
       "is not in the catalogue"},
      {merge_with([](auto& parents) {
         for (RegionInfo& parent : parents) parent.table.table = "none";
       }),
       {create(2)},
       StatusCode::kNotFound,
       "there is no table"},
      {merge_all(), {create(2), disable()}, StatusCode::kFailedPrecondition, "is DISABLED"},
  });
}

TEST_CASE("a merge is done or undone, whenever it is aborted") {
  const Delivery delivery = GENERATE(Delivery::kInline, Delivery::kQueued);

  CHECK(abort_everywhere({.submit = begin_merge, .regions = 2, .delivery = delivery}) > 5);
}

TEST_CASE("the undo of a merge gets through calls to servers that fail") {
  const ClusterFault fault =
      GENERATE(ClusterFault::kFail, ClusterFault::kRefuse, ClusterFault::kLoseRequest,
               ClusterFault::kLoseReply, ClusterFault::kReportFailure, ClusterFault::kRepeatReport);
  const unsigned times = GENERATE(1u, 5u);
  CAPTURE(static_cast<int>(fault), times);

  CHECK(abort_everywhere({.submit = begin_merge,
                          .regions = 3,
                          .disturb =
                              [=](RegionWorld& world) {
                                world.cluster.fail_next(ClusterCall::kOpenRegion, fault, times);
                              },
                          .compares_servers = false}) > 5);
}

TEST_CASE("the undo of a merge whose servers die opens the parents elsewhere") {
  const bool both = GENERATE(true, false);

  CHECK(abort_everywhere({.submit = begin_merge,
                          .regions = 2,
                          .disturb =
                              [=](RegionWorld& world) {
                                const ServerName first = world.home(0);
                                const ServerName second = world.home(1);
                                (void)world.kill_unheard(first);
                                if (both && second != first) (void)world.kill_unheard(second);
                              },
                          .compares_servers = false}) > 5);
}

TEST_CASE("the undo of a merge goes on after a crash of the machine") {
  CHECK(abort_everywhere({.submit = begin_merge, .regions = 2, .disturb = [](RegionWorld& world) {
                            (void)world.executor->run_until_idle(2);
                            world.crash_master();
                          }}) > 5);
}

TEST_CASE("a merge of a region with edits that were not replayed is refused, and undone") {
  RegionWorld world(2);
  const RegionInfo parent = world.row(1).region;
  const auto id = begin_merge(world);
  while (world.row(1).state != RegionState::kClosed) {
    if (world.executor->run_until_idle(1) == 0) {
      REQUIRE(world.cluster.deliver_reports(*world.executor) > 0);
    }
  }
  world.cluster.leave_edit(parent, "\xf0 left behind");

  world.executor.run();

  CHECK(world.executor.result(id).status.code() == StatusCode::kFailedPrecondition);
  CHECK(world.cluster.readable_rows(table_t().name).contains("\xf0 left behind"));
  world.check_end();
}

TEST_CASE("a merge of which a server dies at any moment ends, and no row is lost") {
  for (std::size_t turns = 0;; ++turns) {
    REQUIRE(turns < 1000);
    CAPTURE(turns);
    RegionWorld world(3);
    const ServerName dying = world.home(turns % 3);
    const auto id = begin_merge(world);
    for (std::size_t turn = 0; turn < turns; ++turn) {
      if (world.executor->run_until_idle(1) == 0) {
        (void)world.cluster.deliver_reports(*world.executor);
      }
    }
    const bool had_ended = world.executor->inspect().live_procedures() == 0;

    const auto crash = turns % 2 == 0 ? world.kill(dying) : world.kill_unheard(dying);
    (void)world.must_end(crash);

    const StatusCode code = world.executor.result(id).status.code();
    CHECK((code == StatusCode::kOk || code == StatusCode::kFailedPrecondition));
    world.check_end();
    if (had_ended) break;
  }
}

TEST_CASE("MergeTableRegions ends the same, whichever call fails") {
  CHECK(check_faults(merging()) > 100);
}

TEST_CASE("MergeTableRegions ends the same whichever store write the machine crashes at") {
  check_crashes(merging());
}

TEST_CASE("MergeTableRegions is undone whichever store write the machine crashes at") {
  check_crashes_in_rollback(merging());
}

}  // namespace pv2::testing::merge_table_regions_test
