// SPDX-License-Identifier: Apache-2.0
//
// Handlers that run each call once: by its nonce (ServerNonceManager), or as a request of a session
// (ClientSessions). Copies of a call, whenever they come, get the outcome of the one that ran.
//
//     methods["increment"] = once_by_nonce(nonces, *transport, [&](OnceCall call) {
//       RowBatch effect;                            // what the operation changes
//       ...
//       call.save(effect, result);                  // beside the effect: both or neither
//       log.commit(std::move(effect), [call](Status status) { call.committed(status); });
//     });

#pragma once

#include <pv2/base/status.h>
#include <pv2/idempotency/client_sessions.h>
#include <pv2/idempotency/server_nonce_manager.h>
#include <pv2/rpc/incoming_call.h>
#include <pv2/rpc/rpc_server.h>
#include <pv2/rpc/transport.h>

#include <functional>
#include <memory>

namespace pv2 {

/// A call that is to be run now, by whoever has this. Copies are one call, and a move copies. To be
/// ended once, by committed() or refuse(), from any thread; without an end the outcome is unknown,
/// and nobody runs the call again before a restart, or whoever resolves it, has found out what
/// became of it.
class OnceCall {
 public:
  // Copied also where it could be moved: so one that was moved from still works.
  OnceCall(const OnceCall&) = default;
  OnceCall& operator=(const OnceCall&) = default;
  ~OnceCall() = default;

  [[nodiscard]] const IncomingCall& call() const noexcept;

  /// Adds the row that remembers `outcome` to the batch of the effect, which is empty for a
  /// definite failure (an account has too little on it). Once.
  void save(RowBatch& effect, Response outcome);
  /// What became of the batch. OK: it is durable; the client and all copies get the outcome.
  /// kInvalidArgument: it was refused, and nothing was written; the client gets that, and a copy
  /// may run. Otherwise nobody knows whether it is durable, and the client is told so.
  void committed(const Status& status);
  /// Nothing was done, and nothing is remembered: a copy may run. See IncomingCall::refuse(). In a
  /// session kExpired would say that the session has ended, so it becomes kFailedPrecondition.
  void refuse(const Status& why);

  struct State;
  explicit OnceCall(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

/// Runs a call. Called on the loop's thread; must not block. If it throws, and has not kept the
/// call, the outcome is unknown.
using OnceHandler = std::function<void(OnceCall)>;

/// A handler that gives `run` each call once, by its nonce; a call without one is run each time it
/// comes. Copies of a running call wait for it, as long as their client does. All calls of one
/// caller share the nonces of `nonces`; what is compared is method, body and caller. `nonces` and
/// `transport` outlive the handler and all calls.
[[nodiscard]] RpcHandler once_by_nonce(ServerNonceManager& nonces, Transport& transport,
                                       OnceHandler run);
/// The same for requests of sessions. A call that names no session is refused.
[[nodiscard]] RpcHandler once_in_session(ClientSessions& sessions, Transport& transport,
                                         OnceHandler run);

}  // namespace pv2
