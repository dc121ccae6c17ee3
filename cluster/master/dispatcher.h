// SPDX-License-Identifier: Apache-2.0
//
// Dispatcher: hands operations to servers. What waits for one server goes in one call, and while
// that call is under way the next operations gather. It keeps apart how a dispatch may end:
//
//     the server took it            done
//     the server refused it         refused, for ever under this effect key
//     no attempt left this machine, or each was turned away unread     not sent
//     anything else                 unknown
//
// A server that lives, but has answered none of many calls in a row, is taken for dead: otherwise a
// network that is half open would hold procedures up for ever.

#pragma once

#include <pv2/engine/completion.h>
#include <pv2/procedures/server_calls.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include "master/server_links.h"
#include "wire/loop_tasks.h"

namespace pv2::cluster {

/// Used on the loop only.
class Dispatcher {
 public:
  /// `give_up` is called with a server that answers nothing. `links` outlives this.
  Dispatcher(std::shared_ptr<Transport> transport, ServerLinks& links, std::uint64_t epoch,
             std::function<void(const ServerName&)> give_up)
      : links_(links), epoch_(epoch), give_up_(std::move(give_up)), tasks_(std::move(transport)) {}

  void dispatch(RemoteOperation operation, Completion<DispatchOutcome> done);
  /// The server is dead: what waits was not sent, and what is under way is not known.
  void fail_all(const ServerName& server);

 private:
  struct Waiting {
    RemoteOperation operation;
    Completion<DispatchOutcome> done;
  };
  struct Line {
    std::deque<Waiting> waiting;
    bool is_calling = false;
    std::uint32_t unanswered = 0;  // calls in a row
  };

  void send(const ServerName& server);
  void answered(const ServerName& server, std::vector<Waiting> batch, const CallOutcome& outcome);

  ServerLinks& links_;
  const std::uint64_t epoch_;
  const std::function<void(const ServerName&)> give_up_;
  std::uint64_t next_number_ = 1;  ///< Of the next operation that is sent (DispatchRequest).
  std::map<ServerName, Line> lines_;
  LoopTasks tasks_;
};

}  // namespace pv2::cluster
