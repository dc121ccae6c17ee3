// SPDX-License-Identifier: Apache-2.0
//
// ClusterSnapshot: what a cluster looks like from outside when nothing moves, and a check that its
// parts agree. It is for tests, demos and audits; no procedure reads it. The check changes nothing.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

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

  std::vector<TableRow> tables;
  std::vector<RegionRow> regions;
  std::vector<ServerRow> servers;
  std::vector<Directory> directories;
  std::vector<TableName> cached;  ///< The tables in the descriptor cache.
  /// The regions that each live server reports as open: region id -> open sequence.
  std::map<ServerName, std::map<std::string, std::uint64_t>> open;
  /// How often each effect really took place.
  std::map<std::string, unsigned> effects;
};

/// One sentence for each violation of what must hold at rest; empty when all is well:
/// - a table is enabled, its directory holds its descriptor and exactly its regions, and the cache
///   knows the table
/// - its regions are open and cover the key space without a hole or an overlap
/// - an open region is open on exactly one live server, the one that the catalogue names
/// - nothing is recorded on a server that is crashed or retired, and no server is left half retired
/// - each effect took place once
[[nodiscard]] std::vector<std::string> find_disorder(const ClusterSnapshot& snapshot);

}  // namespace pv2
