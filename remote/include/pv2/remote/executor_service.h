// SPDX-License-Identifier: Apache-2.0
//
// ExecutorService: the methods by which remote clients (remote_executor.h) use an executor. It
// answers calls, and decides nothing that the executor does not decide.
//
// Each method has to say what an answer other than "done" means for the other copies of a call:
//
//     method       the failure is for good (fail)        this copy did nothing (refuse)
//     pv2.submit   KEY_REUSED                            all others
//     pv2.signal   KEY_REUSED; all that are definite     FENCED, EXPIRED, and what may pass:
//                                                        RESOURCE_EXHAUSTED, UNAVAILABLE, STOPPING
//     all others   never                                 all
//
// A body that is no message is a failure for good everywhere. A refusal of an unknown type, or of
// its arguments, is no failure for good: another copy may have reached a program that knows them.
// If the store fails while an operation is on its way, that is UNKNOWN_OUTCOME; operations that
// come later are refused with UNAVAILABLE, so that the client asks another server.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/rpc/rpc_server.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace pv2 {

class ProcedureExecutor;
class ServiceCore;

struct ExecutorServiceOptions {
  /// The limit of an answer, in bytes. The service does not send a larger one (kNotSupported), and
  /// ends a page of a listing, or of an audit, early. It has to be less than
  /// RpcLimits::frame_bytes_max and less than what clients take (RpcClientOptions).
  std::size_t answer_bytes_max = (std::size_t{4} << 20) - 4096;
  /// The service recognises a signal by its nonce for this time after it has sent it on, and at
  /// least for a minute after the time until which its client sends it.
  Duration signal_retention = std::chrono::minutes(1);
  /// The limit of what the nonces of signals take, in bytes. Beyond it the service refuses signals
  /// (kResourceExhausted).
  std::size_t signal_bytes_max = std::size_t{64} << 20;
  /// This clock measures `signal_retention`, and how long locks are held, so it is to be the
  /// executor's. Without one it is the system's.
  std::shared_ptr<Clock> clock{};
};

/// These counts say what a service keeps now.
struct ExecutorServiceCounts {
  std::size_t waits = 0;         ///< Calls that wait for a procedure.
  std::size_t waited_for = 0;    ///< The procedures that these calls wait for.
  std::size_t signals_kept = 0;  ///< Signals that the service remembers by their nonces.
};

/// Adds these methods to a server, for one executor:
///
///     pv2.submit   pv2.find   pv2.wait   pv2.acknowledge   pv2.abort   pv2.signal   pv2.run
///     pv2.list   pv2.explain   pv2.history   pv2.locks   pv2.preview   pv2.order   pv2.audit
///
/// Their messages are in remote/pv2_remote.proto. The owner of a submission is the name under which
/// its client was let in (BearerToken::owner), whatever the client says. Owners are names and no
/// walls: each client that is let in may see, abort and signal all procedures, as each caller of
/// the executor may.
///
/// All verbs run on the executor's pool, so a slow disk does not stop the network. Many waits for
/// one procedure are one wait of the engine.
///
/// Signals are recognised by their nonce for as long as this object lives, and not longer: the
/// engine keeps no nonces of signals. `pv2.run` names this object by a random number; a signal says
/// which run it was first sent to, and another run refuses it (kFenced). So a signal is never
/// delivered twice; but if a server ends before it has answered, the client does not learn whether
/// the signal was sent.
///
/// Thread-safe. The executor outlives the servers that have the methods; this object need not.
class ExecutorService {
 public:
  explicit ExecutorService(ProcedureExecutor& executor, ExecutorServiceOptions options = {});
  ~ExecutorService();
  ExecutorService(const ExecutorService&) = delete;
  ExecutorService& operator=(const ExecutorService&) = delete;

  /// Adds the methods. They replace methods of the same names.
  void add_to(RpcMethods& methods) const;

  [[nodiscard]] ExecutorServiceCounts counts() const;

 private:
  // Shared with the methods and with answers of the executor that are on their way.
  std::shared_ptr<ServiceCore> core_;
};

}  // namespace pv2
