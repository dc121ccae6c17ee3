// SPDX-License-Identifier: Apache-2.0
//
// AssignServerRegions: regions of a dead server that are more than one step can start children for.
// None of them waits for one that cannot be opened, nor for a queue that cannot be claimed.

#include <pv2/procedures/add_peer.h>
#include <pv2/procedures/lock_procedure.h>

#include <set>
#include <string>
#include <vector>

#include "procedure_plot.h"
#include "region_world.h"

namespace pv2::testing::assign_server_regions_test {
namespace {

/// The table default:t on one server, and on the same server a table whose keys are more than one
/// step can start children for, twice.
struct WideWorld : RegionWorld {
  WideWorld() : RegionWorld(1, 1) {
    std::vector<std::string> keys;
    for (char first = 'a'; first <= 'z'; ++first) {
      for (char second = 'a'; second <= 'w'; ++second) {
        keys.push_back(std::string{first, second} + std::string(4000, 'k'));
      }
    }
    create("wide", std::move(keys));
  }

  void create(const std::string& table, std::vector<std::string> keys = {}) {
    (void)must_end(submit(CreateTable(cluster.ports(), TableDescriptor{{"default", table}, {"f1"}},
                                      std::move(keys))));
  }
  /// The only server dies, and another one has come.
  ProcedureId kill_first() {
    servers.push_back(cluster.add_server("rs2"));
    return kill(servers[0]);
  }
  /// The tables with a region that no live server has open.
  [[nodiscard]] std::set<std::string> not_served() const {
    std::set<std::string> tables;
    for (const RegionRow& row : rows()) {
      if (row.state != RegionState::kOpen || row.server == servers[0]) {
        tables.insert(row.region.table.table);
      }
    }
    return tables;
  }
};

/// What an earlier version, which knew no groups of regions, has stored of a ServerCrash that is
/// about to split the logs.
class EarlierServerCrash final : public StateMachineProcedure<ServerCrashStep> {
 public:
  static constexpr std::string_view kType = ServerCrash::kType;
  static constexpr auto kSteps = ServerCrash::kSteps;

  explicit EarlierServerCrash(ClusterPorts& /*ports*/) {}
  EarlierServerCrash(ServerName server, std::vector<RegionInfo> regions)
      : server_(std::move(server)), regions_(std::move(regions)) {}

  void fields(auto& f) {
    f.arg(1, "server", server_);
    f(2, "regions", regions_);
    f(3, "carries_meta", carries_meta_);
    f(4, "recovered", recovered_);
  }
  [[nodiscard]] LockSet locks() const override {
    return LockSet().server(to_string(server_), LockMode::kExclusive);
  }
  Flow execute_from_state(ServerCrashStep step, StepContext& /*ctx*/) override {
    if (step == ServerCrashStep::kStart) return next(ServerCrashStep::kSplitLogs);
    return retry({StatusCode::kUnavailable, "the master ends here"});
  }

 private:
  ServerName server_;
  std::vector<RegionInfo> regions_;
  bool carries_meta_ = false;
  bool recovered_ = false;
};

}  // namespace

TEST_CASE("every region of a dead server is served although its queues cannot be claimed") {
  WideWorld world;
  (void)world.must_end(world.submit(AddPeer(world.cluster.ports(), PeerRow{"p1", {"/other", {}}})));
  world.cluster.fail_next(ClusterCall::kClaimQueues, ClusterFault::kReportFailure, 1'000'000);

  const ProcedureId crash = world.kill_first();
  world.executor.advance(std::chrono::seconds(10));

  CHECK(world.not_served().empty());
  CHECK(world.step_of(crash) == "CHECK");  // its next one, when the queues are claimed
}

TEST_CASE("every region of a dead server is served but those of tables that are locked") {
  WideWorld world;
  std::set<std::string> locked;
  for (char last = 'a'; last <= 'h'; ++last) {
    const std::string table = std::string("locked_") + last;
    world.create(table);
    locked.insert(table);
    (void)world.submit(
        LockProcedure({.name_space = "default", .table = table, .lease = std::chrono::hours(24)}));
  }
  world.executor.settle();

  (void)world.kill_first();
  world.executor.advance(std::chrono::seconds(10));

  CHECK(world.not_served() == locked);
}

TEST_CASE("a region that leaves the dead server while its group is read stops no other one") {
  RegionWorld world(2, 1, Delivery::kQueued);
  const ServerName dead = world.servers[0];
  world.servers.push_back(world.cluster.add_server("rs2"));
  const std::size_t reads = world.cluster.calls(ClusterCall::kRegionsOn);
  const ProcedureId crash = world.kill(dead);
  // Until GET_REGIONS and SCHEDULE have asked. The answer to SCHEDULE is on its way.
  while (world.cluster.calls(ClusterCall::kRegionsOn) < reads + 2) {
    if (world.executor->run_until_idle(1) > 0 || world.cluster.deliver_one()) continue;
    REQUIRE(world.cluster.deliver_reports(*world.executor) > 0);
  }
  world.cluster.ports().catalogue.write(
      {.effect_key = "by hand",
       .regions = {{world.row(0).region, RegionState::kOpening, world.servers[1], 9}}},
      nobody<Result<Applied>>());
  REQUIRE(world.home(0) == world.servers[1]);

  world.executor.settle();

  CHECK(world.executor.result(crash).status.to_string() == "OK");
  CHECK(world.regions_on(world.servers[1]) == 1);
  (void)world.must_end(
      world.submit(TransitRegionState::assign(world.cluster.ports(), world.row(0).region)));
  world.check_end();
}

TEST_CASE("a ServerCrash that was stored without groups of regions moves every region") {
  WideWorld world;
  const ServerName dead = world.servers[0];
  world.servers.push_back(world.cluster.add_server("rs2"));
  world.cluster.kill_server(dead);
  world.cluster.ports().logs.fence(dead, nobody<Status>());
  world.cluster.ports().catalogue.write(
      {.effect_key = "by hand", .servers = {{dead, ServerState::kCrashed, false}}},
      nobody<Result<Applied>>());
  const auto disk = std::make_shared<MemoryDisk>();
  const auto open_store = [&] { return std::make_unique<MemoryProcedureStore>(disk); };
  ProcedureRegistry earlier;
  earlier.add<EarlierServerCrash>(world.cluster.ports());
  auto opened = ProcedureExecutor::open({.store = open_store(),
                                         .registry = earlier,
                                         .workers = 0,
                                         .log = [](LogLevel, std::string_view) {}});
  REQUIRE(opened.ok());
  (*opened)->start();
  std::optional<ProcedureId> crash;
  (*opened)->async().submit(EarlierServerCrash(dead, {world.row().region}), {},
                            [&](const Result<Submitted>& answer) { crash = answer->id; });
  (*opened)->run_until_idle();
  REQUIRE(crash.has_value());
  REQUIRE((*opened)->inspect().describe(*crash)->step_name == "SPLIT_LOGS");
  opened->reset();

  DeterministicExecutor executor(world.cluster, open_store);
  executor.open();
  executor.run();

  CHECK(executor.result(*crash).status.to_string() == "OK");
  CHECK(world.not_served().empty());
  CHECK(world.state_of(dead) == ServerState::kRetired);
  world.check_rows();
}

}  // namespace pv2::testing::assign_server_regions_test
