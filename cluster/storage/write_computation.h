// SPDX-License-Identifier: Apache-2.0
//
// WriteComputation: what the mutations of one write do to cells: kAppend, kIncrement and kDeleteRow
// are computed from the newest values, and from the mutations before them in the same write. The
// result is one version of each cell. A replicated mutation is compared with the version cell of
// its cell (version_cell.h), and changes both or neither.
//
// How it fails: a mutation whose effect exceeds what a write may do (cell.h) is refused before more
// is computed. So what a computation has in memory, and the time that it takes, is bounded.

#pragma once

#include <pv2/base/status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/cluster/cell.h"
#include "storage/cell_cursor.h"
#include "storage/stored_cell.h"

namespace pv2::cluster {

/// Owned by one thread.
class WriteComputation {
 public:
  using AllCells = std::function<std::unique_ptr<CellCursor>()>;

  /// `all_cells` gives a walk over all versions of all cells, durable or not. `sender`: the id of
  /// the cluster that replicated mutations come from. `looks_max`: the cells that the deletion of a
  /// row may look at, those that were deleted before too, because other writes of the region wait.
  explicit WriteComputation(AllCells all_cells, std::string sender = {},
                            std::uint64_t looks_max = 1'000'000)
      : all_cells_(std::move(all_cells)), sender_(std::move(sender)), looks_max_(looks_max) {}

  /// kInvalidArgument: the cell is not a decimal number, or would leave 64 bits, or would be larger
  /// than a value may be, or all mutations so far do more than a write may. kFailedPrecondition:
  /// the row to be deleted has too many cells that were deleted before. After a failure the
  /// computation is of no use.
  Status apply(const Mutation& mutation);

  /// In the order of keys.
  [[nodiscard]] std::vector<StoredCell> cells() const;
  /// For WriteResult::values.
  [[nodiscard]] std::vector<std::string> take_values() { return std::move(values_); }

 private:
  void set(const Mutation& mutation, CellKind kind, std::string value);
  void change(const std::string& prefix, StoredCell cell);
  [[nodiscard]] Status check_effect() const;
  [[nodiscard]] Result<std::optional<std::string>> newest(const std::string& prefix);
  Status replicate(const Mutation& mutation, CellKind kind);
  Status append(const Mutation& mutation);
  Status increment(const Mutation& mutation);
  Status delete_row(const std::string& row);
  [[nodiscard]] Status look_at(const std::string& row);

  const AllCells all_cells_;
  const std::string sender_;
  const std::uint64_t looks_max_;
  std::map<std::string, StoredCell> changed_;  ///< By the key without the sequence.
  std::vector<std::string> values_;
  std::set<std::string> deleted_rows_;
  std::size_t changed_cells_ = 0;  ///< Without those of hidden spaces, as the next one.
  std::size_t changed_bytes_ = 0;
  std::size_t result_bytes_ = 0;
  std::size_t deletion_looks_ = 0;  ///< Cells that deletions of rows have looked at.
};

}  // namespace pv2::cluster
