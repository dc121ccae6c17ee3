// SPDX-License-Identifier: Apache-2.0
//
// HeartbeatSender: tells the master from time to time that the server lives. The first heartbeat
// registers the server; it goes out after the server has its logs, so a master that fences the
// server finds a directory to rename.
//
// How often: as the operator wants, but several times in the lease that the master grants.
//
// How it fails: a server that the master has taken for dead ends. So does one that has heard from
// no master for a long time (RegionServerOptions::silence_max).

#pragma once

#include <pv2/rpc/rpc_client.h>

#include <functional>
#include <string>

#include "server/master_transport.h"
#include "server/region_table.h"
#include "server/server_context.h"

namespace pv2::cluster {

/// Used on the loop only. `master` and `transport` outlive it.
class HeartbeatSender {
 public:
  HeartbeatSender(ServerContext& context, RegionTable& table, RpcClient& master,
                  MasterTransport& transport, std::string address);

  /// Sends one now, and from now on by itself. `registered` is called once, when a master has heard
  /// of this server.
  void start(std::function<void()> registered) {
    registered_ = std::move(registered);
    beat();
  }
  /// Sends one now, or after the one that is under way.
  void ask();
  /// Says that the server leaves, and nothing more. `done` is called whether the master hears it or
  /// not.
  void leave(std::function<void()> done);

 private:
  void beat();
  void send(bool leaving, std::function<void(CallOutcome)> done);
  void take(const CallOutcome& outcome);

  ServerContext& context_;
  RegionTable& table_;
  RpcClient& master_;
  MasterTransport& transport_;
  const std::string address_;
  Duration every_;
  SteadyTime heard_;
  SteadyTime sent_{};  ///< The heartbeat that is under way.
  std::function<void()> registered_;
  bool is_calling_ = false;
  bool asks_again_ = false;
  bool is_leaving_ = false;
};

}  // namespace pv2::cluster
