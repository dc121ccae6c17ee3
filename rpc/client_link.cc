// SPDX-License-Identifier: Apache-2.0
//
// The protocol, as a client speaks it.

#include "client_link.h"

#include <pv2/base/assert.h>
#include <pv2/base/time.h>

#include <algorithm>
#include <utility>

#include "outgoing_call.h"

namespace pv2 {
namespace {

// What waits for the network; more calls wait in the queue, where they can be cancelled.
constexpr std::size_t kUnsentBytesMax = std::size_t{1} << 20;
// If the client hears nothing for this multiple of `ping_after`, the other end is gone.
constexpr int kPingsMax = 3;

}  // namespace

ClientLink::ClientLink(Transport& transport, ClientLinkOwner& owner, std::unique_ptr<Stream> stream,
                       const Settings& settings)
    : transport_(transport),
      owner_(owner),
      stream_(std::move(stream)),
      settings_(settings),
      reader_(settings.frame_bytes_max),
      heard_at_(now()),
      asked_at_(heard_at_) {}

ClientLink::~ClientLink() {
  *is_alive_ = false;
  transport_.cancel(timer_);
  PV2_ASSERT(in_flight_.empty(), "a link ends before it goes, and then no call waits on it");
}

void ClientLink::start() {
  append_rpc_frame(out_,
                   {.kind = FrameKind::kHello, .version = kRpcVersion, .token = settings_.token});
  flush();
  stream_->start(*this);
  look_later();
}

bool ClientLink::has_room(std::size_t calls_max) const noexcept {
  return is_open() && in_flight_.size() < std::min(calls_max, server_calls_max_) &&
         out_.size() + stream_->unsent() < kUnsentBytesMax;
}

void ClientLink::send(OutgoingCall& call, SteadyTime now, Duration attempt_timeout) {
  PV2_ASSERT(is_open(), "calls are sent on an open link");
  const Duration timeout = std::min(attempt_timeout, call.deadline - now);
  const bool is_for_ever = attempt_timeout == Duration::max() && call.deadline == SteadyTime::max();
  call.id = ++last_id_;
  call.link = this;
  in_flight_.insert(call.id, &call);
  const auto micros = [](Duration time) {
    return static_cast<std::uint64_t>(std::max<Duration::rep>(time.count(), 1));
  };
  append_rpc_frame(
      out_, {.kind = FrameKind::kCall,
             .id = call.id,
             .method = call.method,
             .nonce = call.options.nonce,
             .expires_at_us =
                 call.options.expires_at ? micros(call.options.expires_at->time_since_epoch()) : 0,
             .timeout_us = is_for_ever ? 0 : micros(timeout),
             .session = call.options.session.session,
             .number = call.options.session.number,
             .first_unacked = call.options.session.first_unacked,
             .body = call.body});
}

void ClientLink::cancel(OutgoingCall& call) {
  in_flight_.take(call.id);
  call.link = nullptr;
  if (!has_ended()) append_rpc_frame(out_, {.kind = FrameKind::kCancel, .id = call.id});
}

void ClientLink::flush() {
  if (!has_ended() && !out_.empty()) stream_->send(out_);
}

// --- what the server says

void ClientLink::on_bytes(std::string_view bytes) {
  const auto is_alive = is_alive_;
  heard_at_ = now();
  reader_.feed(bytes);
  while (*is_alive) {
    const FrameReader::Next next = reader_.next();
    if (!next.status.ok()) return end(next.status);
    if (!next.has_frame) break;
    const auto frame = decode_rpc_frame(next.bytes);
    if (!frame.ok()) return end(frame.status());
    take(*frame);
  }
  if (!*is_alive) return;
  owner_.on_room(*this);
  if (*is_alive) flush();
}

void ClientLink::take(const RpcFrame& frame) {
  switch (frame.kind) {
    case FrameKind::kWelcome:
      return take_welcome(frame);
    case FrameKind::kReply:
      return take_reply(frame);
    case FrameKind::kNote:
      if (OutgoingCall** call = in_flight_.find(frame.id); call != nullptr) {
        owner_.on_note(**call, frame.body);
      }
      return;
    case FrameKind::kGoAway:
      return take_go_away(frame);
    case FrameKind::kPing:
      // A server that does not read what it gets needs no answer.
      if (out_.size() + stream_->unsent() < kUnsentBytesMax) {
        append_rpc_frame(out_, {.kind = FrameKind::kPong, .id = frame.id});
      }
      return;
    case FrameKind::kPong:
      return;
    case FrameKind::kHello:
    case FrameKind::kCall:
    case FrameKind::kCancel:
      break;
  }
  end({StatusCode::kCorruption, "the server has sent what only clients send"});
}

void ClientLink::take_welcome(const RpcFrame& welcome) {
  if (phase_ != Phase::kHello) return;  // a network that repeats frames repeats this one too
  server_calls_max_ = std::max<std::size_t>(welcome.calls_max, 1);
  server_frame_bytes_max_ = welcome.frame_bytes_max;
  phase_ = Phase::kOpen;
  was_open_ = true;
  owner_.on_open(*this);
}

void ClientLink::take_reply(const RpcFrame& reply) {
  OutgoingCall* const call = in_flight_.take(reply.id);
  if (call == nullptr) return;  // of an attempt that was given up, or a copy
  call->link = nullptr;
  owner_.on_reply(*this, *call, reply);
}

void ClientLink::take_go_away(const RpcFrame& go_away) {
  if (phase_ == Phase::kGoneAway) return;
  phase_ = Phase::kGoneAway;
  owner_.on_go_away(*this, {go_away.status, std::string(go_away.message)});
}

void ClientLink::on_drained() { owner_.on_room(*this); }

// --- how it ends

void ClientLink::on_closed(const Status& why) {
  end(why.ok() ? Status(StatusCode::kUnavailable, "the server has closed the connection") : why);
}

void ClientLink::end(const Status& why) {
  if (has_ended()) return;
  *is_alive_ = false;
  stream_.reset();
  phase_ = Phase::kGoneAway;
  transport_.cancel(timer_);
  std::vector<OutgoingCall*> unanswered;
  in_flight_.for_each([&](std::uint64_t, OutgoingCall* call) {
    call->link = nullptr;
    unanswered.push_back(call);
  });
  std::sort(unanswered.begin(), unanswered.end(),
            [](const OutgoingCall* a, const OutgoingCall* b) { return a->id < b->id; });
  in_flight_.clear();
  owner_.on_end(*this, why, std::move(unanswered));
}

// --- whether the server is there

void ClientLink::ping(SteadyTime now) {
  asked_at_ = now;
  append_rpc_frame(out_, {.kind = FrameKind::kPing, .id = 1});
  flush();
}

void ClientLink::doubt(SteadyTime now, Duration patience) {
  if (has_ended()) return;
  if (asked_at_ <= heard_at_) return ping(now);
  if (now - asked_at_ >= patience) {
    end({StatusCode::kUnavailable, "nothing is heard from the server"});
  }
}

void ClientLink::look_later() {
  timer_ = transport_.call_at(
      later(now(), phase_ == Phase::kHello ? settings_.hello_timeout : settings_.ping_after),
      [this] { look(); });
}

void ClientLink::look() {
  const SteadyTime now_is = now();
  if (phase_ == Phase::kHello) {
    return end({StatusCode::kUnavailable, "the server has not answered the hello in time"});
  }
  if (now_is - heard_at_ >= kPingsMax * settings_.ping_after) {
    return end({StatusCode::kUnavailable, "nothing is heard from the server"});
  }
  if (now_is - heard_at_ >= settings_.ping_after) ping(now_is);
  look_later();
}

}  // namespace pv2
