// SPDX-License-Identifier: Apache-2.0
//
// MetaTable: reads and writes the catalogue's table on whatever server hosts its region now. It
// repeats a call, under the same nonce, until the call is done, however often the region moves
// meanwhile: its nonces move with it.
//
// How it fails: only with kInvalidArgument, if no server will ever take the write. When a server
// has heard a later master, `on_later_epoch` is called, and the call is repeated like any other:
// the owner ends this master if there is one.

#pragma once

#include <pv2/base/status.h>
#include <pv2/procedures/region.h>
#include <pv2/rpc/nonce_source.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "master/server_links.h"
#include "pv2/cluster/cell.h"
#include "wire/loop_tasks.h"

namespace pv2::cluster {

/// Used on the loop only.
class MetaTable {
 public:
  struct Events {
    /// Which server serves the region now, if one does.
    std::function<std::optional<ServerName>()> find_host;
    /// That server says that it has heard of a later master. Nothing is concluded from that alone.
    std::function<void()> on_later_epoch;
    /// For the log: why calls are repeated. Said when that changes, and at most once a minute else.
    std::function<void(const std::string&)> notice;
  };

  /// `links` outlives this.
  MetaTable(std::shared_ptr<Transport> transport, ServerLinks& links, std::uint64_t epoch,
            Events events)
      : links_(links), epoch_(epoch), events_(std::move(events)), tasks_(std::move(transport)) {}

  /// All mutations become durable together, then `done` is called. One write at a time.
  void write(std::vector<Mutation> mutations, std::function<void(Status)> done);
  /// All cells of the table. From now on the host refuses earlier masters.
  void read_all(std::function<void(Result<std::vector<Cell>>)> done);
  /// The region has a host again: does not wait for the end of a pause.
  void host_changed();
  /// From now on nothing is called any more.
  void end() { tasks_.end(); }

 private:
  /// One call that is repeated until it is done.
  struct Operation {
    std::string method;
    std::string body;
    Nonce nonce;
    bool read_only = false;
    bool is_calling = false;
    std::function<void(Result<std::string>)> done;
  };

  void begin(std::string_view method, std::string body, bool read_only,
             std::function<void(Result<std::string>)> done);
  void attempt(const std::shared_ptr<Operation>& operation);
  void note_failure(const ServerName& host, const Status& why);
  void read_page(const Scan& scan, std::shared_ptr<std::vector<Cell>> cells,
                 std::function<void(Result<std::vector<Cell>>)> done);

  ServerLinks& links_;
  const std::uint64_t epoch_;
  const Events events_;
  NonceSource nonces_;
  // Those that wait for a host or for the end of a pause, or are under way. Shared with timers and
  // with answers.
  std::deque<std::shared_ptr<Operation>> operations_;
  std::pair<ServerName, StatusCode> noted_{{}, StatusCode::kOk};  ///< The last notice was of this.
  SteadyTime note_again_at_{};
  LoopTasks tasks_;
};

}  // namespace pv2::cluster
