// SPDX-License-Identifier: Apache-2.0
//
// Which connections a client of the cluster keeps.

#include "client/server_connections.h"

#include <pv2/base/clock.h>
#include <pv2/rpc/memory_transport.h>
#include <pv2/rpc/rpc_server.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.h"

namespace pv2::testing::server_connections_test {
namespace {

using namespace std::chrono_literals;

/// Two servers; each keeps its calls until answer().
struct World {
  World() {
    for (const std::string name : {"a", "b"}) {
      RpcServerOptions options{.transport = transport, .address = name + ":0"};
      options.methods["wait"] = [&calls = waiting[name]](IncomingCall call) {
        calls.push_back(std::move(call));
      };
      auto opened = RpcServer::open(std::move(options));
      REQUIRE(opened.ok());
      servers[name] = *std::move(opened);
    }
  }
  void call(const std::string& server) {
    connections.call(servers.at(server)->address(), "wait", "",
                     {.read_only = true, .timeout = 1min},
                     [this](const CallOutcome& outcome) { answers += outcome.ok() ? 1 : 0; });
    transport->run_until_idle();
  }
  void answer(const std::string& server) {
    for (IncomingCall& call : waiting.at(server)) call.reply("");
    waiting.at(server).clear();
    transport->run_until_idle();
  }
  void keep(const std::vector<std::string>& names) {
    std::vector<cluster::ServerEntry> live;
    for (const std::string& name : names)
      live.push_back({.name = {name, 1}, .address = servers.at(name)->address()});
    connections.keep(live);
    transport->run_until_idle();
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<MemoryTransport> transport = std::make_shared<MemoryTransport>(clock);
  std::map<std::string, std::vector<IncomingCall>> waiting;
  std::map<std::string, std::unique_ptr<RpcServer>> servers;
  cluster::LoopTasks tasks{transport};
  cluster::ManualWorkQueue chores;
  cluster::ServerConnections connections{tasks, &chores, transport, "", 1};
  int answers = 0;
};

}  // namespace

TEST_CASE("the connection to a server that is gone is dropped when its last call has ended") {
  World world;
  world.call("a");
  world.call("b");
  world.answer("b");
  REQUIRE(world.connections.size() == 2);

  world.keep({});
  CHECK(world.connections.size() == 1);
  CHECK_FALSE(world.chores.empty());  // the loop does not destroy it
  world.chores.run_all();

  world.answer("a");
  CHECK(world.answers == 2);
  CHECK(world.connections.size() == 0);
  world.chores.run_all();
}

TEST_CASE("a server that comes back into the list keeps its connection") {
  World world;
  world.call("a");
  world.keep({"b"});
  world.keep({"a", "b"});
  world.answer("a");
  CHECK(world.connections.size() == 1);

  // And one that was dropped is connected to again.
  world.keep({});
  REQUIRE(world.connections.size() == 0);
  world.chores.run_all();
  world.call("a");
  world.answer("a");
  CHECK(world.answers == 2);
}

}  // namespace pv2::testing::server_connections_test
