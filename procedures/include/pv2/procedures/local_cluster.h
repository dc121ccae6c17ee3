// SPDX-License-Identifier: Apache-2.0
//
// LocalCluster: a small real cluster on one machine, behind the ports: the catalogue and the table
// directories are files in one directory, the region servers are processes (region_server.h) that
// somebody else starts. It keeps nothing that a crash of its own process could lose.
//
// How it fails: what the disk refuses comes back as kIoError; what a region server does not answer
// as "not sent" or "unknown". A second process that opens the same directory gets kBusy.

#pragma once

#include <pv2/base/status.h>

#include <chrono>
#include <filesystem>
#include <memory>

#include "pv2/procedures/cluster_call.h"
#include "pv2/procedures/cluster_ports.h"
#include "pv2/procedures/cluster_snapshot.h"

namespace pv2 {

struct LocalClusterOptions {
  std::filesystem::path directory;  ///< Made by make_cluster_directory().
  /// After so long a region server has not answered. Two seconds: on one machine it answers within
  /// milliseconds, or is stopped or dead.
  std::chrono::milliseconds call_timeout = std::chrono::seconds(2);
  ClusterProbe probe;  ///< May be empty.
};

/// Thread-safe. Owns two threads: one writes to the disk, one talks to the servers; completions are
/// called on them. What is under way when it is destroyed is never completed, so stop the executor
/// first.
class LocalCluster {
 public:
  static Result<std::unique_ptr<LocalCluster>> open(LocalClusterOptions options);
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  /// The dependency of the procedures; valid as long as this.
  [[nodiscard]] ClusterPorts& ports();

 private:
  class Impl;
  explicit LocalCluster(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Looks at a cluster from outside, also while nobody has it open: its files, and what each
/// registered region server says. Right only when nothing moves. A server that does not answer is
/// not in `open`.
Result<ClusterSnapshot> inspect_cluster(const std::filesystem::path& directory);

}  // namespace pv2
