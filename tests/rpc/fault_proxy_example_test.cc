// SPDX-License-Identifier: Apache-2.0
//
// The example of docs/rpc.md: how an application tests what it does when a reply is lost.

#include <pv2/rpc/fault_proxy.h>
#include <pv2/rpc/nonce_source.h>
#include <pv2/rpc/rpc_client.h>
#include <pv2/rpc/rpc_server.h>
#include <pv2/rpc/scripted_faults.h>
#include <pv2/rpc/tcp_transport.h>

#include <memory>
#include <string>
#include <utility>

#include "support/catch.h"

namespace pv2::testing::fault_proxy_example_test {

TEST_CASE("a call whose reply is lost is made again under its nonce") {
  const std::shared_ptr<Transport> transport = *tcp_transport();
  int seen = 0;
  RpcServerOptions server_options{.transport = transport};
  server_options.methods["add"] = [&](IncomingCall call) {
    ++seen;
    call.reply(call.body());
  };
  const auto server = *RpcServer::open(std::move(server_options));

  // [region proxy]
  const auto faults = std::make_shared<ScriptedFaults>();
  const FaultRule first_reply_is_lost{
      .kind = FrameKind::kReply, .method = "add", .fate = {.cut = Fate::Cut::kBefore}};
  REQUIRE(faults->add(first_reply_is_lost).ok());
  const auto proxy = *FaultProxy::open(
      {.transport = transport.get(), .target = server->address(), .plan = faults});
  const auto client = *RpcClient::open({.transport = transport, .addresses = {proxy->address()}});
  NonceSource nonces;

  const CallOutcome outcome = client->call("add", "1", {.nonce = nonces.next()});

  CHECK(outcome.ok());
  CHECK(outcome.attempts > 1);
  CHECK(faults->rules_left() == 0);
  // [/region]
  CHECK(seen > 1);  // this handler compares no nonces
}

}  // namespace pv2::testing::fault_proxy_example_test
