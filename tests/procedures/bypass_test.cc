// SPDX-License-Identifier: Apache-2.0
//
// An operator ends the undo of a split or merge that cannot go on, or a TransitRegionState whose
// server does not answer. What it leaves behind is said before, blocks nobody, and can be repaired
// with the usual operations; no two servers ever serve one region.

#include <pv2/engine/operator_console.h>
#include <pv2/procedures/merge_table_regions.h>
#include <pv2/procedures/split_table_region.h>

#include "procedure_plot.h"
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

Status order(RegionWorld& world, ProcedureId id, RepairVerb verb, std::uint32_t next_step = 0) {
  std::optional<Status> answer;
  world.executor->operate().order(id, verb,
                                  {.who = "test", .why = "it is stuck", .next_step = next_step},
                                  [&](const Status& status) { answer = status; });
  while (!answer && world.executor->run_until_idle(1) > 0) {
  }
  REQUIRE(answer.has_value());
  return *answer;
}
void bypass(RegionWorld& world, ProcedureId id) {
  CHECK(order(world, id, RepairVerb::kBypass).to_string() == "OK");
}

/// A step that fails once parks its procedure from now on, or no longer.
void be_strict(RegionWorld& world, bool is_strict = true) {
  world.executor.max_attempts = is_strict ? 1 : 0;
  world.crash_master();
}
void check_must_run(RegionWorld& world, std::string_view type, std::string_view step) {
  const std::optional<ProcedureInfo> parked = world.find(type);
  REQUIRE(parked.has_value());
  CHECK(parked->parked);
  CHECK(parked->step_name == step);
  CHECK(order(world, parked->id, RepairVerb::kSkipStep).code() == StatusCode::kFailedPrecondition);
  be_strict(world, false);
  CHECK(order(world, parked->id, RepairVerb::kRetryNow).to_string() == "OK");
}

/// The server does not answer the request, and an operator ends the one who has made it.
void end_transit(RegionWorld& world, ClusterCall call) {
  world.executor.max_attempts = 1;
  world.crash_master();
  world.run_to(call);
  world.executor->run_until_idle();
  const std::optional<ProcedureInfo> transit = world.find("cluster.TransitRegionState");
  REQUIRE(transit.has_value());
  bypass(world, transit->id);
  world.executor.max_attempts = 0;
  world.crash_master();
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
  bypass(world, id);
  world.executor.run();

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

TEST_CASE("a region whose closing was bypassed is closed by its server before another opens it") {
  const ClusterFault fault = GENERATE(ClusterFault::kLoseRequest, ClusterFault::kLoseReply);
  RegionWorld world;
  const RegionRow before = world.row();
  const ServerName other = world.other_than(before.server);
  world.cluster.fail_next(ClusterCall::kCloseRegion, fault);
  (void)world.submit(TransitRegionState::move(world.cluster.ports(), before.region, other));
  end_transit(world, ClusterCall::kCloseRegion);
  REQUIRE(world.row().state == RegionState::kClosing);
  if (fault == ClusterFault::kLoseRequest) world.write_rows();  // it serves the region still

  (void)world.must_end(world.submit(
      TransitRegionState::assign(world.cluster.ports(), before.region, {.target = other})));

  CHECK(world.home() == other);
  CHECK(world.holders(before.region.id) == 1);
  world.check_end();
}

TEST_CASE("a region whose closing was bypassed waits for the logs of a server that is dead") {
  RegionWorld world;
  const RegionRow before = world.row();
  world.cluster.fail_next(ClusterCall::kCloseRegion, ClusterFault::kLoseRequest);
  (void)world.submit(TransitRegionState::unassign(world.cluster.ports(), before.region));
  end_transit(world, ClusterCall::kCloseRegion);
  world.write_rows();
  world.cluster.kill_server(before.server);
  const ProcedureId id =
      world.submit(TransitRegionState::assign(world.cluster.ports(), before.region));
  world.executor.advance(std::chrono::seconds(30));
  CHECK(world.home() == before.server);

  (void)world.report_death(before.server);

  (void)world.must_end(id);
  CHECK(world.home() != before.server);
  world.check_end();
}

TEST_CASE("a region whose opening was bypassed stays with the server that was asked to open it") {
  RegionWorld world;
  const RegionRow before = world.row();
  world.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kLoseRequest);
  (void)world.submit(TransitRegionState::reopen(world.cluster.ports(), before.region));
  end_transit(world, ClusterCall::kOpenRegion);
  REQUIRE(world.row().state == RegionState::kOpening);

  world.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kFail, 3);
  const ProcedureId id = world.submit(TransitRegionState::assign(
      world.cluster.ports(), before.region, {.target = world.other_than(before.server)}));
  world.executor->run_until_idle();
  CHECK(world.home() == before.server);

  (void)world.must_end(id);
  CHECK(world.home() == before.server);
  world.check_end();
}

