// SPDX-License-Identifier: Apache-2.0
//
// ReportDesk: takes the reports of servers (master.report). A report becomes a durable signal of
// the procedure that waits for it, and only then the server hears that it was taken; a server that
// hears nothing repeats it. So no end of an operation is lost, whoever dies.
//
//     the server is dead in the catalogue                    kDead
//     it opened a region that the catalogue does not have there   kNotHere: it closes it again
//     the signal is on stable storage                        kTaken
//     the procedure has ended without the report,
//         and has left the region OPENING there              kNotHere: it closes it again
//         otherwise                                          kTaken: nobody asks for it any more
//     otherwise                                              kAgain
//
// How it fails: a report that names a later master is refused, and `on_later_epoch` is called.
// Anybody may name a number, so nothing is concluded from that alone.

#pragma once

#include <pv2/engine/procedure_executor.h>
#include <pv2/rpc/incoming_call.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "master/meta_catalogue.h"
#include "master/server_registry.h"
#include "wire/loop_tasks.h"
#include "wire/server_messages.h"

namespace pv2::cluster {

/// Used on the loop only.
class ReportDesk {
 public:
  using Verdict = ReportReply::Verdict;

  /// All references outlive this.
  ReportDesk(std::shared_ptr<Transport> transport, ProcedureExecutor& executor,
             const MetaCatalogue& catalogue, const ServerRegistry& registry, std::uint64_t epoch,
             std::function<void()> on_later_epoch)
      : executor_(executor),
        catalogue_(catalogue),
        registry_(registry),
        epoch_(epoch),
        on_later_epoch_(std::move(on_later_epoch)),
        tasks_(std::move(transport)) {}

  /// The handler of master.report.
  void take(IncomingCall call);

 private:
  struct Reply;

  /// What follows without asking the procedure. No value: it has to be asked.
  [[nodiscard]] std::optional<Verdict> verdict_before(const ReportRequest::Item& item) const;
  /// Whether the report says that a region is open whose row says OPENING. If its procedure has
  /// ended, an operator has ended it, and no row would ever say that the region is served.
  [[nodiscard]] bool is_left_opening(const ReportRequest::Item& item) const;
  static void decide(const std::shared_ptr<Reply>& reply, std::size_t item, Verdict verdict);

  ProcedureExecutor& executor_;
  const MetaCatalogue& catalogue_;
  const ServerRegistry& registry_;
  const std::uint64_t epoch_;
  const std::function<void()> on_later_epoch_;
  LoopTasks tasks_;
};

}  // namespace pv2::cluster
