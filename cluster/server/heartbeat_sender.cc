// SPDX-License-Identifier: Apache-2.0
//
// One call at a time. Before each one, the server looks where the master is.

#include "server/heartbeat_sender.h"

#include <pv2/base/fields.h>

#include <algorithm>
#include <utility>

#include "wire/methods.h"
#include "wire/server_messages.h"

namespace pv2::cluster {
namespace {

// Two may be lost, and the third one still comes in time.
constexpr int kBeatsPerLease = 4;

}  // namespace

HeartbeatSender::HeartbeatSender(ServerContext& context, RegionTable& table, RpcClient& master,
                                 MasterTransport& transport, std::string address)
    : context_(context),
      table_(table),
      master_(master),
      transport_(transport),
      address_(std::move(address)),
      every_(context.options.heartbeat_every),
      heard_(context.tasks.now()) {}

void HeartbeatSender::beat() {
  if (context_.is_ended()) return;
  if (context_.tasks.now() - heard_ > context_.options.silence_max) {
    return context_.end({StatusCode::kDeadlineExceeded, "no master was heard for too long"});
  }
  context_.tasks.after(every_, [this] { beat(); });
  if (!is_calling_) ask();
}

void HeartbeatSender::ask() {
  if (context_.is_ended() || is_leaving_) return;
  asks_again_ = std::exchange(is_calling_, true);
  if (asks_again_) return;
  transport_.look_again();
  sent_ = context_.tasks.now();
  send(false, [this](const CallOutcome& outcome) { take(outcome); });
}

void HeartbeatSender::leave(std::function<void()> done) {
  is_leaving_ = true;
  context_.leased_until.reset();
  send(true, [done = std::move(done)](const CallOutcome&) { done(); });
}

void HeartbeatSender::send(bool leaving, std::function<void(CallOutcome)> done) {
  Heartbeat heartbeat{.server = context_.name,
                      .address = address_,
                      .regions = table_.size(),
                      .requests = context_.requests,
                      .bytes = table_.memory_bytes(),
                      .leaving = leaving};
  std::string body;
  encode_fields(heartbeat, FieldSelection::kAll, body);
  master_.call(std::string(kMasterHeartbeat), std::move(body),
               {.read_only = true, .timeout = every_},
               context_.tasks.guarded<CallOutcome>(std::move(done)));
}

void HeartbeatSender::take(const CallOutcome& outcome) {
  is_calling_ = false;
  const SteadyTime sent = sent_;
  if (asks_again_) ask();
  HeartbeatReply reply;
  if (!outcome.ok() || !decode_fields(reply, FieldSelection::kAll, outcome.body).ok()) return;
  if (!context_.epoch.hear(reply.epoch)) return;  // a deposed master
  heard_ = context_.tasks.now();
  if (reply.lease > Duration::zero()) {
    // The master counts from when it heard the heartbeat, which was not before it was sent.
    if (!is_leaving_) context_.leased_until = sent + reply.lease;
    every_ = std::min(context_.options.heartbeat_every, reply.lease / kBeatsPerLease);
  }
  if (registered_) std::exchange(registered_, nullptr)();
  if (reply.dead) {
    context_.end({StatusCode::kFenced, "the master has taken this server for dead"});
  }
}

}  // namespace pv2::cluster
