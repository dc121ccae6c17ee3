// SPDX-License-Identifier: Apache-2.0
//
// The invariants of a cluster at rest, each in a function that reports what it found.

#include "pv2/procedures/cluster_snapshot.h"

#include <algorithm>
#include <iterator>

namespace pv2 {
namespace {

using Findings = std::vector<std::string>;

std::vector<RegionRow> regions_of_table(const ClusterSnapshot& snapshot, const TableName& table) {
  std::vector<RegionRow> rows;
  std::ranges::copy_if(snapshot.regions, std::back_inserter(rows),
                       [&](const RegionRow& row) { return row.region.table == table; });
  std::ranges::sort(rows, {}, [](const RegionRow& row) { return row.region.start_key; });
  return rows;
}

void check_directory(const ClusterSnapshot& snapshot, const TableRow& table,
                     const std::vector<RegionRow>& rows, Findings& found) {
  const std::string name = to_string(table.descriptor.name);
  const auto directory = std::ranges::find_if(snapshot.directories, [&](const auto& candidate) {
    return candidate.descriptor.name == table.descriptor.name;
  });
  if (directory == snapshot.directories.end()) {
    found.push_back("table " + name + " is in the catalogue but has no directory");
    return;
  }
  if (directory->descriptor != table.descriptor) {
    found.push_back("the directory of table " + name +
                    " holds another descriptor than the catalogue");
  }
  std::vector<std::string> ids;
  for (const RegionRow& row : rows) ids.push_back(row.region.id);
  std::ranges::sort(ids);
  if (ids != directory->regions) {
    found.push_back("the directory of table " + name + " holds " +
                    std::to_string(directory->regions.size()) +
                    " regions that are not the catalogue's " + std::to_string(ids.size()));
  }
}

void check_coverage(const TableRow& table, const std::vector<RegionRow>& rows, Findings& found) {
  const std::string name = to_string(table.descriptor.name);
  const bool enabled = table.state == TableState::kEnabled;
  std::string expected_start;
  bool closed = false;  // the last region reached the end of the key space
  for (const RegionRow& row : rows) {
    if (row.state == RegionState::kSplit) continue;  // its daughters cover its keys
    if (closed || row.region.start_key != expected_start) {
      found.push_back("table " + name + " has a hole or an overlap before region " + row.region.id);
    }
    expected_start = row.region.end_key;
    closed = row.region.end_key.empty();
    // What could not be opened counts as closed: its edits are replayed when it is opened.
    const bool rests = row.state == RegionState::kClosed || row.state == RegionState::kFailedOpen;
    if (enabled ? row.state != RegionState::kOpen : !rests) {
      found.push_back("region " + row.region.id + " of table " + name + ", which is " +
                      std::string(to_string(table.state)) + ", is " +
                      std::string(to_string(row.state)));
    }
  }
  if (!closed) found.push_back("table " + name + " does not cover the end of its key space");
}

void check_tables(const ClusterSnapshot& snapshot, Findings& found) {
  for (const TableRow& table : snapshot.tables) {
    const std::string name = to_string(table.descriptor.name);
    if (table.state != TableState::kEnabled && table.state != TableState::kDisabled) {
      found.push_back("table " + name + " is " + std::string(to_string(table.state)));
      continue;
    }
    const std::vector<RegionRow> rows = regions_of_table(snapshot, table.descriptor.name);
    check_directory(snapshot, table, rows, found);
    check_coverage(table, rows, found);
    if (std::ranges::find(snapshot.cached, table.descriptor) == snapshot.cached.end()) {
      found.push_back("the descriptor cache does not have table " + name + " as it is");
    }
    const NamespaceRow name_space{table.descriptor.name.name_space};
    if (std::ranges::find(snapshot.namespaces, name_space.name, &NamespaceRow::name) ==
        snapshot.namespaces.end()) {
      found.push_back("table " + name + " is in a namespace that does not exist");
    }
  }
  const auto has_row = [&](const TableName& name) {
    return std::ranges::any_of(snapshot.tables,
                               [&](const TableRow& row) { return row.descriptor.name == name; });
  };
  for (const auto& directory : snapshot.directories) {
    if (!has_row(directory.descriptor.name) && !is_meta(directory.descriptor.name)) {
      found.push_back("there is a directory but no row of table " +
                      to_string(directory.descriptor.name));
    }
  }
  for (const TableDescriptor& descriptor : snapshot.cached) {
    if (!has_row(descriptor.name)) {
      found.push_back("the descriptor cache has table " + to_string(descriptor.name) +
                      ", which does not exist");
    }
  }
  for (const RegionRow& row : snapshot.regions) {
    if (!has_row(row.region.table) && !is_meta(row.region.table)) {
      found.push_back("region " + row.region.id + " belongs to no table");
    }
  }
}

void check_assignments(const ClusterSnapshot& snapshot, Findings& found) {
  for (const RegionRow& row : snapshot.regions) {
    if (row.state != RegionState::kOpen) continue;
    const auto server = snapshot.open.find(row.server);
    if (server == snapshot.open.end()) {
      found.push_back("region " + row.region.id + " is recorded on " + to_string(row.server) +
                      ", which does not live");
      continue;
    }
    const auto open = server->second.find(row.region.id);
    if (open == server->second.end()) {
      found.push_back("region " + row.region.id + " is recorded on " + to_string(row.server) +
                      ", which does not have it");
    } else if (open->second != row.open_sequence) {
      found.push_back("region " + row.region.id + " has open sequence " +
                      std::to_string(row.open_sequence) + " in the catalogue and " +
                      std::to_string(open->second) + " on " + to_string(row.server));
    }
  }
  for (const auto& [server, open] : snapshot.open) {
    for (const auto& [id, sequence] : open) {
      const auto here = [&id = id, &server = server](const RegionRow& row) {
        return row.region.id == id && row.server == server && row.state == RegionState::kOpen;
      };
      if (std::ranges::none_of(snapshot.regions, here)) {
        found.push_back("server " + to_string(server) + " has region " + id +
                        " open, which the catalogue does not record there");
      }
    }
  }
}

void check_servers(const ClusterSnapshot& snapshot, Findings& found) {
  for (const ServerRow& server : snapshot.servers) {
    if (server.state == ServerState::kOnline) continue;
    if (server.state != ServerState::kRetired) {
      found.push_back("server " + to_string(server.name) + " is " +
                      std::string(to_string(server.state)) + " and was not retired");
    }
    if (snapshot.open.contains(server.name)) {
      found.push_back("server " + to_string(server.name) + " lives although it was declared dead");
    }
    for (const RegionRow& row : snapshot.regions) {
      if (is_placed(row.state) && row.server == server.name) {
        found.push_back("region " + row.region.id + " is still recorded on dead server " +
                        to_string(server.name));
      }
    }
  }
}

void check_namespaces(const ClusterSnapshot& snapshot, Findings& found) {
  for (const NamespaceRow& row : snapshot.namespaces) {
    if (!snapshot.namespace_directories.contains(row.name)) {
      found.push_back("namespace " + row.name + " has no directory");
    }
  }
  for (const std::string& name : snapshot.namespace_directories) {
    if (std::ranges::find(snapshot.namespaces, name, &NamespaceRow::name) ==
        snapshot.namespaces.end()) {
      found.push_back("there is a directory but no row of namespace " + name);
    }
  }
}

void check_peers(const ClusterSnapshot& snapshot, Findings& found) {
  for (const auto& [peer, why] : snapshot.unreadable_peers) {
    found.push_back("peer " + peer + " cannot be read: " + why);
  }
  for (const auto& [server, view] : snapshot.peer_views) {
    auto readable = view;  // of the others, what a server has read before is good
    std::erase_if(readable,
                  [&](const auto& peer) { return snapshot.unreadable_peers.contains(peer.first); });
    if (readable != snapshot.peers) {
      found.push_back("server " + to_string(server) + " knows other peers than those stored");
    }
  }
  for (const auto& [peer, server] : snapshot.queues) {
    if (!snapshot.peers.contains(peer) && !snapshot.unreadable_peers.contains(peer)) {
      found.push_back("server " + to_string(server) + " keeps a queue for peer " + peer +
                      ", which does not exist");
    } else if (!snapshot.peer_views.contains(server)) {
      found.push_back("the queue of dead server " + to_string(server) + " for peer " + peer +
                      " was not claimed");
    }
  }
}

void check_effects(const ClusterSnapshot& snapshot, Findings& found) {
  for (const auto& [key, times] : snapshot.effects) {
    if (times != 1) {
      found.push_back("effect " + key + " took place " + std::to_string(times) + " times");
    }
  }
}

}  // namespace

void add_rows(const CatalogueState& catalogue, ClusterSnapshot& snapshot) {
  for (const auto& [name, kept] : catalogue.namespaces()) snapshot.namespaces.push_back(kept.row);
  for (const auto& [name, kept] : catalogue.tables()) snapshot.tables.push_back(kept.row);
  for (const auto& [id, kept] : catalogue.regions()) snapshot.regions.push_back(kept.row);
  for (const auto& [name, kept] : catalogue.servers()) snapshot.servers.push_back(kept.row);
}

std::vector<std::string> find_disorder(const ClusterSnapshot& snapshot) {
  Findings found;
  check_namespaces(snapshot, found);
  check_tables(snapshot, found);
  check_assignments(snapshot, found);
  check_servers(snapshot, found);
  check_peers(snapshot, found);
  check_effects(snapshot, found);
  return found;
}

}  // namespace pv2
