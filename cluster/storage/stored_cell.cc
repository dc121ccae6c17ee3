// SPDX-License-Identifier: Apache-2.0
//
// Keys of cells. The end mark 00 01 is less than 00 FF and than any other byte after a shorter
// part, so keys sort like the tuple of their parts.

#include "storage/stored_cell.h"

#include <pv2/base/assert.h>
#include <pv2/base/big_endian.h>

#include <algorithm>
#include <iterator>

namespace pv2::cluster {
namespace {

constexpr char kEscape = '\x00';
constexpr char kZero = '\xFF';
constexpr char kEnd = '\x01';

void append_part(std::string& key, std::string_view part) {
  for (const char byte : part) {
    key += byte;
    if (byte == kEscape) key += kZero;
  }
  key += kEscape;
  key += kEnd;
}

// Takes one part off `key`. False: there is none.
bool take_part(std::string_view& key, std::string& part) {
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (key[i] != kEscape) {
      part += key[i];
      continue;
    }
    if (++i == key.size()) return false;
    if (key[i] == kEnd) {
      key.remove_prefix(i + 1);
      return true;
    }
    if (key[i] != kZero) return false;
    part += kEscape;
  }
  return false;
}

}  // namespace

std::string cell_prefix(CellSpace space, std::string_view row, std::string_view family,
                        std::string_view qualifier) {
  std::string key;
  key.reserve(row.size() + family.size() + qualifier.size() + 7 + kKeySequenceBytes);
  key += static_cast<char>(space);
  append_part(key, row);
  append_part(key, family);
  append_part(key, qualifier);
  return key;
}

std::string row_key(CellSpace space, std::string_view row) {
  std::string key(1, static_cast<char>(space));
  if (!row.empty()) append_part(key, row);
  return key;
}

std::string space_end(CellSpace space) { return {static_cast<char>(static_cast<int>(space) + 1)}; }

std::string cell_key(const StoredCell& cell, std::uint64_t sequence) {
  std::string key = cell_prefix(cell.space, cell.row, cell.family, cell.qualifier);
  append_big_endian(key, ~sequence);
  return key;
}

std::string cell_value(CellKind kind, std::string_view value) {
  std::string bytes(1, static_cast<char>(kind));
  bytes += value;
  return bytes;
}

std::uint64_t sequence_of_key(std::string_view key) noexcept {
  PV2_ASSERT(key.size() >= kKeySequenceBytes, "the key of a cell ends with its sequence");
  return ~read_big_endian(key.substr(key.size() - kKeySequenceBytes));
}

std::optional<DecodedCell> decode_cell(std::string_view key, std::string_view value) {
  if (key.size() < 1 + kKeySequenceBytes || value.empty()) return std::nullopt;
  DecodedCell decoded;
  decoded.cell.space = static_cast<CellSpace>(key[0]);
  if (std::ranges::find(kCellSpaces, decoded.cell.space) == std::end(kCellSpaces))
    return std::nullopt;
  std::string_view parts = prefix_of_key(key).substr(1);
  if (!take_part(parts, decoded.cell.row) || !take_part(parts, decoded.cell.family) ||
      !take_part(parts, decoded.cell.qualifier) || !parts.empty()) {
    return std::nullopt;
  }
  decoded.cell.kind = static_cast<CellKind>(value[0]);
  if (decoded.cell.kind != CellKind::kPut && decoded.cell.kind != CellKind::kTombstone)
    return std::nullopt;
  decoded.cell.value = value.substr(1);
  decoded.sequence = sequence_of_key(key);
  return decoded;
}

}  // namespace pv2::cluster
