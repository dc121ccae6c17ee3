// SPDX-License-Identifier: Apache-2.0
//
// ServerCrash: everything moves off a dead server, once, whatever else is going on.

#include <pv2/engine/inspection.h>
#include <pv2/procedures/create_table.h>
#include <pv2/procedures/server_crash.h>

#include <vector>

#include "deterministic_executor.h"

namespace pv2::testing::server_crash_test {
namespace {

/// A table of four regions on three servers.
struct Cluster {
  MemoryCluster cluster;
  std::vector<ServerName> servers{cluster.add_server("rs1"), cluster.add_server("rs2"),
                                  cluster.add_server("rs3")};
  DeterministicExecutor executor{cluster};

  explicit Cluster(Delivery delivery = Delivery::kInline) : cluster(delivery) {
    executor.open();
    const auto id = executor.submit(CreateTable(cluster.ports(), table_t(), even_split_keys(4)));
    executor.run();
    REQUIRE(executor.result(*id).state == ProcedureState::kSuccess);
  }
  Result<ProcedureId> report_crash(const ServerName& server) {
    return executor.submit(ServerCrash(cluster.ports(), server), crash_nonce(server));
  }
  [[nodiscard]] std::size_t regions_on(const ServerName& server) const {
    std::size_t count = 0;
    for (const RegionRow& row : cluster.snapshot().regions) count += row.server == server ? 1 : 0;
    return count;
  }
  [[nodiscard]] ServerState state_of(const ServerName& server) const {
    for (const ServerRow& row : cluster.snapshot().servers) {
      if (row.name == server) return row.state;
    }
    return ServerState::kOnline;
  }
};

}  // namespace

TEST_CASE("ServerCrash opens the regions of a dead server elsewhere, each with a higher sequence") {
  Cluster story(GENERATE(Delivery::kInline, Delivery::kQueued));
  const ServerName dead = story.servers[0];
  REQUIRE(story.regions_on(dead) == 2);
  story.cluster.kill_server(dead);

  const auto id = story.report_crash(dead);
  story.executor.run();

  CHECK(story.executor.result(*id).state == ProcedureState::kSuccess);
  CHECK(story.executor.result(*id).result == to_string(dead));
  CHECK(story.regions_on(dead) == 0);
  CHECK(story.state_of(dead) == ServerState::kRetired);
  CHECK(disorder(story.cluster).empty());
  std::size_t moved = 0;
  for (const RegionRow& row : story.cluster.snapshot().regions) {
    moved += row.open_sequence == 2 ? 1 : 0;
  }
  CHECK(moved == 2);
}

TEST_CASE("a second report of the same crash names the same procedure") {
  Cluster story;
  story.cluster.kill_server(story.servers[0]);
  const auto first = story.report_crash(story.servers[0]);
  const auto second = story.report_crash(story.servers[0]);
  story.executor.run();
  const auto late = story.report_crash(story.servers[0]);

  CHECK(*second == *first);
  CHECK(*late == *first);
}

TEST_CASE("a ServerCrash of a retired server does nothing") {
  Cluster story;
  story.cluster.kill_server(story.servers[0]);
  (void)story.report_crash(story.servers[0]);
  story.executor.run();
  const std::size_t effects = story.cluster.snapshot().effects.size();

  const auto again = story.executor.submit(ServerCrash(story.cluster.ports(), story.servers[0]));
  story.executor.run();

  CHECK(story.executor.result(*again).state == ProcedureState::kSuccess);
  CHECK(story.cluster.snapshot().effects.size() == effects);
}

TEST_CASE("a server that is only taken for dead stops serving before its regions move") {
  Cluster story;
  const ServerName accused = story.servers[1];

  const auto id = story.report_crash(accused);
  story.executor.run();

  CHECK(story.executor.result(*id).state == ProcedureState::kSuccess);
  CHECK_FALSE(story.cluster.snapshot().open.contains(accused));
  CHECK(disorder(story.cluster).empty());
}

TEST_CASE("an idle server is retired in five steps, which make six records") {
  Cluster story;
  const ServerName idle = story.cluster.add_server("rs4");
  const std::size_t before = story.executor.records();

  const auto id = story.report_crash(idle);
  story.executor.run();

  CHECK(story.executor.result(*id).state == ProcedureState::kSuccess);
  CHECK(story.executor.records() - before == 5 + 1);
  CHECK(disorder(story.cluster).empty());
}

TEST_CASE("ServerCrash gets through calls that fail, and each effect happens once") {
  const ClusterCall call = GENERATE(ClusterCall::kFence, ClusterCall::kWrite,
                                    ClusterCall::kRegionsOn, ClusterCall::kReadRegion);
  const ClusterFault fault =
      GENERATE(ClusterFault::kFail, ClusterFault::kLoseRequest, ClusterFault::kLoseReply);
  const unsigned times = GENERATE(1u, 5u);
  CAPTURE(to_string(call), static_cast<int>(fault), times);
  Cluster story;
  story.cluster.kill_server(story.servers[0]);
  story.cluster.fail_next(call, fault, times);

  const auto id = story.report_crash(story.servers[0]);
  story.executor.run();

  CHECK(story.executor.result(*id).state == ProcedureState::kSuccess);
  CHECK(disorder(story.cluster).empty());
}

TEST_CASE("two servers die at once, the second while it receives regions of the first") {
  Cluster story;
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kLoseReply, 2);
  story.cluster.kill_server(story.servers[0]);
  const auto first = story.report_crash(story.servers[0]);
  story.executor.settle();  // its regions may or may not be open on the others now
  story.cluster.kill_server(story.servers[1]);

