// SPDX-License-Identifier: Apache-2.0
//
// What clients ask of the regions on a server. Plain values; the numbers are those on the wire.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pv2/cluster/cell.h"

namespace pv2::cluster {

/// A write of one region: all mutations together or none.
struct WriteRequest {
  std::string region;  ///< Its id.
  std::vector<Mutation> mutations;
  /// The region of the catalogue takes writes from the master only: this is the master's epoch, and
  /// a server that has seen a greater one refuses (kFenced). 0 from everybody else.
  std::uint64_t epoch = 0;
  /// Of a replicated write: the ids of the clusters through which it came, the last sender last.
  std::vector<std::string> origins{};

  void fields(auto& f) {
    f(1, "region", region);
    f(2, "mutations", mutations);
    f(3, "epoch", epoch);
    f(4, "origins", origins);
  }
};

/// To get one row: a scan from the row to its successor, of one row.
struct ScanRequest {
  std::string region;
  Scan scan;
  /// As in WriteRequest. A master that reads the catalogue shuts out its predecessors by it.
  std::uint64_t epoch = 0;

  void fields(auto& f) {
    f(1, "region", region);
    f(2, "scan", scan);
    f(3, "epoch", epoch);
  }
};

struct RegionRequest {
  std::string region;

  void fields(auto& f) { f(1, "region", region); }
};

struct SplitPoint {
  std::string row;  ///< Empty: the region has too few rows to be split.

  void fields(auto& f) { f(1, "row", row); }
};

}  // namespace pv2::cluster
