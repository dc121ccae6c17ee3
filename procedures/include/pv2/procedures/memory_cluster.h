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
#include <set>
#include <string>
#include <string_view>

#include "pv2/procedures/cluster_call.h"
#include "pv2/procedures/cluster_ports.h"
#include "pv2/procedures/cluster_snapshot.h"

namespace pv2 {

class ProcedureExecutor;

/// What goes wrong with a call. A dispatch answers with a DispatchOutcome, all others with
/// kUnavailable.
enum class ClusterFault : std::uint8_t {
  kFail,           ///< Nothing happens. A dispatch: not sent.
  kRefuse,         ///< Dispatches only: refused.
  kLoseRequest,    ///< Nothing happens, but the caller cannot know that. A dispatch: unknown.
  kLoseReply,      ///< It happens, but the caller cannot know that. A dispatch: unknown.
  kHalf,           ///< Calls of TableFiles only: part of it happens.
  kReportFailure,  ///< Dispatches only: the server takes the operation, and reports that it failed.
  kRepeatReport,   ///< Dispatches only: the report arrives twice.
};

/// When completions are called.
enum class Delivery : std::uint8_t {
  kInline,  ///< From within the call: the step goes on at once.
  kQueued,  ///< When the test calls deliver_one() or deliver_all(): the step waits.
};

/// What there is before the test begins.
enum class FirstState : std::uint8_t {
  kNothing,  ///< No namespace; InitMeta makes them.
  /// The namespaces "default" and "system". Nobody hosts the catalogue: it is always there.
  kNamespaces,
};

/// Thread-safe.
class MemoryCluster {
 public:
  /// Its root directory, as far as peers are concerned.
  static constexpr std::string_view kRoot = "/clusters/own";

  explicit MemoryCluster(Delivery delivery = Delivery::kInline,
                         FirstState first = FirstState::kNamespaces);
  ~MemoryCluster();
  MemoryCluster(const MemoryCluster&) = delete;
  MemoryCluster& operator=(const MemoryCluster&) = delete;

  /// What the procedures depend on; valid as long as this.
  [[nodiscard]] ClusterPorts& ports();

  /// Starts a server; its start code was not used before.
  ServerName add_server(std::string_view host);
  /// The server dies with all that it has in memory. It stays registered, as a real one does for a
  /// while, and calls to it are not sent.
  void kill_server(const ServerName& server);
  /// Makes `server` the host of the catalogue: from now on the catalogue is there as long as its
  /// region is served. While it is not, calls wait (those about servers and that region aside).
  void host_catalogue_on(const ServerName& server);

  /// A client writes a row. True: it was acknowledged, and has to be readable for ever. False: no
  /// server serves its region now.
  bool write_row(const TableName& table, const std::string& row);
  /// The rows that can be read now.
  [[nodiscard]] std::set<std::string> readable_rows(const TableName& table) const;

  /// A server that was told long ago to split a log writes an edit of the region only now, when
  /// another one has split the same log, and the region was opened and closed since.
  void leave_edit(const RegionInfo& region, const std::string& row);

  /// From now on the configuration of the peer, which is stored, cannot be read. Servers know what
  /// they have read before.
  void damage_peer(const std::string& peer);
  /// A server that read the peer before it was changed or removed begins a queue for it only now.
  void begin_queue(const ServerName& server, const std::string& peer);

  /// Forgets under which keys effects took place. A cluster that is used with another, empty store
  /// has to, because the procedure ids, and so the keys, begin anew there.
  void forget_effects();

  /// Adds a fault to the queue of that kind of call: `times` of its calls fail like this, after
  /// those for which a fault is queued already.
  void fail_next(ClusterCall call, ClusterFault fault, unsigned times = 1);
  /// How many calls of that kind were made.
  [[nodiscard]] std::size_t calls(ClusterCall call) const;

  /// With Delivery::kQueued: answers the oldest call, or returns false when there is none.
  bool deliver_one();
  std::size_t deliver_all();
  /// How many calls wait for deliver_one(), and answers one of them.
  [[nodiscard]] std::size_t undelivered() const;
  void deliver(std::size_t which);

  /// Sends the reports of servers to the procedures that wait for them, as signals, and returns how
  /// many it sent. A report is repeated until its signal is durable, or its procedure has ended.
  /// The reports of dead servers are dropped. Also takes the places of splitters back that
  /// procedures have which an operator has ended, and counts these. `executor` outlives this
  /// cluster, or is stopped before the next call.
  std::size_t deliver_reports(ProcedureExecutor& executor);
  /// How many reports deliver_reports() would send, and sends one of them.
  [[nodiscard]] std::size_t unsent_reports(const ProcedureExecutor& executor) const;
  void deliver_report(ProcedureExecutor& executor, std::size_t which);

  [[nodiscard]] ClusterSnapshot snapshot() const;

 private:
  class Impl;
  // Shared with answers of executors that are on their way.
  std::shared_ptr<Impl> impl_;
};

}  // namespace pv2
