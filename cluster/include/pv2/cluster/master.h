// SPDX-License-Identifier: Apache-2.0
//
// run_master(): the master of a cluster as a process. It runs all procedures of the cluster, knows
// which region servers live, and writes the catalogue. Clients read and write rows without it.

#pragma once

#include <pv2/base/log.h>
#include <pv2/base/time.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/procedures/cluster_call.h>
#include <pv2/store/procedure_store.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace pv2::cluster {

/// What a master takes from its operator. A time may be a millisecond to a year;
/// one for which something is kept may be 0.
struct MasterOptions {
  /// The directory of the cluster, which all servers and the master share. The first master of a
  /// new directory makes the cluster.
  std::string root{};
  std::string listen = "127.0.0.1:0";
  /// A server that is silent for so long is taken for dead. Several times
  /// RegionServerOptions::heartbeat_every.
  Duration lease = std::chrono::seconds(10);
  /// Threads that run steps of procedures. 0: none; for a simulation.
  unsigned workers = 2;
  /// How often the master looks for files that nobody needs any more: logs that are split or
  /// flushed and were shipped to all peers, and store files of regions that are gone. The other two
  /// say how long such a file is kept after nobody needs it.
  Duration clean_up_every = std::chrono::minutes(1);
  Duration old_logs_kept = std::chrono::minutes(10);
  Duration archive_kept = std::chrono::minutes(10);
  /// For so long the result of a procedure, and its nonce, are kept after its end; at least 30
  /// minutes (RetentionPolicy::ttl).
  Duration results_kept = std::chrono::hours(1);
  LogSink log{};  ///< Without one, warnings and errors go to stderr.
  /// Makes the engine's store at a path. Without it that is LevelDB.
  std::function<std::unique_ptr<ProcedureStore>(const std::string& path)> make_store{};
  /// Called when the executor has loaded its procedures, before it runs any of them: for those who
  /// want to listen.
  std::function<void(ProcedureExecutor&)> on_loaded{};
  /// Hears of the calls of procedures to the cluster, on several threads. For those who want to end
  /// the process at a chosen moment.
  ClusterProbe probe{};
};

/// Runs a master in this process, on real files and sockets. Prints "ready <address>" when it
/// listens; returns when its standard input ends, and dies with its parent process. The return
/// value is the exit code of the program: 0, or 1 when it could not start.
///
/// There is one master at a time: another one on the same directory does not start while the first
/// one's process lives. A master that learns of a successor, or whose files fail, prints why and
/// exits the process at once with kFatalExit.
int run_master(const MasterOptions& options);

}  // namespace pv2::cluster
