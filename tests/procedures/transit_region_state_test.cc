// SPDX-License-Identifier: Apache-2.0
//
// TransitRegionState against servers that refuse, are not reached, do not answer, fail, or die:
// which server gets the region, that no two ever have it, and that no acknowledged row is lost.

#include <pv2/base/fields.h>
#include <pv2/engine/inspection.h>
#include <pv2/procedures/close_region.h>
#include <pv2/procedures/close_table_regions.h>
#include <pv2/procedures/disable_table.h>
#include <pv2/procedures/open_region.h>
#include <pv2/procedures/server_calls.h>
#include <pv2/procedures/transit_region_state.h>

#include "procedure_drill.h"
#include "procedure_story.h"
#include "region_world.h"

namespace pv2::testing::transit_region_state_test {
namespace {

/// A table of one region is being created on two servers, rs1 before rs2.
struct OneRegion {
  MemoryCluster cluster;
  ServerName rs1 = cluster.add_server("rs1");
  ServerName rs2 = cluster.add_server("rs2");
  DeterministicExecutor executor{cluster};
  ProcedureId id;

  OneRegion() { executor.open(); }

  void begin() {
    const auto submitted = executor.submit(CreateTable(cluster.ports(), table_t()));
    REQUIRE(submitted.ok());
    id = *submitted;
    executor.settle();
  }
  [[nodiscard]] ServerName home() const { return cluster.snapshot().regions.at(0).server; }
  [[nodiscard]] RegionState state() const { return cluster.snapshot().regions.at(0).state; }
  [[nodiscard]] std::size_t servers_that_have_it() const {
    const ClusterSnapshot snapshot = cluster.snapshot();
    return static_cast<std::size_t>(std::ranges::count_if(
        snapshot.open, [](const auto& server) { return !server.second.empty(); }));
  }
  void check_end() const {
    CHECK(executor.result(id).state == ProcedureState::kSuccess);
    CHECK(disorder(cluster).empty());
  }
};

RegionInfo region_of(MemoryCluster& cluster) { return cluster.snapshot().regions.at(0).region; }

auto create() {
  return operation([](MemoryCluster& cluster) { return CreateTable(cluster.ports(), table_t()); });
}
auto disable() {
  return operation(
      [](MemoryCluster& cluster) { return DisableTable(cluster.ports(), table_t().name); });
}
auto assign() {
  return operation([](MemoryCluster& cluster) {
    return TransitRegionState::assign(cluster.ports(), region_of(cluster));
  });
}
auto reopen() {
  return operation([](MemoryCluster& cluster) {
    return TransitRegionState::reopen(cluster.ports(), region_of(cluster));
  });
}
auto move_to(std::string host) {
  return operation([=](MemoryCluster& cluster) {
    ServerName target;
    for (const auto& [server, regions] : cluster.snapshot().open) {
      if (server.host == host) target = server;
    }
    return TransitRegionState::move(cluster.ports(), region_of(cluster), target);
  });
}
const RegionInfo kStray{{"default", "t"}, "00000000000000aa", "", ""};

}  // namespace

TEST_CASE("a region that a server refuses goes to another server at once") {
  OneRegion story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kRefuse);

  story.begin();

  CHECK(story.home() == story.rs2);
  story.check_end();
}

TEST_CASE("a region that a server fails to open goes to another server at once") {
  OneRegion story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kReportFailure);

  story.begin();

  CHECK(story.home() == story.rs2);
  story.check_end();
}

TEST_CASE("a region whose first call did not reach the server goes to another server at once") {
  OneRegion story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kFail);

  story.begin();

  CHECK(story.home() == story.rs2);
  story.check_end();
}

TEST_CASE("after a lost reply the report is enough: the server is not asked again") {
  OneRegion story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kLoseReply, 3);

  story.begin();
  story.executor.run();

  CHECK(story.home() == story.rs1);
  CHECK(story.cluster.calls(ClusterCall::kOpenRegion) == 1);
  story.check_end();
}

