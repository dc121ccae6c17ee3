// SPDX-License-Identifier: Apache-2.0
//
// A report that the master wants again later goes to the end of the line, so that it does not keep
// the others back.

#include "server/report_sender.h"

#include <pv2/base/fields.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "wire/message_bytes.h"
#include "wire/methods.h"

namespace pv2::cluster {
namespace {

// So that the master takes them in one turn of its loop. MessageBytes bounds the bytes.
constexpr std::size_t kReportsPerCall = 1024;

}  // namespace

ReportSender::ReportSender(ServerContext& context, RpcClient& master)
    : context_(context), master_(master), pause_(context.options.report_pause_min) {}

void ReportSender::add(ReportRequest::Item item, Settled settled) {
  waiting_.push_back({std::move(item), std::move(settled)});
  if (std::exchange(is_busy_, true)) return;
  // Not at once: what the same round of the loop brings goes along.
  context_.tasks.post([this] { send(); });
}

void ReportSender::send() {
  if (context_.is_ended()) return;
  is_busy_ = !waiting_.empty();
  if (!is_busy_) return;
  ReportRequest request{.epoch = context_.epoch.greatest(), .items = {}};
  MessageBytes bytes;
  for (const Report& report : waiting_) {
    if (request.items.size() == kReportsPerCall || !bytes.add(report.item)) break;
    request.items.push_back(report.item);
  }
  std::string body;
  encode_fields(request, FieldSelection::kAll, body);
  master_.call(std::string(kMasterReport), std::move(body),
               {.read_only = true, .timeout = context_.options.report_pause_max},
               context_.tasks.guarded<CallOutcome>(
                   [this, sent = request.items.size()](const CallOutcome& outcome) {
                     take(sent, outcome);
                   }));
}

void ReportSender::take(std::size_t sent, const CallOutcome& outcome) {
  if (context_.is_ended()) return;
  ReportReply reply;
  const bool is_reply = outcome.ok() &&
                        decode_fields(reply, FieldSelection::kAll, outcome.body).ok() &&
                        reply.verdicts.size() == sent;
  if (!is_reply) return pause();

  std::vector<std::pair<Settled, Verdict>> settled;
  bool is_again = false;
  for (const Verdict verdict : reply.verdicts) {
    Report report = std::move(waiting_.front());
    waiting_.pop_front();
    switch (verdict) {
      case Verdict::kTaken:
      case Verdict::kNotHere:
        settled.emplace_back(std::move(report.settled), verdict);
        continue;
      case Verdict::kDead:
        return context_.end({StatusCode::kFenced, "the master has taken this server for dead"});
      case Verdict::kAgain:
        break;
    }
    is_again = true;  // also after a verdict that this version does not know
    waiting_.push_back(std::move(report));
  }
  for (const auto& [done, verdict] : settled) done(verdict);
  if (is_again) return pause();
  pause_ = context_.options.report_pause_min;
  send();
}

void ReportSender::pause() {
  context_.tasks.after(pause_, [this] { send(); });
  pause_ = std::min(2 * pause_, context_.options.report_pause_max);
}

}  // namespace pv2::cluster
