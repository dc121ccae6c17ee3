// SPDX-License-Identifier: Apache-2.0
//
// RegionOrders: opens and closes regions by order of the master.
//
// Invariants:
// - A region that was opened is served only when the master has taken the report of it. Then no
//   other order is under way that would open it elsewhere.
// - The nonces of a region are known before it is served, and none of them is under way here by an
//   earlier stay of the region.
// - A close ends the calls under way, then flushes, then reports. If it fails the server ends,
//   because the edits are in its logs only.

#pragma once

#include <pv2/procedures/server_calls.h>

#include <functional>
#include <memory>
#include <vector>

#include "server/order.h"
#include "server/region_nonces.h"
#include "server/region_table.h"
#include "server/region_upkeep.h"
#include "server/report_sender.h"
#include "server/server_context.h"

namespace pv2::cluster {

class ReplicationHost;

/// The logs of one server. The one of the catalogue's region is made when that region comes.
struct OwnLogs {
  std::unique_ptr<ServerLog> user;
  std::unique_ptr<ServerLog> meta;
};

/// Used on the loop only. One order for a region at a time, the verdict on its report included.
class RegionOrders {
 public:
  using Report = std::function<void(RemoteReport)>;

  RegionOrders(ServerContext& context, RegionTable& table, OwnLogs& logs,
               const RegionNonces& nonces)
      : context_(context), table_(table), logs_(logs), nonces_(nonces) {}

  /// To be called before the first order. Without a host there is no replication.
  void set_replication(ReplicationHost* host) { replication_ = host; }

  /// A region that is here already is closed first: a later order wants it anew.
  void open(const Order& order, Report report);
  /// The region that `order` opened may be served (kTaken), or is not wanted here (kNotHere).
  void opened(const Order& order, ReportSender::Verdict verdict);
  /// A region that is not here is closed already. One that a later order has opened stays.
  void close(const Order& order, Report report);
  /// For a server that stops: closes all regions, those that are being opened when they are open.
  void close_all();

 private:
  /// What the queue of operations has found out.
  struct Opening {
    Status status;                        ///< Why the region is not open.
    Status fence;                         ///< Not OK: this server is fenced.
    std::unique_ptr<ServerLog> meta_log;  ///< If it was made for this region.
    std::shared_ptr<Region> region;
    std::vector<NonceCell> nonces;
  };
  using OpeningPointer = std::shared_ptr<Opening>;

  void begin_open(const Order& order, Report report);
  void read(const RegionTable::Entry& entry, const Order& order, Report report);
  static Status read_region(const ServerContext& context, const Order& order, Opening& opening);
  void take_opening(const RegionTable::Entry& entry, const RemoteOperation& operation,
                    const OpeningPointer& opening, const Report& report);
  void learn_nonces(const RegionTable::Entry& entry, const RemoteOperation& operation,
                    const OpeningPointer& opening, const Report& report);
  [[nodiscard]] static bool learn(ServerNonceManager& nonces, const NonceCell& cell);
  void close_entry(const RegionTable::Entry& entry, std::function<void(std::uint64_t)> closed);
  void report_absent(const RemoteOperation& operation, const Report& report);

  ServerContext& context_;
  RegionTable& table_;
  OwnLogs& logs_;
  const RegionNonces& nonces_;
  ReplicationHost* replication_ = nullptr;
};

/// A report that an operation is done, or with `failure` that it is not.
[[nodiscard]] RemoteReport report_of(const RemoteOperation& operation, const Status& failure = {});

}  // namespace pv2::cluster