TEST_CASE("after a lost request the same server is asked again") {
  OneRegion story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kLoseRequest, 3);

  story.begin();
  story.executor.run();

  CHECK(story.home() == story.rs1);
  CHECK(story.cluster.calls(ClusterCall::kOpenRegion) == 4);
  story.check_end();
}

TEST_CASE(
    "a region stays with a server that may have it, even if a later call does not reach the "
    "server") {
  OneRegion story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kLoseRequest);
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kFail, 5);

  story.begin();
  story.executor.advance(std::chrono::seconds(5));

  CHECK(story.home() == story.rs1);
  story.executor.run();
  CHECK(story.home() == story.rs1);
  story.check_end();
}

TEST_CASE("a region leaves a server that may have it once the logs of that server are split") {
  OneRegion story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kLoseRequest);
  story.begin();
  story.cluster.kill_server(story.rs1);
  story.executor.advance(std::chrono::seconds(60));
  CHECK(story.home() == story.rs1);
  CHECK(story.state() == RegionState::kOpening);

  const auto crash = story.executor.submit(ServerCrash(story.cluster.ports(), story.rs1));
  story.executor.run();

  CHECK(story.home() == story.rs2);
  CHECK(story.executor.result(*crash).state == ProcedureState::kSuccess);
  story.check_end();
}

TEST_CASE("after a restart between the call and its record the same server is called") {
  OneRegion story;
  // The first life's call is lost, and the calls of the second life do not reach the server at
  // first.
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kLoseRequest);
  story.begin();
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kFail, 3);
  story.executor.crash();
  story.executor.open();

  story.executor.advance(std::chrono::seconds(2));
  CHECK(story.home() == story.rs1);
  CHECK(story.state() == RegionState::kOpening);

  story.executor.run();
  CHECK(story.home() == story.rs1);
  story.check_end();
}

TEST_CASE("a failure that was reported before a restart is no success after it") {
  // Upstream restored a persisted FAILED_OPEN as OPEN.
  OneRegion story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kReportFailure);
  const auto id = story.executor.submit(CreateTable(story.cluster.ports(), table_t()));
  story.id = *id;
  while (story.cluster.unsent_reports(*story.executor) == 0) {
    REQUIRE(story.executor->run_until_idle(1) > 0);
  }
  story.cluster.deliver_reports(*story.executor);
  story.executor->run_until_idle(0);  // the signal is durable, and no step has seen it
  story.executor.crash();
  story.executor.open();
  CHECK(story.state() == RegionState::kOpening);

  story.executor.run();

  CHECK(story.home() == story.rs2);
  story.check_end();
}

TEST_CASE("a report that was durable before a restart is not asked for again") {
  OneRegion story;
  const auto id = story.executor.submit(CreateTable(story.cluster.ports(), table_t()));
  story.id = *id;
  while (story.cluster.unsent_reports(*story.executor) == 0) {
    REQUIRE(story.executor->run_until_idle(1) > 0);
  }
  story.cluster.deliver_reports(*story.executor);
  story.executor->run_until_idle(0);
  story.executor.crash();
  story.executor.open();

  story.executor.run();

  CHECK(story.home() == story.rs1);
  CHECK(story.cluster.calls(ClusterCall::kOpenRegion) == 1);
  story.check_end();
}

