// SPDX-License-Identifier: Apache-2.0
//
// The part of TableDirectories about regions: their directories, references, the archive.

#include <fmt/core.h>

#include <algorithm>

#include "storage/framed_fields.h"
#include "storage/log_splitter.h"
#include "storage/region_files.h"
#include "storage/table_directories.h"

namespace pv2::cluster {

Result<std::vector<std::string>> TableDirectories::region_ids(const TableName& table) const {
  const Result<std::vector<std::string>> names = files_.list(layout_.table(table));
  if (!names.ok()) return names.status();
  std::vector<std::string> ids;
  for (const std::string& name : *names) {
    if (!ClusterLayout::is_descriptors(name)) ids.push_back(ClusterLayout::decode_name(name));
  }
  return ids;
}

Result<std::vector<RegionInfo>> TableDirectories::regions(const TableName& table) const {
  const Result<std::vector<std::string>> ids = region_ids(table);
  if (!ids.ok()) return ids.status();
  std::vector<RegionInfo> regions;
  for (const std::string& id : *ids) {
    const std::string path = layout_.region_info(table, id);
    const Result<std::string> bytes = files_.read(path);
    if (bytes.status().code() == StatusCode::kNotFound) continue;
    if (!bytes.ok()) return bytes.status();
    if (Status bad = decode_framed(*bytes, regions.emplace_back()); !bad.ok())
      return bad.with_context(path);
  }
  std::ranges::stable_sort(regions, {}, &RegionInfo::start_key);
  return regions;
}

Status TableDirectories::make_region(const RegionInfo& region) const {
  if (Status bad = files_.make_directories(layout_.region(region.table, region.id)); !bad.ok())
    return bad;
  const std::string path = layout_.region_info(region.table, region.id);
  const std::string bytes = encode_framed(region);
  const Result<std::string> present = files_.read(path);
  if (present.ok() && *present == bytes) return files_.sync_directory(parent_directory(path));
  return files_.write(path, bytes);
}

Status TableDirectories::make_regions(const std::vector<RegionInfo>& regions) const {
  std::vector<NewFile> files;
  for (const RegionInfo& region : regions) {
    files.push_back({layout_.region_info(region.table, region.id), encode_framed(region)});
  }
  return files_.write_all(files);
}

Status TableDirectories::remove_regions(const TableName& table,
                                        const std::vector<std::string>& region_ids) const {
  std::vector<std::string> directories;
  for (const std::string& id : region_ids) directories.push_back(layout_.region(table, id));
  return files_.remove_trees(directories);
}

Status TableDirectories::archive_regions(const TableName& table,
                                         const std::vector<std::string>& region_ids) const {
  std::vector<Renaming> moves;
  std::vector<std::string> archives;
  for (const std::string& id : region_ids) {
    const Result<std::vector<std::string>> names = files_.list(layout_.region(table, id));
    if (!names.ok()) return names.status();
    archives.push_back(layout_.archive(table, id));
    for (const std::string& name : *names) {
      if (!ClusterLayout::parse_store_file(name)) continue;
      moves.push_back(
          {layout_.store_file(table, id, name), layout_.archived_file(table, id, name)});
    }
  }
  // An earlier call may have died between a rename and the sync. Its files must be durable in the
  // archive before their regions' directories go.
  if (Status bad = files_.sync_directories(archives); !bad.ok()) return bad;
  if (!moves.empty()) {
    Status bad = files_.make_directories(parent_directory(archives.front()));
    if (bad.ok()) bad = files_.rename_all(moves);
    if (!bad.ok()) return bad.with_context("archiving regions of table " + to_string(table));
  }
  return remove_regions(table, region_ids);
}

Status TableDirectories::make_daughters(const RegionInfo& parent,
                                        const std::vector<RegionInfo>& daughters) const {
  for (const RegionInfo& daughter : daughters) {
    if (Status bad = write_references({parent}, daughter); !bad.ok()) return bad;
  }
  return {};
}

Status TableDirectories::make_merged(const std::vector<RegionInfo>& parents,
                                     const RegionInfo& merged) const {
  return write_references(parents, merged);
}

Status TableDirectories::write_references(const std::vector<RegionInfo>& parents,
                                          const RegionInfo& child) const {
  RegionFiles list;
  for (const RegionInfo& parent : parents) {
    const Result<bool> there = files_.is_there(layout_.region_info(parent.table, parent.id));
    if (!there.ok()) return there.status();
    if (!*there) return {StatusCode::kNotFound, "region " + parent.id + " has no directory"};
    const Result<RegionFiles> own = read_region_files(files_, layout_, parent.table, parent.id);
    if (!own.ok()) return own.status();
    list.max_sequence = std::max(list.max_sequence, own->max_sequence);
    // A reference of the parent becomes a reference of the child, to the same file.
    for (StoreFileEntry file : own->files) {
      file.start_key = std::max(file.start_key, parent.start_key);
      if (file.end_key.empty() || (!parent.end_key.empty() && parent.end_key < file.end_key))
        file.end_key = parent.end_key;
      list.files.push_back(std::move(file));
    }
    list.descriptor = std::max(list.descriptor, own->descriptor);
  }
  if (Status bad = files_.make_directories(layout_.region(child.table, child.id)); !bad.ok())
    return bad;
  Status written = write_region_files(files_, layout_, child.table, child.id, std::move(list));
  if (written.code() == StatusCode::kFenced) return {};  // opened already
  if (!written.ok()) return written;
  return make_region(child);
}

Result<std::uint64_t> TableDirectories::max_sequence(const RegionInfo& region) const {
  const Result<RegionFiles> list = read_region_files(files_, layout_, region.table, region.id);
  if (!list.ok()) return list.status();
  return list->max_sequence;
}

Status TableDirectories::raise_max_sequence(const RegionInfo& region,
                                            std::uint64_t sequence) const {
  Result<RegionFiles> list = read_region_files(files_, layout_, region.table, region.id);
  if (!list.ok()) return list.status();
  if (list->max_sequence >= sequence) {
    // An earlier call may have died between the rename and the sync.
    return files_.sync_directory(layout_.region(region.table, region.id));
  }
  list->max_sequence = sequence;
  Status written = list->opening == 0 ? write_region_files(files_, layout_, region.table, region.id,
                                                           *std::move(list))
                                      : Status(StatusCode::kFenced, "");
  if (written.code() == StatusCode::kFenced)
    return {StatusCode::kFailedPrecondition, "region " + region.id + " was opened already"};
  return written;
}

Result<bool> TableDirectories::has_recovered_edits(const RegionInfo& region) const {
  const auto recovered = read_recovered(files_, layout_, region.table, region.id);
  if (!recovered.ok()) return recovered.status();
  // After the files: an opening first lists what it replayed and then removes the file.
  const Result<std::uint64_t> flushed = max_sequence(region);
  if (!flushed.ok()) return flushed.status();
  return std::ranges::any_of(*recovered, [&](const RecoveredFile& file) {
    return std::ranges::any_of(file.entries,
                               [&](const WalEntry& entry) { return entry.sequence > *flushed; });
  });
}

Result<bool> TableDirectories::has_references(const RegionInfo& region) const {
  const Result<RegionFiles> list = read_region_files(files_, layout_, region.table, region.id);
  if (!list.ok()) return list.status();
  return list->has_references(region.id);
}

Result<std::map<std::string, std::set<std::string>>> TableDirectories::references(
    const TableName& table) const {
  const Result<std::vector<std::string>> ids = region_ids(table);
  if (!ids.ok()) return ids.status();
  std::map<std::string, std::set<std::string>> needed;
  for (const std::string& id : *ids) {
    const Result<RegionFiles> list = read_region_files(files_, layout_, table, id);
    if (!list.ok()) return list.status();
    for (const StoreFileEntry& file : list->files) {
      if (file.region_id != id) needed[file.region_id].insert(id);
    }
  }
  return needed;
}

}  // namespace pv2::cluster
