// SPDX-License-Identifier: Apache-2.0
//
// How the rows of the catalogue lie in its table "system:meta": one cell each, which the master
// writes as a whole. Clients read them to find regions.
//
//     row                              family  qualifier  value
//     n <namespace>                    ns      row        Kept<NamespaceRow>
//     t <namespace>:<table>            table   row        Kept<TableRow>
//     r <namespace>:<table> 00 <id>    info    row        Kept<RegionRow>
//
// The regions of one table are together, in no order of keys: whoever reads them sorts them.

#pragma once

#include <pv2/procedures/catalogue_state.h>

#include <string>
#include <vector>

#include "pv2/cluster/cell.h"

namespace pv2::cluster {

[[nodiscard]] std::string namespace_row_key(const std::string& name);
[[nodiscard]] std::string table_row_key(const TableName& table);
[[nodiscard]] std::string region_row_key(const TableName& table, const std::string& id);
/// The rows of all regions of a table: from the first to before the second.
[[nodiscard]] Scan regions_scan(const TableName& table);

[[nodiscard]] Mutation put_row(CatalogueState::Kept<NamespaceRow> row);
[[nodiscard]] Mutation put_row(CatalogueState::Kept<TableRow> row);
[[nodiscard]] Mutation put_row(CatalogueState::Kept<RegionRow> row);
[[nodiscard]] Mutation delete_row(std::string row_key);

/// Takes a cell of the table over into `state`. kCorruption names the row that cannot be read.
Status load_cell(const Cell& cell, CatalogueState& state);
/// The row of a region, from its cell.
[[nodiscard]] Result<RegionRow> region_of_cell(const Cell& cell);
[[nodiscard]] Result<TableRow> table_of_cell(const Cell& cell);

}  // namespace pv2::cluster