TEST_CASE("a report with another key, of another server or in another form is ignored") {
  OneRegion story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kLoseRequest);
  story.begin();
  ProcedureId waiting;
  for (const ProcedureInfo& info : story.executor->inspect().list()) {
    if (info.type == "cluster.OpenRegion") waiting = info.id;
  }
  REQUIRE(waiting);
  const std::string key = "p" + std::to_string(waiting.value) + ".s1.v";
  for (const RemoteReport& wrong :
       {RemoteReport{RemoteKind::kOpenRegion, story.rs1, "another key", true, 9, ""},
        RemoteReport{RemoteKind::kOpenRegion, story.rs2, key + "0/open", true, 9, ""},
        RemoteReport{RemoteKind::kOpenRegion, story.rs2, key + "1/open", true, 9, ""},
        RemoteReport{RemoteKind::kCloseRegion, story.rs1, key + "0/open", true, 9, ""},
        RemoteReport{RemoteKind::kCloseRegion, story.rs1, key + "1/open", true, 9, ""}}) {
    RemoteReport report = wrong;
    std::string payload;
    encode_fields(report, FieldSelection::kAll, payload);
    story.executor->async().signal(waiting, std::string(kReportSignal), payload, {});
  }
  story.executor->async().signal(waiting, std::string(kReportSignal), "no report", {});
  story.executor->run_until_idle();
  CHECK(story.state() == RegionState::kOpening);

  story.executor.run();

  CHECK(story.home() == story.rs1);
  story.check_end();
}

TEST_CASE("a report that arrives twice opens the region once") {
  OneRegion story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kRepeatReport);

  story.begin();

  CHECK(story.home() == story.rs1);
  story.check_end();
}

TEST_CASE("when every server has refused, all are asked again after a pause, which has an error") {
  OneRegion story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kRefuse, 4);

  story.begin();
  CHECK(story.cluster.calls(ClusterCall::kOpenRegion) == 2);
  bool found = false;
  for (const ProcedureInfo& info : story.executor->inspect().list()) {
    found = found || (info.step_name == "GET_ASSIGN_CANDIDATE" &&
                      info.error.message().find("refused it") != std::string::npos);
  }
  CHECK(found);
  story.executor.advance(std::chrono::seconds(1));
  CHECK(story.cluster.calls(ClusterCall::kOpenRegion) == 4);
  story.executor.advance(std::chrono::seconds(1));

  CHECK(story.cluster.calls(ClusterCall::kOpenRegion) == 5);
  story.check_end();
}

TEST_CASE(
    "a region that cannot be opened is FAILED_OPEN, tried on with errors, and opened at last") {
  OneRegion story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kReportFailure, 13);

  story.begin();
  bool was_failed_open = false;
  bool had_error = false;
  for (int second = 0; second < 200; ++second) {
    story.executor.advance(std::chrono::seconds(1));
    was_failed_open = was_failed_open || story.state() == RegionState::kFailedOpen;
    for (const ProcedureInfo& info : story.executor->inspect().list()) {
      had_error = had_error || info.error.message().find("10 times") != std::string::npos;
    }
  }

  CHECK(was_failed_open);
  CHECK(had_error);
  CHECK(story.cluster.calls(ClusterCall::kOpenRegion) == 14);
  story.check_end();
}

TEST_CASE("without a live server an assignment waits, says why, and goes on when a server joins") {
  MemoryCluster cluster;
  DeterministicExecutor executor(cluster);
  executor.open();
  const auto id = executor.submit(CreateTable(cluster.ports(), table_t()));
  for (int second = 0; second < 30; ++second) executor.advance(std::chrono::seconds(1));
  const auto live = executor->inspect().list();
  REQUIRE(live.size() == 2);
  CHECK(live[1].step_name == "GET_ASSIGN_CANDIDATE");
  CHECK(live[1].attempt > 5);
  CHECK_THAT(std::string(live[1].error.message()), ContainsSubstring("no live region server"));

  cluster.add_server("rs1");
  executor.run();

  CHECK(executor.result(*id).state == ProcedureState::kSuccess);
  CHECK(disorder(cluster).empty());
}

TEST_CASE("a region that is called by another table, or has other keys, is not moved") {
  RegionWorld world;
  const RegionRow before = world.row();
  RegionInfo other_table = before.region;
  other_table.table.table = "u";
  RegionInfo other_keys = before.region;
  other_keys.end_key = "k";
  for (const RegionInfo& wrong : {other_table, other_keys}) {
    const auto id = world.submit(TransitRegionState::unassign(world.cluster.ports(), wrong));
    world.executor.run();
    CHECK(world.executor.result(id).status.code() == StatusCode::kNotFound);
  }
  CHECK(world.row() == before);
}

