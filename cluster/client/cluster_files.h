// SPDX-License-Identifier: Apache-2.0
//
// What a snapshot of a cluster shows of its directories and of its servers (inspect_cluster.h).

#pragma once

#include <pv2/base/status.h>
#include <pv2/procedures/cluster_snapshot.h>

#include "pv2/cluster/server_list.h"
#include "storage/cluster_layout.h"
#include "storage/file_tree.h"

namespace pv2::cluster {

/// Adds what a live server says of itself.
void add_server(const ServerStatus& status, ClusterSnapshot& snapshot);
/// Adds tables, namespaces and peers as they are stored, with every directory of a region, also one
/// that nothing describes. What the master's cache has is not there (ClusterClient::descriptors()).
Status add_files(const FileTree& files, const ClusterLayout& layout, ClusterSnapshot& snapshot);

}  // namespace pv2::cluster
