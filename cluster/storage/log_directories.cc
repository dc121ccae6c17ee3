// SPDX-License-Identifier: Apache-2.0
//
// The fence, and what follows it.

#include "storage/log_directories.h"

#include <algorithm>

namespace pv2::cluster {

Status LogDirectories::fence(const ServerName& server) const {
  const std::string directory = layout_.wals(server);
  const std::string fenced = layout_.splitting(server);
  const Result<bool> there = files_.is_there(fenced);
  if (!there.ok()) return there.status();
  if (*there) return files_.sync_directory(layout_.wals());
  // A server that starts meanwhile finds the directory made, or finds it gone and `fenced` there.
  // Without a directory to rename it could begin to write after the fence.
  if (Status bad = files_.make_directories(directory); !bad.ok()) return bad;
  Status renamed = files_.rename(directory, fenced);
  if (renamed.ok() || !files_.exists(fenced)) return renamed;
  // Another fence was faster. An empty directory that was made after it would look unfenced.
  if (Status bad = files_.remove_directory(directory); !bad.ok()) return bad;
  return files_.sync_directory(layout_.wals());
}

// An empty answer counts only if the server is fenced.
Status LogDirectories::check_is_fenced(const ServerName& server) const {
  const Result<bool> unfenced = files_.is_there(layout_.wals(server));
  if (!unfenced.ok() || !*unfenced) return unfenced.status();
  return {StatusCode::kUnavailable, layout_.wals(server) + " is not fenced"};
}

Result<std::vector<LogFile>> LogDirectories::logs(const ServerName& server, LogKind kind) const {
  const std::string directory = layout_.splitting(server);
  const Result<std::vector<std::string>> names = files_.list(directory);
  if (!names.ok()) return names.status();
  if (names->empty()) {
    if (Status bad = check_is_fenced(server); !bad.ok()) return bad;
  }
  std::vector<LogFile> logs;
  for (const std::string& name : *names) {
    if (name[0] != static_cast<char>(kind)) continue;
    const Result<std::uint64_t> size = files_.size(directory + "/" + name);
    if (size.status().code() == StatusCode::kNotFound) continue;  // archived meanwhile
    if (!size.ok()) return size.status();
    logs.push_back({name, *size});
  }
  // By number: "u10" is after "u9".
  std::ranges::stable_sort(logs, {}, [](const LogFile& log) { return log.name.size(); });
  return logs;
}

Status LogDirectories::archive(const ServerName& server, const LogFile& log) const {
  if (Status bad = files_.make_directories(layout_.old_wals()); !bad.ok()) return bad;
  const std::string archived = layout_.old_wal(server, log.name, log.size);
  Status moved = files_.rename(layout_.splitting(server) + "/" + log.name, archived);
  if (moved.code() != StatusCode::kNotFound || !files_.exists(archived)) return moved;
  // An earlier call moved it, and may have died before it was durable.
  if (Status bad = files_.sync_directory(layout_.old_wals()); !bad.ok()) return bad;
  return files_.sync_directory_if_there(layout_.splitting(server));
}

Status LogDirectories::remove(const ServerName& server) const {
  const std::string directory = layout_.splitting(server);
  const Result<std::vector<std::string>> names = files_.list(directory);
  if (!names.ok()) return names.status();
  if (!names->empty())
    return {StatusCode::kFailedPrecondition, directory + " still has " + names->front()};
  return files_.remove_tree(directory);
}

Status LogDirectories::remove_ghost(const ServerName& server) const {
  if (Status bad = files_.remove_tree(layout_.splitting(server)); !bad.ok()) return bad;
  return files_.remove_tree(layout_.wals(server));
}

Result<std::vector<ClusterLayout::LogDirectory>> LogDirectories::servers() const {
  const Result<std::vector<std::string>> names = files_.list(layout_.wals());
  if (!names.ok()) return names.status();
  std::vector<ClusterLayout::LogDirectory> servers;
  for (const std::string& name : *names) {
    if (auto directory = ClusterLayout::parse_log_directory(name)) servers.push_back(*directory);
  }
  return servers;
}

}  // namespace pv2::cluster
