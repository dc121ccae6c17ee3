// SPDX-License-Identifier: Apache-2.0
//
// The texts for tables and their states, and what makes a name legal.

#include "pv2/procedures/table.h"

#include <pv2/base/resource.h>

#include <algorithm>

#include "pv2/procedures/catalogue_limits.h"

namespace pv2 {
namespace {

// Longest name of a namespace, table or family: it becomes a file name, and most systems limit
// those to 255 bytes.
constexpr std::size_t kNameBytesMax = 200;

/// ASCII only, whatever the locale of the host says.
bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

std::string to_string(const TableName& name) { return table_key_name(name.name_space, name.table); }

TableName parse_table_name(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {std::string(kDefaultNamespace), std::string(text)};
  return {std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

TableName meta_table() { return {std::string(kSystemNamespace), "meta"}; }

bool is_meta(const TableName& name) noexcept {
  return name.name_space == kSystemNamespace && name.table == "meta";
}

Status check_name(std::string_view what, std::string_view name, bool with_punctuation) {
  const auto legal = [&](char c) {
    return is_letter_or_digit(c) || c == '_' || (with_punctuation && (c == '-' || c == '.'));
  };
  if (name.empty() || name.size() > kNameBytesMax || !std::ranges::all_of(name, legal) ||
      name[0] == '-' || name[0] == '.') {
    return {StatusCode::kInvalidArgument,
            std::string(what) + " '" + std::string(name) + "' is not a legal name: use 1 to " +
                std::to_string(kNameBytesMax) + " letters, digits and '_'" +
                (with_punctuation ? ", also '-' and '.' but not in front" : "")};
  }
  return {};
}

Status check_table_name(const TableName& name) {
  if (Status bad = check_name("namespace", name.name_space, false); !bad.ok()) return bad;
  return check_name("table", name.table, true);
}

Status check_descriptor(const TableDescriptor& descriptor) {
  if (Status bad = check_table_name(descriptor.name); !bad.ok()) return bad;
  const std::string table = to_string(descriptor.name);
  if (descriptor.families.size() > kFamiliesMax) {
    return {StatusCode::kInvalidArgument,
            "table " + table + " has " + std::to_string(descriptor.families.size()) +
                " column families of at most " + std::to_string(kFamiliesMax) +
                "; use fewer, and tell cells apart by their qualifiers"};
  }
  if (descriptor.families.empty()) {
    return {StatusCode::kInvalidArgument,
            "table " + table + " has no column family; name at least one"};
  }
  std::vector<std::string> families = descriptor.families;
  for (const std::string& family : families) {
    if (Status bad = check_name("column family", family, true); !bad.ok()) return bad;
    if (family.size() > kFamilyNameBytesMax) {
      return {StatusCode::kInvalidArgument, "column family '" + family + "' of table " + table +
                                                " has more than " +
                                                std::to_string(kFamilyNameBytesMax) +
                                                " bytes, and no cell could name it; use a shorter "
                                                "name"};
    }
  }
  std::ranges::sort(families);
  if (const auto twice = std::ranges::adjacent_find(families); twice != families.end()) {
    return {StatusCode::kInvalidArgument,
            "table " + table + " names column family '" + *twice + "' twice"};
  }
  return {};
}

std::string_view to_string(TableState state) noexcept {
  switch (state) {
    case TableState::kEnabling:
      return "ENABLING";
    case TableState::kEnabled:
      return "ENABLED";
    case TableState::kDisabling:
      return "DISABLING";
    case TableState::kDisabled:
      return "DISABLED";
  }
  return "UNKNOWN";
}

}  // namespace pv2
