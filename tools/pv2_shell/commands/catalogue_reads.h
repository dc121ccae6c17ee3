// SPDX-License-Identifier: Apache-2.0
//
// What commands look up in the catalogue before they act.

#pragma once

#include <pv2/base/status.h>
#include <pv2/cluster/server_list.h>
#include <pv2/procedures/cluster_snapshot.h>
#include <pv2/procedures/region.h>
#include <pv2/procedures/server.h>
#include <pv2/procedures/table.h>

#include <string>
#include <vector>

#include "commands/call.h"
#include "session/shell.h"

namespace pv2::shell {

[[nodiscard]] Result<std::vector<TableRow>> read_tables(Shell& shell, const Call& call);
/// kNotFound: there is no such table.
[[nodiscard]] Result<TableRow> read_table(Shell& shell, const Call& call, const TableName& name);
[[nodiscard]] Result<std::vector<RegionRow>> read_regions(Shell& shell, const Call& call,
                                                          const TableName& table);
[[nodiscard]] Result<cluster::ServerList> read_servers(Shell& shell, const Call& call);
/// All of the cluster, for a look at what does not agree and at what is stored of peers.
[[nodiscard]] Result<ClusterSnapshot> inspect(Shell& shell, const Call& call);

/// The region with this id, or with an id that begins so, in any table. kNotFound: there is none.
/// kInvalidArgument: several begin so.
[[nodiscard]] Result<RegionRow> find_region(Shell& shell, const Call& call, const std::string& id);
/// Whether the text is the id of a region, or its beginning of 4 digits at least; and not the name
/// of a table, which would be looked up first.
[[nodiscard]] bool looks_like_region(const std::string& text);

/// The live server of that host, or of that whole name. kNotFound: there is none.
[[nodiscard]] Result<ServerName> find_server(Shell& shell, const Call& call,
                                             const std::string& text);

}  // namespace pv2::shell
