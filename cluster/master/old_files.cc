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

OldFiles::Sweep OldFiles::sweep_logs(SteadyTime now) {
  Sweep sweep;
  if (Status bad = remove_logs(now, sweep); !bad.ok()) sweep.status = bad;
  return sweep;
}

OldFiles::Sweep OldFiles::sweep_archive(SteadyTime now) {
  Sweep sweep;
  sweep.status = remove_archived(now, sweep);
  return sweep;
}

bool OldFiles::is_over(Since& since, const std::string& path, SteadyTime now, Duration kept) {
  return now - since.emplace(path, now).first->second >= kept;
}

Result<std::optional<OldFiles::FirstNeeded>> OldFiles::first_needed(Sweep& sweep) const {
  const auto first = queues_.all();
  if (!first.ok()) return first.status();
  const auto second = queues_.all();
  if (!second.ok()) return second.status();
  if (holders(*first) != holders(*second)) return std::optional<FirstNeeded>();
  FirstNeeded needed;
  for (const auto& queues : {*first, *second}) {
    for (const StoredQueue& queue : queues) {
      // A queue whose position is not known may need any log.
      const std::uint64_t first_log = queue.problem.ok() ? queue.position.log : 0;
      if (sweep.status.ok()) sweep.status = queue.problem;
      const auto [log, is_new] = needed.emplace(queue.owner, first_log);
      if (!is_new) log->second = std::min(log->second, first_log);
    }
  }
  return std::optional(std::move(needed));
}

Status OldFiles::remove_logs(SteadyTime now, Sweep& sweep) {
  const Result<std::vector<std::string>> names = files_.list(layout_.old_wals());
  if (!names.ok()) return names.status();
  const auto needed = first_needed(sweep);
  if (!needed.ok()) return needed.status();
  if (!needed->has_value()) return {};

  Since since;
  for (const std::string& name : *names) {
    const auto log = ClusterLayout::parse_old_wal(name);
    if (!log) continue;  // not ours
    const auto first = (*needed)->find(log->server);
    const bool is_needed =
        log->kind == kUserLog && first != (*needed)->end() && log->number >= first->second;
    if (is_needed) continue;
    const std::string path = layout_.old_wals() + "/" + name;
    if (const auto known = logs_since_.find(path); known != logs_since_.end()) since.insert(*known);
    if (!is_over(since, path, now, options_.logs_kept)) continue;
    if (sweep.removed == options_.removals_max) continue;
    if (sweep.removed == 0) {
      if (Status bad = sync_queues(); !bad.ok()) return bad;
    }
    if (Status bad = files_.remove_file(path); !bad.ok()) return bad;
    since.erase(path);
    ++sweep.removed;
  }
  logs_since_ = std::move(since);
  return sweep.removed == 0 ? Status() : files_.sync_directory(layout_.old_wals());
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

Status OldFiles::remove_archived(SteadyTime now, Sweep& sweep) {
  const auto table = next_table();
  if (!table.ok()) return table.status();
  if (!*table) return {};
  const std::string directory = parent_directory(layout_.archive(**table, "region"));
  const Result<std::vector<std::string>> names = files_.list(directory);
  if (!names.ok()) return names.status();
  const auto needed = tables_.references(**table);
  if (!needed.ok()) return needed.status();

  Since since;
  Since& before = archive_since_[**table];
  std::size_t left = names->size();
  for (const std::string& name : *names) {
    const std::string id = ClusterLayout::decode_name(name);
    // A region that has a directory may read its own files from here: it is being archived.
    if (needed->contains(id)) continue;
    const Result<bool> there = files_.is_there(layout_.region(**table, id));
    if (!there.ok()) return there.status();
    if (*there) continue;
    const std::string path = layout_.archive(**table, id);
    if (const auto known = before.find(path); known != before.end()) since.insert(*known);
    if (!is_over(since, path, now, options_.archive_kept)) continue;
    if (sweep.removed == options_.removals_max) continue;
    if (sweep.removed == 0) {
      if (Status bad = sync_regions(**table); !bad.ok()) return bad;
    }
    if (Status bad = files_.remove_tree(path); !bad.ok()) return bad;
    since.erase(path);
    ++sweep.removed;
    --left;
  }
  before = std::move(since);
  return left == 0 ? files_.remove_tree(directory) : Status();
}

}  // namespace pv2::cluster
