// SPDX-License-Identifier: Apache-2.0
//
// RpcClient: makes calls to one server, or to the first of several that answers. It keeps one
// connection, makes it anew when it is lost, and sends a call again, under the same nonce, until
// there is an answer or the time is over. It never says "failed" of a call that may have been done.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/rpc/call_outcome.h"
#include "pv2/rpc/incoming_call.h"
#include "pv2/rpc/transport.h"

namespace pv2 {

class ClientCore;

struct RpcClientOptions {
  std::shared_ptr<Transport> transport{};  ///< Has to be set. Others may share it.
  /// The client tries them in this order, and round again. There has to be at least one.
  std::vector<std::string> addresses{};
  std::string token{};  ///< What the server asks for, if it does (RpcServerOptions::tokens).
  /// The limit of calls that are sent and not answered; the server may have a lower one.
  std::size_t calls_max = 256;
  /// What calls without an outcome may take, in bytes. The client refuses more with
  /// kResourceExhausted. Threads that call at the same time may exceed it by one call each.
  std::size_t bytes_max = std::size_t{64} << 20;
  std::size_t frame_bytes_max = std::size_t{4} << 20;  ///< The limit of an answer.
  Duration connect_timeout = std::chrono::seconds(2);
  /// The client cancels a call that is not answered by then, and sends it again if it may. At least
  /// `pause_min`.
  Duration attempt_timeout = std::chrono::seconds(2);
  /// The pause between attempts begins with `pause_min` and doubles up to `pause_max`; the client
  /// takes a random part of up to half off it, so that clients do not return together.
  Duration pause_min = std::chrono::milliseconds(10);
  Duration pause_max = std::chrono::seconds(1);
  /// Servers remember a nonce for at least this long. An attempt under a nonce without `expires_at`
  /// and without `nonce_stays` is not begun later than this after the first one that was not
  /// refused: its server may have forgotten the nonce, and would run it again. The default is half
  /// of that of NonceManagerOptions::retention.
  Duration nonce_kept = std::chrono::minutes(15);
  /// A connection on which calls wait and nothing is heard for this long is asked (a ping); if
  /// nothing is heard for three times as long, it is given up. An idle one is asked so that the
  /// server does not close it.
  Duration ping_after = std::chrono::seconds(5);
  std::uint64_t seed = 0;  ///< Decides the random pauses. 0: the system chooses it.
};

/// What goes with a call.
struct CallOptions {
  /// Names the operation; make one with NonceSource, before the call, and keep it until the outcome
  /// is known. With it the call may be sent as often as needed, until `expires_at` or for
  /// RpcClientOptions::nonce_kept (but see `nonce_stays`).
  Nonce nonce{};
  /// This call is not the first with its nonce (another process gave it up): a refusal then leaves
  /// the outcome unknown. It has to have the `expires_at` of the first one; if that had none, the
  /// caller has to know that the server still remembers the nonce.
  bool resumed = false;
  /// Until when the nonce is sent, by the wall clock; the server may keep it so long
  /// (idempotency/). No attempt begins after it.
  std::optional<WallTime> expires_at{};
  /// The call changes nothing, or twice is the same as once: it may be sent again without a nonce.
  bool read_only = false;
  /// The server never runs the call again because it has forgotten the nonce: it keeps the nonce
  /// with what the call is about, not for a time, or twice is the same as once. Then
  /// RpcClientOptions::nonce_kept does not bound the attempts.
  bool nonce_stays = false;
  /// A request of a session, which may be sent again too.
  SessionCall session{};
  /// After this time the client gives the call up. 0 or less: it is never sent.
  /// Duration::max(): never; but under a nonce
  /// without `expires_at` or `nonce_stays`, no attempt begins when RpcClientOptions::nonce_kept is
  /// over.
  Duration timeout = std::chrono::seconds(30);
  std::optional<Duration> attempt_timeout{};  ///< Instead of RpcClientOptions'.
  /// Called for what the server tells before the answer (IncomingCall::note), on the loop's thread.
  std::function<void(std::string_view)> on_note{};
};

/// Takes the outcome of a call, on the loop's thread; must not block. What it throws is swallowed.
using CallDone = std::function<void(CallOutcome)>;

/// Names a call of one client, for cancel().
struct CallTicket {
  std::uint64_t value = 0;
};

/// What a client has seen.
struct RpcClientCounts {
  std::size_t calls = 0;   ///< Without an outcome, now.
  std::size_t bytes = 0;   ///< What these take (RpcClientOptions::bytes_max).
  std::uint64_t sent = 0;  ///< Attempts.
  std::uint64_t answered = 0;
  std::uint64_t connections = 0;  ///< Made.
};

/// Thread-safe, except destruction.
class RpcClient {
 public:
  /// Connects when the first call is made. kInvalidArgument names the option that is wrong.
  [[nodiscard]] static Result<std::unique_ptr<RpcClient>> open(RpcClientOptions options);
  /// Calls without an outcome get one: kStopping, as kUnknown if they were sent. A call that is
  /// made meanwhile, by one of these, gets none. Not on the loop's thread of a transport that has
  /// one of its own, and not within `done` or `on_note` of a call.
  ~RpcClient();
  RpcClient(const RpcClient&) = delete;
  RpcClient& operator=(const RpcClient&) = delete;

  /// Calls `method`. Once for each call, `done` is told one of three:
  ///
  /// kOk: an answer, of this attempt or of an earlier one. kFailed: the server has said that the
  /// operation failed for good, or each attempt was refused by it or never sent. kUnknown: an
  /// attempt may have reached the server, and no answer came before the time was over.
  ///
  /// A call without a nonce that is not read-only is sent once at most, unless the server refuses
  /// it as not begun.
  CallTicket call(std::string method, std::string body, CallOptions options, CallDone done);
  /// As above, and waits. On the loop's thread, or if the transport has no thread of its own, it
  /// fails (kFailedPrecondition).
  [[nodiscard]] CallOutcome call(std::string method, std::string body, CallOptions options = {});
  /// Gives up a call, and tells the server. Its outcome is kAborted, as kUnknown if it was sent.
  /// Does nothing if the call has its outcome.
  void cancel(CallTicket ticket);

  [[nodiscard]] RpcClientCounts counts() const;
  [[nodiscard]] Transport& transport() const noexcept { return *transport_; }

 private:
  RpcClient(std::shared_ptr<Transport> transport, std::shared_ptr<ClientCore> core);
  std::shared_ptr<Transport> transport_;
  std::shared_ptr<ClientCore> core_;
};

}  // namespace pv2
