// SPDX-License-Identifier: Apache-2.0
//
// The catalogue's own region and table are left out: no row describes them.

#include "client/cluster_files.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "storage/peer_files.h"
#include "storage/table_directories.h"

namespace pv2::cluster {

void add_server(const ServerStatus& status, ClusterSnapshot& snapshot) {
  auto& open = snapshot.open[status.server];
  for (const RegionStatus& region : status.regions) {
    if (region.serves && !is_meta(region.region.table)) open[region.region.id] = region.sequence;
  }
  auto& view = snapshot.peer_views[status.server];
  for (const PeerStatus& peer : status.peers) view[peer.peer.id] = peer.peer;
}

Status add_files(const FileTree& files, const ClusterLayout& layout, ClusterSnapshot& snapshot) {
  const TableDirectories directories(files, layout);
  const Result<std::vector<std::string>> namespaces = directories.namespaces();
  if (!namespaces.ok()) return namespaces.status();
  snapshot.namespace_directories.insert(namespaces->begin(), namespaces->end());

  const Result<std::vector<TableName>> tables = directories.tables();
  if (!tables.ok()) return tables.status();
  for (const TableName& table : *tables) {
    if (is_meta(table)) continue;
    Result<TableDescriptor> descriptor = directories.read_descriptor(table);
    // A directory without one is disorder too, and the snapshot shows it.
    if (descriptor.status().code() == StatusCode::kNotFound)
      descriptor = TableDescriptor{table, {}};
    if (!descriptor.ok()) return descriptor.status();
    Result<std::vector<std::string>> regions = directories.region_ids(table);
    if (!regions.ok()) return regions.status();
    std::ranges::sort(*regions);
    snapshot.directories.push_back({*std::move(descriptor), *std::move(regions)});
  }

  const PeerFiles peers(files, layout);
  const Result<PeerList> stored = peers.list();
  if (!stored.ok()) return stored.status();
  for (const PeerRow& peer : stored->peers) snapshot.peers[peer.id] = peer;
  for (const auto& [id, why] : stored->unreadable) {
    snapshot.unreadable_peers[id] = why.to_string();
  }
  // Also those of peers that are not stored: they are disorder.
  const auto queues = peers.all_queues();
  if (!queues.ok()) return queues.status();
  snapshot.queues.insert(queues->begin(), queues->end());
  return {};
}

}  // namespace pv2::cluster
