// SPDX-License-Identifier: Apache-2.0
//
// Looks at a small cluster from outside: at its journal and its directories, and asks each region
// server.

#include <algorithm>
#include <chrono>
#include <sstream>

#include "cluster/catalogue_journal.h"
#include "cluster/cluster_directory.h"
#include "cluster/line_client.h"
#include "cluster/table_directories.h"
#include "pv2/procedures/local_cluster.h"

namespace pv2 {
namespace {

/// What an applied write did, in words that must not occur twice: a table reaches a state once, a
/// region is open on a server under one sequence once, a server crashes once. (A region may be
/// OPENING on one server twice, with another server in between.)
void count_effects(const CatalogueWrite& write, std::map<std::string, unsigned>& effects) {
  for (const TableRow& row : write.tables) {
    ++effects["table " + to_string(row.descriptor.name) + " becomes " +
              std::string(to_string(row.state))];
  }
  for (const RegionRow& row : write.regions) {
    if (row.state == RegionState::kOpening) continue;
    ++effects["region " + row.region.id + " becomes " + std::string(to_string(row.state)) + " on " +
              to_string(row.server) + " at " + std::to_string(row.open_sequence)];
  }
  for (const ServerRow& row : write.servers) {
    ++effects["server " + to_string(row.name) + " becomes " + std::string(to_string(row.state))];
  }
}

std::map<std::string, std::uint64_t> parse_regions(const std::string& text) {
  std::map<std::string, std::uint64_t> open;
  std::istringstream words(text);
  std::string word;
  words >> word;  // REGIONS
  while (words >> word) {
    const std::size_t equals = word.find('=');
    open[word.substr(0, equals)] = std::stoull(word.substr(equals + 1));
  }
  return open;
}

}  // namespace

Result<ClusterSnapshot> inspect_cluster(const std::filesystem::path& directory) {
  const ClusterDirectory files(directory);
  ClusterSnapshot snapshot;

  auto entries = read_journal(files.journal());
  if (!entries.ok()) return entries.status();
  CatalogueState catalogue;
  for (const JournalEntry& entry : *entries) {
    if (entry.kind != JournalEntry::Kind::kApplied) continue;
    ++snapshot.effects["catalogue " + entry.write.effect_key];
    count_effects(entry.write, snapshot.effects);
    if (const auto applied = catalogue.apply(entry.write); !applied.ok()) return applied.status();
  }
  add_rows(catalogue, snapshot);

  auto directories = TableDirectories(files.tables()).list();
  if (!directories.ok()) return directories.status();
  snapshot.directories = std::move(*directories);
  auto namespaces = TableDirectories(files.tables()).namespaces();
  if (!namespaces.ok()) return namespaces.status();
  snapshot.namespace_directories.insert(namespaces->begin(), namespaces->end());
  // What a cache that is filled now would contain.
  for (const auto& found : snapshot.directories) snapshot.cached.push_back(found.descriptor);

  auto done = files.server_effects();
  if (!done.ok()) return done.status();
  for (const auto& [effect, times] : *done) snapshot.effects["region server: " + effect] = times;

  auto servers = files.registered();
  if (!servers.ok()) return servers.status();
  LineClient client(std::chrono::seconds(2));
  for (const ServerName& server : *servers) {
    const Result<std::uint16_t> port = files.port(server);
    if (!port.ok()) continue;
    const LineAnswer answer = client.ask_and_wait(*port, "LIST " + to_string(server));
    const bool lists =
        answer.kind == LineAnswer::Kind::kAnswered && answer.text.starts_with("REGIONS");
    if (lists) snapshot.open[server] = parse_regions(answer.text);
  }
  return snapshot;
}

}  // namespace pv2