  const auto second = story.report_crash(story.servers[1]);
  story.executor.run();

  CHECK(story.executor.result(*first).state == ProcedureState::kSuccess);
  CHECK(story.executor.result(*second).state == ProcedureState::kSuccess);
  CHECK(story.regions_on(story.servers[2]) == 4);
  CHECK(disorder(story.cluster).empty());
}

TEST_CASE(
    "CreateTable and the ServerCrash of one of its servers do not wait for each other for ever") {
  Cluster story;
  const ServerName dying = story.servers[0];
  story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kLoseReply, 2);
  const auto create = story.executor.submit(CreateTable(
      story.cluster.ports(), TableDescriptor{{"default", "second"}, {"f1"}}, even_split_keys(4)));
  story.executor.settle();
  story.cluster.kill_server(dying);
  REQUIRE(story.executor->inspect().describe(*create)->state == ProcedureState::kWaiting);

  const auto crash = story.report_crash(dying);
  story.executor.run();

  CHECK(story.executor.result(*create).state == ProcedureState::kSuccess);
  CHECK(story.executor.result(*crash).state == ProcedureState::kSuccess);
  CHECK(story.regions_on(dying) == 0);
  CHECK(disorder(story.cluster).empty());
}

TEST_CASE(
    "an opening that is confirmed after its server was declared dead is refused and repeated") {
  Cluster story(Delivery::kQueued);
  const ServerName dying = story.servers[0];
  const auto create = story.executor.submit(
      CreateTable(story.cluster.ports(), TableDescriptor{{"default", "second"}, {"f1"}}));
  // Up to the moment when the server has opened the region and has not answered yet.
  while (story.cluster.calls(ClusterCall::kOpenRegion) == 4) {
    story.executor->run_until_idle();
    if (story.cluster.calls(ClusterCall::kOpenRegion) == 4) {
      REQUIRE(story.cluster.deliver_one());
    }
  }
  story.cluster.kill_server(dying);

  const auto crash = story.report_crash(dying);
  story.executor.run();

  CHECK(story.executor.result(*create).state == ProcedureState::kSuccess);
  CHECK(story.executor.result(*crash).state == ProcedureState::kSuccess);
  CHECK(story.regions_on(dying) == 0);
  CHECK(disorder(story.cluster).empty());
}

}  // namespace pv2::testing::server_crash_test
