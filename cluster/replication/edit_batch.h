// SPDX-License-Identifier: Apache-2.0
//
// Which edits of a log go to a peer, and as what. An edit is one cell of one entry: a value, or
// that the cell was deleted. Appends and increments are in the log as the values that they made, so
// an edit that is shipped twice has its effect once.
//
// Loops: an entry says through which clusters it came (wal_entry.h). An edit is not shipped to a
// cluster through which it came; to others it is, with this cluster as the last one. So chains and
// rings of clusters work, and each edit ends.
//
// What is promised of order: of the edits of one cell in a batch only the newest is kept. All cells
// that one entry changed in one row are shipped together, unless they exceed what a write may have.

#pragma once

#include <pv2/procedures/peer.h>

#include <string>
#include <vector>

#include "pv2/cluster/cell.h"
#include "storage/wal_entry.h"

namespace pv2::cluster {

/// What the filter knows. A plain value.
struct EditFilter {
  std::vector<TableName> tables;  ///< Empty: all but those of the system.
  std::string own_cluster;        ///< Ids (ClusterLayout::cluster_id()).
  std::string peer_cluster;
};

/// Edits of one table that came the same way.
struct EditGroup {
  TableName table;
  std::vector<std::string> origins;  ///< The last one is this cluster.
  std::vector<Mutation> mutations;   ///< Replicated ones, in order of rows.
};

[[nodiscard]] std::vector<EditGroup> edits_to_ship(const std::vector<WalEntry>& entries,
                                                   const EditFilter& filter);

/// Divides the mutations of a group into writes: each for one of the regions that begin at `starts`
/// (in order; the first is empty), and within what a write should have.
[[nodiscard]] std::vector<std::vector<Mutation>> divide_edits(
    std::vector<Mutation> mutations, const std::vector<std::string>& starts);

}  // namespace pv2::cluster
