// SPDX-License-Identifier: Apache-2.0
//
// What a table is to the cluster: its name, its descriptor, its state and its row in the catalogue.
// Plain values with numbered fields; the numbers are persisted. They check nothing: CreateTable
// checks the names.

#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pv2 {

/// Names a table. A plain value.
struct TableName {
  std::string name_space = "default";
  std::string table;

  void fields(auto& f) {
    f(1, "namespace", name_space);
    f(2, "table", table);
  }
  friend auto operator<=>(const TableName&, const TableName&) = default;
};

/// "default:t".
[[nodiscard]] std::string to_string(const TableName& name);

/// What the creator of a table decides about it. A plain value.
struct TableDescriptor {
  TableName name;
  std::vector<std::string> families;

  void fields(auto& f) {
    f(1, "name", name);
    f(2, "families", families);
  }
  friend bool operator==(const TableDescriptor&, const TableDescriptor&) = default;
};

/// Persisted.
enum class TableState : std::uint8_t {
  kEnabling = 1,  ///< Its regions are being opened.
  kEnabled = 2,
  kDisabling = 3,
  kDisabled = 4,
};

[[nodiscard]] std::string_view to_string(TableState state) noexcept;

/// One table in the catalogue. A plain value.
struct TableRow {
  TableDescriptor descriptor;
  TableState state = TableState::kEnabling;

  void fields(auto& f) {
    f(1, "descriptor", descriptor);
    f(2, "state", state);
  }
  friend bool operator==(const TableRow&, const TableRow&) = default;
};

}  // namespace pv2
