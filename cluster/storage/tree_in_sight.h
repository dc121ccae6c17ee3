// SPDX-License-Identifier: Apache-2.0
//
// Whether the directory of the cluster can be seen. It may be on a file system that is not mounted
// here for a moment, and everything looks removed then. Whoever would lose something by taking that
// for a removal looks three times: the thing is absent, the cluster is in sight, the thing is
// absent still.

#pragma once

#include <pv2/base/status.h>

#include <string>

#include "storage/cluster_layout.h"
#include "storage/file_tree.h"

namespace pv2::cluster {

/// OK: the cluster has its id, which the first master writes and nobody removes. Else kUnavailable.
inline Status check_in_sight(const FileTree& files, const ClusterLayout& layout) {
  if (files.exists(layout.cluster_id())) return {};
  return {StatusCode::kUnavailable,
          layout.cluster_id() + " is not there: look whether " + layout.root() + " is mounted"};
}

/// For what was absent before the cluster was in sight, and is there now.
inline Status was_out_of_sight(const std::string& what) {
  return {StatusCode::kUnavailable, what + " was not there for a moment"};
}

}  // namespace pv2::cluster
