// SPDX-License-Identifier: Apache-2.0
//
// What a table is to the cluster: its name, its descriptor, its state and its row in the catalogue.
// Plain values with numbered fields; the numbers are persisted. The values
// check nothing by themselves: procedures call check_descriptor().

#pragma once

#include <pv2/base/status.h>

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
/// The inverse of to_string(); a text without a colon names a table of namespace "default".
[[nodiscard]] TableName parse_table_name(std::string_view text);

/// The namespaces that InitMeta makes, and that nobody can delete.
inline constexpr std::string_view kDefaultNamespace = "default";
inline constexpr std::string_view kSystemNamespace = "system";

/// The table that holds the catalogue: "system:meta".
[[nodiscard]] TableName meta_table();
[[nodiscard]] bool is_meta(const TableName& name) noexcept;

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

/// One namespace in the catalogue. A plain value.
struct NamespaceRow {
  std::string name;
  std::uint64_t max_tables = 0;  ///< How many tables may be created in it; 0: any number.

  void fields(auto& f) {
    f(1, "name", name);
    f(2, "max_tables", max_tables);
  }
  friend bool operator==(const NamespaceRow&, const NamespaceRow&) = default;
};

/// kInvalidArgument says what is wrong with a name. `what` is for the message: "table".
/// `with_punctuation`: '-' and '.' are legal too, but not in front.
[[nodiscard]] Status check_name(std::string_view what, std::string_view name,
                                bool with_punctuation);
/// kInvalidArgument: no table can have this name.
[[nodiscard]] Status check_table_name(const TableName& name);
/// Checks the names of the table and its families: kInvalidArgument names what is wrong.
[[nodiscard]] Status check_descriptor(const TableDescriptor& descriptor);

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