TEST_CASE("a client cannot have a region opened or closed without the lock of the region") {
  RegionWorld world;
  const RegionRow row = world.row();
  ClusterPorts& ports = world.cluster.ports();
  const ServerName other = world.other_than(row.server);

  for (const Status& refused :
       {world.executor.submit(OpenRegion(ports, row.region, other, 1)).status(),
        world.executor.submit(CloseRegion(ports, row.region, row.server)).status(),
        world.executor.submit(CloseTableRegions(ports, row.region.table)).status()}) {
    CHECK(refused.code() == StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(refused.message()), ContainsSubstring("submit the procedure that"));
  }

  world.check_end();
}

TEST_CASE("assigning an open region changes nothing") {
  RegionWorld world;
  const RegionRow before = world.row();

  const auto id = world.submit(TransitRegionState::assign(world.cluster.ports(), before.region));

  CHECK(world.must_end(id) == to_string(before.server));
  CHECK(world.row() == before);
  world.check_end();
}

TEST_CASE("an assignment from a server that has lost the region does nothing") {
  RegionWorld world;
  const RegionRow before = world.row();
  const ServerName other = world.other_than(before.server);

  (void)world.must_end(world.submit(
      TransitRegionState::assign(world.cluster.ports(), before.region, {.from = other})));
  CHECK(world.row() == before);
  // The region of a table that is gone is no failure either.
  (void)world.must_end(
      world.submit(TransitRegionState::assign(world.cluster.ports(), kStray, {.from = other})));
  world.check_end();
}

TEST_CASE("a moved region is open on the target, with a higher sequence and all its rows") {
  RegionWorld world;
  const RegionRow before = world.row();
  const ServerName target = world.other_than(before.server);

  (void)world.must_end(
      world.submit(TransitRegionState::move(world.cluster.ports(), before.region, target)));

  CHECK(world.home() == target);
  CHECK(world.row().open_sequence > before.open_sequence);
  world.check_end();
}

TEST_CASE("a move to where the region is changes nothing") {
  RegionWorld world;
  const RegionRow before = world.row();

  (void)world.must_end(
      world.submit(TransitRegionState::move(world.cluster.ports(), before.region, before.server)));

  CHECK(world.row() == before);
}

TEST_CASE("a region that is to be moved to a dead server goes to a live one") {
  RegionWorld world;
  const ServerName target = world.other_than(world.home());
  (void)world.must_end(world.kill(target));

  (void)world.must_end(
      world.submit(TransitRegionState::move(world.cluster.ports(), world.row().region, target)));

  CHECK(world.home() != target);
  world.check_end();
}

TEST_CASE("a reopened region stays on its server and gets a higher sequence") {
  RegionWorld world;
  const RegionRow before = world.row();

  (void)world.must_end(
      world.submit(TransitRegionState::reopen(world.cluster.ports(), before.region)));

  CHECK(world.home() == before.server);
  CHECK(world.row().open_sequence > before.open_sequence);
  world.check_end();
}

TEST_CASE("a region is closed under the same key until the server answers") {
  const ClusterFault fault =
      GENERATE(ClusterFault::kFail, ClusterFault::kLoseRequest, ClusterFault::kLoseReply);
  CAPTURE(static_cast<int>(fault));
  RegionWorld world;
  world.cluster.fail_next(ClusterCall::kCloseRegion, fault, 3);

  (void)world.must_end(
      world.submit(TransitRegionState::reopen(world.cluster.ports(), world.row().region)));

  world.check_end();
}

TEST_CASE("a server that refuses to close a region, or fails, is asked anew, with an error") {
  const ClusterFault fault = GENERATE(ClusterFault::kRefuse, ClusterFault::kReportFailure);
  RegionWorld world;
  world.cluster.fail_next(ClusterCall::kCloseRegion, fault, 3);

  const auto id =
      world.submit(TransitRegionState::reopen(world.cluster.ports(), world.row().region));
  world.executor.settle();
  const auto info = world.executor->inspect().describe(id);
  CHECK(info->step_name == "CONFIRM_CLOSED");
  CHECK_THAT(std::string(info->error.message()), ContainsSubstring("could not be closed"));
  (void)world.must_end(id);

  world.check_end();
}

