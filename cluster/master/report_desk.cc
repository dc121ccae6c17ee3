// SPDX-License-Identifier: Apache-2.0
//
// One call has several reports, which are signals of different procedures. The call is answered
// when the last of them is decided.

#include "master/report_desk.h"

#include <pv2/base/fields.h>
#include <pv2/engine/async_executor.h>

#include <optional>
#include <string>
#include <utility>

namespace pv2::cluster {
namespace {

using Verdict = ReportReply::Verdict;

Verdict verdict_of_signal(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
    case StatusCode::kFailedPrecondition:  // the procedure has ended
    case StatusCode::kNotFound:
    case StatusCode::kExpired:
      return Verdict::kTaken;
    default:
      return Verdict::kAgain;
  }
}

}  // namespace

/// The answer to one call. Shared by the signals that it waits for.
struct ReportDesk::Reply {
  IncomingCall call;
  ReportRequest request;
  ReportReply verdicts;
  std::size_t missing = 0;
};

void ReportDesk::take(IncomingCall call) {
  ReportRequest request;
  if (Status bad = decode_fields(request, FieldSelection::kAll, call.body()); !bad.ok()) {
    return call.fail(bad);
  }
  if (request.epoch > epoch_) {
    call.refuse(Status(StatusCode::kFenced, "the report names a master with epoch " +
                                                std::to_string(request.epoch) +
                                                ", and this one has " + std::to_string(epoch_)));
    return on_later_epoch_();
  }
  const std::size_t count = request.items.size();
  const auto reply = std::make_shared<Reply>(Reply{std::move(call), std::move(request), {}, count});
  reply->verdicts.verdicts.resize(count, Verdict::kAgain);
  if (count == 0) return reply->call.reply("");
  for (std::size_t i = 0; i < count; ++i) {
    ReportRequest::Item& item = reply->request.items[i];
    if (const auto verdict = verdict_before(item)) {
      decide(reply, i, *verdict);
      continue;
    }
    std::string payload;
    encode_fields(item.report, FieldSelection::kAll, payload);
    executor_.async().signal(item.procedure, std::string(kReportSignal), std::move(payload),
                             [this, post = tasks_.poster(), reply, i](const Status& status) {
                               post([this, reply, i, status] {
                                 const Verdict verdict = verdict_of_signal(status);
                                 const bool is_ended = verdict == Verdict::kTaken && !status.ok();
                                 const bool is_nobodys =
                                     is_ended && is_left_opening(reply->request.items[i]);
                                 decide(reply, i, is_nobodys ? Verdict::kNotHere : verdict);
                               });
                             });
  }
}

std::optional<Verdict> ReportDesk::verdict_before(const ReportRequest::Item& item) const {
  const ServerName& server = item.report.server;
  if (is_dead(catalogue_.rows().server(server).state)) return Verdict::kDead;
  // It will be recorded as dead in a moment.
  if (registry_.is_given_up(server)) return Verdict::kAgain;
  if (item.report.kind != RemoteKind::kOpenRegion || !item.report.done) return std::nullopt;
  if (!is_meta(item.region.table) && !catalogue_.is_online()) return Verdict::kAgain;
  const std::optional<RegionRow> row = catalogue_.rows().region(item.region.id);
  const bool is_here = row && row->server == server &&
                       (row->state == RegionState::kOpening || row->state == RegionState::kOpen ||
                        row->state == RegionState::kClosing);
  if (!is_here) return Verdict::kNotHere;
  return std::nullopt;
}

bool ReportDesk::is_left_opening(const ReportRequest::Item& item) const {
  if (item.report.kind != RemoteKind::kOpenRegion || !item.report.done) return false;
  const std::optional<RegionRow> row = catalogue_.rows().region(item.region.id);
  return row && row->server == item.report.server && row->state == RegionState::kOpening;
}

void ReportDesk::decide(const std::shared_ptr<Reply>& reply, std::size_t item, Verdict verdict) {
  reply->verdicts.verdicts[item] = verdict;
  if (--reply->missing > 0) return;
  std::string body;
  encode_fields(reply->verdicts, FieldSelection::kAll, body);
  reply->call.reply(std::move(body));
}

}  // namespace pv2::cluster
