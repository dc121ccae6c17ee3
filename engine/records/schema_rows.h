// SPDX-License-Identifier: Apache-2.0
//
// What the field numbers of a type have meant to the programs that wrote the store: one row per
// type in Space::kEngine (docs/store-format.md). open() compares it with what they mean in this
// program. The bytes of a field do not tell: 30 s read as milliseconds are 30 ms, and the 4 of a
// signed integer is the 8 of an unsigned one. A number that was ever used stays in the row, so a
// later use of it for something else is found too.

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

/// How many rows of one type are compared. No class written by hand has more fields.
inline constexpr std::size_t kSchemaRowsMax = 4096;

/// The rows of all fields. A class that contains itself is listed once.
[[nodiscard]] SchemaRows rows_of(const FieldSchema& schema);

/// The key of such a row in Space::kEngine: this prefix, then the name of the type.
inline constexpr std::string_view kSchemaKeyPrefix = "schema:";
[[nodiscard]] std::string schema_key(std::string_view type);
/// The name of the type; nullopt when `row_key` is not the key of a schema.
[[nodiscard]] std::optional<std::string_view> parse_schema_key(std::string_view row_key);
/// Appends the row to `out`.
void encode_schema(const SchemaRows& rows, std::string& out);
/// kCorruption when the row is damaged.
[[nodiscard]] Result<SchemaRows> decode_schema(std::string_view row);

/// kFailedPrecondition when a number means something else than before; the message names the number
/// and both meanings.
Status check_schema(const SchemaRows& before, const SchemaRows& now);
/// The rows to store: `now`, and those of `before` whose numbers `now` does not have.
[[nodiscard]] SchemaRows merge_schemas(const SchemaRows& before, SchemaRows now);

}  // namespace pv2
