// SPDX-License-Identifier: Apache-2.0
//
// ReportSender: tells the master how operations have ended. Reports that wait go together, one call
// at a time, and are repeated until the master has said what becomes of them.

#pragma once

#include <pv2/rpc/rpc_client.h>

#include <cstddef>
#include <deque>
#include <functional>

#include "server/server_context.h"
#include "wire/server_messages.h"

namespace pv2::cluster {

/// Used on the loop only. `master` outlives it.
class ReportSender {
 public:
  using Verdict = ReportReply::Verdict;
  /// kTaken or kNotHere.
  using Settled = std::function<void(Verdict)>;

  ReportSender(ServerContext& context, RpcClient& master);

  void add(ReportRequest::Item item, Settled settled);
  /// The reports without a verdict.
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.size(); }

 private:
  struct Report {
    ReportRequest::Item item;
    Settled settled;
  };

  void send();
  void take(std::size_t sent, const CallOutcome& outcome);
  void pause();

  ServerContext& context_;
  RpcClient& master_;
  std::deque<Report> waiting_;
  bool is_busy_ = false;  ///< It sends, or pauses.
  Duration pause_;
};

}  // namespace pv2::cluster
