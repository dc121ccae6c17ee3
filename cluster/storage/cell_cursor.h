// SPDX-License-Identifier: Apache-2.0
//
// CellCursor: a walk over stored cells in the order of their keys (stored_cell.h). Memory and store
// files have cursors, and a merged cursor walks over several at once.

#pragma once

#include <pv2/base/status.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace pv2::cluster {

/// Owned by one thread. key() and value() are valid until the cursor moves.
class CellCursor {
 public:
  virtual ~CellCursor() = default;
  /// Moves to the first cell whose key is not less than `key`.
  virtual void seek(std::string_view key) = 0;
  virtual void next() = 0;
  [[nodiscard]] virtual bool valid() const = 0;
  [[nodiscard]] virtual std::string_view key() const = 0;
  [[nodiscard]] virtual std::string_view value() const = 0;
  /// Why the walk ended, if not at its end.
  [[nodiscard]] virtual Status status() const = 0;
};

/// A walk over all cells of `parts`. Cells with the same key are the same cell: it shows one.
[[nodiscard]] std::unique_ptr<CellCursor> merge_cursors(
    std::vector<std::unique_ptr<CellCursor>> parts);

/// A walk that shows of each cell the newest version not above `sequence_max`, and hides
/// tombstones.
class NewestCells {
 public:
  NewestCells(std::unique_ptr<CellCursor> all, std::uint64_t sequence_max)
      : all_(std::move(all)), sequence_max_(sequence_max) {}

  void seek(std::string_view key);
  void next();
  [[nodiscard]] bool valid() const { return all_->valid(); }
  [[nodiscard]] std::string_view key() const { return all_->key(); }
  /// With the kind, as stored.
  [[nodiscard]] std::string_view value() const { return all_->value(); }
  [[nodiscard]] Status status() const { return all_->status(); }

 private:
  void settle();
  void skip_cell();

  std::unique_ptr<CellCursor> all_;
  const std::uint64_t sequence_max_;
};

}  // namespace pv2::cluster
