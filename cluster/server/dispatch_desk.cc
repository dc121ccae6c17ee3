// SPDX-License-Identifier: Apache-2.0
//
// A call is answered when its operations are noted, before any of them has run.

#include "server/dispatch_desk.h"

#include <pv2/base/assert.h>
#include <pv2/base/fields.h>

#include <cstdint>
#include <utility>

#include "server/operations.h"
#include "server/report_sender.h"
#include "wire/methods.h"

namespace pv2::cluster {
namespace {

// Operations without a settled report, each with about 300 bytes.
constexpr std::size_t kAnswersMax = 1'000'000;

}  // namespace

void DispatchDesk::add_to(RpcMethods& methods) {
  methods[std::string(kServerDispatch)] = [this](IncomingCall call) {
    if (!context_.is_ended()) dispatch(std::move(call));
  };
}

void DispatchDesk::dispatch(IncomingCall call) {
  DispatchRequest request;
  const Status bad = decode_fields(request, FieldSelection::kAll, call.body());
  if (!bad.ok()) {
    return call.fail({StatusCode::kInvalidArgument, "not a message: " + bad.to_string()});
  }
  const Result<std::uint64_t> first = first_order_number(request);
  if (!first.ok()) return call.fail(first.status());
  if (const Status bad = context_.check_master(request.epoch); !bad.ok()) return call.refuse(bad);
  if (context_.is_stopping) {
    return call.refuse({StatusCode::kUnavailable, "this server stops"});
  }
  for (const RemoteOperation& operation : request.operations) {
    // Not an answer of the operation: that must be the addressee's, which may have done it already.
    if (operation.server != context_.name) {
      return call.refuse({StatusCode::kUnavailable, "it is for " + to_string(operation.server) +
                                                        ", and this is " +
                                                        to_string(context_.name)});
    }
  }
  forget_old();
  if (answers_.size() + request.operations.size() > kAnswersMax) {
    return call.refuse({StatusCode::kResourceExhausted, "too many operations are under way"});
  }
  DispatchReply reply;
  std::uint64_t number = *first;
  for (RemoteOperation& operation : request.operations) {
    reply.answers.push_back(accept({std::move(operation), number++}));
  }
  std::string body;
  encode_fields(reply, FieldSelection::kAll, body);
  call.reply(body);
}

DispatchReply::Answer DispatchDesk::accept(const Order& order) {
  const RemoteOperation& operation = order.operation;
  const auto [answer, is_new] = answers_.try_emplace(operation.effect_key);
  if (!is_new) return answer->second;
  answer->second = {true, ""};
  const std::string line = Operations::line_of(operation);
  std::deque<Order>& waiting = lines_[line];
  waiting.push_back(order);
  // A turn of its own: the master has its answer first.
  if (waiting.size() == 1) context_.tasks.post([this, line] { run_next(line); });
  return answer->second;
}

void DispatchDesk::run_next(const std::string& line) {
  if (context_.is_ended() || context_.is_stopping) return;
  const auto found = lines_.find(line);
  PV2_ASSERT(found != lines_.end() && !found->second.empty(), "a line that runs has an operation");
  const Order order = found->second.front();
  operations_.run(order, [this, order](RemoteReport report) {
    if (context_.is_ended()) return;
    reports_.add({order.operation.procedure, std::move(report), order.operation.region},
                 [this, order](ReportSender::Verdict verdict) { settled(order, verdict); });
  });
}

void DispatchDesk::settled(const Order& order, ReportSender::Verdict verdict) {
  operations_.settled(order, verdict);
  settle(order.operation.effect_key);
  const std::string line = Operations::line_of(order.operation);
  const auto found = lines_.find(line);
  PV2_ASSERT(found != lines_.end(), "an operation is in its line until its report is settled");
  found->second.pop_front();
  if (found->second.empty()) {
    lines_.erase(found);
    return;
  }
  context_.tasks.post([this, line] { run_next(line); });
}

void DispatchDesk::settle(const std::string& effect_key) {
  settled_.emplace_back(context_.tasks.now(), effect_key);
}

void DispatchDesk::forget_old() {
  const SteadyTime now = context_.tasks.now();
  while (!settled_.empty() && now - settled_.front().first > context_.options.effect_retention) {
    answers_.erase(settled_.front().second);
    settled_.pop_front();
  }
}

}  // namespace pv2::cluster
