// SPDX-License-Identifier: Apache-2.0
//
// The operations on tables as plots use them: on table "default:t" with family "f1" and three
// regions, in which a client has written a row per region.

#pragma once

#include <pv2/procedures/create_table.h>
#include <pv2/procedures/delete_table.h>
#include <pv2/procedures/disable_table.h>
#include <pv2/procedures/enable_table.h>
#include <pv2/procedures/modify_table.h>
#include <pv2/procedures/server_crash.h>
#include <pv2/procedures/truncate_table.h>

#include <set>
#include <string>

#include "procedure_drill.h"
#include "procedure_story.h"

namespace pv2::testing {

inline TableName name_t() { return table_t().name; }
inline PlotOperation create_t(std::size_t regions = 3) {
  return operation([=](MemoryCluster& cluster) {
    return CreateTable(cluster.ports(), table_t(), even_split_keys(regions));
  });
}
inline PlotOperation delete_t(TableName table = name_t()) {
  return operation([=](MemoryCluster& cluster) { return DeleteTable(cluster.ports(), table); });
}
inline PlotOperation enable_t(TableName table = name_t()) {
  return operation([=](MemoryCluster& cluster) { return EnableTable(cluster.ports(), table); });
}
inline PlotOperation disable_t(TableName table = name_t()) {
  return operation([=](MemoryCluster& cluster) { return DisableTable(cluster.ports(), table); });
}
inline PlotOperation truncate_t(TruncateSplits splits, TableName table = name_t()) {
  return operation(
      [=](MemoryCluster& cluster) { return TruncateTable(cluster.ports(), table, splits); });
}
inline PlotOperation modify_t(TableDescriptor to = {name_t(), {"f1", "f2"}},
                              std::optional<TableDescriptor> expected = {}) {
  return operation(
      [=](MemoryCluster& cluster) { return ModifyTable(cluster.ports(), to, expected); });
}
/// The crash of the first server.
inline PlotOperation crash_first() {
  return operation([](MemoryCluster& cluster) {
    return ServerCrash(cluster.ports(), cluster.snapshot().servers.empty()
                                            ? cluster.snapshot().open.begin()->first
                                            : cluster.snapshot().servers.front().name);
  });
}

/// One row in each of three regions.
inline std::set<std::string> rows_of_t() { return {"a", "\x60", "\xC0"}; }
inline void write_rows(MemoryCluster& cluster) {
  for (const std::string& row : rows_of_t()) REQUIRE(cluster.write_row(name_t(), row));
}

inline void expect_state(MemoryCluster& cluster, Findings& findings, TableState state) {
  const ClusterSnapshot snapshot = cluster.snapshot();
  findings.expect(snapshot.tables.size() == 1 && snapshot.tables[0].state == state,
                  "the table is " + std::string(to_string(state)));
}

}  // namespace pv2::testing
