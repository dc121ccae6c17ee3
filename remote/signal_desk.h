// SPDX-License-Identifier: Apache-2.0
//
// SignalDesk: sends signals on to an executor, each nonce once. The engine keeps no nonces of
// signals, so they are kept here, in memory: the desk has a random number, its run, and takes only
// signals that were first sent to this run.

#pragma once

#include <pv2/base/mutex.h>
#include <pv2/idempotency/server_nonce_manager.h>
#include <pv2/rpc/incoming_call.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace pv2 {

class ProcedureExecutor;

namespace remote {
struct SignalMessage;
}  // namespace remote

/// Thread-safe.
class SignalDesk : public std::enable_shared_from_this<SignalDesk> {
 public:
  SignalDesk(ProcedureExecutor& executor, NonceManagerOptions options);

  [[nodiscard]] std::uint64_t run() const noexcept { return run_; }
  /// Sends the signal on, or gives `call` the answer that its nonce got before. May read the store.
  void take(std::shared_ptr<IncomingCall> call, remote::SignalMessage signal);
  /// How many nonces are kept.
  [[nodiscard]] std::size_t kept() const;

 private:
  struct Errand;
  void send(std::shared_ptr<Errand> errand, remote::SignalMessage signal);
  void sent(Errand& errand, const Status& answer) const;
  void sweep() PV2_EXCLUDES(sweep_mutex_);

  ProcedureExecutor& executor_;
  const std::uint64_t run_;
  ServerNonceManager nonces_;
  Mutex sweep_mutex_;  // guards the right to sweep
};

}  // namespace pv2
