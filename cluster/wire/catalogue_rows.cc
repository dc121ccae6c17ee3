// SPDX-License-Identifier: Apache-2.0
//
// The rows of the catalogue as cells, and back.

#include "wire/catalogue_rows.h"

#include <pv2/base/fields.h>

#include <utility>

namespace pv2::cluster {
namespace {

template <class Row>
Mutation put(std::string row_key, std::string family, CatalogueState::Kept<Row> kept) {
  Mutation mutation{.kind = MutationKind::kPut,
                    .row = std::move(row_key),
                    .family = std::move(family),
                    .qualifier = "row",
                    .value = {}};
  encode_fields(kept, FieldSelection::kAll, mutation.value);
  return mutation;
}

template <class Row>
Result<CatalogueState::Kept<Row>> decode(const Cell& cell) {
  CatalogueState::Kept<Row> kept;
  if (Status bad = decode_fields(kept, FieldSelection::kAll, cell.value); !bad.ok()) {
    return Status(StatusCode::kCorruption,
                  "row '" + cell.row + "' of the catalogue cannot be read: " + bad.to_string());
  }
  return kept;
}

template <class Row>
Status load(const Cell& cell, CatalogueState& state) {
  auto kept = decode<Row>(cell);
  if (!kept.ok()) return kept.status();
  state.load(*std::move(kept));
  return {};
}

}  // namespace

std::string namespace_row_key(const std::string& name) { return "n " + name; }
std::string table_row_key(const TableName& table) { return "t " + to_string(table); }
std::string region_row_key(const TableName& table, const std::string& id) {
  return "r " + to_string(table) + '\0' + id;
}

Scan regions_scan(const TableName& table) {
  const std::string prefix = "r " + to_string(table);
  return {.start_row = prefix + '\0', .end_row = prefix + '\1', .families = {"info"}};
}

Mutation put_row(CatalogueState::Kept<NamespaceRow> row) {
  std::string key = namespace_row_key(row.row.name);
  return put(std::move(key), "ns", std::move(row));
}
Mutation put_row(CatalogueState::Kept<TableRow> row) {
  std::string key = table_row_key(row.row.descriptor.name);
  return put(std::move(key), "table", std::move(row));
}
Mutation put_row(CatalogueState::Kept<RegionRow> row) {
  std::string key = region_row_key(row.row.region.table, row.row.region.id);
  return put(std::move(key), "info", std::move(row));
}
Mutation delete_row(std::string row_key) {
  return {.kind = MutationKind::kDeleteRow, .row = std::move(row_key), .family = {}};
}

Status load_cell(const Cell& cell, CatalogueState& state) {
  if (cell.family == "ns") return load<NamespaceRow>(cell, state);
  if (cell.family == "table") return load<TableRow>(cell, state);
  if (cell.family == "info") return load<RegionRow>(cell, state);
  return {StatusCode::kCorruption,
          "row '" + cell.row + "' of the catalogue has the unknown family '" + cell.family + "'"};
}

Result<RegionRow> region_of_cell(const Cell& cell) {
  auto kept = decode<RegionRow>(cell);
  if (!kept.ok()) return kept.status();
  return std::move(kept->row);
}
Result<TableRow> table_of_cell(const Cell& cell) {
  auto kept = decode<TableRow>(cell);
  if (!kept.ok()) return kept.status();
  return std::move(kept->row);
}

}  // namespace pv2::cluster
