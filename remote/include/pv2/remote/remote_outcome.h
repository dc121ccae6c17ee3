// SPDX-License-Identifier: Apache-2.0
//
// What goes with the verbs of RemoteExecutor, and what a caller knows afterwards: done, definitely
// not done, or perhaps done.

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

/// What goes with a remote submission. The owner is the name under which the server knows the
/// client.
struct RemoteSubmitOptions {
  /// Names the submission. None: one is made, and returned with the outcome.
  Nonce nonce{};
  /// As SubmitOptions::expires_at; no attempt begins after it. A nonce is forgotten with its
  /// result, and a copy of the submission that the network still has would begin it again unless
  /// this has passed. So set it if results are acknowledged early.
  std::optional<WallTime> expires_at{};
  std::optional<Duration> delay{};              ///< As SubmitOptions::delay.
  std::optional<WallTime> start_at{};           ///< As SubmitOptions::start_at.
  Duration timeout = std::chrono::seconds(30);  ///< When to give up asking. max(): never.
};

/// What goes with a remote signal.
struct RemoteSignalOptions {
  /// Names the signal. None: one is made, and returned with the outcome.
  Nonce nonce{};
  /// The signal is not sent after this time, and refused if it arrives later: then its nonce may be
  /// forgotten. None: 15 minutes from now. At most 24 hours from now.
  std::optional<WallTime> expires_at{};
  /// To go on with a signal whose outcome is unknown: the run of that outcome, with its nonce and
  /// its `expires_at`.
  std::uint64_t run = 0;
  Duration timeout = std::chrono::seconds(30);
};

/// The outcome of a verb.
struct RemoteOutcome {
  using Kind = CallOutcome::Kind;
  Kind kind = Kind::kUnknown;
  Status status{};        ///< Not OK unless `kind` is kOk.
  Nonce nonce{};          ///< Of a signal.
  std::uint64_t run = 0;  ///< Of a signal: the run of the service that may have sent it on.
  std::optional<WallTime> expires_at{};  ///< Of a signal.

  [[nodiscard]] bool ok() const noexcept { return kind == Kind::kOk; }
};

/// The outcome of a submission. kOk: `id` is durable. kFailed: nothing was begun under this nonce.
/// kUnknown: it may have been begun; RemoteExecutor::resume() or find() tells, in this process or
/// another.
struct SubmitOutcome {
  using Kind = CallOutcome::Kind;
  Kind kind = Kind::kUnknown;
  ProcedureId id{};
  bool replayed = false;  ///< The nonce was known: nothing new was begun by the last attempt.
  Status status{};        ///< Not OK unless `kind` is kOk.
  Nonce nonce{};

  [[nodiscard]] bool ok() const noexcept { return kind == Kind::kOk; }
};

/// Take outcomes, on the loop's thread of the client's transport; must not block.
using SubmitOutcomeDone = std::function<void(SubmitOutcome)>;
using RemoteOutcomeDone = std::function<void(RemoteOutcome)>;

}  // namespace pv2