TEST_CASE("a table whose CreateTable was bypassed can be created again, with other regions") {
  const unsigned writes = GENERATE(0u, 1u);  // writes of the catalogue before one fails
  CAPTURE(writes);
  const TableDescriptor table{{"default", "u"}, {"f1"}};
  RegionWorld world;
  world.executor.max_attempts = 1;
  world.crash_master();
  if (writes == 0) world.cluster.fail_next(ClusterCall::kWrite, ClusterFault::kFail);
  const ProcedureId ended =
      world.submit(CreateTable(world.cluster.ports(), table, even_split_keys(2)));
  if (writes == 1) {
    world.run_to(ClusterCall::kWrite);
    world.cluster.fail_next(ClusterCall::kWrite, ClusterFault::kFail);
  }
  world.executor.run();
  REQUIRE(world.executor->inspect().describe(ended)->parked);
  bypass(world, ended);
  world.executor.max_attempts = 0;
  world.crash_master();
  REQUIRE(world.rows().size() == 1 + writes * 2);

  (void)world.must_end(world.submit(CreateTable(world.cluster.ports(), table, even_split_keys(3))));

  CHECK(world.rows().size() == 1 + 3);
  world.check_end();
}

TEST_CASE("a log counts as split only when a server has split it, whatever an operator skips") {
  RegionWorld world;
  be_strict(world);
  world.cluster.fail_next(ClusterCall::kSplitLog, ClusterFault::kLoseRequest, 1);
  const ProcedureId crash = world.kill(world.home());
  world.executor.run();

  check_must_run(world, "cluster.SplitLogRemote", "DISPATCH");

  (void)world.must_end(crash);
  world.check_end();
}

TEST_CASE("a region that a server has reported is recorded there, whatever an operator skips") {
  RegionWorld world;
  be_strict(world);
  const RegionRow before = world.row();
  const ProcedureId move = world.submit(TransitRegionState::move(
      world.cluster.ports(), before.region, world.other_than(before.server)));
  world.run_to(ClusterCall::kOpenRegion);
  world.cluster.fail_next(ClusterCall::kWrite, ClusterFault::kFail, 1);
  world.executor.run();

  check_must_run(world, "cluster.OpenRegion", "REPORT_SUCCEED");

  (void)world.must_end(move);
  CHECK(world.holders(before.region.id) == 1);
  world.check_end();
}

TEST_CASE("the splitters of a ServerCrash that was bypassed are free for the next one") {
  RegionWorld world(1, 2);
  be_strict(world);
  for (int i = 0; i < 3; ++i) world.write_rows();
  world.cluster.fail_next(ClusterCall::kSplitLog, ClusterFault::kLoseRequest, 8);
  const ServerName victim = world.home();
  const ProcedureId crash = world.kill(victim);
  world.executor.run();
  REQUIRE(world.find("cluster.SplitLogRemote").has_value());
  bypass(world, crash);
  world.executor.run();
  be_strict(world, false);

  Nonce nonce = crash_nonce(victim);
  ++nonce.value;
  (void)world.must_end(world.submit(ServerCrash(world.cluster.ports(), victim), nonce));

  CHECK(world.executor->inspect().live_procedures() == 0);
  world.check_end();
}

TEST_CASE("an undo closes a region that is half closed before it opens it") {
  const ClusterFault fault =
      GENERATE(ClusterFault::kFail, ClusterFault::kLoseReply, ClusterFault::kRefuse,
               ClusterFault::kReportFailure, ClusterFault::kLoseRequest);
  RegionWorld world;
  const RegionRow before = world.row();
  const ProcedureId id = split(world);
  while (!world.find("cluster.TransitRegionState")) REQUIRE(world.executor->run_until_idle(1) > 0);
  // The child has not begun. The row says what an operator's orders may leave.
  world.cluster.ports().catalogue.write(
      {.effect_key = "closing",
       .regions = {{before.region, RegionState::kClosing, before.server, 0}}},
      nobody<Result<Applied>>());
  REQUIRE(world.row().state == RegionState::kClosing);
  world.write_rows();
  // The undo asks the server to close it, and is not answered at first.
  const std::size_t closings = world.cluster.calls(ClusterCall::kCloseRegion);
  world.cluster.fail_next(ClusterCall::kCloseRegion, fault);
  REQUIRE(world.abort(id).to_string() == "OK");
  world.executor.run();

  CHECK(world.executor.result(id).state == ProcedureState::kRolledBack);
  CHECK(world.cluster.calls(ClusterCall::kCloseRegion) > closings);
  CHECK(world.holders(before.region.id) == 1);
  CHECK(world.row().state == RegionState::kOpen);
  world.check_end();
}

}  // namespace pv2::testing::bypass_test
