// SPDX-License-Identifier: Apache-2.0
//
// FaultRoutes and FaultTransport, over a network in memory.

#include "pv2/rpc/fault_routes.h"

#include <pv2/rpc/memory_transport.h>
#include <pv2/rpc/rpc_client.h>
#include <pv2/rpc/rpc_server.h>

#include <optional>

#include "support/catch.h"

namespace pv2::testing::fault_routes_test {
namespace {

using namespace std::chrono_literals;

struct World {
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<MemoryTransport> network = std::make_shared<MemoryTransport>(clock);
  std::shared_ptr<FaultRoutes> routes =
      std::make_shared<FaultRoutes>(*network, "way:0", RandomFaultsOptions{.seed = 7});

  std::unique_ptr<RpcServer> serve(const std::string& address) {
    RpcServerOptions options{.transport = network, .address = address};
    options.methods["echo"] = [](IncomingCall call) { call.reply(std::string(call.body())); };
    auto server = RpcServer::open(std::move(options));
    REQUIRE(server.ok());
    return *std::move(server);
  }
  CallOutcome ask(const std::string& address, Duration timeout) {
    auto client = RpcClient::open({.transport = std::make_shared<FaultTransport>(network, routes),
                                   .addresses = {address},
                                   .seed = 3});
    REQUIRE(client.ok());
    std::optional<CallOutcome> outcome;
    (*client)->call("echo", "hello", {.read_only = true, .timeout = timeout},
                    [&](CallOutcome heard) { outcome = std::move(heard); });
    network->run_for(timeout + 1s);
    REQUIRE(outcome.has_value());
    return *outcome;
  }
};

}  // namespace

TEST_CASE("each address has one way that leads to it") {
  World world;
  const auto first = world.serve("a:1");
  const auto second = world.serve("b:1");

  CHECK(world.ask("a:1", 5s).body == "hello");
  CHECK(world.ask("b:1", 5s).body == "hello");

  CHECK(*world.routes->through("a:1") == *world.routes->through("a:1"));
  CHECK(*world.routes->through("a:1") != *world.routes->through("b:1"));
  CHECK(world.routes->counts().passed > 0);
}

TEST_CASE("rates hold for the ways that there are, and for those that come") {
  World world;
  const auto first = world.serve("a:1");
  const auto second = world.serve("b:1");
  REQUIRE(world.ask("a:1", 5s).ok());

  REQUIRE(world.routes->set_rates({.drop = 1}).ok());
  CHECK_FALSE(world.ask("a:1", 5s).ok());
  CHECK_FALSE(world.ask("b:1", 5s).ok());
  CHECK(world.routes->counts().dropped > 0);

  REQUIRE(world.routes->set_rates({}).ok());
  CHECK(world.ask("a:1", 5s).ok());
  CHECK(world.ask("b:1", 5s).ok());
}

TEST_CASE("rates that are none are refused, and nobody is there behind a way to nowhere") {
  World world;
  CHECK(world.routes->set_rates({.drop = 2}).code() == StatusCode::kInvalidArgument);
  CHECK(world.ask("nobody:1", 5s).kind == CallOutcome::Kind::kFailed);
}

}  // namespace pv2::testing::fault_routes_test
