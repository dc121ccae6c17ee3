// SPDX-License-Identifier: Apache-2.0
//
// One RpcClient per server. A server that starts again is another server, so an address never
// changes.

#include "master/server_links.h"

#include <chrono>
#include <utility>

namespace pv2::cluster {
namespace {

void not_sent(const CallDone& done, Status why) {
  CallOutcome outcome;
  outcome.kind = CallOutcome::Kind::kFailed;
  outcome.status = std::move(why);
  done(std::move(outcome));
}

}  // namespace

void ServerLinks::call(const ServerName& server, std::string_view method, std::string body,
                       CallOptions options, CallDone done) {
  auto found = clients_.find(server);
  if (found == clients_.end()) {
    const std::optional<std::string> address = find_address_(server);
    if (!address) {
      return not_sent(done, {StatusCode::kUnavailable,
                             "server " + to_string(server) + " has not said where it listens"});
    }
    auto client = RpcClient::open({.transport = transport_,
                                   .addresses = {*address},
                                   // A server's answer to a batch of 1024 operations at the most.
                                   .calls_max = 64,
                                   .attempt_timeout = std::chrono::seconds(2),
                                   .seed = server.start_code | 1});
    if (!client.ok()) return not_sent(done, client.status());
    found = clients_.emplace(server, *std::move(client)).first;
  }
  found->second->call(std::string(method), std::move(body), std::move(options), std::move(done));
}

void ServerLinks::drop(const ServerName& server) {
  const auto found = clients_.find(server);
  if (found == clients_.end()) return;
  // Shared only because the function that holds it has to be copyable.
  std::shared_ptr<RpcClient> client = std::move(found->second);
  clients_.erase(found);
  graveyard_.run([client = std::move(client)]() mutable { client.reset(); });
}

}  // namespace pv2::cluster
