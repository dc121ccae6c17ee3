// SPDX-License-Identifier: Apache-2.0
//
// A server that is asked to end: what it gives back, what it still answers, and what the master
// hears.

#include <chrono>

#include "cluster/server/server_world.h"
#include "storage/region_files.h"
#include "wire/methods.h"

namespace pv2::testing::graceful_stop_test {
namespace {

using namespace cluster;       // NOLINT: the layer under test
using namespace server_world;  // NOLINT
using namespace std::chrono_literals;

const TableName kTable{"default", "t"};
const RegionInfo kRegion = whole_table(kTable, "r1");

/// A table with one region, and a server.
struct World : ServerWorld {
  explicit World(const std::function<void(RegionServerOptions&)>& tune = {}) {
    make_table(kTable, {"f"}, {kRegion});
    server = start("rs1", tune);
  }

  CallOutcome put(const std::string& row, std::uint64_t nonce) {
    return call(server, kRegionWrite,
                encoded(WriteRequest{"r1", {{MutationKind::kPut, row, "f", "q", "v"}}, 0}),
                {.nonce = {7, nonce}, .timeout = 300ms});
  }
  void stop() {
    process(server).server->stop([this] { is_stopped = true; });
  }
  /// How many rows the next server finds, when nobody has split a log of the first one.
  std::size_t rows_elsewhere() {
    const ServerName next = start("rs2");
    open(kRegion, next);
    const CallOutcome page = call(next, kRegionScan, encoded(ScanRequest{"r1", {}, 0}),
                                  {.read_only = true, .timeout = 300ms});
    ScanPage rows;
    REQUIRE(decode_fields(rows, FieldSelection::kAll, page.body).ok());
    return rows.cells.size();
  }

  ServerName server;
  bool is_stopped = false;
};

}  // namespace

TEST_CASE("a server that stops flushes its regions and says that it leaves") {
  World world;
  world.open(kRegion, world.server);
  REQUIRE(world.put("a", 1).ok());

  world.stop();
  world.run_until([&] { return world.is_stopped; });

  CHECK(world.left.contains(world.server));
  CHECK(world.process(world.server).server->status().regions.empty());
  CHECK_FALSE(world.process(world.server).end.has_value());
  CHECK(world.put("b", 2).kind == CallOutcome::Kind::kFailed);
  const std::size_t heartbeats = world.heartbeats;
  world.run_for(5s);
  CHECK(world.heartbeats == heartbeats);
  world.kill(world.server);
  CHECK(world.rows_elsewhere() == 1);
}

TEST_CASE("a server that stops ends the calls under way first") {
  World world;
  world.open(kRegion, world.server);
  world.process(world.server).holds_calls = true;
  std::optional<CallOutcome> write;
  world.process(world.server)
      .link->call(std::string(kRegionWrite),
                  World::encoded(WriteRequest{"r1", {{MutationKind::kPut, "a", "f", "q", "v"}}, 0}),
                  {.nonce = {7, 1}, .timeout = 10s},
                  [&](const CallOutcome& outcome) { write = outcome; });
  world.settle();

  world.stop();
  world.run_for(1s);
  CHECK_FALSE(world.is_stopped);
  world.process(world.server).holds_calls = false;
  world.run_until([&] { return world.is_stopped; });

  REQUIRE(write.has_value());
  CHECK(write->ok());
  world.kill(world.server);
  CHECK(world.rows_elsewhere() == 1);
}

TEST_CASE("a server that stops begins no operation, and reports an opening as failed") {
  World world;
  const auto open = world.order(RemoteKind::kOpenRegion, world.server, kRegion);

  SECTION("while the region is being read") {
    world.process(world.server).holds_work = true;
    world.dispatch(world.server, {open});
    REQUIRE(world.process(world.server).server->status().regions.size() == 1);
    world.stop();
    world.run_for(1s);
    CHECK_FALSE(world.is_stopped);
    world.process(world.server).holds_work = false;
    CHECK_FALSE(world.report_of(open).done);
    world.run_until([&] { return world.is_stopped; });
  }
  SECTION("while the master has not taken its report") {
    world.verdict = [](const RemoteReport&) { return ServerWorld::Verdict::kAgain; };
    world.dispatch(world.server, {open});
    REQUIRE(world.report_of(open).done);
    world.stop();
    world.run_until([&] { return world.is_stopped; });
    world.verdict = {};
    world.run_for(10s);
    CHECK(world.process(world.server).server->status().regions.empty());
  }
  const auto other = world.order(RemoteKind::kOpenRegion, world.server, kRegion);
  CHECK(world.try_dispatch(world.server, {other}, 1).kind == CallOutcome::Kind::kFailed);
}

TEST_CASE("a server stops without a master, and without a flush that takes too long") {
  World world([](RegionServerOptions& options) { options.stop_max = 3s; });
  world.open(kRegion, world.server);
  SECTION("no master") {
    world.stop_master();
    world.stop();
    world.run_until([&] { return world.is_stopped; });
    CHECK(world.process(world.server).server->status().regions.empty());
  }
  SECTION("a call that does not end") {
    world.process(world.server).holds_calls = true;
    world.process(world.server)
        .link->call(std::string(kRegionScan), World::encoded(ScanRequest{"r1", {}, 0}),
                    {.read_only = true, .timeout = 1min}, [](const CallOutcome&) {});
    world.settle();
    world.stop();
    world.run_until([&] { return world.is_stopped; });
    CHECK(world.process(world.server).server->status().regions.size() == 1);
    world.process(world.server).holds_calls = false;
  }
}

TEST_CASE("a server beats several times in the lease that the master grants") {
  World world;
  world.lease = 400ms;
  world.run_for(2s);  // it hears of the lease

  const std::size_t before = world.heartbeats;
  world.run_for(4s);
  CHECK(world.heartbeats - before >= 39);
  world.lease = 1h;
  world.run_for(1s);
  const std::size_t after = world.heartbeats;
  world.run_for(10s);
  CHECK(world.heartbeats - after <= 11);
}

}  // namespace pv2::testing::graceful_stop_test
