// SPDX-License-Identifier: Apache-2.0
//
// SignalCall: one signal on its way. It makes a call that asks for the run of the service, unless
// that is known, and a call that carries the signal to that run. If the run has ended, and the
// signal has definitely not reached it, it makes both calls again.

#pragma once

#include <pv2/rpc/nonce_source.h>
#include <pv2/rpc/rpc_client.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "pv2/remote/remote_executor.h"
#include "verb_messages.h"

namespace pv2 {

/// What the calls of one RemoteExecutor share. Thread-safe.
struct RemoteExecutor::Shared {
  Shared(RpcClient& rpc_client, std::shared_ptr<Clock> given)
      : client(rpc_client),
        clock(given != nullptr ? std::move(given) : std::make_shared<SystemClock>()) {}

  /// Reads the answer to pv2.run and remembers the run. kNotSupported: the answer names no run.
  Result<std::uint64_t> take_run(const CallOutcome& outcome);

  RpcClient& client;
  const std::shared_ptr<Clock> clock;  // shared with the host
  NonceSource nonces;
  /// The run of the service that answered last; 0: none has. Relaxed: a run that has ended is
  /// refused, and asked for anew.
  std::atomic<std::uint64_t> run{0};
};

/// Owned by one thread at a time.
class RemoteExecutor::SignalCall {
 public:
  struct Request {
    std::string method;
    std::string body;
    CallOptions options;
  };

  SignalCall(Shared& shared, remote::SignalMessage signal, const RemoteSignalOptions& options);

  /// The next call to make. To be called if there is no outcome, and once for each take().
  [[nodiscard]] Request next();
  void take(const CallOutcome& outcome);
  [[nodiscard]] bool has_outcome() const noexcept { return has_outcome_; }
  [[nodiscard]] const RemoteOutcome& outcome() const noexcept { return outcome_; }

  /// Makes all calls, and tells `done` the outcome.
  static void run(std::shared_ptr<SignalCall> self, std::shared_ptr<Shared> shared,
                  RemoteOutcomeDone done);

 private:
  void take_run(const CallOutcome& outcome);
  /// What is left of the time for the whole signal. Not negative.
  [[nodiscard]] Duration time_left() const;
  /// The caller keeps the nonce of the signal, and an earlier process may have sent it.
  [[nodiscard]] bool is_kept() const noexcept { return options_.run != 0; }
  void end(RemoteOutcome::Kind kind, Status status);

  Shared& shared_;
  remote::SignalMessage signal_;
  const RemoteSignalOptions options_;
  const Nonce nonce_;
  const WallTime expires_at_;
  const SteadyTime deadline_;  // for all calls together; max(): none
  int runs_tried_ = 0;
  bool asks_for_run_ = false;
  bool has_outcome_ = false;
  RemoteOutcome outcome_;
};

}  // namespace pv2
