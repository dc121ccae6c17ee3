// SPDX-License-Identifier: Apache-2.0
//
// What a client of the cluster reads and writes: cells, mutations and scans, with their limits.
// Plain values with numbered fields. They do not say which region or server has a row.

#pragma once

#include <pv2/base/status.h>
#include <pv2/procedures/catalogue_limits.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pv2::cluster {

// What one write may contain. A write is one frame of a log, which a reader has in memory at once.
// The catalogue is such a table, so the procedures that write it know these limits too.
inline constexpr std::size_t kRowBytesMax = kRowKeyBytesMax;
inline constexpr std::size_t kFamilyBytesMax = kFamilyNameBytesMax;
inline constexpr std::size_t kQualifierBytesMax = 4096;
inline constexpr std::size_t kValueBytesMax = kCellValueBytesMax;
/// The rows of a table with as many regions as even_split_keys() can make.
inline constexpr std::size_t kMutationsMax = kRowsPerWriteMax;
inline constexpr std::size_t kWriteBytesMax = kBytesPerWriteMax;
// What one write may do. kAppend, kIncrement and kDeleteRow do more than they say, so this is known
// only when the write is computed: what it changes is within kMutationsMax and kWriteBytesMax too,
// the deletions of rows in it look at kMutationsMax cells together at most, and its result has at
// most these bytes. A write beyond it is refused (kInvalidArgument) and has no effect. The result
// is in the entry of the log, with the nonce, and in the answer.
inline constexpr std::size_t kResultBytesMax = std::size_t{4} << 20;

/// The newest value of one cell.
struct Cell {
  std::string row{};
  std::string family{};
  std::string qualifier{};
  std::string value{};
  std::uint64_t sequence = 0;  ///< Of the write that gave it this value; grows within a region.

  void fields(auto& f) {
    f(1, "row", row);
    f(2, "family", family);
    f(3, "qualifier", qualifier);
    f(4, "value", value);
    f(5, "sequence", sequence);
  }
  friend bool operator==(const Cell&, const Cell&) = default;
};

/// Persisted, like every number on the wire.
enum class MutationKind : std::uint8_t {
  kPut = 1,
  kDelete = 2,     ///< One cell.
  kDeleteRow = 3,  ///< Every cell of the row; family and qualifier are empty.
  kAppend = 4,     ///< Adds `value` to the end of the cell's value; an absent cell is empty.
  kIncrement = 5,  ///< Adds `amount` to the decimal number in the cell; an absent cell is 0.
  /// kPut and kDelete of one cell as another cluster made them. They have no effect unless
  /// `version` is above that of the last such change of the cell that came from the same cluster.
  kReplicatedPut = 6,
  kReplicatedDelete = 7,
};

/// Orders the changes of one row in the cluster where they were made: by the opening of the row's
/// region, then by the sequence. Both grow through moves, splits, merges and recoveries; an opening
/// grows also when a table is truncated, which begins the sequences anew.
struct EditVersion {
  std::uint64_t opening = 0;
  std::uint64_t sequence = 0;

  void fields(auto& f) {
    f(1, "opening", opening);
    f(2, "sequence", sequence);
  }
  friend auto operator<=>(const EditVersion&, const EditVersion&) = default;
};

/// One change of one cell (or row).
struct Mutation {
  MutationKind kind = MutationKind::kPut;
  std::string row{};
  std::string family{};
  std::string qualifier{};
  std::string value{};      ///< Of kPut and kAppend.
  std::int64_t amount = 0;  ///< Of kIncrement.
  EditVersion version{};    ///< Of kReplicatedPut and kReplicatedDelete.

  void fields(auto& f) {
    f(1, "kind", kind);
    f(2, "row", row);
    f(3, "family", family);
    f(4, "qualifier", qualifier);
    f(5, "value", value);
    f(6, "amount", amount);
    f(7, "version", version);
  }
  friend bool operator==(const Mutation&, const Mutation&) = default;
};

/// What a write did. It is saved with the nonce of the write, so a repeated request gets the same.
struct WriteResult {
  std::uint64_t sequence = 0;
  /// One for each mutation: the new value after kAppend and kIncrement, else empty.
  std::vector<std::string> values{};

  void fields(auto& f) {
    f(1, "sequence", sequence);
    f(2, "values", values);
  }
  friend bool operator==(const WriteResult&, const WriteResult&) = default;
};

/// A range of rows. A scan of one region sees the part of the range that the region has.
struct Scan {
  std::string start_row{};              ///< Inclusive; empty: from the beginning.
  std::string end_row{};                ///< Exclusive; empty: to the end.
  std::vector<std::string> families{};  ///< Empty: all.
  /// The page ends with the row that reaches one of these. A row that has more than `bytes_max` by
  /// itself is divided: its pages may show it as it was at different moments.
  std::uint64_t rows_max = 1000;
  std::uint64_t bytes_max = std::uint64_t{1} << 20;
  /// Where in `start_row` the range begins, inclusive; empty: at its first cell. See rest_of().
  std::string start_family{};
  std::string start_qualifier{};

  void fields(auto& f) {
    f(1, "start_row", start_row);
    f(2, "end_row", end_row);
    f(3, "families", families);
    f(4, "rows_max", rows_max);
    f(5, "bytes_max", bytes_max);
    f(6, "start_family", start_family);
    f(7, "start_qualifier", start_qualifier);
  }
};

/// One answer to a scan.
struct ScanPage {
  std::vector<Cell> cells;  ///< In order of row, family, qualifier.
  /// Where the next page of this region begins. A page may have a next one and no cell.
  std::optional<std::string> next_row;
  /// The cell of `next_row` with which it begins, perhaps one that is not there; empty: the first.
  std::string next_family{};
  std::string next_qualifier{};

  void fields(auto& f) {
    f(1, "cells", cells);
    f(2, "next_row", next_row);
    f(3, "next_family", next_family);
    f(4, "next_qualifier", next_qualifier);
  }
  /// The next page begins within a row.
  [[nodiscard]] bool divides_row() const noexcept { return !next_family.empty(); }
};

/// The scan of what comes after `page`, the answer to `scan`. The page has a next row.
[[nodiscard]] Scan rest_of(Scan scan, const ScanPage& page);

/// kInvalidArgument when a mutation, or all of them together, exceed a limit or name no row or no
/// family, or when only some of them are replicated. Knows no table, so it does not check that a
/// family exists.
Status check_mutations(const std::vector<Mutation>& mutations);

[[nodiscard]] inline bool is_replicated(MutationKind kind) noexcept {
  return kind == MutationKind::kReplicatedPut || kind == MutationKind::kReplicatedDelete;
}
/// kInvalidArgument: mutations are replicated exactly if they have origins.
Status check_origins(const std::vector<Mutation>& mutations,
                     const std::vector<std::string>& origins);

}  // namespace pv2::cluster
