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

// What the region's files lack of `entries`; no value: nothing.
Result<std::optional<NewFile>> recovered_file(const FileTree& files, const ClusterLayout& layout,
                                              const RegionKey& region, const std::string& name,
                                              std::vector<WalEntry>& entries) {
  const auto& [table, id] = region;
  const Result<RegionFiles> list = read_region_files(files, layout, table, id);
  if (!list.ok()) return list.status();
  std::erase_if(entries,
                [&](const WalEntry& entry) { return entry.sequence <= list->max_sequence; });
  if (entries.empty()) return std::optional<NewFile>();
  return std::optional<NewFile>(
      NewFile{layout.recovered_file(table, id, name), encode_entries(entries)});
}

Result<bool> is_there(const FileTree& files, const ClusterLayout& layout, const RegionKey& region) {
  return files.is_there(layout.region_info(region.first, region.second));
}

// A region may be removed meanwhile, and what was for it is dropped then.
Status write_recovered(const FileTree& files, const ClusterLayout& layout,
                       const std::map<RegionKey, NewFile>& recovered) {
  std::vector<NewFile> all;
  for (const auto& [region, file] : recovered) all.push_back(file);
  if (files.write_all(all).ok()) return {};
  for (const auto& [region, file] : recovered) {
    const Status bad = files.write_all({file});
    if (bad.ok()) continue;
    const Result<bool> there = is_there(files, layout, region);
    if (!there.ok() || *there) return bad.with_context("region " + region.second);
  }
  return {};
}

// Nothing proves that the last writes of the server's last log are on the disk, although they can
// be read here: its sync may have failed, and what failed counts as written for the file system.
// The regions get them durably, so the log must have them durably too, from which replication ships
// them. Only the part that is split is written: a splitter that comes late may bring back a log
// that is archived already, and it must be archived again under the same name.
Status keep_in_log(const FileTree& files, const ClusterLayout& layout, const ServerName& server,
                   const LogFile& log, std::string_view bytes) {
  const std::string directory = layout.splitting(server);
  const auto number = ClusterLayout::parse_old_wal(ClusterLayout::log_name(server, log.name));
  // A server begins a log after the sync of all of the one before.
  const bool is_synced =
      number && files.exists(fmt::format("{}/{}{}", directory, number->kind, number->number + 1));
  return is_synced ? Status() : files.write(directory + "/" + log.name, bytes);
}

}  // namespace

Result<SplitCount> split_log(const FileTree& files, const ClusterLayout& layout,
                             const ServerName& server, const LogFile& log) {
  const std::string name = ClusterLayout::log_name(server, log.name);
  const std::string path = layout.splitting(server) + "/" + log.name;
  const Result<std::string> bytes = files.read(path);
  if (!bytes.ok()) return bytes.status();

  SplitCount count;
  std::map<RegionKey, std::vector<WalEntry>> regions;
  const std::string_view part = std::string_view(*bytes).substr(0, log.size);
  Status bad = read_wal(part, name, [&](WalEntry& entry) {
    ++count.entries;
    const RegionKey key(entry.table, entry.region_id);
    regions[key].push_back(std::move(entry));
    return Status();
  });
  if (!bad.ok()) return bad;
  if (count.entries > 0) bad = keep_in_log(files, layout, server, log, part);
  if (!bad.ok()) return bad;

  std::map<RegionKey, NewFile> recovered;
  std::vector<std::string> believed;  // the directories of the lists that say what is not needed
  for (auto& [region, entries] : regions) {
    const Result<bool> there = is_there(files, layout, region);
    if (!there.ok()) return there.status().with_context("region " + region.second);
    if (!*there) continue;  // removed: see the head of log_splitter.h
    const std::size_t logged = entries.size();
    Result<std::optional<NewFile>> file = recovered_file(files, layout, region, name, entries);
    if (!file.ok()) return file.status().with_context("region " + region.second);
    if (entries.size() < logged) believed.push_back(layout.region(region.first, region.second));
    if (!file->has_value()) continue;
    recovered.emplace(region, **std::move(file));
    ++count.regions;
    count.kept += entries.size();
  }
  bad = write_recovered(files, layout, recovered);
  if (!bad.ok()) return bad.with_context("splitting log " + name);
  // The server may have died after it had renamed a list and before that was durable. A power cut
  // must not bring back the list before, when the log is gone.
  if (bad = files.sync_directories(believed); !bad.ok()) {
    return bad.with_context("splitting log " + name);
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
