// SPDX-License-Identifier: Apache-2.0
//
// Each sweep lists first, and removes then what was of no use long enough. Before it removes
// anything it makes durable what it has read.

#include "master/old_files.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace pv2::cluster {
namespace {

constexpr char kUserLog = 'u';

// Who holds which queue.
std::set<std::tuple<std::string, ServerName, ServerName>> holders(
    const std::vector<StoredQueue>& queues) {
  std::set<std::tuple<std::string, ServerName, ServerName>> all;
  for (const StoredQueue& queue : queues) all.insert({queue.peer, queue.server, queue.owner});
  return all;
}

}  // namespace

// Begins to count for a path that it has not seen before.
std::vector<std::string> OldFiles::too_old(Since& since, const std::vector<std::string>& unneeded,
                                           SteadyTime now, Duration kept) const {
  Since still;
  std::vector<std::string> old;
  for (const std::string& path : unneeded) {
    const auto known = since.find(path);
    const SteadyTime first = known == since.end() ? now : known->second;
    still.emplace(path, first);
    if (now - first >= kept && old.size() < options_.removals_max) old.push_back(path);
  }
  since = std::move(still);
  return old;
}

Result<std::optional<OldFiles::Needed>> OldFiles::first_needed() const {
  const auto first = queues_.all();
  if (!first.ok()) return first.status();
  const auto second = queues_.all();
  if (!second.ok()) return second.status();
  if (holders(*first) != holders(*second)) return std::optional<Needed>();
  Needed needed;
  for (const auto& queues : {*first, *second}) {
    for (const StoredQueue& queue : queues) {
      // A queue whose position is not known may need any log.
      const std::uint64_t first_log = queue.problem.ok() ? queue.position.log : 0;
      if (needed.problem.ok()) needed.problem = queue.problem;
      const auto [log, is_new] = needed.first_logs.emplace(queue.owner, first_log);
      if (!is_new) log->second = std::min(log->second, first_log);
    }
  }
  return std::optional(std::move(needed));
}

OldFiles::Sweep OldFiles::sweep_logs(SteadyTime now) {
  const Result<std::vector<std::string>> names = files_.list(layout_.old_wals());
  if (!names.ok()) return {.status = names.status()};
  const auto needed = first_needed();
  if (!needed.ok()) return {.status = needed.status()};
  if (!needed->has_value()) return {};

  std::vector<std::string> unneeded;
  for (const std::string& name : *names) {
    const auto log = ClusterLayout::parse_old_wal(name);
    if (!log) continue;  // not ours
    const auto first = (*needed)->first_logs.find(log->server);
    const bool is_needed = log->kind == kUserLog && first != (*needed)->first_logs.end() &&
                           log->number >= first->second;
    if (is_needed) continue;
    unneeded.push_back(layout_.old_wals() + "/" + name);
  }
  Sweep sweep{.status = (*needed)->problem};
  const auto old = too_old(logs_since_, unneeded, now, options_.logs_kept);
  if (old.empty()) return sweep;
  Status status = sync_queues();
  for (const std::string& path : old) {
    if (status.ok()) status = files_.remove_file(path);
    if (!status.ok()) break;
    logs_since_.erase(path);
    ++sweep.removed;
  }
  if (status.ok()) status = files_.sync_directory(layout_.old_wals());
  if (!status.ok()) sweep.status = status;
  return sweep;
}

Status OldFiles::sync_queues() const {
  const auto queues = queues_.directories();
  if (!queues.ok()) return queues.status();
  std::vector<std::string> directories{layout_.queues()};
  for (const auto& [peer, server] : *queues) {
    directories.insert(directories.end(), {layout_.queues(peer), layout_.queue(peer, server)});
  }
  return files_.sync_directories(directories);
}

Status OldFiles::sync_regions(const TableName& table) const {
  const Result<std::vector<std::string>> ids = tables_.region_ids(table);
  if (!ids.ok()) return ids.status();
  std::vector<std::string> directories{layout_.data(), layout_.name_space(table.name_space),
                                       layout_.table(table)};
  for (const std::string& id : *ids) directories.push_back(layout_.region(table, id));
  return files_.sync_directories(directories);
}

Result<std::optional<TableName>> OldFiles::next_table() {
  const std::string archive = layout_.root() + "/archive";
  const Result<std::vector<std::string>> spaces = files_.list(archive);
  if (!spaces.ok()) return spaces.status();
  std::set<TableName> tables;
  for (const std::string& space : *spaces) {
    const Result<std::vector<std::string>> names = files_.list(archive + "/" + space);
    if (!names.ok()) return names.status();
    for (const std::string& name : *names) {
      tables.insert({ClusterLayout::decode_name(space), ClusterLayout::decode_name(name)});
    }
  }
  std::erase_if(archive_since_, [&](const auto& known) { return !tables.contains(known.first); });
  if (tables.empty()) return std::optional<TableName>();
  auto next = last_table_ ? tables.upper_bound(*last_table_) : tables.begin();
  if (next == tables.end()) next = tables.begin();
  last_table_ = *next;
  return last_table_;
}

OldFiles::Sweep OldFiles::sweep_archive(SteadyTime now) {
  const auto table = next_table();
  if (!table.ok()) return {.status = table.status()};
  if (!*table) return {};
  const std::string directory = parent_directory(layout_.archive(**table, "region"));
  const Result<std::vector<std::string>> names = files_.list(directory);
  if (!names.ok()) return {.status = names.status()};
  const auto needed = tables_.references(**table);
  if (!needed.ok()) return {.status = needed.status()};

  std::vector<std::string> unneeded;
  for (const std::string& name : *names) {
    const std::string id = ClusterLayout::decode_name(name);
    // A region that has a directory may read its own files from here: it is being archived.
    if (needed->contains(id)) continue;
    const Result<bool> there = files_.is_there(layout_.region(**table, id));
    if (!there.ok()) return {.status = there.status()};
    if (*there) continue;
    unneeded.push_back(layout_.archive(**table, id));
  }
  Since& since = archive_since_[**table];
  const auto old = too_old(since, unneeded, now, options_.archive_kept);
  Sweep sweep;
  if (!old.empty()) sweep.status = sync_regions(**table);
  for (const std::string& path : old) {
    if (sweep.status.ok()) sweep.status = files_.remove_tree(path);
    if (!sweep.status.ok()) return sweep;
    since.erase(path);
    ++sweep.removed;
  }
  if (sweep.removed == names->size()) sweep.status = files_.remove_directory(directory);
  return sweep;
}

}  // namespace pv2::cluster
