// SPDX-License-Identifier: Apache-2.0
//
// WalEntry: one write of one region as a log remembers it. An entry is one frame, so a write is in
// a log completely or not at all. Plain values with numbered fields, which are persisted.

#pragma once

#include <pv2/base/time.h>
#include <pv2/procedures/table.h>

#include <cstdint>
#include <string>
#include <vector>

#include "storage/stored_cell.h"

namespace pv2::cluster {

struct WalEntry {
  std::string region_id{};
  TableName table{};
  std::uint64_t sequence = 0;  ///< Of all cells of the write.
  WallTime write_time{};
  std::vector<StoredCell> cells{};
  std::uint64_t opening = 0;  ///< Of the region: with the sequence the EditVersion of the write.
  /// The ids of the clusters through which the write came to this one, the last sender last. Empty:
  /// a client has made it here.
  std::vector<std::string> origins{};

  void fields(auto& f) {
    f(1, "region_id", region_id);
    f(2, "table", table);
    f(3, "sequence", sequence);
    f(4, "write_time", write_time);
    f(5, "cells", cells);
    f(6, "opening", opening);
    f(7, "origins", origins);
  }
  friend bool operator==(const WalEntry&, const WalEntry&) = default;
};

}  // namespace pv2::cluster
