// SPDX-License-Identifier: Apache-2.0
//
// InitMeta: a new cluster gets a catalogue on some server, whatever happens meanwhile, and an old
// one is left alone.

#include <pv2/engine/inspection.h>
#include <pv2/procedures/create_table.h>
#include <pv2/procedures/init_meta.h>
#include <pv2/procedures/server_crash.h>

#include <optional>

#include "procedure_story.h"
#include "region_world.h"

namespace pv2::testing::init_meta_test {
namespace {

/// A cluster of servers without a catalogue.
struct NewCluster {
  MemoryCluster cluster;
  ServerName rs1 = cluster.add_server("rs1");
  ServerName rs2 = cluster.add_server("rs2");
  DeterministicExecutor executor{cluster};

  explicit NewCluster(Delivery delivery = Delivery::kInline)
      : cluster(delivery, FirstState::kNothing) {
    executor.open();
  }
  ProcedureId init() {
    const auto id = executor.submit(InitMeta(cluster.ports()));
    REQUIRE(id.ok());
    return *id;
  }
  [[nodiscard]] std::optional<RegionRow> meta() const {
    for (const RegionRow& row : cluster.snapshot().regions) {
      if (is_meta(row.region.table)) return row;
    }
    return std::nullopt;
  }
  void check_end(ProcedureId id) const {
    CHECK(executor.result(id).status.to_string() == "OK");
    REQUIRE(meta().has_value());
    CHECK(meta()->state == RegionState::kOpen);
    CHECK(cluster.snapshot().namespaces.size() == 2);
    CHECK(disorder(cluster).empty());
    CHECK(executor->inspect().live_procedures() == 0);
  }
};

class InitStory final : public CrashStory {
 public:
  explicit InitStory(Delivery delivery) : cluster_(delivery, FirstState::kNothing) {
    cluster_.add_server("rs1");
    cluster_.add_server("rs2");
  }
  void add_types(ProcedureRegistry& registry) override {
    add_cluster_procedures(registry, cluster_.ports());
  }
  void begin_life(ProcedureExecutor& executor) override {
    client_.begin_life();
    client_.submit(executor, InitMeta(cluster_.ports()));
  }
  bool stir(ProcedureExecutor& executor) override {
    return cluster_.deliver_all() > 0 || cluster_.deliver_reports(executor) > 0;
  }
  void check_end(CrashEnd& end) override {
    end.findings.expect(client_.result() && client_.result()->status.ok(), "InitMeta succeeds");
    for (std::string& disorder : find_disorder(cluster_.snapshot())) {
      end.findings.add(std::move(disorder));
    }
  }
  EndState end_state() override {
    return {.world = show(cluster_.snapshot()), .id = client_.id(), .result = ""};
  }

 private:
  MemoryCluster cluster_;
  KeyedClient client_{Nonce{1, 1}};
};

}  // namespace

TEST_CASE("a new cluster gets its catalogue, and two namespaces") {
  NewCluster story(GENERATE(Delivery::kInline, Delivery::kQueued));

  const auto id = story.init();
  story.executor.run();

  story.check_end(id);
  const auto table = story.executor.submit(CreateTable(story.cluster.ports(), table_t()));
  story.executor.run();
  CHECK(story.executor.result(*table).status.to_string() == "OK");
}

TEST_CASE("a cluster that has a catalogue is not given another one") {
  NewCluster story;
  (void)story.init();
  story.executor.run();
  const RegionRow before = *story.meta();

  const auto again = story.init();
  story.executor.run();

  CHECK(story.executor.result(again).status.code() == StatusCode::kFailedPrecondition);
  CHECK(*story.meta() == before);
}

TEST_CASE("a directory that holds the data of an earlier catalogue is not written over") {
  // The rows of an earlier cluster are there, and the master's own store is new.
  NewCluster old;
  (void)old.init();
  old.executor.run();
  REQUIRE(old.cluster.write_row(meta_table(), "row"));
  const ServerName host = old.meta()->server;
  const auto moved = old.executor.submit(TransitRegionState::move(
      old.cluster.ports(), meta_region(), host == old.rs1 ? old.rs2 : old.rs1));
  old.executor.run();
  REQUIRE(old.executor.result(*moved).status.to_string() == "OK");

  const auto refused = old.init();
  old.executor.run();

  CHECK(old.executor.result(refused).status.code() == StatusCode::kFailedPrecondition);
  CHECK(old.cluster.readable_rows(meta_table()).contains("row"));
}

TEST_CASE("InitMeta gets through calls that fail") {
  const ClusterCall call =
      GENERATE(ClusterCall::kWriteLayout, ClusterCall::kWrite, ClusterCall::kReadRegion,
               ClusterCall::kHoldsData, ClusterCall::kMakeNamespace, ClusterCall::kOpenRegion,
               ClusterCall::kLiveServers, ClusterCall::kReadServer);
  const ClusterFault fault =
      GENERATE(ClusterFault::kFail, ClusterFault::kLoseRequest, ClusterFault::kLoseReply);
  const unsigned times = GENERATE(1u, 4u);
  CAPTURE(to_string(call), static_cast<int>(fault), times);
  NewCluster story;
  story.cluster.fail_next(call, fault, times);

  const auto id = story.init();
  story.executor.run();

  story.check_end(id);
}

TEST_CASE("the server that is to host the first catalogue dies, and another one gets it") {
  const bool opened = GENERATE(true, false);
  NewCluster story;
  if (!opened) story.cluster.fail_next(ClusterCall::kOpenRegion, ClusterFault::kLoseRequest, 1);
  const auto id = story.init();
  while (story.cluster.calls(ClusterCall::kOpenRegion) == 0) {
    REQUIRE(story.executor->run_until_idle(1) > 0);
  }
  const ServerName dying = story.meta()->server;
  story.cluster.kill_server(dying);

  const auto crash = story.executor.submit(ServerCrash(story.cluster.ports(), dying));
  story.executor.run();

  CHECK(story.meta()->server != dying);
  CHECK(story.executor.result(*crash).status.to_string() == "OK");
  story.check_end(id);
}

TEST_CASE("InitMeta ends the same whichever store write the machine crashes at") {
  const Delivery delivery = GENERATE(Delivery::kInline, Delivery::kQueued);
  const std::size_t plays =
      check_everywhere([&] { return std::make_unique<InitStory>(delivery); }, {.leveldb = false});
  CHECK(plays > 10);
}

}  // namespace pv2::testing::init_meta_test
