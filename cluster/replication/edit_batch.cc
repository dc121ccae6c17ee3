// SPDX-License-Identifier: Apache-2.0
//
// Edits of a log as the replicated mutations of writes.

#include "replication/edit_batch.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace pv2::cluster {
namespace {

// A write that holds up the regions of the other cluster no longer than a client's does.
constexpr std::size_t kWriteBytes = std::size_t{1} << 20;
constexpr std::size_t kWriteMutations = 8192;

bool contains(const std::vector<std::string>& ids, const std::string& id) {
  return std::ranges::find(ids, id) != ids.end();
}

bool is_shipped(const WalEntry& entry, const EditFilter& filter) {
  if (entry.table.name_space == kSystemNamespace) return false;
  if (contains(entry.origins, filter.peer_cluster)) return false;
  return filter.tables.empty() ||
         std::ranges::find(filter.tables, entry.table) != filter.tables.end();
}

std::size_t bytes_of(const Mutation& mutation) {
  return mutation.row.size() + mutation.family.size() + mutation.qualifier.size() +
         mutation.value.size() + 64;
}

using GroupKey = std::pair<TableName, std::vector<std::string>>;
using CellKey = std::tuple<std::string, std::string, std::string>;

}  // namespace

std::vector<EditGroup> edits_to_ship(const std::vector<WalEntry>& entries,
                                     const EditFilter& filter) {
  std::map<GroupKey, std::map<CellKey, Mutation>> found;
  for (const WalEntry& entry : entries) {
    if (!is_shipped(entry, filter)) continue;
    const EditVersion version{entry.opening, entry.sequence};
    std::map<CellKey, Mutation>* cells = nullptr;
    for (const StoredCell& cell : entry.cells) {
      if (cell.space != CellSpace::kCells) continue;
      if (cells == nullptr) cells = &found[{entry.table, entry.origins}];
      Mutation& mutation = (*cells)[{cell.row, cell.family, cell.qualifier}];
      if (!mutation.row.empty() && version <= mutation.version) continue;
      mutation = {.kind = cell.kind == CellKind::kPut ? MutationKind::kReplicatedPut
                                                      : MutationKind::kReplicatedDelete,
                  .row = cell.row,
                  .family = cell.family,
                  .qualifier = cell.qualifier,
                  .value = cell.value,
                  .version = version};
    }
  }
  std::vector<EditGroup> groups;
  for (auto& [key, cells] : found) {
    EditGroup& group = groups.emplace_back(EditGroup{key.first, key.second, {}});
    group.origins.push_back(filter.own_cluster);
    for (auto& [name, mutation] : cells) group.mutations.push_back(std::move(mutation));
  }
  return groups;
}

std::vector<std::vector<Mutation>> divide_edits(std::vector<Mutation> mutations,
                                                const std::vector<std::string>& starts) {
  const auto region_of = [&](const std::string& row) {
    return std::ranges::upper_bound(starts, row) - starts.begin();
  };
  std::vector<std::vector<Mutation>> writes;
  std::size_t bytes = 0;
  for (auto first = mutations.begin(); first != mutations.end();) {
    const auto last = std::find_if(first, mutations.end(), [&](const Mutation& mutation) {
      return mutation.row != first->row;
    });
    std::size_t row_bytes = 0;
    for (auto each = first; each != last; ++each) row_bytes += bytes_of(*each);
    const auto row_count = static_cast<std::size_t>(last - first);
    const bool fits = !writes.empty() && bytes + row_bytes <= kWriteBytes &&
                      writes.back().size() + row_count <= kWriteMutations &&
                      region_of(writes.back().front().row) == region_of(first->row);
    if (!fits) {
      writes.emplace_back();
      bytes = 0;
    }
    for (; first != last; ++first) {
      // A row that exceeds what one write may have.
      if (bytes + bytes_of(*first) > kWriteBytesMax / 2 ||
          writes.back().size() >= kMutationsMax / 2) {
        writes.emplace_back();
        bytes = 0;
      }
      bytes += bytes_of(*first);
      writes.back().push_back(std::move(*first));
    }
  }
  return writes;
}

}  // namespace pv2::cluster
