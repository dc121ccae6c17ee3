// SPDX-License-Identifier: Apache-2.0
//
// What the calls do to the world in memory. Each is idempotent in the way in which a real cluster's
// is: by effect key at the servers, by looking at what is there in the files.

#include "memory_world.h"

#include <algorithm>

namespace pv2 {
namespace {

// So few that a test with a handful of rows has several logs to split.
constexpr std::size_t kEditsPerLog = 2;

bool contains(const RegionInfo& region, const std::string& row) {
  return row >= region.start_key && (region.end_key.empty() || row < region.end_key);
}

}  // namespace

ServerName MemoryWorld::add_server(std::string_view host) {
  ServerName name{std::string(host), ++last_start_code_};
  Server& server = servers[name];
  server.logs[LogKind::kUser].push_back({"u1", {}});
  server.peers = peers;  // a server that starts reads what is stored
  for (const auto& [id, peer] : peers) queues.emplace(id, name);
  return name;
}

void MemoryWorld::kill(Server& server) {
  server.alive = false;
  server.open.clear();
}

bool MemoryWorld::write_row(const TableName& table, const std::string& row) {
  for (auto& [name, server] : servers) {
    if (!server.alive) continue;
    for (auto& [id, region] : server.open) {
      if (region.info.table != table || !region.serves || !contains(region.info, row)) continue;
      std::vector<Log>& logs = server.logs[is_meta(table) ? LogKind::kMeta : LogKind::kUser];
      if (logs.empty() || logs.back().edits.size() >= kEditsPerLog) {
        const char kind = is_meta(table) ? 'm' : 'u';
        logs.push_back({kind + std::to_string(logs.size() + 1), {}});
      }
      logs.back().edits.emplace_back(id, row);
      region.rows.insert(row);
      return true;
    }
  }
  return false;
}

MemoryWorld::Rows MemoryWorld::readable_rows(const TableName& table) const {
  Rows all;
  for (const auto& [name, server] : servers) {
    for (const auto& [id, region] : server.open) {
      if (!server.alive || !region.serves || region.info.table != table) continue;
      all.insert(region.rows.begin(), region.rows.end());
      const auto of_table = tables.find(table);
      if (of_table == tables.end()) continue;
      const auto directory = of_table->second.regions.find(id);
      if (directory == of_table->second.regions.end()) continue;
      all.insert(directory->second.rows.begin(), directory->second.rows.end());
    }
  }
  return all;
}

bool MemoryWorld::catalogue_is_online() const {
  const std::optional<RegionRow> row = catalogue.region(meta_region().id);
  if (!row) return true;  // a cluster without a region for it keeps the catalogue elsewhere
  const auto server = servers.find(row->server);
  if (row->state != RegionState::kOpen || server == servers.end()) return false;
  const auto region = server->second.open.find(row->region.id);
  return server->second.alive && region != server->second.open.end() && region->second.serves;
}

MemoryWorld::RegionDirectory* MemoryWorld::directory_of(const RegionInfo& region) {
  const auto table = tables.find(region.table);
  if (table == tables.end()) return nullptr;
  const auto found = table->second.regions.find(region.id);
  return found == table->second.regions.end() ? nullptr : &found->second;
}

void MemoryWorld::lay_out(const TableDescriptor& descriptor, const std::vector<RegionInfo>& regions,
                          bool half, const std::string& effect_key) {
  namespace_directories.insert(descriptor.name.name_space);
  TableDirectory& directory = tables[descriptor.name];
  if (directory.descriptor != descriptor) ++effects["descriptor " + effect_key];
  directory.descriptor = descriptor;
  std::set<std::string> wanted;
  std::size_t left = half ? regions.size() / 2 : regions.size();
  for (const RegionInfo& region : regions) {
    wanted.insert(region.id);
    if (left == 0) continue;
    --left;
    if (directory.regions.try_emplace(region.id, RegionDirectory{region, {}, {}, 0}).second) {
      ++effects["directory " + region.id + ' ' + effect_key];
    }
  }
  if (half) return;
  std::erase_if(directory.regions,
                [&](const auto& entry) { return !wanted.contains(entry.first); });
}

void MemoryWorld::archive_table(const TableName& table, bool half) {
  const auto found = tables.find(table);
  if (found == tables.end()) return;
  auto& regions = found->second.regions;
  if (half) {
    regions.erase(regions.begin(),
                  std::next(regions.begin(), static_cast<std::ptrdiff_t>(regions.size() / 2)));
  } else {
    tables.erase(found);
  }
}

void MemoryWorld::make_references(const std::vector<RegionInfo>& parents,
                                  const std::vector<RegionInfo>& children, bool half,
                                  const std::string& effect_key) {
  std::size_t left = half ? children.size() / 2 : children.size();
  for (const RegionInfo& child : children) {
    if (left-- == 0) return;
    auto [at, made] = tables[child.table].regions.try_emplace(child.id);
    if (made) ++effects["directory " + child.id + ' ' + effect_key];
    at->second.info = child;
    for (const RegionInfo& parent : parents) {
      const RegionDirectory* const from = directory_of(parent);
      if (from == nullptr) continue;
      for (const std::string& row : from->rows) {
        if (contains(child, row)) at->second.rows.insert(row);
      }
    }
  }
}

void MemoryWorld::carry_sequences(const std::vector<RegionInfo>& parents,
                                  const std::vector<RegionInfo>& children, bool half) {
  std::uint64_t highest = 0;
  for (const RegionInfo& parent : parents) {
    if (const auto* directory = directory_of(parent)) {
      highest = std::max(highest, directory->max_sequence);
    }
  }
  std::size_t left = half ? children.size() / 2 : children.size();
  for (const RegionInfo& child : children) {
    if (left-- == 0) return;
    if (auto* directory = directory_of(child)) {
      directory->max_sequence = std::max(directory->max_sequence, highest);
    }
  }
}

void MemoryWorld::remove_regions(const std::vector<RegionInfo>& regions, bool half) {
  std::size_t left = half ? regions.size() / 2 : regions.size();
  for (const RegionInfo& region : regions) {
    if (left-- == 0) return;
    if (const auto table = tables.find(region.table); table != tables.end()) {
      table->second.regions.erase(region.id);
    }
  }
}

bool MemoryWorld::has_recovered_edits(const std::vector<RegionInfo>& regions) const {
  return std::ranges::any_of(regions, [&](const RegionInfo& region) {
    const auto table = tables.find(region.table);
    if (table == tables.end()) return false;
    const auto found = table->second.regions.find(region.id);
    return found != table->second.regions.end() && !found->second.recovered.empty();
  });
}

DispatchOutcome MemoryWorld::execute(Server& server, const RemoteOperation& operation, Mood mood) {
  const std::string& key = operation.effect_key;
  if (const auto said = server.answered.find(key); said != server.answered.end()) {
    return said->second;
  }
  DispatchOutcome answer{DispatchOutcome::Kind::kDone, ""};
  if (mood == Mood::kRefuses) {
    answer = {DispatchOutcome::Kind::kRefused, "the script says that the server refuses"};
  } else if (mood == Mood::kFails) {
    server.reported[key] = {
        operation.kind, operation.server, key, false, 0, "the script says that it fails"};
  } else {
    server.reported[key] = run(server, operation);
  }
  server.answered[key] = answer;
  return answer;
}

RemoteReport MemoryWorld::run(Server& server, const RemoteOperation& operation) {
  RemoteReport report{operation.kind, operation.server, operation.effect_key, true, 0, ""};
  RegionDirectory* const directory = directory_of(operation.region);
  switch (operation.kind) {
    case RemoteKind::kOpenRegion: {
      ++effects["open " + operation.effect_key];
      // A region that is open here is closed first, with its edits in its files.
      if (const auto before = server.open.find(operation.region.id);
          before != server.open.end() && directory != nullptr) {
        directory->rows.merge(before->second.rows);
      }
      OpenedRegion opened{
          operation.region, operation.sequence + 1, operation.effect_key, false, {}};
      if (directory != nullptr) {
        directory->rows.merge(directory->recovered);
        directory->recovered.clear();
        opened.sequence = std::max(opened.sequence, directory->max_sequence + 1);
        directory->max_sequence = opened.sequence;
      }
      if (is_meta(operation.region.table) && server.logs[LogKind::kMeta].empty()) {
        server.logs[LogKind::kMeta].push_back({"m1", {}});
      }
      report.sequence = opened.sequence;
      server.open[operation.region.id] = std::move(opened);
      break;
    }
    case RemoteKind::kCloseRegion: {
      ++effects["close " + operation.effect_key];
      const auto open = server.open.find(operation.region.id);
      if (open == server.open.end()) break;  // it never had the region: as good as closed
      report.sequence = open->second.sequence;
      if (directory != nullptr) directory->rows.merge(open->second.rows);
      server.open.erase(open);
      break;
    }
    case RemoteKind::kSplitLog:
      split_log(operation);
      break;
    case RemoteKind::kRefreshPeer:
      if (const auto stored = peers.find(operation.peer); stored != peers.end()) {
        server.peers[operation.peer] = stored->second;
        queues.emplace(operation.peer, operation.server);
      } else {
        server.peers.erase(operation.peer);
      }
      break;
    case RemoteKind::kClaimQueues:
      if (queues.erase({operation.peer, operation.dead}) > 0) {
        queues.emplace(operation.peer, operation.server);
      }
      break;
  }
  return report;
}

void MemoryWorld::split_log(const RemoteOperation& operation) {
  const auto dead = servers.find(operation.dead);
  if (dead == servers.end()) return;
  for (const auto& [kind, logs] : dead->second.logs) {
    for (const Log& log : logs) {
      if (log.name != file_of(operation.log)) continue;
      for (const auto& [region, row] : log.edits) {
        for (auto& [table, directory] : tables) {
          const auto found = directory.regions.find(region);
          if (found == directory.regions.end()) continue;
          if (!found->second.rows.contains(row)) found->second.recovered.insert(row);
        }
      }
    }
  }
}

void MemoryWorld::accept(Server& server, const RemoteReport& report) {
  if (!server.alive || !report.done || report.kind != RemoteKind::kOpenRegion) return;
  for (auto& [id, region] : server.open) {
    if (region.effect_key == report.effect_key) region.serves = true;
  }
}

void MemoryWorld::forget_effects() {
  effects.clear();
  for (auto& [name, server] : servers) {
    server.answered.clear();
    server.reported.clear();
    for (auto& [id, region] : server.open) region.effect_key.clear();
  }
  const auto forget = [this](const auto& rows) {
    for (auto [id, kept] : std::map(rows)) {
      kept.effect_key.clear();
      catalogue.load(std::move(kept));
    }
  };
  forget(catalogue.namespaces());
  forget(catalogue.tables());
  forget(catalogue.regions());
  forget(catalogue.servers());
}

void MemoryWorld::describe(ClusterSnapshot& snapshot) const {
  add_rows(catalogue, snapshot);
  snapshot.namespace_directories = namespace_directories;
  for (const auto& [name, directory] : tables) {
    std::vector<std::string> ids;
    for (const auto& [id, region] : directory.regions) ids.push_back(id);
    snapshot.directories.push_back(
        {directory.descriptor.value_or(TableDescriptor{name, {}}), std::move(ids)});
  }
  for (const auto& [name, descriptor] : cached) snapshot.cached.push_back(descriptor);
  for (const auto& [name, server] : servers) {
    if (!server.alive) continue;
    auto& open = snapshot.open[name];
    for (const auto& [id, region] : server.open) open[id] = region.sequence;
    snapshot.peer_views[name] = server.peers;
  }
  for (const auto& [id, peer] : peers) {
    if (damaged_peers.contains(id)) {
      snapshot.unreadable_peers[id] = "it is damaged";
    } else {
      snapshot.peers[id] = peer;
    }
  }
  snapshot.queues = queues;
  snapshot.effects = effects;
}

}  // namespace pv2
