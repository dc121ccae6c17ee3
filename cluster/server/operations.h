// SPDX-License-Identifier: Apache-2.0
//
// Operations: runs what the master asks of a server, one function for each RemoteKind. Who asks
// twice is not its concern (dispatch_desk.h).

#pragma once

#include <pv2/procedures/server_calls.h>

#include <functional>
#include <string>

#include "server/order.h"
#include "server/report_sender.h"
#include "server/server_context.h"

namespace pv2::cluster {

class RegionOrders;
class ReplicationHost;

/// Used on the loop only.
class Operations {
 public:
  using Report = std::function<void(RemoteReport)>;

  /// Without a host, operations of replication fail.
  Operations(ServerContext& context, RegionOrders& regions, ReplicationHost* replication)
      : context_(context), regions_(regions), replication_(replication) {}

  /// Operations of the same line run one after the other, each until the verdict on its report.
  [[nodiscard]] static std::string line_of(const RemoteOperation& operation);
  /// Calls `report` once, on the loop, in this call or later; never if the server ends.
  void run(const Order& order, Report report);
  /// What the master said to the report.
  void settled(const Order& order, ReportSender::Verdict verdict);

 private:
  void split_log(const RemoteOperation& operation, Report report);
  void ask_replication(const RemoteOperation& operation, Report report);

  ServerContext& context_;
  RegionOrders& regions_;
  ReplicationHost* const replication_;
};

}  // namespace pv2::cluster
