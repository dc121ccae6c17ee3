// SPDX-License-Identifier: Apache-2.0
//
// RemoteOutcome and SubmitOutcome say what a caller of RemoteExecutor knows afterwards: the verb is
// done, definitely not done, or perhaps done. The options of the verbs are here too.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/status.h>
#include <pv2/rpc/call_outcome.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

namespace pv2 {

/// These options go with a remote submission. The owner of the procedure is the name under which
/// the server knows the client.
struct RemoteSubmitOptions {
  /// The nonce names the submission. Without one the client makes one, and returns it with the
  /// outcome.
  Nonce nonce{};
  /// This means what SubmitOptions::expires_at means; no attempt begins after it. The server
  /// forgets a nonce with its result, and a copy of the submission that the network still has would
  /// begin it again unless this time has passed. So set it if results are acknowledged early.
  std::optional<WallTime> expires_at{};
  std::optional<Duration> delay{};     ///< This means what SubmitOptions::delay means.
  std::optional<WallTime> start_at{};  ///< This means what SubmitOptions::start_at means.
  /// The client gives up after this time, which includes the network. max(): it never does, except
  /// that without `expires_at` RpcClientOptions::nonce_kept bounds how long it may send.
  Duration timeout = std::chrono::seconds(30);
};

/// These options go with a remote signal. A caller that keeps the name of a signal, to send it
/// again in a later call or in a later process, sets `nonce`, `run` and `expires_at`, the same
/// three each time. They come from RemoteExecutor::signal_run(), before the first send, or from an
/// outcome that is unknown. A nonce without the other two, and a run without a nonce, is
/// kInvalidArgument.
struct RemoteSignalOptions {
  /// The nonce names the signal within its run. Without one the client makes one, and returns it
  /// with the outcome.
  Nonce nonce{};
  /// The client sends no signal after this time, and the server refuses one that arrives later:
  /// then the server may have forgotten its nonce. It is at most 24 hours from now; without it, it
  /// is 15 minutes from now.
  std::optional<WallTime> expires_at{};
  /// The run of the service that the nonce is for. Another run refuses the signal, because it
  /// cannot know whether this one has accepted it.
  std::uint64_t run = 0;
  /// The client gives up after this time, which is for all calls that the signal needs together.
  Duration timeout = std::chrono::seconds(30);
};

/// These options go with a remote order.
struct RemoteOrderOptions {
  /// The nonce names the order. Without one the client makes one, and returns it with the outcome.
  Nonce nonce{};
  /// The order was sent before under this nonce, in an earlier call or process, and its outcome is
  /// not known: a refusal says nothing about what was sent then.
  bool resumed = false;
  /// The client gives up after this time, which includes the network. Without it,
  /// RemoteOptions::timeout.
  std::optional<Duration> timeout{};
};

/// The outcome of an order. kOk: it is durable, with its audit entry. kFailed: this order changed
/// nothing; with kKeyReused its nonce names another order. kUnknown: it may have been carried out;
/// the same order with `nonce`, as resumed, or audit() tells.
struct OrderOutcome {
  using Kind = CallOutcome::Kind;
  Kind kind = Kind::kUnknown;
  bool replayed = false;  ///< It had been carried out before: the last attempt did nothing.
  Status status{};        ///< It is OK if `kind` is kOk, and only then.
  Nonce nonce{};

  [[nodiscard]] bool ok() const noexcept { return kind == Kind::kOk; }
};

/// The outcome of a verb.
struct RemoteOutcome {
  using Kind = CallOutcome::Kind;
  Kind kind = Kind::kUnknown;
  Status status{};  ///< It is OK if `kind` is kOk, and only then.
  // Only signal() sets these three. RemoteSignalOptions takes them to go on with the signal.
  Nonce nonce{};
  std::uint64_t run = 0;  ///< The run of the service that may have sent the signal on.
  std::optional<WallTime> expires_at{};

  [[nodiscard]] bool ok() const noexcept { return kind == Kind::kOk; }
};

/// The outcome of a submission. kOk: `id` is durable. kFailed: this submission began nothing; with
/// kKeyReused its nonce names another submission, with any other status its nonce is free.
/// kUnknown: the server may have begun it; RemoteExecutor::resume() or find() tells, in this
/// process or another.
struct SubmitOutcome {
  using Kind = CallOutcome::Kind;
  Kind kind = Kind::kUnknown;
  ProcedureId id{};
  bool replayed = false;  ///< The nonce was known: the last attempt began nothing new.
  Status status{};        ///< It is OK if `kind` is kOk, and only then.
  Nonce nonce{};

  [[nodiscard]] bool ok() const noexcept { return kind == Kind::kOk; }
};

/// These take outcomes, on the loop's thread of the client's transport. They must not block.
using SubmitOutcomeDone = std::function<void(SubmitOutcome)>;
using OrderOutcomeDone = std::function<void(OrderOutcome)>;
using RemoteOutcomeDone = std::function<void(RemoteOutcome)>;

}  // namespace pv2
