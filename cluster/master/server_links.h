// SPDX-License-Identifier: Apache-2.0
//
// ServerLinks: a connection to each server, made when it is first called.
//
// How it fails: a call to a server whose address nobody knows ends at once as not sent.

#pragma once

#include <pv2/procedures/server.h>
#include <pv2/rpc/rpc_client.h>
#include <pv2/rpc/transport.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "storage/work_queue.h"

namespace pv2::cluster {

/// Used on the loop only. The destructor is not called there, if the transport has its own thread.
class ServerLinks {
 public:
  using FindAddress = std::function<std::optional<std::string>(const ServerName&)>;

  /// `graveyard` destroys connections, which the loop must not; it outlives this.
  ServerLinks(std::shared_ptr<Transport> transport, WorkQueue& graveyard, FindAddress find_address)
      : transport_(std::move(transport)),
        graveyard_(graveyard),
        find_address_(std::move(find_address)) {}

  /// As RpcClient::call().
  void call(const ServerName& server, std::string_view method, std::string body,
            CallOptions options, CallDone done);
  /// Ends the connection; its calls end as unknown, or as not sent.
  void drop(const ServerName& server);

 private:
  std::shared_ptr<Transport> transport_;
  WorkQueue& graveyard_;
  FindAddress find_address_;
  std::map<ServerName, std::unique_ptr<RpcClient>> clients_;
};

}  // namespace pv2::cluster
