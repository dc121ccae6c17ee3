// SPDX-License-Identifier: Apache-2.0
//
// What a replication peer is to the cluster: another cluster, to which region servers ship the
// edits of some tables. Plain values with numbered fields; the numbers are persisted.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pv2/procedures/table.h"

namespace pv2 {

/// What an operator decides about a peer. A plain value.
struct PeerConfig {
  std::string cluster;            ///< The root directory of the other cluster.
  std::vector<TableName> tables;  ///< Empty: all tables but those of the system.

  void fields(auto& f) {
    f(1, "cluster", cluster);
    f(2, "tables", tables);
  }
  friend bool operator==(const PeerConfig&, const PeerConfig&) = default;
};

/// One peer as it is stored. A plain value.
struct PeerRow {
  std::string id;
  PeerConfig config;
  bool enabled = true;

  void fields(auto& f) {
    f(1, "id", id);
    f(2, "config", config);
    f(3, "enabled", enabled);
  }
  friend bool operator==(const PeerRow&, const PeerRow&) = default;
};

}  // namespace pv2
