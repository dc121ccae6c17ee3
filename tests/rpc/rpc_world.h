// SPDX-License-Identifier: Apache-2.0
//
// RpcWorld: a server and clients on a network in memory, under a manual clock, on one thread.

#pragma once

#include <pv2/base/clock.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pv2/rpc/memory_transport.h"
#include "pv2/rpc/rpc_client.h"
#include "pv2/rpc/rpc_server.h"
#include "support/catch.h"

namespace pv2::testing {

using CallOutcomeSlot = std::shared_ptr<std::optional<CallOutcome>>;

/// By default the server has a method "echo", which answers with what it is given, and "keep",
/// whose calls are kept in `kept`.
struct RpcWorld {
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<MemoryTransport> transport = std::make_shared<MemoryTransport>(clock);
  std::vector<IncomingCall> kept;
  std::vector<std::string> logged;

  RpcServerOptions server_options() {
    RpcServerOptions options{.transport = transport, .address = "server"};
    options.methods["echo"] = [](IncomingCall call) { call.reply(call.body()); };
    options.methods["keep"] = [this](IncomingCall call) { kept.push_back(std::move(call)); };
    options.log = [this](LogLevel, std::string_view line) { logged.emplace_back(line); };
    return options;
  }
  std::unique_ptr<RpcServer> serve(RpcServerOptions options) {
    auto server = RpcServer::open(std::move(options));
    REQUIRE(server.ok());
    return *std::move(server);
  }
  std::unique_ptr<RpcServer> serve() { return serve(server_options()); }

  RpcClientOptions client_options() {
    return {.transport = transport, .addresses = {"server"}, .seed = 7};
  }
  std::unique_ptr<RpcClient> connect(RpcClientOptions options) {
    auto client = RpcClient::open(std::move(options));
    REQUIRE(client.ok());
    return *std::move(client);
  }
  std::unique_ptr<RpcClient> connect() { return connect(client_options()); }

  /// Makes a call; the outcome is there when the network has run for long enough.
  static CallOutcomeSlot call(RpcClient& client, std::string method, std::string body,
                              CallOptions options = {}) {
    auto slot = std::make_shared<std::optional<CallOutcome>>();
    client.call(std::move(method), std::move(body), std::move(options),
                [slot](CallOutcome outcome) { slot->emplace(std::move(outcome)); });
    return slot;
  }
  void run() { transport->run_until_idle(); }
  void run_for(Duration time) { transport->run_for(time); }
};

}  // namespace pv2::testing
