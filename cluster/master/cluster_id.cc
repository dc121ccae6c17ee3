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
  const Result<bool> there = files.is_there(path);
  if (!there.ok()) return there.status();
  if (*there) return files.sync_directory(layout.master());
  std::random_device system;
  std::string id;
  for (int i = 0; i < 4; ++i) id += fmt::format("{:08x}", system());
  // Another id would make another cluster of one that is not mounted yet. If it is mounted after
  // the draft was written, it is seen now; if later, the draft is not there to be renamed.
  const std::string draft = path + ".new";
  if (Status bad = files.write(draft, id); !bad.ok()) return bad;
  const Result<bool> is_mounted = files.is_there(path);
  if (!is_mounted.ok()) return is_mounted.status();
  if (!*is_mounted) return files.rename(draft, path);
  if (Status bad = files.remove_file(draft); !bad.ok()) return bad;
  return files.sync_directory(layout.master());
}

}  // namespace pv2::cluster
