// SPDX-License-Identifier: Apache-2.0
//
// RegionCall: one call at whichever region has a row, wherever it is. It is sent until there is an
// outcome or the time is over; under a nonce all of it is one operation, also when the row is in
// another region or on another server at the next attempt. A long call is left with its server for
// all of its time, unless the map says meanwhile that the row is elsewhere.

#pragma once

#include <pv2/base/random.h>
#include <pv2/rpc/rpc_client.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "client/region_map.h"
#include "client/server_connections.h"
#include "pv2/cluster/cluster_client.h"
#include "wire/loop_tasks.h"

namespace pv2::cluster {

/// What calls of regions need. All of it outlives the calls' tasks.
struct RegionCallGround {
  LoopTasks& tasks;
  RegionMap& map;
  ServerConnections& connections;
  Random& random;
  const ClusterClientOptions& options;
};

/// Used on the loop only. It keeps itself until it has its outcome.
class RegionCall : public std::enable_shared_from_this<RegionCall> {
 public:
  struct Request {
    TableName table;
    std::string row;
    std::string_view method;  ///< One of wire/methods.h.
    /// The body for the region that has the row now. A failure ends the call, unless the region was
    /// not asked for just now.
    std::function<Result<std::string>(const RegionInfo&)> body;
    CallOptions options;   ///< `timeout` is that of the whole.
    bool is_long = false;  ///< The server may need all of the time for it.
  };
  /// The outcome, and the region that has answered.
  using Done = std::function<void(CallOutcome, const RegionInfo&)>;

  static void begin(RegionCallGround ground, Request request, Done done);

 private:
  RegionCall(RegionCallGround ground, Request request, Done done);

  void attempt();
  void send(const RegionPlace& place);
  /// For an attempt that has no outcome.
  void look_at_map_later(const std::string& address, CallTicket ticket);
  void take(const RegionPlace& place, CallOutcome outcome);
  void try_again(const Status& why);
  void finish(const Status& why);
  [[nodiscard]] Duration time_left() const;

  const RegionCallGround ground_;
  const Request request_;
  const Done done_;
  const SteadyTime deadline_;
  Duration pause_;
  Duration patience_;         ///< With one server.
  bool is_fresh_ = false;     ///< The map was read anew for this attempt.
  bool may_be_done_ = false;  ///< An attempt has no answer.
  std::uint32_t attempts_ = 0;
  std::uint32_t sends_ = 0;  ///< Of this call, each to one server.
  bool is_out_ = false;      ///< The newest of them has no outcome.
  bool has_moved_ = false;   ///< And is cancelled, for the row is elsewhere.
  TimerId look_timer_;
};

}  // namespace pv2::cluster
