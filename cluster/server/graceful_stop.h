// SPDX-License-Identifier: Apache-2.0
//
// GracefulStop: ends a server that nobody needs any more. It closes all regions, so that no log is
// needed to recover them, and then tells the master, which need not wait for the lease.
//
// How it fails: a region that cannot be flushed ends the server as ever. What takes longer than
// RegionServerOptions::stop_max is left to the logs. The master moves the regions in any case as it
// does after a crash, so nothing depends on this.

#pragma once

#include <pv2/base/clock.h>

#include <functional>

namespace pv2::cluster {

class HeartbeatSender;
class RegionOrders;
class RegionTable;
struct ServerContext;

/// Used on the loop only.
class GracefulStop {
 public:
  GracefulStop(ServerContext& context, RegionTable& table, RegionOrders& orders,
               HeartbeatSender& heartbeat)
      : context_(context), table_(table), orders_(orders), heartbeat_(heartbeat) {}

  /// Calls `done` once, unless the server ends itself before. To be called once.
  void begin(std::function<void()> done);

 private:
  void look();

  ServerContext& context_;
  RegionTable& table_;
  RegionOrders& orders_;
  HeartbeatSender& heartbeat_;
  SteadyTime begun_{};
  std::function<void()> done_;
};

}  // namespace pv2::cluster
