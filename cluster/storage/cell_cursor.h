// SPDX-License-Identifier: Apache-2.0
//
// CellCursor: a walk over stored cells in the order of their keys (stored_cell.h). Memory and store
// files have cursors, and a merged cursor walks over several at once.

#pragma once

#include <pv2/base/status.h>

#include <cstdint>
#include <limits>
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
  /// How many bytes were read for value().
  [[nodiscard]] virtual std::size_t bytes_read() const { return value().size(); }
  /// Why the walk ended, if not at its end.
  [[nodiscard]] virtual Status status() const = 0;
};

/// A walk over all cells of `parts`. Cells with the same key are the same cell: it shows one.
[[nodiscard]] std::unique_ptr<CellCursor> merge_cursors(
    std::vector<std::unique_ptr<CellCursor>> parts);

/// A walk that shows of each cell the newest version not above `sequence_max`, and hides
/// tombstones. It passes a cell in a few steps, however many versions the cell has, and does not
/// look for a cell behind its end: a million deleted ones may be there.
class NewestCells {
 public:
  /// A walk without an end to its work.
  static constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

  /// The walk is over at the first key that is not less than `end`.
  /// `looks_max` bounds the cells that the walk may look at, shown or not; a large cell counts as
  /// many. At least kLooksLeast: so each walk comes further than the one that began where it does.
  NewestCells(std::unique_ptr<CellCursor> all, std::string end, std::uint64_t sequence_max,
              std::uint64_t looks_max = kNoLimit);
  static constexpr std::uint64_t kLooksLeast = 4096;

  void seek(std::string_view key);
  void next();
  [[nodiscard]] bool valid() const { return all_->valid() && all_->key() < end_; }
  /// The walk has done its work: it may go on at key(), which may be of a cell that it would hide.
  [[nodiscard]] bool is_spent() const { return looks_ >= looks_max_; }
  [[nodiscard]] std::string_view key() const { return all_->key(); }
  /// With the kind, as stored.
  [[nodiscard]] std::string_view value() const { return all_->value(); }
  [[nodiscard]] Status status() const { return all_->status(); }

 private:
  void settle();
  void skip_cell();
  void skip_to(const std::string& key);

  std::unique_ptr<CellCursor> all_;
  const std::string end_;
  const std::uint64_t sequence_max_;
  const std::uint64_t looks_max_;
  std::uint64_t looks_ = 0;
};

}  // namespace pv2::cluster
