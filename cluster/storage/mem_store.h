// SPDX-License-Identifier: Apache-2.0
//
// MemStore: the cells of a region that are not in store files yet, in order, all versions. It does
// not know which of them are durable: a reader passes over versions above the sequence that it may
// see (NewestCells), and a writer sees all.

#pragma once

#include <pv2/base/mutex.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "storage/cell_cursor.h"
#include "storage/stored_cell.h"

namespace pv2::cluster {

/// Thread-safe. Nothing is ever removed, so cursors stay valid while cells are added.
class MemStore {
 public:
  void add(const std::vector<StoredCell>& cells, std::uint64_t sequence);
  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] bool empty() const;

  /// A walk over what `store` has and gets meanwhile. The cursor is the second owner: a flush ends
  /// the region's ownership while readers go on.
  [[nodiscard]] static std::unique_ptr<CellCursor> cursor(std::shared_ptr<const MemStore> store);

 private:
  class Cursor;
  using Cells = std::map<std::string, std::string, std::less<>>;

  mutable Mutex cells_mutex_;
  Cells cells_ PV2_GUARDED_BY(cells_mutex_);
  std::size_t bytes_ PV2_GUARDED_BY(cells_mutex_) = 0;
};

}  // namespace pv2::cluster
