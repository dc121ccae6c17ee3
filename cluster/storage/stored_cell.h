// SPDX-License-Identifier: Apache-2.0
//
// StoredCell: one version of one cell as logs, memory and store files have it, and the order of
// cells: by space, row, family, qualifier, and the newest version first. The order is that of the
// bytes of a key:
//
//     1 byte    space
//     n bytes   row, family, qualifier; in each 00 is written as 00 FF, and 00 01 ends it
//     8 bytes   2^64 - 1 - sequence, big-endian
//
// Values in store files begin with the kind. The spaces kNonces (nonce_cell.h) and kVersions
// (version_cell.h) are hidden from readers.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pv2::cluster {

/// Persisted. The byte that keys begin with.
enum class CellSpace : std::uint8_t { kCells = 'c', kNonces = 'n', kVersions = 'v' };
/// In the order of their keys.
inline constexpr CellSpace kCellSpaces[] = {CellSpace::kCells, CellSpace::kNonces,
                                            CellSpace::kVersions};
/// Persisted.
enum class CellKind : std::uint8_t { kPut = 1, kTombstone = 2 };

struct StoredCell {
  CellSpace space = CellSpace::kCells;
  std::string row{};
  std::string family{};
  std::string qualifier{};
  CellKind kind = CellKind::kPut;
  std::string value{};

  void fields(auto& f) {
    f(1, "space", space);
    f(2, "row", row);
    f(3, "family", family);
    f(4, "qualifier", qualifier);
    f(5, "kind", kind);
    f(6, "value", value);
  }
  friend bool operator==(const StoredCell&, const StoredCell&) = default;
};

inline constexpr std::size_t kKeySequenceBytes = 8;

/// The key of a cell without the sequence.
[[nodiscard]] std::string cell_prefix(CellSpace space, std::string_view row,
                                      std::string_view family, std::string_view qualifier);
/// The least key of a row and of all rows after it. For the empty row: of the space.
[[nodiscard]] std::string row_key(CellSpace space, std::string_view row);
/// The least key that is after every key of the space.
[[nodiscard]] std::string space_end(CellSpace space);
[[nodiscard]] std::string cell_key(const StoredCell& cell, std::uint64_t sequence);
/// `kind` and value together.
[[nodiscard]] std::string cell_value(CellKind kind, std::string_view value);

/// The parts of a key. kind and value are those of `value`. No value: these are not the bytes of a
/// cell.
struct DecodedCell {
  StoredCell cell;
  std::uint64_t sequence = 0;
};
[[nodiscard]] std::optional<DecodedCell> decode_cell(std::string_view key, std::string_view value);
[[nodiscard]] std::uint64_t sequence_of_key(std::string_view key) noexcept;
[[nodiscard]] inline std::string_view prefix_of_key(std::string_view key) noexcept {
  return key.substr(0, key.size() - kKeySequenceBytes);
}

}  // namespace pv2::cluster
