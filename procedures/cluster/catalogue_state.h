// SPDX-License-Identifier: Apache-2.0
//
// CatalogueState: the content of the catalogue, and which change may follow which. The catalogues
// of this tree differ only in how they keep this state, so the rules exist once. It does no I/O and
// takes no lock.
//
//     row       new state           allowed from
//     region    CLOSED              (none), CLOSED, CLOSING
//               OPENING             any
//               OPEN                OPENING, OPEN   on the same server
//               CLOSING             OPEN, CLOSING   on the same server
//               ABNORMALLY_CLOSED   any but CLOSED  on the same server
//     server    CRASHED             (none), ONLINE, CRASHED
//               RETIRED             CRASHED, RETIRED
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
  /// Applies all of `write`, or nothing. Effect keys are remembered for ever: this is the catalogue
  /// of a small cluster.
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
