// SPDX-License-Identifier: Apache-2.0
//
// ServerWatch: hears the heartbeats of servers (master.heartbeat), and submits a ServerCrash for
// each server that is silent for longer than its lease, that answers nothing, or whose host has
// started another one.
//
// Invariant: a server that was given up is never taken back. From then on it hears that it is dead,
// and its ServerCrash is submitted until that is durable; the nonce makes the copies one. If an
// operator has ended the ServerCrash that has the nonce, or the nonce is of another submission, a
// ServerCrash is submitted under the next one. A second ServerCrash of a server does no harm.

#pragma once

#include <pv2/engine/procedure_executor.h>
#include <pv2/procedures/cluster_ports.h>
#include <pv2/rpc/incoming_call.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "master/meta_catalogue.h"
#include "master/server_registry.h"
#include "wire/loop_tasks.h"

namespace pv2::cluster {

/// Used on the loop only.
class ServerWatch {
 public:
  struct Parts {
    ProcedureExecutor& executor;
    ClusterPorts& ports;
    const MetaCatalogue& catalogue;
    ServerRegistry& registry;
  };
  struct Events {
    std::function<void(const ServerName&)> came;     ///< A server has registered.
    std::function<void(const Status&)> on_fatal;     ///< The executor's store has failed.
    std::function<void(const std::string&)> notice;  ///< For the log.
  };

  /// All references outlive this.
  ServerWatch(std::shared_ptr<Transport> transport, Parts parts, std::uint64_t epoch, Events events)
      : parts_(parts), epoch_(epoch), events_(std::move(events)), tasks_(std::move(transport)) {}

  /// Begins to look at leases. `expected` may be alive. Servers that are recorded as dead, and not
  /// as retired, need a ServerCrash, which an operator may have ended.
  void start(const std::vector<ServerName>& expected);
  /// Servers that the catalogue names may be alive, too.
  void expect(const std::vector<ServerName>& servers);
  /// The handler of master.heartbeat.
  void take(IncomingCall call);
  /// A server was given up (ServerRegistry): its crash is submitted.
  void crash(const ServerName& server, const std::string& why);

 private:
  void look();
  void submit(const ServerName& server, Nonce nonce);
  /// The ServerCrash of `server` that has `nonce` may have been submitted by an earlier master.
  void look_after(const ServerName& server, Nonce nonce, ProcedureId crash);

  Parts parts_;
  const std::uint64_t epoch_;
  const Events events_;
  LoopTasks tasks_;
};

}  // namespace pv2::cluster
