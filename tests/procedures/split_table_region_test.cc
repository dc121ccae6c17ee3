// SPDX-License-Identifier: Apache-2.0
//
// SplitTableRegion: two daughters with all rows of their parent, or the parent as it was, whatever
// dies, fails or is aborted meanwhile.

#include <pv2/engine/inspection.h>
#include <pv2/procedures/disable_table.h>
#include <pv2/procedures/split_table_region.h>

#include "procedure_drill.h"
#include "procedure_story.h"
#include "region_undo.h"
#include "region_world.h"

namespace pv2::testing::split_table_region_test {
namespace {

constexpr const char* kKey = "a";

RegionInfo parent_of(MemoryCluster& cluster) { return cluster.snapshot().regions.at(0).region; }

auto create() {
  return operation([](MemoryCluster& cluster) { return CreateTable(cluster.ports(), table_t()); });
}
auto disable() {
  return operation(
      [](MemoryCluster& cluster) { return DisableTable(cluster.ports(), table_t().name); });
}
/// `parent` is found when the plot makes the procedure for the first time: later there are others.
auto split(std::string key = kKey) {
  return operation([=](MemoryCluster& cluster) {
    RegionInfo parent = parent_of(cluster);
    for (const RegionRow& row : cluster.snapshot().regions) {
      if (row.region.start_key.empty() && row.region.end_key.empty()) parent = row.region;
    }
    return SplitTableRegion(cluster.ports(), parent, key);
  });
}
auto split_of(RegionInfo parent, std::string key = kKey) {
  return operation(
      [=](MemoryCluster& cluster) { return SplitTableRegion(cluster.ports(), parent, key); });
}
ProcedurePlot splitting() {
  return {.subject = split(),
          .before = {create()},
          .arrange =
              [](MemoryCluster& cluster) {
                for (const char* row : {"A", "Z", "a", "z"}) {
                  (void)cluster.write_row(table_t().name, row);
                }
              },
          .check =
              [](MemoryCluster& cluster, Findings& findings) {
                findings.expect(cluster.snapshot().regions.size() == 3,
                                "there are two daughters and the parent");
                findings.expect(cluster.readable_rows(table_t().name).size() == 4,
                                "every row is there");
              }};
}
ProcedureId begin_split(RegionWorld& world) {
  return world.submit(SplitTableRegion(world.cluster.ports(), world.row().region, kKey));
}

}  // namespace

TEST_CASE("a split region has two daughters on its server, with its rows and higher sequences") {
  RegionWorld world(1, 3, GENERATE(Delivery::kInline, Delivery::kQueued));
  const RegionRow parent = world.row();

  const std::string result = world.must_end(begin_split(world));

  for (const RegionRow& row : world.rows()) {
    if (row.region == parent.region) {
      CHECK(row.state == RegionState::kSplit);
      continue;
    }
    CHECK(result.find(row.region.id) != std::string::npos);
    CHECK(row.state == RegionState::kOpen);
    CHECK(row.server == parent.server);
    CHECK(row.open_sequence > parent.open_sequence);
  }
  CHECK(world.rows().size() == 3);
  world.write_rows();
  world.check_end();
}

TEST_CASE("a daughter may be split again, and a parent may not") {
  RegionWorld world;
  const RegionInfo parent = world.row().region;
  (void)world.must_end(begin_split(world));

  const auto again = world.submit(SplitTableRegion(world.cluster.ports(), parent, "b"));
  world.executor.run();
  CHECK(world.executor.result(again).status.code() == StatusCode::kFailedPrecondition);
  for (const RegionRow& row : world.rows()) {
    if (row.region.start_key != kKey) continue;
    (void)world.must_end(world.submit(SplitTableRegion(world.cluster.ports(), row.region, "m")));
    break;
  }

  CHECK(world.rows().size() == 5);
  world.check_end();
}

TEST_CASE("splits that cannot be are refused, and change nothing") {
  const RegionInfo stray{{"default", "t"}, "00000000000000aa", "", ""};
  const RegionInfo of_no_table{{"default", "none"}, "00000000000000aa", "", ""};
  check_refused({
      {split(""), {create()}, StatusCode::kInvalidArgument, "cannot be split at ''"},
      {split_of({{"default", "t"}, "aa", "", "f"}, "f"),
       {create()},
       StatusCode::kInvalidArgument,
       "choose a key after its first one"},
      {split_of(of_no_table), {create()}, StatusCode::kNotFound, "there is no table default:none"},
      {split_of(stray), {create()}, StatusCode::kNotFound, "is not in the catalogue"},
      {split(), {create(), disable()}, StatusCode::kFailedPrecondition, "is DISABLED"},
      {split_of(meta_region()), {create()}, StatusCode::kFailedPrecondition, "has one region"},
  });
}

TEST_CASE("a split is done or undone, whenever it is aborted") {
  const Delivery delivery = GENERATE(Delivery::kInline, Delivery::kQueued);

  const std::size_t accepted = abort_everywhere({.submit = begin_split, .delivery = delivery});

  CHECK(accepted > 5);
}

TEST_CASE("the undo of a split gets through calls to servers that fail") {
  const ClusterFault fault =
      GENERATE(ClusterFault::kFail, ClusterFault::kRefuse, ClusterFault::kLoseRequest,
               ClusterFault::kLoseReply, ClusterFault::kReportFailure, ClusterFault::kRepeatReport);
  const unsigned times = GENERATE(1u, 5u);
  CAPTURE(static_cast<int>(fault), times);

  CHECK(abort_everywhere({.submit = begin_split,
                          .disturb =
                              [=](RegionWorld& world) {
                                world.cluster.fail_next(ClusterCall::kOpenRegion, fault, times);
                              },
                          .compares_servers = false}) > 5);
}

TEST_CASE("the undo of a split gets through other calls that fail") {
  const ClusterCall call =
      GENERATE(ClusterCall::kWrite, ClusterCall::kReadRegion, ClusterCall::kReadServer,
               ClusterCall::kLiveServers, ClusterCall::kRemoveRegions);
  const ClusterFault fault = GENERATE(ClusterFault::kFail, ClusterFault::kLoseReply);
  CAPTURE(to_string(call), static_cast<int>(fault));

  CHECK(abort_everywhere({.submit = begin_split, .disturb = [=](RegionWorld& world) {
                            world.cluster.fail_next(call, fault, 3);
                          }}) > 5);
}

TEST_CASE("the undo of a split whose server dies opens the parent elsewhere") {
  // Before the parent is opened again, or while it is.
  const bool is_opening = GENERATE(true, false);
  CAPTURE(is_opening);

  CHECK(abort_everywhere({.submit = begin_split,
                          .disturb =
                              [=](RegionWorld& world) {
                                const ServerName dying = world.home();
                                const std::size_t calls =
                                    world.cluster.calls(ClusterCall::kOpenRegion);
                                for (int turn = 0; is_opening && turn < 20; ++turn) {
                                  if (world.cluster.calls(ClusterCall::kOpenRegion) != calls) break;
                                  (void)world.executor->run_until_idle(1);
                                }
                                (void)world.kill_unheard(dying);
                              },
                          .compares_servers = false}) > 5);
}

TEST_CASE("the undo of a split goes on after a crash of the machine") {
  CHECK(abort_everywhere({.submit = begin_split, .disturb = [](RegionWorld& world) {
                            (void)world.executor->run_until_idle(2);
                            world.crash_master();
                          }}) > 5);
}

TEST_CASE("an undo does not reopen a parent that was never closed") {
  RegionWorld world;
  const RegionRow before = world.row();
  const auto id = begin_split(world);
  while (world.step_of(id) != "CLOSE_PARENT_REGION") {
    REQUIRE(world.executor->run_until_idle(1) > 0);
  }

  REQUIRE(world.abort(id).ok());
  world.executor.run();

  CHECK(world.row() == before);
  world.check_end();
}

TEST_CASE("a split of a region with edits that were not replayed is refused, and undone") {
  RegionWorld world;
  const RegionInfo parent = world.row().region;
  const auto id = begin_split(world);
  while (world.row().state != RegionState::kClosed) {
    if (world.executor->run_until_idle(1) == 0) {
      REQUIRE(world.cluster.deliver_reports(*world.executor) > 0);
    }
  }
  world.cluster.leave_edit(parent, "left behind");

  world.executor.run();

  CHECK(world.executor.result(id).status.code() == StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(world.executor.result(id).status.message()),
             ContainsSubstring("were not replayed"));
  CHECK(world.cluster.readable_rows(table_t().name).contains("left behind"));
  world.check_end();
  (void)world.must_end(begin_split(world));
  world.check_end();
}

TEST_CASE("a split whose server dies at any moment ends, and no row is lost") {
  for (std::size_t turns = 0;; ++turns) {
    REQUIRE(turns < 1000);
    CAPTURE(turns);
    RegionWorld world;
    const ServerName dying = world.home();
    const auto id = begin_split(world);
    for (std::size_t turn = 0; turn < turns; ++turn) {
      if (world.executor->run_until_idle(1) == 0) {
        (void)world.cluster.deliver_reports(*world.executor);
      }
    }
    const bool had_ended = world.executor->inspect().live_procedures() == 0;
    const bool heard = turns % 2 == 0;

    const auto crash = heard ? world.kill(dying) : world.kill_unheard(dying);
    (void)world.must_end(crash);

    // It may find that the parent is not open any more when it begins.
    const StatusCode code = world.executor.result(id).status.code();
    CHECK((code == StatusCode::kOk || code == StatusCode::kFailedPrecondition));
    world.check_end();
    if (had_ended) break;
  }
}

TEST_CASE("SplitTableRegion ends the same, whichever call fails") {
  CHECK(check_faults(splitting()) > 100);
}

TEST_CASE("SplitTableRegion ends the same whichever store write the machine crashes at") {
  check_crashes(splitting());
}

TEST_CASE("SplitTableRegion is undone whichever store write the machine crashes at") {
  check_crashes_in_rollback(splitting());
}

TEST_CASE("a region is not split at a key that no row can have") {
  RegionWorld world;
  const auto id = world.submit(
      SplitTableRegion(world.cluster.ports(), world.row().region, std::string(4097, 'k')));
  world.executor.run();

  CHECK(world.executor.result(id).status.code() == StatusCode::kInvalidArgument);
  world.check_end();
}

}  // namespace pv2::testing::split_table_region_test
