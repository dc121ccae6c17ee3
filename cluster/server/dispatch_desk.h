// SPDX-License-Identifier: Apache-2.0
//
// DispatchDesk: takes the operations that the master dispatches, does each effect key once, and
// gives every copy of a dispatch the same answer.
//
// Invariants:
// - An accepted operation ends in a report, which is repeated until the master has it, unless the
//   server ends or stops.
// - Operations for one region run one after the other, in the order in which they came: each until
//   the verdict on its report.
// - A key that was refused is never begun.
// - A key is forgotten only some time after its report was settled. A copy that comes later still
//   does no harm: it is older than the order that opened the region, here or elsewhere.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/rpc/rpc_server.h>

#include <deque>
#include <map>
#include <string>
#include <utility>

#include "server/order.h"
#include "server/server_context.h"
#include "wire/server_messages.h"

namespace pv2::cluster {

class Operations;
class ReportSender;

/// Used on the loop only.
class DispatchDesk {
 public:
  DispatchDesk(ServerContext& context, Operations& operations, ReportSender& reports)
      : context_(context), operations_(operations), reports_(reports) {}

  /// Adds server.dispatch. This object outlives the server that has the method.
  void add_to(RpcMethods& methods);

 private:
  void dispatch(IncomingCall call);
  DispatchReply::Answer accept(const Order& order);
  void run_next(const std::string& line);
  void settled(const Order& order, ReportReply::Verdict verdict);
  void settle(const std::string& effect_key);
  void forget_old();

  ServerContext& context_;
  Operations& operations_;
  ReportSender& reports_;
  std::map<std::string, DispatchReply::Answer> answers_;  ///< By effect key.
  /// The first one of each line runs.
  std::map<std::string, std::deque<Order>> lines_;
  std::deque<std::pair<SteadyTime, std::string>> settled_;  ///< In order of time.
};

}  // namespace pv2::cluster
