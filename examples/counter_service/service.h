// SPDX-License-Identifier: Apache-2.0
//
// CounterService: counters that are added to and texts that are appended to, each operation exactly
// once, although the network loses and repeats calls and the process is killed. The same two
// operations are offered by nonce and in a session:
//
//     counter.add   session.counter.add    "a 5", "purse 5 1000"   see requests.h
//     text.append   session.text.append    "diary and then"
//     counter.get   text.get               what is durable
//
// and as procedures of an executor (engine_way.h), with counters and texts of their own.
//
// The first two: all is decided on the loop's thread of the transport, in the order of arrival: the
// effect is computed, its batch (with the row that remembers the answer) is handed to the log, and
// when the log says that it is durable the answer goes. A log that fails ends the service: it
// cannot know any more what its values are.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/log.h>
#include <pv2/base/status.h>
#include <pv2/rpc/transport.h>
#include <pv2/store/procedure_store.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace counter {

/// kOff is the control: each copy of a call is run.
enum class Dedup : std::uint8_t { kOn, kOff };

struct ServiceOptions {
  std::shared_ptr<pv2::Transport> transport{};  ///< Needed.
  std::string listen = "127.0.0.1:0";
  std::unique_ptr<pv2::ProcedureStore> store{};  ///< Needed. Nobody else uses it.
  /// For the way through the engine; none: it is not offered.
  std::unique_ptr<pv2::ProcedureStore> engine_store{};
  Dedup dedup = Dedup::kOn;
  std::shared_ptr<pv2::Clock> clock{};  ///< The system's unless given.
  /// How long a nonce is remembered after its operation; longer if its client promises more.
  pv2::Duration retention = std::chrono::seconds(60);
  /// How far the clocks of clients may be behind.
  pv2::Duration skew_max = std::chrono::seconds(5);
  pv2::LogSink log = pv2::default_log_sink();
  /// The log has failed. Called once, on any thread; there is nothing left to do but to end.
  std::function<void(const pv2::Status&)> on_failure{};
};

/// What one process has seen.
struct ServiceCounts {
  std::uint64_t calls = 0;  ///< That reached a handler.
  std::uint64_t runs = 0;   ///< Operations that were run; the others were copies, or reads.
};

/// Thread-safe, except construction and destruction.
class CounterService {
 public:
  /// Reads what the last process has left, and serves.
  [[nodiscard]] static pv2::Result<std::unique_ptr<CounterService>> open(ServiceOptions options);
  /// Waits until the store has written what was committed. Nobody hears the answers.
  ~CounterService();
  CounterService(const CounterService&) = delete;
  CounterService& operator=(const CounterService&) = delete;

  [[nodiscard]] const std::string& address() const noexcept;
  [[nodiscard]] ServiceCounts counts() const;
  /// The store, for a test that pumps it.
  [[nodiscard]] pv2::ProcedureStore& store() noexcept;

 private:
  class Core;
  CounterService(std::shared_ptr<pv2::Transport> transport, std::shared_ptr<Core> core);
  std::shared_ptr<pv2::Transport> transport_;
  std::shared_ptr<Core> core_;
};

}  // namespace counter
