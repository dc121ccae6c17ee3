// SPDX-License-Identifier: Apache-2.0
//
// The cluster's id: the file by which other clusters know this one, also if its directory is moved,
// and which shows that the directory can be seen (TreeWitness).

#pragma once

#include <pv2/base/status.h>

#include "storage/cluster_layout.h"
#include "storage/file_tree.h"

namespace pv2::cluster {

/// Makes the master's directory, and the id if there is none. An id that is there stays, and is
/// durable when this returns OK. May be repeated.
Status make_cluster_id(const FileTree& files, const ClusterLayout& layout);

}  // namespace pv2::cluster
