// SPDX-License-Identifier: Apache-2.0
//
// Each call as work on the queue.

#include "master/table_files_port.h"

#include <algorithm>
#include <map>
#include <utility>

namespace pv2::cluster {
namespace {

Status make_references_of(const TableDirectories& directories,
                          const std::vector<RegionInfo>& parents,
                          const std::vector<RegionInfo>& children) {
  if (parents.size() == 1) return directories.make_daughters(parents.front(), children);
  if (children.size() == 1) return directories.make_merged(parents, children.front());
  return {StatusCode::kInvalidArgument, "a split has one parent, and a merge has one child"};
}

Status carry_sequences_of(const TableDirectories& directories,
                          const std::vector<RegionInfo>& parents,
                          const std::vector<RegionInfo>& children) {
  std::uint64_t highest = 0;
  for (const RegionInfo& parent : parents) {
    const Result<std::uint64_t> sequence = directories.max_sequence(parent);
    if (!sequence.ok()) return sequence.status();
    highest = std::max(highest, *sequence);
  }
  for (const RegionInfo& child : children) {
    if (Status bad = directories.raise_max_sequence(child, highest); !bad.ok()) return bad;
  }
  return {};
}

Result<bool> any_recovered_edits(const TableDirectories& directories,
                                 const std::vector<RegionInfo>& regions) {
  for (const RegionInfo& region : regions) {
    const Result<bool> has = directories.has_recovered_edits(region);
    if (!has.ok() || *has) return has;
  }
  return false;
}

Result<bool> any_data(const TableDirectories& directories, const TableName& table) {
  const Result<std::vector<RegionInfo>> regions = directories.regions(table);
  if (!regions.ok()) return regions.status();
  for (const RegionInfo& region : *regions) {
    const Result<std::uint64_t> sequence = directories.max_sequence(region);
    if (!sequence.ok()) return sequence.status();
    if (*sequence > 0) return true;
  }
  return any_recovered_edits(directories, *regions);
}

Status remove_regions_of(const TableDirectories& directories,
                         const std::vector<RegionInfo>& regions) {
  std::map<TableName, std::vector<std::string>> ids;
  for (const RegionInfo& region : regions) ids[region.table].push_back(region.id);
  for (const auto& [table, region_ids] : ids) {
    if (Status bad = directories.remove_regions(table, region_ids); !bad.ok()) return bad;
  }
  return {};
}

}  // namespace

template <class T, class Work>
void TableFilesPort::run(ClusterCall call, std::string effect_key, Completion<T> done, Work work) {
  probe_.asked(call, effect_key);
  queue_.run([this, call, key = std::move(effect_key), done = std::move(done),
              work = std::move(work)]() mutable {
    T answer = work();
    probe_.done(call, key);
    done(std::move(answer));
  });
}

void TableFilesPort::make_namespace(std::string name, std::string effect_key,
                                    Completion<Status> done) {
  run(ClusterCall::kMakeNamespace, std::move(effect_key), std::move(done),
      [this, name = std::move(name)] { return directories_.make_namespace(name); });
}

void TableFilesPort::remove_namespace(std::string name, std::string effect_key,
                                      Completion<Status> done) {
  run(ClusterCall::kRemoveNamespace, std::move(effect_key), std::move(done),
      [this, name = std::move(name)] { return directories_.remove_namespace(name); });
}

void TableFilesPort::write_layout(TableDescriptor descriptor, std::vector<RegionInfo> regions,
                                  std::string effect_key, Completion<Status> done) {
  run(ClusterCall::kWriteLayout, std::move(effect_key), std::move(done),
      [this, descriptor = std::move(descriptor), regions = std::move(regions)] {
        return directories_.write_layout(descriptor, regions);
      });
}

void TableFilesPort::read_descriptor(TableName table,
                                     Completion<Result<std::optional<TableDescriptor>>> done) {
  run(ClusterCall::kReadDescriptor, {}, std::move(done),
      [this, table = std::move(table)]() -> Result<std::optional<TableDescriptor>> {
        Result<TableDescriptor> read = directories_.read_descriptor(table);
        if (read.ok()) return std::optional<TableDescriptor>(*std::move(read));
        if (read.status().code() != StatusCode::kNotFound) return read.status();
        return std::optional<TableDescriptor>();
      });
}

void TableFilesPort::write_descriptor(TableDescriptor descriptor, std::string effect_key,
                                      Completion<Status> done) {
  run(ClusterCall::kWriteDescriptor, std::move(effect_key), std::move(done),
      [this, descriptor = std::move(descriptor)] {
        return directories_.write_descriptor(descriptor);
      });
}

void TableFilesPort::archive_table(TableName table, std::string effect_key,
                                   Completion<Status> done) {
  run(ClusterCall::kArchiveTable, std::move(effect_key), std::move(done),
      [this, table = std::move(table)] { return directories_.archive_table(table); });
}

void TableFilesPort::holds_data(TableName table, Completion<Result<bool>> done) {
  run(ClusterCall::kHoldsData, {}, std::move(done),
      [this, table = std::move(table)] { return any_data(directories_, table); });
}

void TableFilesPort::make_references(std::vector<RegionInfo> parents,
                                     std::vector<RegionInfo> children, std::string effect_key,
                                     Completion<Status> done) {
  run(ClusterCall::kMakeReferences, std::move(effect_key), std::move(done),
      [this, parents = std::move(parents), children = std::move(children)] {
        return make_references_of(directories_, parents, children);
      });
}

void TableFilesPort::carry_sequences(std::vector<RegionInfo> parents,
                                     std::vector<RegionInfo> children, std::string effect_key,
                                     Completion<Status> done) {
  run(ClusterCall::kCarrySequences, std::move(effect_key), std::move(done),
      [this, parents = std::move(parents), children = std::move(children)] {
        return carry_sequences_of(directories_, parents, children);
      });
}

void TableFilesPort::remove_regions(std::vector<RegionInfo> regions, std::string effect_key,
                                    Completion<Status> done) {
  run(ClusterCall::kRemoveRegions, std::move(effect_key), std::move(done),
      [this, regions = std::move(regions)] { return remove_regions_of(directories_, regions); });
}

void TableFilesPort::has_recovered_edits(std::vector<RegionInfo> regions,
                                         Completion<Result<bool>> done) {
  run(ClusterCall::kHasRecoveredEdits, {}, std::move(done),
      [this, regions = std::move(regions)] { return any_recovered_edits(directories_, regions); });
}

}  // namespace pv2::cluster
