// SPDX-License-Identifier: Apache-2.0
//
// FaultProxy: stands between clients and a server, and loses, delays, repeats, reorders and cuts
// what passes, as its plan says (random_faults.h, scripted_faults.h). For tests of what an
// application does when its network is bad; it works the same over real sockets and over a network
// in memory. It is no load balancer, and not for use in front of anything that matters.
//
//     client --- address() [ proxy ] --- target
//
// Each accepted connection gets one of its own to the target; one ends when the other does. A cut
// looks to both ends as if the other one had closed the connection.

#pragma once

#include <pv2/base/status.h>
#include <pv2/base/time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "pv2/rpc/fault_plan.h"
#include "pv2/rpc/transport.h"

namespace pv2 {

struct FaultProxyOptions {
  /// Its clients and the server are here. Outlives the proxy.
  Transport* transport = nullptr;
  std::string listen = "127.0.0.1:0";
  std::string target{};
  /// Null: everything is passed on. Shared with who changes it while the proxy runs.
  std::shared_ptr<FaultPlan> plan{};

  enum class Unit : std::uint8_t {
    /// One frame of rpc_frame.h. A connection with other bytes is cut, and counted as undecodable.
    kFrames,
    /// Whatever arrives at once, for TLS and other protocols. The plan is asked for each piece; it
    /// can delay, cut and half-open. That it drops, duplicates or reorders is ignored, because it
    /// would make other bytes of it. What arrives at once is, over real sockets, chance.
    kBytes,
  };
  Unit unit = Unit::kFrames;

  /// Of each connection in each direction, in slices of 50 ms; 0: as fast as it goes. At most 1e12.
  std::uint64_t bytes_per_second = 0;
  /// Of a frame that is passed on, 1 to 1 GiB; a larger one counts as undecodable.
  std::size_t frame_bytes_max = std::size_t{64} << 20U;
  /// When a connection holds so much of one direction, the proxy reads no more of it. It holds
  /// this, one frame that has not arrived whole, and what the transport reads at once. 1 to 1 GiB.
  std::size_t kept_bytes_max = std::size_t{1} << 20U;
  /// More are refused. 1 to 100'000.
  std::size_t connections_max = 1000;
  /// For connecting to the target. When that fails, the client's connection is closed.
  Duration connect_timeout = std::chrono::seconds(10);
  /// When one end has closed, the other still gets what the proxy holds for it. If it takes nothing
  /// of it for so long, the connection ends.
  Duration linger = std::chrono::seconds(10);
};

/// What was done to the frames of one direction (pieces, in a proxy that passes bytes).
struct FaultCounts {
  std::uint64_t passed = 0;  ///< Sent on: each copy counts.
  std::uint64_t dropped = 0;
  std::uint64_t duplicated = 0;  ///< Copies after the first.
  std::uint64_t delayed = 0;
  std::uint64_t reordered = 0;    ///< Held back, and a later frame passed first.
  std::uint64_t cut = 0;          ///< Connections that the plan cut at a frame of this direction.
  std::uint64_t half_opened = 0;  ///< Connections whose direction began to swallow.
  std::uint64_t swallowed_bytes = 0;  ///< Of half-open connections, and of those that are ending.
  std::uint64_t undecodable = 0;      ///< Connections that were cut because of it.
  std::uint64_t plan_failures = 0;    ///< Connections that were cut because of it.
  friend bool operator==(const FaultCounts&, const FaultCounts&) = default;
};

struct FaultProxyCounters {
  FaultCounts to_server{};
  FaultCounts to_client{};
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
  std::uint64_t connects_failed = 0;  ///< To the target.
  std::uint64_t cut_by_hand = 0;      ///< By cut_all().
  // At present:
  std::uint64_t connections = 0;
  std::uint64_t kept_bytes = 0;  ///< Of all connections, with a margin of 128 for each frame.
  friend bool operator==(const FaultProxyCounters&, const FaultProxyCounters&) = default;
};

/// Thread-safe. Its state belongs to the loop's thread of the transport, and every call waits for
/// that thread: do not hold a lock that the loop may want.
class FaultProxy {
 public:
  /// kInvalidArgument: an option is outside of its bounds; otherwise what Transport::listen() says.
  [[nodiscard]] static Result<std::unique_ptr<FaultProxy>> open(FaultProxyOptions options);
  /// Closes everything. Not to be destroyed from within its plan.
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  /// Where clients have to connect.
  [[nodiscard]] const std::string& address() const noexcept { return address_; }

  /// Cuts all connections at once; what they hold is lost.
  void cut_all();
  enum class NewConnections : std::uint8_t { kAccepted, kRefused };
  /// A refused connection is accepted and closed at once, before the target hears of it.
  void set_new_connections(NewConnections are);
  /// Where connections that are accepted from now on lead; present ones stay. For a server that
  /// comes back at another address. kInvalidArgument: it is empty.
  Status set_target(std::string target);
  /// Half-opens all present connections, in both directions: see Fate::half_open. There is no way
  /// back: bytes are missing in the middle. cut_all() ends them.
  void half_open_all();
  /// As FaultProxyOptions::bytes_per_second; for present connections too.
  Status set_bytes_per_second(std::uint64_t rate);
  [[nodiscard]] FaultProxyCounters counters() const;

  class State;

 private:
  FaultProxy(Transport& transport, std::shared_ptr<State> state, std::string address);

  Transport& transport_;
  // Shared with what the transport still has to call, which is safe after the proxy is gone.
  const std::shared_ptr<State> state_;
  const std::string address_;
};

}  // namespace pv2
