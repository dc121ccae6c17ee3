// SPDX-License-Identifier: Apache-2.0
//
// IncomingCall: a call as its handler sees it, and the duty to answer it.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace pv2 {

class ServerConnection;
struct RpcFrame;

/// Which request of which session a call is (idempotency/client_sessions.h). Session 0: none.
struct SessionCall {
  std::uint64_t session = 0;
  std::uint64_t number = 0;
  std::uint64_t first_unacked = 0;  ///< The client has all responses below this number.
};

/// To be answered once, from any thread, by one of the three verbs; the first one counts. Used by
/// one thread at a time. Move-only. It may outlive its connection and its server: then the answer
/// goes nowhere, and the client asks again. Until it is destroyed, answered or not, it keeps its
/// connection and the handlers of its server in memory.
class IncomingCall {
 public:
  IncomingCall(IncomingCall&& other) noexcept;
  IncomingCall& operator=(IncomingCall&& other) noexcept;
  /// Without an answer the client is told kUnknownOutcome.
  ~IncomingCall();

  /// The view is valid until this call is destroyed or moved from, as caller() is.
  [[nodiscard]] std::string_view method() const noexcept { return method_; }
  [[nodiscard]] const std::string& body() const noexcept { return body_; }
  /// What the client names the operation by; value 0: it has no name.
  [[nodiscard]] Nonce nonce() const noexcept { return nonce_; }
  /// The client promises not to send the nonce after this time, by its own wall clock.
  [[nodiscard]] std::optional<WallTime> expires_at() const noexcept { return expires_at_; }
  [[nodiscard]] const SessionCall& session() const noexcept { return session_; }
  /// When the client stops waiting, by the transport's steady clock; none: never.
  [[nodiscard]] std::optional<SteadyTime> deadline() const noexcept { return deadline_; }
  /// Who calls: the owner of the token that the client has shown; empty if no token is asked for.
  [[nodiscard]] std::string_view caller() const noexcept { return caller_; }

  /// The operation was done, now or by an earlier copy.
  void reply(std::string_view body);
  /// The operation has failed for good, and each copy of the call will be told the same: the
  /// failure is saved under its nonce or session, or follows from the call alone. The message is
  /// cut at 2 KiB.
  void fail(const Status& failure);
  /// This copy did nothing, and nothing is known or said about other copies. With kUnavailable,
  /// kStopping, kResourceExhausted, kBusy, kUnknownOutcome or kDeadlineExceeded the client asks
  /// again, under the same nonce.
  void refuse(const Status& why);

  /// Tells the client something before the answer, for instance how far a long wait is. False: it
  /// was not sent, because the client reads too slowly or is gone.
  bool note(std::string_view body);

  /// Calls `cancelled` once, on the loop's thread, if nobody waits for the answer any more:
  /// kAborted, the client says so; kDeadlineExceeded; kUnavailable, the connection is gone;
  /// kStopping, the server stops and closes the connection soon. If that is known already, this
  /// call calls it; a deadline is looked at every 100 ms. A handler that waits gives up its wait
  /// there, and calls refuse(): with that status if the operation has not begun and does not begin
  /// any more, with kUnknownOutcome if it goes on. A second function replaces the first.
  ///
  /// If another thread answers, the loop may be about to call the function, so that it runs during
  /// the answer or just after it: a lock of the host decides which of the two uses the call, and
  /// what the function uses has to live as long as it.
  void on_cancel(std::function<void(const Status&)> cancelled);

 private:
  friend class ServerConnection;
  IncomingCall(std::shared_ptr<ServerConnection> connection, const RpcFrame& call,
               std::string_view method, std::string body, std::string_view caller,
               SteadyTime now) noexcept;
  void answer(const RpcFrame& answer);
  [[nodiscard]] bool is_over() const noexcept { return connection_ == nullptr || is_answered_; }

  // nullptr: moved from. What `method_` and `caller_` refer to lives as long as the connection.
  std::shared_ptr<ServerConnection> connection_;
  bool is_answered_ = false;
  std::uint64_t id_ = 0;
  std::string_view method_;
  std::string body_;
  std::string_view caller_;
  Nonce nonce_;
  SessionCall session_;
  std::optional<WallTime> expires_at_;
  std::optional<SteadyTime> deadline_;
};

}  // namespace pv2