TEST_CASE("a region whose server dies while it is closed is opened elsewhere, and then closed") {
  // Whether before the call reaches it, or after that and before the report.
  const bool reached = GENERATE(true, false);
  CAPTURE(reached);
  RegionWorld world;
  const RegionRow before = world.row();
  if (!reached) world.cluster.fail_next(ClusterCall::kCloseRegion, ClusterFault::kFail, 3);
  const auto id = world.submit(TransitRegionState::unassign(world.cluster.ports(), before.region));
  while (world.row().state != RegionState::kClosing) {
    REQUIRE(world.executor->run_until_idle(1) > 0);
  }

  (void)world.kill_unheard(before.server);
  (void)world.must_end(id);

  CHECK(world.row().state == RegionState::kClosed);
  CHECK(world.home() != before.server);
  CHECK(world.row().open_sequence > before.open_sequence);
  (void)world.must_end(
      world.submit(TransitRegionState::assign(world.cluster.ports(), before.region)));
  world.check_end();
}

TEST_CASE("a region that was closed right before its server died is not opened again") {
  RegionWorld world;
  const RegionRow before = world.row();
  const auto id = world.submit(TransitRegionState::unassign(world.cluster.ports(), before.region));
  world.run_to(ClusterCall::kCloseRegion);
  (void)world.cluster.deliver_reports(*world.executor);

  (void)world.kill(before.server);
  (void)world.must_end(id);

  CHECK(world.row().state == RegionState::kClosed);
  CHECK(world.home() == before.server);
  (void)world.must_end(
      world.submit(TransitRegionState::assign(world.cluster.ports(), before.region)));
  world.check_end();
}

TEST_CASE("a region whose server dies while it is moved ends open, with all its rows") {
  const bool while_closing = GENERATE(true, false);
  const bool dies_before = GENERATE(true, false);
  const bool heard = GENERATE(true, false);
  CAPTURE(while_closing, dies_before, heard);
  RegionWorld world;
  const RegionRow before = world.row();
  const ServerName target = world.other_than(before.server);
  const ServerName dying = while_closing ? before.server : target;
  const auto id =
      world.submit(TransitRegionState::move(world.cluster.ports(), before.region, target));
  if (dies_before) world.cluster.kill_server(dying);
  world.run_to(while_closing ? ClusterCall::kCloseRegion : ClusterCall::kOpenRegion);

  (void)(heard ? world.kill(dying) : world.kill_unheard(dying));
  (void)world.must_end(id);

  CHECK(world.row().state == RegionState::kOpen);
  CHECK(world.home() != dying);
  world.check_end();
}

TEST_CASE("two servers that die one after the other while they open a region do not keep it") {
  RegionWorld world(1, 3);
  const RegionRow before = world.row();
  const auto first = world.kill(before.server);
  world.run_to(ClusterCall::kOpenRegion);
  const ServerName second = world.home();
  REQUIRE(world.row().state == RegionState::kOpening);

  (void)world.kill_unheard(second);
  (void)world.must_end(first);

  CHECK(world.home() != before.server);
  CHECK(world.home() != second);
  world.check_end();
}

TEST_CASE(
    "an opening whose server dies after its report is repeated elsewhere, and no row is lost") {
  RegionWorld world;
  const RegionRow before = world.row();
  const ServerName target = world.other_than(before.server);
  const auto id =
      world.submit(TransitRegionState::move(world.cluster.ports(), before.region, target));
  world.run_to(ClusterCall::kOpenRegion);
  (void)world.cluster.deliver_reports(*world.executor);
  (void)world.executor->run_until_idle(1);  // the report is durable: the server serves
  REQUIRE(world.row().state == RegionState::kOpening);
  world.write_rows();

  (void)world.kill(target);
  (void)world.must_end(id);

  CHECK(world.home() != target);
  world.check_end();
}

