// SPDX-License-Identifier: Apache-2.0
//
// ClusterProcesses: a cluster on this machine, as child processes of this program: a master and
// region servers on the loopback, with their files in one directory. The program starts itself
// again for each of them, so its main() begins with run_as_cluster_process(). A child that does not
// come to be its process ends with an error; it starts no processes of its own, which would do the
// same.

#pragma once

#include <pv2/base/status.h>
#include <pv2/base/time.h>
#include <pv2/procedures/server.h>
#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pv2/cluster/child_process.h"

namespace pv2::cluster {

struct ClusterProcessesOptions {
  /// The directory of the cluster; it is made if it is not there. A cluster that was there goes on.
  std::string root{};
  /// The master takes a server that is silent for so long for dead.
  Duration lease = std::chrono::seconds(3);
  /// How often a server tells the master that it lives.
  Duration heartbeat_every = std::chrono::milliseconds(300);
  /// The file to which the processes add their warnings and errors. Empty: this program's stderr.
  std::string messages{};
};

/// If this run was started as a process of a cluster, is that process until it ends, and returns
/// its exit code: 2, with a message, if the arguments are not those of such a process. No value: it
/// is a run like any other. `arguments` are those of main(), with the program's name or without. A
/// program whose master takes more arguments (start_master()) looks for those first.
[[nodiscard]] std::optional<int> run_as_cluster_process(std::span<char* const> arguments);

/// Owned by one thread, which has to live as long as the processes: they end with it. Its
/// destructor kills them.
class ClusterProcesses {
 public:
  explicit ClusterProcesses(ClusterProcessesOptions options) : options_(std::move(options)) {}

  /// Starts a master and `servers` servers, rs1, rs2, ..., and returns when each of them listens.
  Status start(std::size_t servers);

  /// Starts the master, and returns when it listens. `more` are arguments for programs with a
  /// master of their own. kFailedPrecondition: it runs, or this program is itself a process of a
  /// cluster.
  Status start_master(const std::vector<std::string>& more = {});
  /// nullptr: it was not started, or was killed.
  [[nodiscard]] ChildProcess* master() noexcept { return master_.get(); }
  void kill_master() { master_.reset(); }
  /// Whether the master runs, or is stopped.
  [[nodiscard]] bool master_lives() { return master_ && !master_->is_gone(); }

  /// Starts a server on a host of that name, and returns when it listens. kFailedPrecondition: one
  /// runs there, or this program is itself a process of a cluster.
  Result<ServerName> start_server(const std::string& host);
  /// nullptr: there is none.
  [[nodiscard]] ChildProcess* server(const std::string& host);
  /// Kills it. kNotFound: none runs on that host.
  Status kill_server(const std::string& host);
  /// The servers that run, or are stopped, in order of host.
  [[nodiscard]] std::vector<ServerName> servers();

  [[nodiscard]] const std::string& root() const noexcept { return options_.root; }

 private:
  struct Server {
    ServerName name;
    std::unique_ptr<ChildProcess> process;
  };

  const ClusterProcessesOptions options_;
  std::unique_ptr<ChildProcess> master_;
  std::map<std::string, Server> servers_;  // by host
};

}  // namespace pv2::cluster
