// SPDX-License-Identifier: Apache-2.0
//
// Cleaner: from time to time has old files removed (old_files.h), and queues of replication claimed
// that a dead server has left after its crash was recovered: a server that is fenced, and does not
// know it yet, can begin one. Each kind of files is swept on the queue of work on which the
// master changes them: old_files.h says why.

#pragma once

#include <pv2/procedures/cluster_ports.h>

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "master/old_files.h"
#include "pv2/cluster/master.h"
#include "storage/work_queue.h"
#include "wire/loop_tasks.h"

namespace pv2::cluster {

/// Used on the loop only. What it is given outlives it, and the work in the queue.
class Cleaner {
 public:
  /// A directory of queues: peer and server.
  using Directory = std::pair<std::string, ServerName>;
  struct Events {
    /// Whether nothing is left to do for a server but to claim what it has begun too late.
    std::function<bool(const ServerName&)> is_retired;
    /// Has the queues claimed, and calls back when that has ended.
    std::function<void(const Directory&, std::function<void()> done)> claim;
    std::function<void(const std::string& line)> say;
  };

  struct Queues {
    WorkQueue& recovery;  ///< Of fences and of work on peers.
    WorkQueue& tables;
  };

  Cleaner(std::shared_ptr<Transport> transport, const FileTree& files, const ClusterLayout& layout,
          Queues queues, const MasterOptions& options, Events events);

  /// From now on it sweeps by itself.
  void start();
  /// From now on nothing is called any more.
  void end() { tasks_.end(); }

 private:
  void sweep_logs();
  void sweep_archive();
  void take(const OldFiles::Sweep& sweep, std::string_view what);
  void claim(const std::vector<Directory>& directories);

  const Queues queues_;
  const Duration every_;
  const Events events_;
  OldFiles old_files_;  ///< Used on the queues.
  std::set<Directory> claiming_;
  LoopTasks tasks_;
};

}  // namespace pv2::cluster
