// SPDX-License-Identifier: Apache-2.0
//
// Where and how often a process looks for the master.

#include "server/master_transport.h"

#include <pv2/base/clock.h>
#include <pv2/rpc/memory_transport.h>
#include <pv2/rpc/rpc_client.h>
#include <pv2/rpc/rpc_server.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "support/catch.h"

namespace pv2::testing::master_transport_test {
namespace {

using namespace cluster;  // NOLINT: the layer under test
using namespace std::chrono_literals;

/// Two masters, each of which tells its name, and a client of the one at `address`.
struct World {
  World() {
    first = start("first");
    second = start("second");
    address = first->address();
    auto opened = RpcClient::open(
        {.transport = to_master, .addresses = {std::string(kMasterAddress)}, .seed = 1});
    REQUIRE(opened.ok());
    client = *std::move(opened);
  }
  std::unique_ptr<RpcServer> start(const std::string& name) {
    RpcServerOptions options{.transport = transport, .address = name + ":0"};
    options.methods["name"] = [name](IncomingCall call) { call.reply(name); };
    auto opened = RpcServer::open(std::move(options));
    REQUIRE(opened.ok());
    return *std::move(opened);
  }
  void ask() {
    client->call("name", "", {.read_only = true, .timeout = 1min},
                 [this](const CallOutcome& outcome) { heard += outcome.body + " "; });
    transport->run_until_idle();
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<MemoryTransport> transport = std::make_shared<MemoryTransport>(clock);
  std::unique_ptr<RpcServer> first;
  std::unique_ptr<RpcServer> second;
  std::string address;
  std::string heard;
  int looks = 0;
  ManualWorkQueue queue;
  std::shared_ptr<MasterTransport> to_master = std::make_shared<MasterTransport>(
      transport,
      [this] {
        ++looks;
        return Result<std::string>(address);
      },
      &queue);
  std::unique_ptr<RpcClient> client;
};

}  // namespace

TEST_CASE("the loop does not look for the master itself") {
  World world;
  world.ask();
  CHECK(world.looks == 0);
  CHECK(world.heard.empty());

  world.queue.run_all();
  world.transport->run_until_idle();
  CHECK(world.looks == 1);
  CHECK(world.heard == "first ");
}

TEST_CASE("looks for the master that wait are one look, and find one that has moved") {
  World world;
  world.ask();
  world.queue.run_all();
  world.transport->run_until_idle();

  world.address = world.second->address();
  for (int i = 0; i < 5; ++i) world.to_master->look_again();
  world.queue.run_all();
  world.transport->run_until_idle();
  CHECK(world.looks == 2);

  world.ask();
  for (int i = 0; i < 20; ++i) {  // the client pauses before it connects again
    world.queue.run_all();
    world.transport->run_for(100ms);
  }
  CHECK(world.heard == "first second ");
}

}  // namespace pv2::testing::master_transport_test
