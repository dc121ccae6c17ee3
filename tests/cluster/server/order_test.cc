// SPDX-License-Identifier: Apache-2.0
//
// Which of two orders is the later one: by the numbers of the master that sends them, and not by
// the ids of procedures.

#include "server/order.h"

#include <chrono>

#include "cluster/server/server_world.h"
#include "server/operations.h"
#include "wire/methods.h"

namespace pv2::testing::order_test {
namespace {

using namespace cluster;       // NOLINT: the layer under test
using namespace server_world;  // NOLINT
using namespace std::chrono_literals;

const TableName kTable{"default", "t"};
const RegionInfo kRegion = whole_table(kTable, "r1");

struct World : ServerWorld {
  World() {
    make_table(kTable, {"f"}, {kRegion});
    server = start("rs1", [](RegionServerOptions& options) { options.effect_retention = 1s; });
  }

  RemoteOperation order_of(std::uint64_t procedure, RemoteKind kind, const ServerName& to) {
    RemoteOperation operation = order(kind, to, kRegion);
    operation.procedure = ProcedureId{procedure};
    return operation;
  }
  RemoteReport run(const RemoteOperation& operation) {
    REQUIRE(dispatch(operation.server, {operation}).answers.at(0).accepted);
    return report_of(operation);
  }
  /// A copy of the message that was the first to bring this operation.
  void send_copy(const RemoteOperation& operation, std::uint64_t first) {
    std::string body;
    DispatchRequest request{1, {operation}, first};
    encode_fields(request, FieldSelection::kAll, body);
    CHECK(
        call(operation.server, kServerDispatch, std::move(body), {.read_only = true, .timeout = 5s})
            .ok());
  }

  ServerName server;
};

}  // namespace

TEST_CASE("a procedure that is older than the last opening may open the region again") {
  World world;
  const ServerName other = world.start("rs2");
  REQUIRE(world.run(world.order_of(41, RemoteKind::kOpenRegion, world.server)).done);
  REQUIRE(world.run(world.order_of(45, RemoteKind::kCloseRegion, world.server)).done);

  // The undo of a split that was submitted before the region moved.
  const RemoteOperation undo = world.order_of(40, RemoteKind::kOpenRegion, other);
  const RemoteReport report = world.run(undo);

  INFO(report.reason);
  CHECK(report.done);
  CHECK(world.process(other).server->status().regions.at(0).serves);
}

TEST_CASE("one procedure may open a region on one server after the other") {
  World world;
  const ServerName other = world.start("rs2");
  REQUIRE(world.run(world.order_of(40, RemoteKind::kOpenRegion, world.server)).done);
  world.kill(world.server);
  world.recover(world.server, other);

  REQUIRE(world.run(world.order_of(40, RemoteKind::kOpenRegion, other)).done);
  const auto again = world.order_of(40, RemoteKind::kOpenRegion, other);
  CHECK(world.run(again).done);
  CHECK(world.process(other).server->status().regions.at(0).serves);
}

TEST_CASE("a late copy of an order does nothing to a region that a later order has opened") {
  World world;
  const auto open = world.order_of(1, RemoteKind::kOpenRegion, world.server);
  const auto close = world.order_of(2, RemoteKind::kCloseRegion, world.server);
  const auto reopen = world.order_of(3, RemoteKind::kOpenRegion, world.server);
  for (const auto& each : {open, close, reopen}) REQUIRE(world.run(each).done);
  const auto before = world.process(world.server).server->status().regions.at(0);
  world.run_for(2s);  // the server forgets their effect keys
  const std::size_t reports = world.reports.size();

  world.send_copy(close, 2);
  world.send_copy(open, 1);
  world.run_until([&] { return world.reports.size() == reports + 2; });

  CHECK_FALSE(world.reports[reports].done);
  CHECK_FALSE(world.reports[reports + 1].done);
  const auto after = world.process(world.server).server->status().regions.at(0);
  CHECK(after.serves);
  CHECK(after.sequence == before.sequence);
}

TEST_CASE("the orders of a later master are later, and numbers are bounded") {
  const auto number = [](std::uint64_t epoch, std::uint64_t first, std::size_t operations) {
    return first_order_number({epoch, std::vector<RemoteOperation>(operations), first});
  };
  CHECK(number(2, 1, 1).value() > number(1, 4'000'000'000, 1).value());
  CHECK(number(1, 2, 1).value() > number(1, 1, 1).value());
  CHECK(number(1, 4'294'967'290, 5).ok());
  CHECK_FALSE(number(1, 4'294'967'290, 6).ok());
  CHECK_FALSE(number(1, 4'294'967'296, 0).ok());
  CHECK_FALSE(number(4'294'967'296, 1, 1).ok());
}

TEST_CASE("two splits of one log run one after the other, whatever size each was told") {
  RemoteOperation split;
  split.kind = RemoteKind::kSplitLog;
  split.dead = {"rs2", 1};
  split.log = "u3@100";
  const std::string line = Operations::line_of(split);

  split.log = "u3@200";
  CHECK(Operations::line_of(split) == line);
  split.log = "u4@100";
  CHECK(Operations::line_of(split) != line);
}

}  // namespace pv2::testing::order_test
