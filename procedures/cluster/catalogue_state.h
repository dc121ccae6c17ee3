// SPDX-License-Identifier: Apache-2.0
//
// CatalogueState: what the catalogue knows and which change of it may follow which. Every catalogue
// of this tree is this one plus a way to keep it: the rules exist once. It does no I/O and takes no
// lock.
//
//     region row     from                                   to
//                    (none), CLOSED, CLOSING                CLOSED
//                    any                                    OPENING
//                    OPENING, OPEN   on the same server     OPEN
//                    OPEN, CLOSING   on the same server     CLOSING
//                    any but CLOSED  on the same server     ABNORMALLY_CLOSED
//     server row     (none), ONLINE, CRASHED -> CRASHED; CRASHED, RETIRED -> RETIRED
//
// No row is OPENING or OPEN on a server that is CRASHED or RETIRED: that is the fence.

#pragma once

#include <pv2/base/status.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pv2/procedures/catalogue.h"
#include "pv2/procedures/cluster_snapshot.h"

namespace pv2 {

/// Owned by one thread, or guarded by its owner.
class CatalogueState {
 public:
  /// Applies all of `write`, or nothing. What an effect key has done is remembered for ever: this
  /// is the catalogue of a small cluster.
  Result<Applied> apply(const CatalogueWrite& write);

  [[nodiscard]] std::optional<TableRow> table(const TableName& name) const;
  [[nodiscard]] std::optional<RegionRow> region(const std::string& id) const;
  [[nodiscard]] std::vector<RegionRow> regions_on(const ServerName& server) const;
  [[nodiscard]] ServerState server(const ServerName& name) const;

  /// Adds its rows to `snapshot`.
  void describe(ClusterSnapshot& snapshot) const;

 private:
  [[nodiscard]] Status check(const RegionRow& row) const;
  [[nodiscard]] Status check(const ServerRow& row) const;

  std::map<TableName, TableRow> tables_;
  std::map<std::string, RegionRow> regions_;
  std::map<ServerName, ServerState> servers_;
  std::map<std::string, std::uint64_t> effects_;  ///< Effect key -> how often it was asked for.
};

}  // namespace pv2
