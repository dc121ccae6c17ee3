// SPDX-License-Identifier: Apache-2.0
//
// The rules of the catalogue. A whole write is checked before any of it is applied.

#include "pv2/procedures/catalogue_state.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace pv2 {
namespace {

Status does_not_follow(const std::string& what, std::string_view to, std::string_view from) {
  return {StatusCode::kFailedPrecondition,
          what + " cannot become " + std::string(to) + ": it is " + std::string(from)};
}

std::string in_words(const RegionRow& row) {
  std::string text(to_string(row.state));
  if (!row.server.empty()) text += " on " + to_string(row.server);
  return text;
}

/// Sorts the regions of a table by their place: a region that ends earlier comes first.
std::string order_of(const RegionInfo& region) {
  std::string key = region.start_key;
  key.append(2, '\0');  // no start key that goes on sorts before this one's id
  key += region.end_key.empty() ? "1" : '0' + region.end_key;
  return key + '\0' + region.id;
}

template <class Rows, class Key>
auto row_of(const Rows& rows, const Key& key) -> std::optional<decltype(rows.begin()->second.row)> {
  const auto found = rows.find(key);
  if (found == rows.end()) return std::nullopt;
  return found->second.row;
}

}  // namespace

Result<Applied> CatalogueState::check(const CatalogueWrite& write) const {
  if (was_applied(write)) return Applied::kBefore;
  for (const RegionRow& row : write.regions) {
    if (Status bad = check(row); !bad.ok()) return bad;
  }
  for (const ServerRow& row : write.servers) {
    if (Status bad = check(row); !bad.ok()) return bad;
  }
  return Applied::kNow;
}

Result<Applied> CatalogueState::apply(const CatalogueWrite& write) {
  Result<Applied> verdict = check(write);
  if (verdict.ok() && *verdict == Applied::kNow) record(write);
  return verdict;
}

void CatalogueState::record(const CatalogueWrite& write) {
  const std::string& key = write.effect_key;
  for (const NamespaceRow& row : write.namespaces) namespaces_[row.name] = {row, key};
  for (const TableRow& row : write.tables) tables_[row.descriptor.name] = {row, key};
  for (const RegionRow& row : write.regions) put_region(row, key);
  for (const ServerRow& row : write.servers) servers_[row.name] = {row, key};
  for (const std::string& name : write.removed_namespaces) namespaces_.erase(name);
  for (const TableName& name : write.removed_tables) tables_.erase(name);
  for (const std::string& id : write.removed_regions) remove_region(id);
}

bool CatalogueState::was_applied(const CatalogueWrite& write) const {
  // The rows of one write were written together, so one that still has its key speaks for all.
  const auto has_key = [&](const auto& rows, const auto& id) {
    const auto found = rows.find(id);
    return found != rows.end() && found->second.effect_key == write.effect_key;
  };
  const bool only_removes = write.namespaces.empty() && write.tables.empty() &&
                            write.regions.empty() && write.servers.empty();
  if (only_removes) return nothing_to_remove(write);
  return std::ranges::any_of(write.namespaces,
                             [&](const auto& row) { return has_key(namespaces_, row.name); }) ||
         std::ranges::any_of(
             write.tables,
             [&](const auto& row) { return has_key(tables_, row.descriptor.name); }) ||
         std::ranges::any_of(write.regions,
                             [&](const auto& row) { return has_key(regions_, row.region.id); }) ||
         std::ranges::any_of(write.servers,
                             [&](const auto& row) { return has_key(servers_, row.name); });
}

bool CatalogueState::nothing_to_remove(const CatalogueWrite& write) const {
  const auto is_gone = [](const auto& rows) {
    return [&rows](const auto& id) { return !rows.contains(id); };
  };
  return std::ranges::all_of(write.removed_namespaces, is_gone(namespaces_)) &&
         std::ranges::all_of(write.removed_tables, is_gone(tables_)) &&
         std::ranges::all_of(write.removed_regions, is_gone(regions_));
}

void CatalogueState::put_region(RegionRow row, const std::string& effect_key) {
  const std::string id = row.region.id;
  if (const auto old = regions_.find(id); old != regions_.end()) {
    // It never decreases, whatever the writer knew.
    row.open_sequence = std::max(row.open_sequence, old->second.row.open_sequence);
  }
  load(Kept<RegionRow>{std::move(row), effect_key});
}

void CatalogueState::remove_region(const std::string& id) {
  const auto found = regions_.find(id);
  if (found == regions_.end()) return;
  const RegionRow& row = found->second.row;
  if (const auto of_table = ids_by_table_.find(row.region.table); of_table != ids_by_table_.end()) {
    of_table->second.erase(order_of(row.region));
    if (of_table->second.empty()) ids_by_table_.erase(of_table);
  }
  if (const auto of_server = ids_by_server_.find(row.server); of_server != ids_by_server_.end()) {
    of_server->second.erase(id);
    if (of_server->second.empty()) ids_by_server_.erase(of_server);
  }
  regions_.erase(found);
}

void CatalogueState::load(Kept<NamespaceRow> row) {
  std::string name = row.row.name;
  namespaces_[std::move(name)] = std::move(row);
}
void CatalogueState::load(Kept<TableRow> row) {
  TableName name = row.row.descriptor.name;
  tables_[std::move(name)] = std::move(row);
}
void CatalogueState::load(Kept<RegionRow> kept) {
  remove_region(kept.row.region.id);
  const RegionRow& row = kept.row;
  ids_by_table_[row.region.table].emplace(order_of(row.region), row.region.id);
  if (is_placed(row.state)) ids_by_server_[row.server].insert(row.region.id);
  std::string id = row.region.id;
  regions_[std::move(id)] = std::move(kept);
}
void CatalogueState::load(Kept<ServerRow> row) {
  ServerName name = row.row.name;
  servers_[std::move(name)] = std::move(row);
}

