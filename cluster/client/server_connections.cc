// SPDX-License-Identifier: Apache-2.0
//
// A connection is made when its address is first called. It is destroyed in a turn of the loop of
// its own, when nothing is under way on it.

#include "client/server_connections.h"

#include <pv2/base/assert.h>

#include <set>

namespace pv2::cluster {
namespace {

// A page of a scan may end with a row of this size.
constexpr std::size_t kFrameBytesMax = std::size_t{64} << 20;
// A write of kWriteBytesMax has to fit more than once.
constexpr std::size_t kBytesMax = std::size_t{256} << 20;

}  // namespace

CallTicket ServerConnections::call(const std::string& address, std::string_view method,
                                   std::string body, CallOptions options, CallDone done) {
  Connection& connection = connections_[address];
  if (connection.client == nullptr) {
    auto opened = RpcClient::open({.transport = transport_,
                                   .addresses = {address},
                                   .token = token_,
                                   .bytes_max = kBytesMax,
                                   .frame_bytes_max = kFrameBytesMax,
                                   .seed = seed_});
    if (!opened.ok()) {
      connections_.erase(address);
      done({.kind = CallOutcome::Kind::kFailed,
            .status = {StatusCode::kUnavailable, opened.status().to_string()},
            .nonce = options.nonce});
      return {};
    }
    connection.client = *std::move(opened);
  }
  ++connection.calls;
  return connection.client->call(
      std::string(method), std::move(body), std::move(options),
      [this, address, done = std::move(done), ends = tasks_.poster()](CallOutcome outcome) {
        ends([this, address] {
          const auto found = connections_.find(address);
          PV2_ASSERT(found != connections_.end() && found->second.calls > 0,
                     "a connection stays while a call is under way on it");
          --found->second.calls;
          drop_if_gone(address);
        });
        done(std::move(outcome));
      });
}

void ServerConnections::cancel(const std::string& address, CallTicket ticket) {
  const auto found = connections_.find(address);
  PV2_ASSERT(found != connections_.end() && found->second.calls > 0,
             "a connection stays while a call is under way on it");
  found->second.client->cancel(ticket);
}

void ServerConnections::keep(const std::vector<ServerEntry>& live) {
  std::set<std::string_view> addresses;
  for (const ServerEntry& server : live) addresses.insert(server.address);
  for (auto& [address, connection] : connections_) {
    connection.is_gone = !addresses.contains(address);
    // In a turn of its own: the caller may be within a callback of the connection.
    if (connection.is_gone) tasks_.post([this, address = address] { drop_if_gone(address); });
  }
}

void ServerConnections::drop_if_gone(const std::string& address) {
  const auto found = connections_.find(address);
  if (found == connections_.end() || !found->second.is_gone || found->second.calls != 0) return;
  std::shared_ptr<RpcClient> client = std::move(found->second.client);
  connections_.erase(found);
  if (chores_ != nullptr) chores_->run([client = std::move(client)] {});
}

}  // namespace pv2::cluster
