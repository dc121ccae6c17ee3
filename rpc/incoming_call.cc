// SPDX-License-Identifier: Apache-2.0
//
// The three answers, each given at most once.

#include "pv2/rpc/incoming_call.h"

#include <pv2/base/time.h>

#include <algorithm>
#include <utility>

#include "pv2/rpc/rpc_frame.h"
#include "server_connection.h"

namespace pv2 {
namespace {

// Longer times are as good as none, and would overflow a clock's nanoseconds.
constexpr std::uint64_t kLongestTime = 200ULL * 365 * 24 * 3600 * 1'000'000;  // us: 200 years

// So that a frame with it alone is taken by every client.
constexpr std::size_t kMessageBytesMax = 2048;

Status failure_of(const Status& given) {
  if (!given.ok()) return given;
  return {StatusCode::kInternal, "the handler has failed the call with the status OK"};
}

}  // namespace

IncomingCall::IncomingCall(std::shared_ptr<ServerConnection> connection, const RpcFrame& call,
                           std::string_view method, std::string body, std::string_view caller,
                           SteadyTime now) noexcept
    : connection_(std::move(connection)),
      id_(call.id),
      method_(method),
      body_(std::move(body)),
      caller_(caller),
      nonce_(call.nonce),
      session_{call.session, call.number, call.first_unacked} {
  if (call.timeout_us != 0 && call.timeout_us < kLongestTime) {
    deadline_ = now + std::chrono::microseconds(call.timeout_us);
  }
  if (call.expires_at_us != 0) {
    expires_at_ = WallTime(std::chrono::microseconds(std::min(call.expires_at_us, kLongestTime)));
  }
}

IncomingCall::IncomingCall(IncomingCall&& other) noexcept
    : connection_(std::move(other.connection_)),
      is_answered_(other.is_answered_),
      id_(other.id_),
      method_(std::exchange(other.method_, {})),
      body_(std::move(other.body_)),
      caller_(std::exchange(other.caller_, {})),
      nonce_(other.nonce_),
      session_(other.session_),
      expires_at_(other.expires_at_),
      deadline_(other.deadline_) {}

IncomingCall& IncomingCall::operator=(IncomingCall&& other) noexcept {
  IncomingCall old(std::move(*this));  // is answered by its destructor
  connection_ = std::move(other.connection_);
  is_answered_ = other.is_answered_;
  id_ = other.id_;
  method_ = std::exchange(other.method_, {});
  body_ = std::move(other.body_);
  caller_ = std::exchange(other.caller_, {});
  nonce_ = other.nonce_;
  session_ = other.session_;
  expires_at_ = other.expires_at_;
  deadline_ = other.deadline_;
  return *this;
}

IncomingCall::~IncomingCall() {
  if (is_over()) return;
  try {
    refuse({StatusCode::kUnknownOutcome, "the server has dropped the call without an answer"});
  } catch (...) {
    connection_->forget(id_);
  }
}

void IncomingCall::answer(const RpcFrame& answer) {
  if (is_over()) return;
  // It may own this call, and is destroyed last.
  const auto cancelled = connection_->answer(answer);
  is_answered_ = true;  // not before: an answer that finds no memory is none
}

void IncomingCall::reply(std::string_view body) {
  answer({.kind = FrameKind::kReply, .id = id_, .body = body, .reply = ReplyKind::kOutcome});
}

void IncomingCall::fail(const Status& given) {
  const Status failure = failure_of(given);
  answer({.kind = FrameKind::kReply,
          .id = id_,
          .reply = ReplyKind::kOutcome,
          .status = failure.code(),
          .message = failure.message().substr(0, kMessageBytesMax)});
}

void IncomingCall::refuse(const Status& given) {
  const Status why = failure_of(given);
  answer({.kind = FrameKind::kReply,
          .id = id_,
          .reply = ReplyKind::kRefusal,
          .status = why.code(),
          .message = why.message().substr(0, kMessageBytesMax)});
}

bool IncomingCall::note(std::string_view body) {
  return !is_over() && connection_->note(id_, body);
}

void IncomingCall::on_cancel(std::function<void(const Status&)> cancelled) {
  if (!is_over()) connection_->on_cancel(id_, deadline_, std::move(cancelled));
}

}  // namespace pv2
