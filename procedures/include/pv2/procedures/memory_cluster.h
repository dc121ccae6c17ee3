// SPDX-License-Identifier: Apache-2.0
//
// MemoryCluster: a whole cluster behind the ports, in memory, for tests. A test can make any call
// fail in each way in which a real one can, and every effect is counted by its key. It outlives
// executors, so a test can crash one and start the next on the same cluster. It is no model of time
// or load.

#pragma once

#include <pv2/base/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "pv2/procedures/cluster_call.h"
#include "pv2/procedures/cluster_ports.h"
#include "pv2/procedures/cluster_snapshot.h"

namespace pv2 {

/// What goes wrong with a call. Calls to servers answer with a CallOutcome, all others with
/// kUnavailable.
enum class ClusterFault : std::uint8_t {
  kFail,         ///< Nothing happens. A call to a server: not sent.
  kRefuse,       ///< Calls to servers only: refused.
  kLoseRequest,  ///< Nothing happens, but the caller cannot know that. A call to a server: unknown.
  kLoseReply,    ///< It happens, but the caller cannot know that. A call to a server: unknown.
  kHalf,         ///< kWriteLayout only: part of it happens.
};

/// When completions are called.
enum class Delivery : std::uint8_t {
  kInline,  ///< From within the call: the step goes on at once.
  kQueued,  ///< When the test calls deliver_one() or deliver_all(): the step waits.
};

/// Thread-safe.
class MemoryCluster {
 public:
  explicit MemoryCluster(Delivery delivery = Delivery::kInline);
  ~MemoryCluster();
  MemoryCluster(const MemoryCluster&) = delete;
  MemoryCluster& operator=(const MemoryCluster&) = delete;

  /// What the procedures depend on; valid as long as this.
  [[nodiscard]] ClusterPorts& ports();

  /// Starts a server; its start code was not used before.
  ServerName add_server(std::string_view host);
  /// The server dies with all that it has open. It stays registered, as a real one does for a
  /// while, and calls to it are not sent.
  void kill_server(const ServerName& server);

  /// Adds a fault to the queue of that kind of call: `times` of its calls fail like this, after
  /// those for which a fault is queued already.
  void fail_next(ClusterCall call, ClusterFault fault, unsigned times = 1);
  /// How many calls of that kind were made.
  [[nodiscard]] std::size_t calls(ClusterCall call) const;

  /// With Delivery::kQueued: answers the oldest call, or returns false when there is none.
  bool deliver_one();
  std::size_t deliver_all();

  [[nodiscard]] ClusterSnapshot snapshot() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pv2
