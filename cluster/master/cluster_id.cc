// SPDX-License-Identifier: Apache-2.0
//
// The id is random, so that no other cluster has it.

#include "master/cluster_id.h"

#include <fmt/core.h>

#include <random>
#include <string>

namespace pv2::cluster {

Status make_cluster_id(const FileTree& files, const ClusterLayout& layout) {
  if (Status bad = files.make_directories(layout.master()); !bad.ok()) return bad;
  const std::string path = layout.cluster_id();
  Result<bool> there = files.is_there(path);
  // Another id would make another cluster of it. So one that cannot be seen is looked for again
  // after the directory was seen: nothing else shows here that the tree can be seen.
  if (there.ok() && !*there) {
    if (!files.exists(layout.master())) {
      return {StatusCode::kUnavailable, layout.master() + " was made, and is not there: look " +
                                            "whether " + layout.root() + " is mounted"};
    }
    there = files.is_there(path);
  }
  if (!there.ok()) return there.status();
  if (*there) return files.sync_directory(layout.master());
  std::random_device system;
  std::string id;
  for (int i = 0; i < 4; ++i) id += fmt::format("{:08x}", system());
  return files.write(path, id);
}

}  // namespace pv2::cluster
