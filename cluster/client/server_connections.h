// SPDX-License-Identifier: Apache-2.0
//
// ServerConnections: a connection to each address that a client has called. It keeps all of them:
// the loop must not destroy one, and a server that is started again has another address.

#pragma once

#include <pv2/rpc/rpc_client.h>
#include <pv2/rpc/transport.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace pv2::cluster {

/// Used on the loop only, except for its destructor, which is not called there.
class ServerConnections {
 public:
  ServerConnections(std::shared_ptr<Transport> transport, std::string token, std::uint64_t seed)
      : transport_(std::move(transport)), token_(std::move(token)), seed_(seed) {}

  /// As RpcClient::call().
  void call(const std::string& address, std::string_view method, std::string body,
            CallOptions options, CallDone done);

 private:
  const std::shared_ptr<Transport> transport_;
  const std::string token_;
  const std::uint64_t seed_;
  std::map<std::string, std::unique_ptr<RpcClient>> clients_;
};

}  // namespace pv2::cluster
