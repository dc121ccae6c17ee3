// SPDX-License-Identifier: Apache-2.0
//
// FaultProxy: stands between clients and a server, and loses, delays, repeats, reorders and cuts
// what passes, as its plan says (random_faults.h, scripted_faults.h). Tests use it to see what an
// application does when its network is bad; it works the same over real sockets and over a network
// in memory. It is no load balancer, and nothing that matters belongs behind it.
//
//     client --- address() [ proxy ] --- target
//
// Each accepted connection gets one of its own to the target; each of the two ends when the other
// one does. A cut looks to both ends as if the other one had closed the connection.

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
  /// The clients of the proxy and the server are here. The transport outlives the proxy.
  Transport* transport = nullptr;
  std::string listen = "127.0.0.1:0";
  std::string target{};
  /// Without a plan the proxy passes everything on. The caller may keep a share, to change the plan
  /// while the proxy runs.
  std::shared_ptr<FaultPlan> plan{};

  enum class Unit : std::uint8_t {
    /// The plan decides about frames of rpc_frame.h. The proxy cuts a connection with other bytes,
    /// and counts it as undecodable.
    kFrames,
    /// The plan decides about whatever arrives at once, for TLS and other protocols. It can delay,
    /// cut and half-open. The proxy ignores that it drops, duplicates or reorders a piece, because
    /// the result would be other bytes. What arrives at once is, over real sockets, chance.
    kBytes,
  };
  Unit unit = Unit::kFrames;

  /// The rate at which the proxy passes on bytes, for each connection and direction, in slices of
  /// 50 ms. 0 means as fast as it can; the largest rate is 1e12.
  std::uint64_t bytes_per_second = 0;
  /// The limit of a frame that the proxy passes on, in bytes, from 1 to 1 GiB. A larger one counts
  /// as undecodable.
  std::size_t frame_bytes_max = std::size_t{64} << 20U;
  /// When a connection holds so much of one direction, the proxy reads no more of it. It holds
  /// this, one frame that has not arrived whole, and what the transport reads at once. It is from 1
  /// to 1 GiB.
  std::size_t kept_bytes_max = std::size_t{1} << 20U;
  /// The proxy refuses more connections than this, 1 to 100'000.
  std::size_t connections_max = 1000;
  /// The proxy tries for so long to connect to the target. When it fails, it closes the client's
  /// connection.
  Duration connect_timeout = std::chrono::seconds(10);
  /// When one end has closed, the other one still gets what the proxy holds for it. If that end
  /// takes nothing for so long, the connection ends.
  Duration linger = std::chrono::seconds(10);
};

/// These counts say what the proxy did to the frames of one direction (to the pieces, if it passes
/// bytes).
struct FaultCounts {
  std::uint64_t passed = 0;  ///< Each copy that was sent on counts.
  std::uint64_t dropped = 0;
  std::uint64_t duplicated = 0;  ///< Only copies after the first one count.
  std::uint64_t delayed = 0;
  std::uint64_t reordered = 0;    ///< A frame counts if a later one passed first.
  std::uint64_t cut = 0;          ///< Connections that the plan cut at a frame of this direction.
  std::uint64_t half_opened = 0;  ///< Connections of which this direction began to swallow.
  /// Bytes that half-open connections, and those that are ending, swallowed.
  std::uint64_t swallowed_bytes = 0;
  std::uint64_t undecodable = 0;    ///< Connections that the proxy cut because of other bytes.
  std::uint64_t plan_failures = 0;  ///< Connections that the proxy cut because the plan failed.
  friend bool operator==(const FaultCounts&, const FaultCounts&) = default;
};

struct FaultProxyCounters {
  FaultCounts to_server{};
  FaultCounts to_client{};
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
  std::uint64_t connects_failed = 0;  ///< Connections that the target did not take.
  std::uint64_t cut_by_hand = 0;      ///< Connections that cut_all() cut.
  // These two are of the present:
  std::uint64_t connections = 0;
  std::uint64_t kept_bytes = 0;  ///< All connections count, with a margin of 128 for each frame.
  friend bool operator==(const FaultProxyCounters&, const FaultProxyCounters&) = default;
};

/// Thread-safe. Its state belongs to the loop's thread of the transport, and every call waits for
/// that thread: do not hold a lock that the loop may want.
class FaultProxy {
 public:
  /// Begins to listen. kInvalidArgument: an option is outside of its bounds; other failures are
  /// those of Transport::listen().
  [[nodiscard]] static Result<std::unique_ptr<FaultProxy>> open(FaultProxyOptions options);
  /// Closes everything. The plan of the proxy must not destroy it.
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  /// Clients connect to this address.
  [[nodiscard]] const std::string& address() const noexcept { return address_; }

  /// Cuts all connections at once; what they hold is lost.
  void cut_all();
  enum class NewConnections : std::uint8_t { kAccepted, kRefused };
  /// Says what happens to new connections. The proxy accepts a refused one and closes it at once,
  /// before the target hears of it.
  void set_new_connections(NewConnections are);
  /// Leads the connections that it accepts from now on to `target`; present ones stay. A test calls
  /// it when a server comes back at another address. kInvalidArgument: `target` is empty.
  Status set_target(std::string target);
  /// Half-opens all present connections, in both directions: see Fate::half_open. There is no way
  /// back: bytes are missing in the middle. cut_all() ends them.
  void half_open_all();
  /// Sets FaultProxyOptions::bytes_per_second, for present connections too.
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
