// SPDX-License-Identifier: Apache-2.0
//
// ServerConnections: a connection to each address that a client has called and where a server
// lives. A server that is started again has another address, so a connection goes when its server
// is gone from the list of the master and no call is under way on it.

#pragma once

#include <pv2/rpc/rpc_client.h>
#include <pv2/rpc/transport.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/cluster/server_list.h"
#include "storage/work_queue.h"
#include "wire/loop_tasks.h"

namespace pv2::cluster {

/// Used on the loop only, except for its destructor, which is not called there.
class ServerConnections {
 public:
  /// A loop with a thread must not destroy a connection: that is done in `chores`. `tasks` and
  /// `chores` outlive it.
  ServerConnections(LoopTasks& tasks, WorkQueue* chores, std::shared_ptr<Transport> transport,
                    std::string token, std::uint64_t seed)
      : tasks_(tasks),
        chores_(chores),
        transport_(std::move(transport)),
        token_(std::move(token)),
        seed_(seed) {}

  /// As RpcClient::call(). The ticket is for cancel() with the same address.
  CallTicket call(const std::string& address, std::string_view method, std::string body,
                  CallOptions options, CallDone done);
  /// As RpcClient::cancel(), of a call that has no outcome yet.
  void cancel(const std::string& address, CallTicket ticket);
  /// These are the servers that live now, as the master says. One that it does not know yet gets a
  /// new connection with the next call.
  void keep(const std::vector<ServerEntry>& live);
  [[nodiscard]] std::size_t size() const noexcept { return connections_.size(); }

 private:
  struct Connection {
    std::unique_ptr<RpcClient> client;
    std::size_t calls = 0;  ///< Under way.
    bool is_gone = false;   ///< Its server is not in the list.
  };

  void drop_if_gone(const std::string& address);

  LoopTasks& tasks_;
  WorkQueue* const chores_;
  const std::shared_ptr<Transport> transport_;
  const std::string token_;
  const std::uint64_t seed_;
  std::map<std::string, Connection> connections_;
};

}  // namespace pv2::cluster
