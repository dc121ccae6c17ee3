// SPDX-License-Identifier: Apache-2.0
//
// A connection is made when its address is first called.

#include "client/server_connections.h"

namespace pv2::cluster {
namespace {

// A page of a scan may end with a row of this size.
constexpr std::size_t kFrameBytesMax = std::size_t{64} << 20;
// A write of kWriteBytesMax has to fit more than once.
constexpr std::size_t kBytesMax = std::size_t{256} << 20;

}  // namespace

void ServerConnections::call(const std::string& address, std::string_view method, std::string body,
                             CallOptions options, CallDone done) {
  std::unique_ptr<RpcClient>& client = clients_[address];
  if (client == nullptr) {
    auto opened = RpcClient::open({.transport = transport_,
                                   .addresses = {address},
                                   .token = token_,
                                   .bytes_max = kBytesMax,
                                   .frame_bytes_max = kFrameBytesMax,
                                   .seed = seed_});
    if (!opened.ok()) {
      return done({.kind = CallOutcome::Kind::kFailed,
                   .status = {StatusCode::kUnavailable, opened.status().to_string()},
                   .nonce = options.nonce});
    }
    client = *std::move(opened);
  }
  client->call(std::string(method), std::move(body), std::move(options), std::move(done));
}

}  // namespace pv2::cluster
