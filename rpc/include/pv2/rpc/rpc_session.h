// SPDX-License-Identifier: Apache-2.0
//
// RpcSession: the client's half of a session (Idempotent Receiver): it opens the session, numbers
// the requests, keeps within the window, tells the server which responses have arrived, and says
// that it lives. A session is exact where a nonce is remembered for a time only; in exchange it has
// a state, which ends with this object.

#pragma once

#include <pv2/base/mutex.h>
#include <pv2/base/status.h>
#include <pv2/base/time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "pv2/rpc/rpc_client.h"

namespace pv2 {

struct RpcSessionOptions {
  /// Names the session before it has an id; 1 to 1024 bytes, that nobody else uses. Empty: random.
  std::string token{};
  std::uint32_t window = 0;  ///< Requests without a response. 0: as the server likes.
  /// How often an idle session says that it lives: a fraction of the server's time limit (5
  /// minutes).
  Duration heartbeat_every = std::chrono::seconds(60);
  Duration open_timeout = std::chrono::seconds(30);
  /// Requests that wait for room in the window. More are refused with kResourceExhausted.
  std::size_t waiting_max = 10'000;
};

/// How a request of a session ended, and which it was.
struct SessionOutcome {
  CallOutcome outcome;
  std::uint64_t number = 0;  ///< 0: it was not admitted, so it was not sent.
};
/// Takes it, on the loop's thread; must not block. What it throws is swallowed.
using SessionDone = std::function<void(SessionOutcome)>;

/// Thread-safe, except destruction. Opens the session before its first request.
///
/// A request whose outcome is unknown keeps its place in the window: the server keeps the response
/// until this client says that it has it. ask_again() asks for it. give_up() leaves it unknown for
/// ever, which frees the place.
///
/// When the server has expired the session, each request fails with kExpired; the outcome of those
/// with an earlier attempt that got no answer is unknown. Nothing is sent again by itself: what
/// became of them has to be found out by other means, and a new session made.
class RpcSession {
 public:
  /// `client` outlives it. kInvalidArgument.
  [[nodiscard]] static Result<std::unique_ptr<RpcSession>> open(RpcClient& client,
                                                                RpcSessionOptions options = {});
  /// Requests without an outcome end as their calls do, later. Does not close the session at the
  /// server: it expires there, unless close() was called.
  ~RpcSession();
  RpcSession(const RpcSession&) = delete;
  RpcSession& operator=(const RpcSession&) = delete;

  /// Makes a request. It gets its number when the window has room, and waits until then, for
  /// `options.timeout` in all. `options.nonce` and `options.session` are not used.
  void call(std::string method, std::string body, CallOptions options, SessionDone done);
  /// As above, and waits; not on the loop's thread.
  [[nodiscard]] SessionOutcome call(std::string method, std::string body, CallOptions options = {});
  /// Makes the same request again, with its number, method and body, after an unknown outcome. Of a
  /// number that has its outcome, or was given up, it says kFailedPrecondition, as unknown.
  void ask_again(std::uint64_t number, std::string method, std::string body, CallOptions options,
                 SessionDone done);
  void give_up(std::uint64_t number);
  /// Closes the session at the server, when no request is without an outcome; otherwise
  /// kFailedPrecondition. `done` is called by this call if nothing has to be asked of the server,
  /// else on the loop's thread.
  void close(std::function<void(Status)> done);

  /// 0 until it is open.
  [[nodiscard]] std::uint64_t id() const;
  /// This client has the responses to all requests below this number, or has given them up.
  [[nodiscard]] std::uint64_t first_unacked() const;

 private:
  class Core;
  explicit RpcSession(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

}  // namespace pv2