Status CatalogueState::check(const RegionRow& row) const {
  const std::string what = "region " + row.region.id;
  const auto found = regions_.find(row.region.id);
  const RegionRow* const old = found == regions_.end() ? nullptr : &found->second.row;
  if (old != nullptr && old->region != row.region) {
    return {StatusCode::kFailedPrecondition, what + " has other keys, or is a region of " +
                                                 to_string(old->region.table) + ", not of " +
                                                 to_string(row.region.table)};
  }
  const bool needs_server = row.state == RegionState::kOpening || row.state == RegionState::kOpen ||
                            row.state == RegionState::kClosing;
  if (needs_server && is_dead(server(row.server).state)) {
    return {StatusCode::kFenced, what + " cannot become " + in_words(row) + ": that server is " +
                                     std::string(to_string(server(row.server).state))};
  }
  const auto from = [&](std::initializer_list<RegionState> states) {
    return old != nullptr && std::ranges::find(states, old->state) != states.end();
  };
  const bool same_server = old != nullptr && old->server == row.server;
  bool follows = false;
  switch (row.state) {
    case RegionState::kClosed:
      follows = old == nullptr || from({RegionState::kClosed, RegionState::kFailedOpen}) ||
                (same_server && from({RegionState::kClosing}));
      break;
    case RegionState::kOpening:
      follows =
          from({RegionState::kClosed, RegionState::kFailedOpen, RegionState::kOpening,
                RegionState::kAbnormallyClosed}) ||
          (from({RegionState::kOpen, RegionState::kClosing}) && is_dead(server(old->server).state));
      break;
    case RegionState::kOpen:
      follows = same_server && from({RegionState::kOpening, RegionState::kOpen}) &&
                row.open_sequence >= old->open_sequence;
      break;
    case RegionState::kClosing:
      follows = same_server && from({RegionState::kOpen, RegionState::kClosing});
      break;
    case RegionState::kAbnormallyClosed:
      follows = same_server && is_placed(old->state);
      break;
    case RegionState::kSplit:
      follows = from({RegionState::kClosed, RegionState::kSplit});
      break;
    case RegionState::kFailedOpen:
      follows = from({RegionState::kFailedOpen}) || (same_server && from({RegionState::kOpening}));
      break;
  }
  if (!follows) {
    return does_not_follow(what, in_words(row),
                           old == nullptr ? "not in the catalogue" : in_words(*old));
  }
  return old == nullptr ? Status() : check_home(row, *old);
}

Status CatalogueState::check_home(const RegionRow& row, const RegionRow& old) const {
  const bool leaves = is_placed(old.state) &&
                      (row.server != old.server || row.state == RegionState::kAbnormallyClosed ||
                       row.state == RegionState::kFailedOpen);
  if (!leaves) return {};
  const ServerRow home = server(old.server);
  const bool recovered =
      is_recovered(home.state) || (is_meta(row.region.table) && home.meta_recovered);
  if (!is_dead(home.state) || recovered) return {};
  return {StatusCode::kFailedPrecondition,
          "region " + row.region.id + " cannot become " + in_words(row) + ": it is " +
              in_words(old) + ", and the logs of that server, which crashed, are not split yet"};
}

Status CatalogueState::check(const ServerRow& row) const {
  const ServerState old = server(row.name).state;
  bool follows = false;
  switch (row.state) {
    case ServerState::kOnline:
      follows = old == ServerState::kOnline;
      break;
    case ServerState::kCrashed:
      follows = old == ServerState::kOnline || old == ServerState::kCrashed;
      break;
    case ServerState::kRecovered:
      follows = old == ServerState::kCrashed || old == ServerState::kRecovered;
      break;
    case ServerState::kRetired:
      follows = old == ServerState::kRecovered || old == ServerState::kRetired;
      break;
  }
  if (follows) return {};
  return does_not_follow("server " + to_string(row.name), to_string(row.state), to_string(old));
}

std::optional<NamespaceRow> CatalogueState::name_space(const std::string& name) const {
  return row_of(namespaces_, name);
}
std::optional<TableRow> CatalogueState::table(const TableName& name) const {
  return row_of(tables_, name);
}
std::optional<RegionRow> CatalogueState::region(const std::string& id) const {
  return row_of(regions_, id);
}

std::vector<TableName> CatalogueState::tables_of(const std::string& name_space) const {
  std::vector<TableName> names;
  for (auto at = tables_.lower_bound({name_space, ""});
       at != tables_.end() && at->first.name_space == name_space; ++at) {
    names.push_back(at->first);
  }
  return names;
}

std::vector<RegionRow> CatalogueState::regions_of(const TableName& table) const {
  std::vector<RegionRow> rows;
  const auto found = ids_by_table_.find(table);
  if (found == ids_by_table_.end()) return rows;
  rows.reserve(found->second.size());
  for (const auto& [order, id] : found->second) rows.push_back(regions_.at(id).row);
  return rows;
}

std::vector<RegionRow> CatalogueState::regions_on(const ServerName& server,
                                                  const RegionIds& ids) const {
  std::vector<RegionRow> rows;
  const auto found = ids_by_server_.find(server);
  if (found == ids_by_server_.end()) return rows;
  for (auto id = found->second.lower_bound(ids.first); id != found->second.end(); ++id) {
    if (!ids.end.empty() && *id >= ids.end) break;
    rows.push_back(regions_.at(*id).row);
  }
  return rows;
}

ServerRow CatalogueState::server(const ServerName& name) const {
  const auto found = servers_.find(name);
  return found == servers_.end() ? ServerRow{name} : found->second.row;
}

}  // namespace pv2
