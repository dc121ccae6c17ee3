// SPDX-License-Identifier: Apache-2.0
//
// ServerContext: what all parts of one region server share: who it is, where its files are, which
// queues run what takes long, and the way to its end. It does no work.
//
// How it fails: end() says that the server may not acknowledge anything any more. Each part looks
// at is_ended() before it answers. There is no way back.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/log.h>
#include <pv2/procedures/server.h>
#include <pv2/procedures/table.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "pv2/cluster/region_server.h"
#include "storage/cluster_layout.h"
#include "storage/file_tree.h"
#include "storage/work_queue.h"
#include "wire/loop_tasks.h"

namespace pv2::cluster {

/// The queues of a server. In a simulation all are the same one. Queues with threads are ended, and
/// manual ones cleared, before the server is destroyed.
///
/// The catalogue's region has queues of its own, so what users ask of the server does not stop the
/// catalogue, and with it every procedure.
struct ServerQueues {
  WorkQueue& log;    ///< Syncs of logs.
  WorkQueue& calls;  ///< Reads and writes of clients, which may read the disk.
  /// What the master asks for: openings, splits of logs. It may run several at once: two of one
  /// region or log are never in it together (Operations::line_of()).
  WorkQueue& operations;
  WorkQueue& regions;  ///< Flushes and compactions.
  WorkQueue& meta_log;
  WorkQueue& meta_calls;
  WorkQueue& meta_regions;

  [[nodiscard]] WorkQueue& calls_of(const TableName& table) const {
    return is_meta(table) ? meta_calls : calls;
  }
  [[nodiscard]] WorkQueue& regions_of(const TableName& table) const {
    return is_meta(table) ? meta_regions : regions;
  }
};

/// The greatest epoch of a master that a server has heard: in the answer to a heartbeat, which goes
/// to where the directory of the cluster says that the master is. Whoever calls the server may
/// claim any epoch; that proves nothing. Used on the loop only.
class HeardEpoch {
 public:
  /// From an answer of the master. False: one with a greater epoch was heard before, so this one is
  /// deposed.
  [[nodiscard]] bool hear(std::uint64_t epoch) noexcept {
    if (epoch < greatest_) return false;
    greatest_ = epoch;
    return true;
  }
  [[nodiscard]] std::uint64_t greatest() const noexcept { return greatest_; }

 private:
  std::uint64_t greatest_ = 0;
};

/// Used on the loop only, except for what is const.
struct ServerContext {
  ServerContext(RegionServerOptions given_options, ServerName given_name,
                std::shared_ptr<Transport> transport, Clock& given_clock,
                const FileTree& given_files, ServerQueues given_queues,
                std::function<void(const Status&)> given_on_end)
      : options(std::move(given_options)),
        name(std::move(given_name)),
        clock(given_clock),
        files(given_files),
        layout(options.root),
        queues(given_queues),
        on_end(std::move(given_on_end)),
        tasks(std::move(transport)) {}

  const RegionServerOptions options;
  const ServerName name;
  Clock& clock;
  const FileTree& files;
  const ClusterLayout layout;
  const ServerQueues queues;
  HeardEpoch epoch;
  /// Until then no master takes the server for dead because of its silence. None: no master has
  /// answered yet, or the server leaves.
  std::optional<SteadyTime> leased_until;
  std::uint64_t requests = 0;  ///< Of clients, since the start.
  bool is_stopping = false;    ///< It gives its regions back, and begins no operation.

  [[nodiscard]] bool is_ended() const noexcept { return is_ended_; }
  /// Nothing is acknowledged any more. Calls `on_end` at the first time.
  void end(const Status& why) {
    if (std::exchange(is_ended_, true)) return;
    say(LogLevel::kError, to_string(name) + " ends: " + why.to_string());
    on_end(why);
  }
  /// OK: the lease that the master has granted is not over, nor has the server ended, or said that
  /// it leaves. Asks nobody: a process that was stopped finds it over at once.
  [[nodiscard]] Status check_lease() const {
    if (is_ended_) return {StatusCode::kUnavailable, to_string(name) + " has ended"};
    if (leased_until && tasks.now() < *leased_until) return {};
    return {StatusCode::kUnavailable, "no master was heard for the length of the lease: " +
                                          to_string(name) + " is perhaps taken for dead"};
  }
  void say(LogLevel level, const std::string& line) const { log(options.log, level, line); }

  /// Whether a caller that says that it is the master of `epoch` may be. kFenced: it is deposed.
  /// kUnavailable: no such master was heard yet. Then the server asks the master at once, and the
  /// caller, if it is a new master, finds itself heard when it calls again.
  [[nodiscard]] Status check_master(std::uint64_t claimed) const {
    const std::string what = "the master of epoch " + std::to_string(claimed);
    const std::string heard = std::to_string(epoch.greatest());
    if (claimed == epoch.greatest()) return {};
    if (claimed < epoch.greatest()) {
      return {StatusCode::kFenced, what + " is deposed: that of epoch " + heard + " was heard"};
    }
    if (ask_master) ask_master();
    return {StatusCode::kUnavailable, what + " was not heard yet, only that of epoch " + heard};
  }

  std::function<void(const Status&)> on_end;
  std::function<void()> ask_master;  ///< Sends a heartbeat now.

 private:
  bool is_ended_ = false;

 public:
  LoopTasks tasks;  ///< The last member: it ends first.
};

}  // namespace pv2::cluster
