// SPDX-License-Identifier: Apache-2.0
//
// A recovered file is a row of frames, one for each entry. It is written whole, so a bad frame in
// it is damage.

#include "storage/log_splitter.h"

#include <fmt/core.h>
#include <pv2/base/fields.h>
#include <pv2/base/frame.h>

#include <map>
#include <optional>
#include <utility>

#include "storage/region_files.h"
#include "storage/write_ahead_log.h"

namespace pv2::cluster {
namespace {

using RegionKey = std::pair<TableName, std::string>;

std::string encode_entries(std::vector<WalEntry>& entries) {
  std::string bytes;
  for (WalEntry& entry : entries) {
    FrameWriter frame(bytes);
    encode_fields(entry, FieldSelection::kAll, bytes);
    frame.finish();
  }
  return bytes;
}

Result<std::vector<WalEntry>> decode_entries(std::string_view bytes, const std::string& path) {
  std::vector<WalEntry> entries;
  while (!bytes.empty()) {
    const std::optional<std::string_view> frame = read_frame(bytes);
    if (!frame) return Status(StatusCode::kCorruption, path + " is damaged");
    Status bad = decode_fields(entries.emplace_back(), FieldSelection::kAll, *frame);
    if (!bad.ok()) return bad.with_context(path);
  }
  return entries;
}

// Whether there is a file now.
Result<bool> write_recovered(const FileTree& files, const ClusterLayout& layout,
                             const RegionKey& region, const std::string& name,
                             std::vector<WalEntry>& entries) {
  const auto& [table, id] = region;
  if (!files.exists(layout.region_info(table, id))) return false;  // removed
  const Result<RegionFiles> list = read_region_files(files, layout, table, id);
  if (!list.ok()) return list.status();
  std::erase_if(entries,
                [&](const WalEntry& entry) { return entry.sequence <= list->max_sequence; });
  if (entries.empty()) return false;
  // Not the directories above it: the region may be removed meanwhile.
  Status bad = files.make_directory(layout.recovered(table, id));
  if (bad.ok()) bad = files.write(layout.recovered_file(table, id, name), encode_entries(entries));
  if (!bad.ok() && !files.exists(layout.region_info(table, id))) return false;
  if (!bad.ok()) return bad;
  return true;
}

}  // namespace

Result<SplitCount> split_log(const FileTree& files, const ClusterLayout& layout,
                             const ServerName& server, const LogFile& log) {
  const std::string name = ClusterLayout::log_name(server, log.name);
  const Result<std::string> bytes = files.read(layout.splitting(server) + "/" + log.name);
  if (!bytes.ok()) return bytes.status();

  SplitCount count;
  std::map<RegionKey, std::vector<WalEntry>> regions;
  Status bad = read_wal(std::string_view(*bytes).substr(0, log.size), name, [&](WalEntry& entry) {
    ++count.entries;
    const RegionKey key(entry.table, entry.region_id);
    regions[key].push_back(std::move(entry));
    return Status();
  });
  if (!bad.ok()) return bad;

  for (auto& [region, entries] : regions) {
    const Result<bool> written = write_recovered(files, layout, region, name, entries);
    if (!written.ok())
      return written.status().with_context(
          fmt::format("splitting log {} for region {}", name, region.second));
    if (!*written) continue;
    ++count.regions;
    count.kept += entries.size();
  }
  return count;
}

Result<std::vector<RecoveredFile>> read_recovered(const FileTree& files,
                                                  const ClusterLayout& layout,
                                                  const TableName& table,
                                                  std::string_view region_id) {
  const Result<std::vector<std::string>> names = files.list(layout.recovered(table, region_id));
  if (!names.ok()) return names.status();
  std::vector<RecoveredFile> found;
  for (const std::string& name : *names) {
    const std::string path = layout.recovered_file(table, region_id, name);
    const Result<std::string> bytes = files.read(path);
    if (bytes.status().code() == StatusCode::kNotFound)
      return Status(StatusCode::kUnavailable, path + " was replayed by another opening");
    if (!bytes.ok()) return bytes.status();
    Result<std::vector<WalEntry>> entries = decode_entries(*bytes, path);
    if (!entries.ok()) return entries.status();
    found.push_back({path, *std::move(entries)});
  }
  return found;
}

}  // namespace pv2::cluster
