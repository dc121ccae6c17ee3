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
// After a start of the master a server that is known to have lived is waited for: until its first
// heartbeat says where it listens, or until its lease ends.
//
// A server that lives, but has answered none of many calls in a row for the length of a lease, is
// taken for dead: otherwise a network that is half open would hold procedures up for ever.

#pragma once

#include <pv2/base/clock.h>
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
  struct Events {
    /// Whether the server has not said yet where it listens, but may.
    std::function<bool(const ServerName&)> is_awaited;
    /// A server has answered nothing for so long.
    std::function<void(const ServerName&)> give_up;
    /// Whoever listens at the address of a server says that it has heard of a later master.
    /// Nothing is concluded from that alone.
    std::function<void()> on_later_epoch;
  };

  /// `links` outlives this.
  Dispatcher(std::shared_ptr<Transport> transport, ServerLinks& links, std::uint64_t epoch,
             Duration lease, Events events)
      : links_(links),
        epoch_(epoch),
        lease_(lease),
        events_(std::move(events)),
        tasks_(std::move(transport)) {}

  void dispatch(RemoteOperation operation, Completion<DispatchOutcome> done);
  /// The server has said where it listens.
  void came(const ServerName& server) { send(server); }
  /// The server is dead: what waits was not sent, and what is under way is not known.
  void fail_all(const ServerName& server);
  /// From now on nothing is called any more.
  void end() { tasks_.end(); }

 private:
  struct Waiting {
    RemoteOperation operation;
    Completion<DispatchOutcome> done;
  };
  struct Line {
    std::deque<Waiting> waiting;
    bool is_calling = false;
    std::uint32_t unanswered = 0;  // calls in a row
    SteadyTime unanswered_since{};
  };

  void send(const ServerName& server);
  void answered(const ServerName& server, std::vector<Waiting> batch, const CallOutcome& outcome);
  void count(const ServerName& server, bool is_answered);

  ServerLinks& links_;
  const std::uint64_t epoch_;
  const Duration lease_;
  const Events events_;
  std::uint64_t next_number_ = 1;  ///< Of the next operation that is sent (DispatchRequest).
  std::map<ServerName, Line> lines_;
  LoopTasks tasks_;
};

}  // namespace pv2::cluster
