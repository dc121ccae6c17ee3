// SPDX-License-Identifier: Apache-2.0
//
// AssignRegion against servers that refuse, are not reached, do not answer, or die: which server
// gets the region, and that no two ever have it.

#include <pv2/engine/inspection.h>
#include <pv2/procedures/assign_region.h>
#include <pv2/procedures/create_table.h>
#include <pv2/procedures/server_crash.h>

#include <algorithm>

#include "deterministic_executor.h"

namespace pv2::testing::assign_region_test {
namespace {

/// One table of one region is being created on two servers, rs1 before rs2.
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

}  // namespace

TEST_CASE("a region that a server refuses goes to another server at once") {
  OneRegion story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kRefuse);

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

TEST_CASE("after a lost reply the same server is asked again and opens the region once") {
  OneRegion story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kLoseReply, 3);

  story.begin();
  story.executor.run();

  CHECK(story.home() == story.rs1);
  CHECK(story.cluster.calls(ClusterCall::kOpenRegion) == 4);
  story.check_end();
}

TEST_CASE("after a lost request the same server is asked again") {
  OneRegion story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kLoseRequest, 3);

  story.begin();
  story.executor.run();

  CHECK(story.home() == story.rs1);
  story.check_end();
}

TEST_CASE(
    "a region stays with a server that may have it, even if a later call does not reach the "
    "server") {
  OneRegion story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kLoseReply);
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kFail, 5);

  story.begin();
  story.executor.advance(std::chrono::seconds(5));

  CHECK(story.servers_that_have_it() == 1);
  story.executor.run();
  CHECK(story.home() == story.rs1);
  story.check_end();
}

TEST_CASE("a region leaves a server that may have it once the server is recorded as crashed") {
  OneRegion story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kLoseReply);
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
  // The first life's call reaches the server, but its reply is lost; the calls of the second life
  // do not reach the server at first.
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kLoseReply);
  story.begin();
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kFail, 3);
  story.executor.crash();
  story.executor.open();

  story.executor.advance(std::chrono::seconds(2));
  CHECK(story.home() == story.rs1);
  CHECK(story.servers_that_have_it() == 1);

  story.executor.run();
  CHECK(story.home() == story.rs1);
  story.check_end();
}

TEST_CASE("when every server has refused, all are asked again after a pause") {
  OneRegion story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kRefuse, 4);

  story.begin();
  CHECK(story.cluster.calls(ClusterCall::kOpenRegion) == 2);
  story.executor.advance(std::chrono::seconds(1));
  CHECK(story.cluster.calls(ClusterCall::kOpenRegion) == 4);
  story.executor.advance(std::chrono::seconds(1));

  CHECK(story.cluster.calls(ClusterCall::kOpenRegion) == 5);
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
  CHECK(live[1].step_name == "CHOOSE_SERVER");
  CHECK(live[1].attempt > 5);
  CHECK_THAT(std::string(live[1].error.message()), ContainsSubstring("no live region server"));

  cluster.add_server("rs1");
  executor.run();

  CHECK(executor.result(*id).state == ProcedureState::kSuccess);
  CHECK(disorder(cluster).empty());
}

TEST_CASE("a region that is not in the catalogue cannot be assigned") {
  MemoryCluster cluster;
  cluster.add_server("rs1");
  DeterministicExecutor executor(cluster);
  executor.open();
  const RegionInfo stray{{"default", "t"}, "00000000000000aa", "", ""};

  const auto id = executor.submit(AssignRegion(cluster.ports(), stray, 0));
  executor.run();

  CHECK(executor.result(*id).status.code() == StatusCode::kNotFound);
}

TEST_CASE("assigning an open region changes nothing") {
  OneRegion story;
  story.begin();
  const RegionRow before = story.cluster.snapshot().regions.at(0);

  const auto id = story.executor.submit(AssignRegion(story.cluster.ports(), before.region, 1));
  story.executor.run();

  CHECK(story.executor.result(*id).result == to_string(before.server));
  CHECK(story.cluster.snapshot().regions.at(0) == before);
  CHECK(story.cluster.calls(ClusterCall::kOpenRegion) == 1);
}

}  // namespace pv2::testing::assign_region_test
