// SPDX-License-Identifier: Apache-2.0
//
// The proxy over real sockets: the same code as over a network in memory, with the loop on a thread
// of its own. Waits for events only.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "loop_harness.h"
#include "proxy_world.h"
#include "pv2/rpc/fault_proxy.h"
#include "pv2/rpc/scripted_faults.h"
#include "pv2/rpc/tcp_transport.h"
#include "support/catch.h"

namespace pv2::testing::fault_proxy_tcp_test {
namespace {

using std::chrono::milliseconds;

struct World {
  World() {
    REQUIRE(server.listen("127.0.0.1:0").ok());
    proxy =
        *FaultProxy::open({.transport = transport.get(), .target = server.address(), .plan = plan});
  }
  std::unique_ptr<TestStream> connect() {
    auto client = *testing::connect(transport, proxy->address());
    client->start();
    return client;
  }

  std::shared_ptr<Transport> transport = *tcp_transport();
  std::shared_ptr<ScriptedFaults> plan = std::make_shared<ScriptedFaults>();
  TestAcceptor server{transport};
  std::unique_ptr<FaultProxy> proxy;
};

TEST_CASE("proxy over TCP: frames are dropped, repeated, delayed and reordered") {
  World world;
  for (const Fate& fate : {Fate{.copies = 0}, Fate{.copies = 2}, Fate{.delay = milliseconds(1)},
                           Fate{.behind = 1, .hold_back = std::chrono::minutes(30)}}) {
    REQUIRE(world.plan->add({.fate = fate}).ok());
  }
  const auto client = world.connect();
  const auto server = world.server.next();
  server->start();

  for (std::uint64_t id = 1; id <= 5; ++id) client->send(call_bytes(id));

  const std::string expected =
      call_bytes(2) + call_bytes(2) + call_bytes(3) + call_bytes(5) + call_bytes(4);
  CHECK(server->heard.wait_for_bytes(expected.size()) == expected);
  CHECK(world.plan->rules_left() == 0);
  server->send(reply_bytes(2));
  CHECK(client->heard.wait_for_bytes(reply_bytes(2).size()) == reply_bytes(2));
}

TEST_CASE("proxy over TCP: a cut after a call, by the plan, loses only the reply") {
  World world;
  REQUIRE(world.plan->add({.fate = {.cut = Fate::Cut::kAfter}}).ok());
  const auto client = world.connect();
  const auto server = world.server.next();
  server->start();

  client->send(call_bytes(1));

  CHECK(server->heard.wait_for_bytes(call_bytes(1).size()) == call_bytes(1));
  static_cast<void>(server->heard.wait_for_end());
  static_cast<void>(client->heard.wait_for_end());
  CHECK(client->heard.bytes().empty());
  CHECK(world.proxy->counters().to_server.cut == 1);
}

TEST_CASE("proxy over TCP: much that nobody reads yet is bounded, and arrives when it is read") {
  World world;
  const auto client = world.connect();
  const auto server = world.server.next();  // not started, so it reads nothing
  const std::string frame = call_bytes(1, std::string(1U << 20U, 'x'));

  std::string all;
  for (int i = 0; i < 32; ++i) {
    client->send(frame);
    all += frame;
  }
  CHECK(world.proxy->counters().kept_bytes < (4U << 20U));
  server->start();

  CHECK(server->heard.wait_for_bytes(all.size()) == all);
}

TEST_CASE("proxy over TCP: it is destroyed with live connections, and both ends hear it") {
  World world;
  const auto client = world.connect();
  const auto server = world.server.next();
  server->start();

  world.proxy.reset();

  static_cast<void>(client->heard.wait_for_end());
  static_cast<void>(server->heard.wait_for_end());
  CHECK(client->heard.is_closed());
}

}  // namespace
}  // namespace pv2::testing::fault_proxy_tcp_test
