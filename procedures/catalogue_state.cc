// SPDX-License-Identifier: Apache-2.0
//
// The rules of the catalogue. A whole write is checked before any of it is applied.

#include "cluster/catalogue_state.h"

#include <algorithm>

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

}  // namespace

Result<Applied> CatalogueState::apply(const CatalogueWrite& write) {
  if (const auto known = effects_.find(write.effect_key); known != effects_.end()) {
    ++known->second;
    return Applied::kBefore;
  }
  for (const RegionRow& row : write.regions) {
    if (Status bad = check(row); !bad.ok()) return bad;
  }
  for (const ServerRow& row : write.servers) {
    if (Status bad = check(row); !bad.ok()) return bad;
  }
  for (const TableRow& row : write.tables) tables_[row.descriptor.name] = row;
  for (const RegionRow& row : write.regions) {
    RegionRow& kept = regions_[row.region.id];
    const std::uint64_t sequence = std::max(kept.open_sequence, row.open_sequence);
    kept = row;
    kept.open_sequence = sequence;  // it never decreases, whatever the writer knew
  }
  for (const ServerRow& row : write.servers) servers_[row.name] = row.state;
  effects_.emplace(write.effect_key, 1);
  return Applied::kNow;
}

Status CatalogueState::check(const RegionRow& row) const {
  const std::string what = "region " + row.region.id;
  const auto found = regions_.find(row.region.id);
  const RegionRow* const old = found == regions_.end() ? nullptr : &found->second;
  if (old != nullptr && old->region != row.region) {
    return {StatusCode::kFailedPrecondition, what + " is a region of " +
                                                 to_string(old->region.table) + ", not of " +
                                                 to_string(row.region.table)};
  }
  const bool new_home = row.state == RegionState::kOpening || row.state == RegionState::kOpen;
  if (new_home && server(row.server) != ServerState::kOnline) {
    return {StatusCode::kFenced, what + " cannot become " + in_words(row) + ": that server is " +
                                     std::string(to_string(server(row.server)))};
  }
  const auto from = [&](std::initializer_list<RegionState> states) {
    return old != nullptr && old->server == row.server &&
           std::ranges::find(states, old->state) != states.end();
  };
  bool follows = false;
  switch (row.state) {
    case RegionState::kClosed:
      follows = old == nullptr || old->state == RegionState::kClosed ||
                old->state == RegionState::kClosing;
      break;
    case RegionState::kOpening:
      follows = old != nullptr;
      break;
    case RegionState::kOpen:
      follows = from({RegionState::kOpening, RegionState::kOpen}) &&
                row.open_sequence >= old->open_sequence;
      break;
    case RegionState::kClosing:
      follows = from({RegionState::kOpen, RegionState::kClosing});
      break;
    case RegionState::kAbnormallyClosed:
      follows = from({RegionState::kOpening, RegionState::kOpen, RegionState::kClosing,
                      RegionState::kAbnormallyClosed});
      break;
  }
  if (follows) return {};
  return does_not_follow(what, in_words(row),
                         old == nullptr ? "not in the catalogue" : in_words(*old));
}

Status CatalogueState::check(const ServerRow& row) const {
  const ServerState old = server(row.name);
  bool follows = false;
  switch (row.state) {
    case ServerState::kOnline:
      follows = old == ServerState::kOnline;
      break;
    case ServerState::kCrashed:
      follows = old != ServerState::kRetired;
      break;
    case ServerState::kRetired:
      follows = old != ServerState::kOnline;
      break;
  }
  if (follows) return {};
  return does_not_follow("server " + to_string(row.name), to_string(row.state), to_string(old));
}

std::optional<TableRow> CatalogueState::table(const TableName& name) const {
  const auto found = tables_.find(name);
  if (found == tables_.end()) return std::nullopt;
  return found->second;
}

std::optional<RegionRow> CatalogueState::region(const std::string& id) const {
  const auto found = regions_.find(id);
  if (found == regions_.end()) return std::nullopt;
  return found->second;
}

std::vector<RegionRow> CatalogueState::regions_on(const ServerName& server) const {
  std::vector<RegionRow> rows;
  for (const auto& [id, row] : regions_) {
    if (row.server == server && row.state != RegionState::kClosed) rows.push_back(row);
  }
  return rows;
}

ServerState CatalogueState::server(const ServerName& name) const {
  const auto found = servers_.find(name);
  return found == servers_.end() ? ServerState::kOnline : found->second;
}

void CatalogueState::describe(ClusterSnapshot& snapshot) const {
  for (const auto& [name, row] : tables_) snapshot.tables.push_back(row);
  for (const auto& [id, row] : regions_) snapshot.regions.push_back(row);
  for (const auto& [name, state] : servers_) snapshot.servers.push_back({name, state});
}

}  // namespace pv2
