// SPDX-License-Identifier: Apache-2.0
//
// What the numbers of a type's fields have meant to those who wrote with them: one row per type in
// the engine's space (docs/store-format.md), compared by open() with what they mean in this
// program. Bytes do not say it: 30 s read as milliseconds are 30 ms, and the 4 of a signed integer
// is the 8 of an unsigned one. A number that was ever used stays in the row, so one that is used
// again for something else is found too.

#pragma once

#include <pv2/base/field_schema.h>
#include <pv2/base/status.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace pv2 {

/// What one number means.
struct SchemaRow {
  std::string name;       ///< For people; it may change.
  bool argument = false;  ///< Of the class itself: an argument, or state.
  FieldMeaning meaning;
};

/// By path: "3" is a field of the class itself, "3.1" field 1 of the class in field 3.
using SchemaRows = std::map<std::string, SchemaRow, std::less<>>;

/// Rows of one type: beyond so many, which no class has by hand, the others are not compared.
inline constexpr std::size_t kSchemaRowsMax = 4096;

/// Of a class within itself only the outer one is looked at.
[[nodiscard]] SchemaRows rows_of(const FieldSchema& schema);

/// The rows of Space::kEngine that hold them: this, then the type's name.
inline constexpr std::string_view kSchemaKeyPrefix = "schema:";
[[nodiscard]] std::string schema_key(std::string_view type);
/// nullopt when `row_key` is not the key of a schema; else the type's name.
[[nodiscard]] std::optional<std::string_view> parse_schema_key(std::string_view row_key);
void encode_schema(const SchemaRows& rows, std::string& out);
[[nodiscard]] Result<SchemaRows> decode_schema(std::string_view row);

/// kFailedPrecondition when a number means something else than it did: which, and both meanings.
Status check_schema(const SchemaRows& before, const SchemaRows& now);
/// What is to be stored: `now`, and the numbers that only `before` has.
[[nodiscard]] SchemaRows merge_schemas(const SchemaRows& before, SchemaRows now);

}  // namespace pv2
