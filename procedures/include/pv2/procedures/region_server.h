// SPDX-License-Identifier: Apache-2.0
//
// The program of a region server of the small cluster: a process that keeps in memory which regions
// it has open, and answers over TCP on 127.0.0.1. It knows nothing of procedures. When it is
// killed, what it had open is gone; it never comes back under the same name.
//
// It ends by itself when its registration disappears from the cluster's directory (it was fenced,
// or the cluster was removed) and when the process that started it ends.

#pragma once

#include <pv2/base/status.h>

#include <filesystem>

#include "pv2/procedures/server.h"

namespace pv2 {

struct RegionServerOptions {
  std::filesystem::path cluster;  ///< The cluster's directory; made by make_cluster_directory().
  ServerName name;                ///< Must not have been used before.
};

/// Makes the directory of a cluster if it does not exist.
Status make_cluster_directory(const std::filesystem::path& path);

/// Serves until it is told to stop, fenced or killed; returns the exit code of the process. Prints
/// "ready" on stdout once it is registered and listens. Uses only the caller's thread.
int run_region_server(const RegionServerOptions& options);

}  // namespace pv2
