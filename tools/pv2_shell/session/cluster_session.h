// SPDX-License-Identifier: Apache-2.0
//
// ClusterSession: the cluster that a shell works on. It starts one in a directory, or joins one
// that runs already. What it started ends with it, and with the process, however that ends: the
// processes of a cluster die with their parent.

#pragma once

#include <pv2/base/status.h>
#include <pv2/cluster/cluster_client.h>
#include <pv2/cluster/cluster_processes.h>
#include <pv2/rpc/transport.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace pv2::shell {

struct SessionOptions {
  /// The directory of the cluster to start. Empty: a temporary one, removed at the end.
  std::string root{};
  /// The directory of a cluster that runs already; then nothing is started.
  std::string connect{};
  std::size_t servers = 3;
};

/// Owned by one thread, the one that opened it.
class ClusterSession {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ClusterSession>> open(const SessionOptions& options);
  /// Ends the processes, and removes a temporary directory.
  ~ClusterSession();
  ClusterSession(const ClusterSession&) = delete;
  ClusterSession& operator=(const ClusterSession&) = delete;

  [[nodiscard]] cluster::ClusterClient& client() noexcept { return *client_; }
  [[nodiscard]] const std::string& root() const noexcept { return root_; }
  /// nullptr: the cluster was joined.
  [[nodiscard]] cluster::ClusterProcesses* processes() noexcept { return processes_.get(); }

 private:
  ClusterSession(std::string root, bool temporary)
      : root_(std::move(root)), temporary_(temporary) {}
  Status start(const SessionOptions& options);
  Status connect();
  /// The file of what the processes have to say.
  [[nodiscard]] std::string messages() const { return root_ + "/messages.log"; }

  const std::string root_;
  const bool temporary_;
  std::unique_ptr<cluster::ClusterProcesses> processes_;
  std::shared_ptr<Transport> transport_;
  std::unique_ptr<cluster::ClusterClient> client_;
};

}  // namespace pv2::shell
