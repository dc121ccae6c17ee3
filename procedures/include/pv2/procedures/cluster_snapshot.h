// SPDX-License-Identifier: Apache-2.0
//
// ClusterSnapshot: what a cluster looks like from outside when nothing moves, and a check that its
// parts agree. It is for tests, demos and audits; no procedure reads it. The check changes nothing.

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pv2/procedures/catalogue_state.h"
#include "pv2/procedures/peer.h"
#include "pv2/procedures/region.h"
#include "pv2/procedures/server.h"
#include "pv2/procedures/table.h"

namespace pv2 {

/// A plain value.
struct ClusterSnapshot {
  /// One table directory.
  struct Directory {
    TableDescriptor descriptor;
    std::vector<std::string> regions;  ///< Ids, sorted.
  };

  std::vector<NamespaceRow> namespaces;
  std::vector<TableRow> tables;
  std::vector<RegionRow> regions;
  std::vector<ServerRow> servers;
  std::vector<Directory> directories;
  std::set<std::string> namespace_directories;
  std::vector<TableDescriptor> cached;  ///< What the descriptor cache has.
  /// The regions that each live server reports as open: region id -> open sequence.
  std::map<ServerName, std::map<std::string, std::uint64_t>> open;
  std::map<std::string, PeerRow> peers;  ///< As they are stored.
  /// Peers that are stored and cannot be read: id -> why.
  std::map<std::string, std::string> unreadable_peers;
  /// What each live server knows of the peers.
  std::map<ServerName, std::map<std::string, PeerRow>> peer_views;
  std::set<std::pair<std::string, ServerName>> queues;  ///< Replication queues: peer and server.
  /// How often each effect really took place.
  std::map<std::string, unsigned> effects;
};

/// Adds the rows of a catalogue to a snapshot.
void add_rows(const CatalogueState& catalogue, ClusterSnapshot& snapshot);

/// One sentence for each violation of what must hold at rest; empty when all is well:
/// - each namespace has a directory, and each table a namespace
/// - a table is enabled or disabled, its directory holds its descriptor and exactly its regions,
///   and the cache knows its descriptor, and no other table
/// - its regions, those that were split aside, cover the key space without a hole or an overlap,
///   and are all open, or all closed
/// - an open region is open on exactly one live server, the one that the catalogue names
/// - nothing is recorded on a dead server, and no dead server is left half retired
/// - each peer can be read, each live server knows exactly the peers that are stored, and no queue
///   is a dead server's
/// - each effect took place once
[[nodiscard]] std::vector<std::string> find_disorder(const ClusterSnapshot& snapshot);

}  // namespace pv2
