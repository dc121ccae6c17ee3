// SPDX-License-Identifier: Apache-2.0
//
// Each is one or a few calls of the client.

#include "commands/catalogue_reads.h"

#include <pv2/cluster/inspect_cluster.h>

#include <algorithm>

#include "language/escape.h"

namespace pv2::shell {
namespace {

// A shorter beginning of an id is a slip more often than a wish.
constexpr std::size_t kIdDigitsMin = 4;
constexpr std::size_t kIdDigits = 16;

}  // namespace

Result<std::vector<TableRow>> read_tables(Shell& shell, const Call& call) {
  const Duration timeout = call.timeout(Shell::kCallTime);
  return shell.ask<std::vector<TableRow>>(
      [&](auto done) { shell.client().tables(std::move(done), Shell::beyond(timeout)); }, timeout);
}

Result<TableRow> read_table(Shell& shell, const Call& call, const TableName& name) {
  const auto tables = read_tables(shell, call);
  if (!tables.ok()) return tables.status();
  for (const TableRow& row : *tables) {
    if (row.descriptor.name == name) return row;
  }
  return Status(StatusCode::kNotFound, "there is no table " + to_string(name));
}

Result<std::vector<RegionRow>> read_regions(Shell& shell, const Call& call,
                                            const TableName& table) {
  return shell.ask<std::vector<RegionRow>>(
      [&](auto done) { shell.client().regions_of(table, std::move(done)); },
      call.timeout(Shell::kCallTime));
}

Result<cluster::ServerList> read_servers(Shell& shell, const Call& call) {
  return shell.ask<cluster::ServerList>([&](auto done) { shell.client().servers(std::move(done)); },
                                        call.timeout(Shell::kCallTime));
}

Result<ClusterSnapshot> inspect(Shell& shell, const Call& call) {
  const Duration timeout = call.timeout(Shell::kCallTime);
  return shell.ask<ClusterSnapshot>(
      [&](auto done) {
        cluster::inspect_cluster(shell.client(), shell.root(), Shell::beyond(timeout),
                                 std::move(done));
      },
      timeout);
}

bool looks_like_region(const std::string& text) {
  return text.size() >= kIdDigitsMin && text.size() <= kIdDigits &&
         std::ranges::all_of(
             text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Result<RegionRow> find_region(Shell& shell, const Call& call, const std::string& id) {
  if (!looks_like_region(id)) {
    return Status(StatusCode::kInvalidArgument,
                  in_quotes(id) +
                      " is no region; its id has 16 hexadecimal digits, of which the "
                      "first 4 suffice if no other region begins so");
  }
  const auto tables = read_tables(shell, call);
  if (!tables.ok()) return tables.status();
  std::vector<RegionRow> found;
  for (const TableRow& row : *tables) {
    const auto regions = read_regions(shell, call, row.descriptor.name);
    if (!regions.ok()) {
      if (regions.status().code() == StatusCode::kNotFound) continue;  // dropped meanwhile
      return regions.status();
    }
    std::ranges::copy_if(*regions, std::back_inserter(found),
                         [&](const RegionRow& region) { return region.region.id.starts_with(id); });
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return Status(StatusCode::kNotFound,
                  "there is no region " + in_quotes(id) + "; regions 't' lists those of a table");
  }
  return Status(StatusCode::kInvalidArgument, "several regions begin with " + in_quotes(id));
}

Result<ServerName> find_server(Shell& shell, const Call& call, const std::string& text) {
  const auto servers = read_servers(shell, call);
  if (!servers.ok()) return servers.status();
  for (const cluster::ServerEntry& entry : servers->live) {
    if (entry.name.host == text || to_string(entry.name) == text) return entry.name;
  }
  return Status(StatusCode::kNotFound,
                "there is no live server " + in_quotes(text) + "; servers lists them");
}

}  // namespace pv2::shell