TEST_CASE("a report that comes after its server was declared dead changes nothing") {
  RegionWorld world;
  const RegionRow before = world.row();
  const ServerName accused = world.other_than(before.server);
  const auto id =
      world.submit(TransitRegionState::move(world.cluster.ports(), before.region, accused));
  world.run_to(ClusterCall::kOpenRegion);

  (void)world.report_death(accused);  // it lives, and has opened the region
  (void)world.must_end(id);

  CHECK(world.home() != accused);
  world.check_end();
}

TEST_CASE("a transition that has begun cannot be aborted") {
  RegionWorld world;
  world.cluster.fail_next(ClusterCall::kCloseRegion, ClusterFault::kFail, 2);
  const auto id =
      world.submit(TransitRegionState::reopen(world.cluster.ports(), world.row().region));
  world.executor.settle();

  CHECK(world.abort(id).code() == StatusCode::kFailedPrecondition);

  (void)world.must_end(id);
  world.check_end();
}

TEST_CASE("transitions that cannot be are refused, and change nothing") {
  const auto stray = [](auto make) {
    return operation([=](MemoryCluster& cluster) { return make(cluster.ports()); });
  };
  check_refused({
      {stray([](ClusterPorts& ports) { return TransitRegionState::assign(ports, kStray); }),
       {create()},
       StatusCode::kNotFound,
       "is not in the catalogue"},
      {stray([](ClusterPorts& ports) { return TransitRegionState::unassign(ports, kStray); }),
       {create()},
       StatusCode::kNotFound,
       "is not in the catalogue"},
      {stray([](ClusterPorts& ports) { return TransitRegionState::reopen(ports, kStray); }),
       {create()},
       StatusCode::kNotFound,
       "is not in the catalogue"},
      {assign(), {create(), disable()}, StatusCode::kFailedPrecondition, "is DISABLED"},
      {reopen(), {create(), disable()}, StatusCode::kFailedPrecondition, "is DISABLED"},
      {move_to("rs1"), {create(), disable()}, StatusCode::kFailedPrecondition, "is DISABLED"},
  });
}

TEST_CASE("a region that failed to open is opened before it is closed if it has edits to replay") {
  const bool has_edits = GENERATE(false, true);
  RegionWorld world;
  ClusterPorts& ports = world.cluster.ports();
  const RegionInfo region = world.row().region;
  (void)world.must_end(world.submit(TransitRegionState::unassign(ports, region)));
  const auto write = [&](RegionState state) {
    ports.catalogue.write({.effect_key = "by hand " + std::string(to_string(state)),
                           .regions = {{region, state, world.servers[0], 1}}},
                          nobody<Result<Applied>>());
    REQUIRE(world.row().state == state);
  };
  write(RegionState::kOpening);
  write(RegionState::kFailedOpen);
  if (has_edits) world.cluster.leave_edit(region, "late");
  const std::size_t openings = world.cluster.calls(ClusterCall::kOpenRegion);

  (void)world.must_end(world.submit(TransitRegionState::unassign(ports, region)));

  CHECK(world.row().state == RegionState::kClosed);
  CHECK(world.cluster.calls(ClusterCall::kOpenRegion) == openings + (has_edits ? 1 : 0));
  (void)world.must_end(world.submit(TransitRegionState::assign(ports, region)));
  CHECK(world.cluster.readable_rows(table_t().name).contains("late") == has_edits);
  world.check_end();
}

TEST_CASE("MOVE and REOPEN end the same, whichever call fails") {
  CHECK(check_faults({.subject = move_to("rs2"), .before = {create()}}) > 50);
  CHECK(check_faults({.subject = reopen(), .before = {create()}}) > 50);
}

TEST_CASE("MOVE and REOPEN end the same whichever store write the machine crashes at") {
  check_crashes({.subject = move_to("rs2"), .before = {create()}});
  check_crashes({.subject = reopen(), .before = {create()}});
}

}  // namespace pv2::testing::transit_region_state_test
