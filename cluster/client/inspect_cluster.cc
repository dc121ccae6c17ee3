// SPDX-License-Identifier: Apache-2.0
//
// The system's tables and namespaces are left out of a snapshot where they follow other rules: the
// catalogue's own table has no row.

#include "pv2/cluster/inspect_cluster.h"

#include "client/cluster_files.h"
#include "wire/catalogue_rows.h"

namespace pv2::cluster {
namespace {

Result<CatalogueState> read_rows(ClusterClient& client) {
  CatalogueState rows;
  Scan range;
  while (true) {
    const Result<ScanPage> page = client.scan(meta_table(), range);
    if (!page.ok()) return page.status();
    for (const Cell& cell : page->cells) {
      if (Status bad = load_cell(cell, rows); !bad.ok()) return bad;
    }
    if (!page->next_row) return rows;
    range = rest_of(std::move(range), *page);
  }
}

}  // namespace

Result<ClusterSnapshot> inspect_cluster(ClusterClient& client, const std::string& root) {
  const Result<ServerList> servers = client.servers();
  if (!servers.ok()) return servers.status();
  Result<CatalogueState> rows = read_rows(client);
  if (!rows.ok()) return rows.status();
  for (const ServerRow& row : servers->dead) rows->load({row, ""});

  ClusterSnapshot snapshot;
  add_rows(*rows, snapshot);
  for (const ServerEntry& entry : servers->live) {
    const Result<ServerStatus> status = client.server_status(entry.name);
    if (!status.ok()) return status.status();
    add_server(*status, snapshot);
  }
  Result<std::vector<TableDescriptor>> cached = client.descriptors();
  if (!cached.ok()) return cached.status();
  snapshot.cached = *std::move(cached);
  std::erase_if(snapshot.cached, [](const TableDescriptor& table) { return is_meta(table.name); });
  const FileTree files = FileTree::real("inspector");
  if (Status bad = add_files(files, ClusterLayout(root), snapshot); !bad.ok()) return bad;
  return snapshot;
}

}  // namespace pv2::cluster
