// SPDX-License-Identifier: Apache-2.0
//
// LocalCluster: a small real cluster on one machine, behind the ports. The catalogue and the table
// directories are files in one directory; the region servers are processes (region_server.h) that
// the host starts. It keeps nothing that a crash of its own process could lose. Its regions hold no
// data, so there are no logs to split; and it replicates nothing.
//
// How it fails: an error of the disk becomes kIoError; a call that a region server does not answer
// becomes "not sent" or "unknown". A second process that opens the same directory gets kBusy.

#pragma once

#include <pv2/base/status.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "pv2/procedures/cluster_call.h"
#include "pv2/procedures/cluster_ports.h"
#include "pv2/procedures/cluster_snapshot.h"

namespace pv2 {

struct LocalClusterOptions {
  std::filesystem::path directory;  ///< Made by make_cluster_directory().
  /// A region server that has not answered after this time gets no more patience. Two seconds: on
  /// one machine it answers within milliseconds, or is stopped or dead.
  std::chrono::milliseconds call_timeout = std::chrono::seconds(2);
  ClusterProbe probe;  ///< May be empty.
};

/// Takes a report for a procedure: as a signal (ProcedureExecutor::signal). To be answered once.
using TakeReport = std::function<void(ProcedureId procedure, std::string payload,
                                      std::function<void(const Status&)> answer)>;

/// Thread-safe. Owns two threads: one writes to the disk, one talks to the servers; both call
/// completions. A call that is pending when the cluster is destroyed is never completed, so stop
/// the executor first.
class LocalCluster {
 public:
  static Result<std::unique_ptr<LocalCluster>> open(LocalClusterOptions options);
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  /// What the procedures depend on; valid as long as this.
  [[nodiscard]] ClusterPorts& ports();
  /// Where the reports of servers go from now on. To be called before the executor is started;
  /// until then no server has anything to report.
  void report_to(TakeReport take);

 private:
  class Impl;
  explicit LocalCluster(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Looks at a cluster from outside, even while no process has it open: at its files, and at what
/// each registered region server reports. The result is right only when nothing moves. A server
/// that does not answer is not in `open`.
Result<ClusterSnapshot> inspect_cluster(const std::filesystem::path& directory);

}  // namespace pv2
