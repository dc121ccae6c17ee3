// SPDX-License-Identifier: Apache-2.0
//
// From the classes of a schema to rows with a path, and the rules by which one meaning may follow
// another (docs/fields.md, "How a class may change").

#include "records/schema_rows.h"

#include <pv2/base/frame.h>
#include <pv2/base/wire.h>

#include <algorithm>
#include <vector>

namespace pv2 {
namespace {

// Field numbers, persisted.
enum : std::uint32_t { kRow = 1 };
enum : std::uint32_t {
  kRowPath = 1,
  kRowName = 2,
  kRowKind = 3,
  kRowRepeated = 4,
  kRowUnit = 5,
  kRowArgument = 6
};

void add_rows(const FieldSchema& schema, std::size_t message, const std::string& path,
              std::vector<std::size_t>& around, SchemaRows& rows) {
  PV2_ASSERT(message < schema.messages.size(), "a field's class is in its schema");
  around.push_back(message);
  for (const FieldSchema::Field& field : schema.messages[message].fields) {
    if (rows.size() == kSchemaRowsMax) break;
    const std::string own = path + std::to_string(field.number);
    rows[own] = {field.name, field.argument && path.empty(), field.meaning};
    const bool within_itself =
        std::find(around.begin(), around.end(), field.message) != around.end();
    if (field.message != FieldSchema::kNoMessage && !within_itself) {
      add_rows(schema, field.message, own + ".", around, rows);
    }
  }
  around.pop_back();
}

Result<std::pair<std::string, SchemaRow>> decode_row(std::string_view bytes) {
  std::pair<std::string, SchemaRow> decoded;
  auto& [path, row] = decoded;
  WireReader reader(bytes);
  while (reader.next()) {
    switch (reader.number()) {
      case kRowPath:
        path = reader.bytes();
        break;
      case kRowName:
        row.name = reader.bytes();
        break;
      case kRowKind:
        row.meaning.kind = static_cast<FieldKind>(reader.varint());
        break;
      case kRowRepeated:
        row.meaning.repeated = reader.varint() != 0;
        break;
      case kRowUnit:
        row.meaning.unit = reader.bytes();
        break;
      case kRowArgument:
        row.argument = reader.varint() != 0;
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return reader.status();
  return decoded;
}

// A single value may become a list of such values; a list read as a single one loses elements.
bool may_follow(const SchemaRow& before, const SchemaRow& now) {
  return before.argument == now.argument && before.meaning.kind == now.meaning.kind &&
         before.meaning.unit == now.meaning.unit &&
         (now.meaning.repeated || !before.meaning.repeated);
}

std::string in_words(const SchemaRow& row) {
  return "\"" + row.name + "\", " + to_string(row.meaning) + (row.argument ? ", an argument" : "");
}

}  // namespace

SchemaRows rows_of(const FieldSchema& schema) {
  SchemaRows rows;
  std::vector<std::size_t> around;
  if (!schema.messages.empty()) add_rows(schema, 0, "", around, rows);
  return rows;
}

std::string schema_key(std::string_view type) {
  return std::string(kSchemaKeyPrefix) + std::string(type);
}

std::optional<std::string_view> parse_schema_key(std::string_view row_key) {
  if (!row_key.starts_with(kSchemaKeyPrefix)) return std::nullopt;
  return row_key.substr(kSchemaKeyPrefix.size());
}

void encode_schema(const SchemaRows& rows, std::string& out) {
  FrameWriter frame(out);
  std::string bytes;
  for (const auto& [path, row] : rows) {
    bytes.clear();
    append_length_delimited(bytes, kRowPath, path);
    append_length_delimited(bytes, kRowName, row.name);
    append_varint_field(bytes, kRowKind, static_cast<std::uint64_t>(row.meaning.kind));
    if (row.meaning.repeated) append_varint_field(bytes, kRowRepeated, 1);
    if (!row.meaning.unit.empty()) append_length_delimited(bytes, kRowUnit, row.meaning.unit);
    if (row.argument) append_varint_field(bytes, kRowArgument, 1);
    append_length_delimited(out, kRow, bytes);
  }
  frame.finish();
}

Result<SchemaRows> decode_schema(std::string_view row) {
  const auto bytes = read_frame(row);
  if (!bytes) return Status(StatusCode::kCorruption, "it does not match its checksum");
  SchemaRows rows;
  WireReader reader(*bytes);
  while (reader.next()) {
    if (reader.number() != kRow) continue;
    auto decoded = decode_row(reader.bytes());
    if (!decoded.ok()) return decoded.status();
    rows.insert(*std::move(decoded));
  }
  if (!reader.ok()) return reader.status();
  return rows;
}

Status check_schema(const SchemaRows& before, const SchemaRows& now) {
  for (const auto& [path, row] : now) {
    const auto was = before.find(path);
    if (was == before.end() || may_follow(was->second, row)) continue;
    return {StatusCode::kFailedPrecondition, "field " + path + " was " + in_words(was->second) +
                                                 " to who wrote it, and is " + in_words(row) +
                                                 " to this program"};
  }
  return Status();
}

SchemaRows merge_schemas(const SchemaRows& before, SchemaRows now) {
  now.insert(before.begin(), before.end());  // what is there already stays
  return now;
}

}  // namespace pv2
