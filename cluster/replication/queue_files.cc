// SPDX-License-Identifier: Apache-2.0
//
// A position is one frame in a file that is replaced as a whole.

#include "replication/queue_files.h"

#include "storage/framed_fields.h"
#include "storage/peer_files.h"

namespace pv2::cluster {

Result<bool> QueueFiles::make(const std::string& peer, const ServerName& server,
                              LogPosition position) const {
  const std::string path = layout_.queue_position(peer, server, server);
  const Result<bool> there = files_.is_there(path);
  if (!there.ok()) return there.status();
  if (*there) {
    if (Status bad = files_.sync_directory(parent_directory(path)); !bad.ok()) return bad;
    return false;
  }
  if (Status bad = files_.make_directories(layout_.queue(peer, server)); !bad.ok()) return bad;
  if (Status bad = files_.write(path, encode_framed(position)); !bad.ok()) return bad;
  return true;
}

Status QueueFiles::take_back(const std::string& peer, const ServerName& server) const {
  Status bad = remove(layout_.queue_position(peer, server, server));
  if (!bad.ok()) return bad;
  return files_.remove_directory(layout_.queue(peer, server));
}

Result<LogPosition> QueueFiles::record(const std::string& peer, const ServerName& server,
                                       const ServerName& owner,
                                       const QueueProgress& progress) const {
  const std::string path = layout_.queue_position(peer, server, owner);
  const auto stored = read(path);
  if (!stored.ok()) return stored.status();
  if (!*stored) return Status(StatusCode::kNotFound, path + " was claimed or removed");
  if (**stored < progress.from) return **stored;
  if (Status bad = files_.write(path, encode_framed(progress.to)); !bad.ok()) return bad;
  return progress.to;
}

Result<std::optional<LogPosition>> QueueFiles::finish(const std::string& peer,
                                                      const ServerName& server,
                                                      const ServerName& owner,
                                                      LogPosition from) const {
  const std::string path = layout_.queue_position(peer, server, owner);
  auto stored = read(path);
  if (!stored.ok() || (*stored && **stored < from)) return stored;
  if (Status bad = remove(path); !bad.ok()) return bad;
  return std::optional<LogPosition>();
}

Status QueueFiles::remove(const std::string& path) const {
  if (Status bad = files_.remove_file(path); !bad.ok()) return bad;
  return files_.sync_directory_if_there(parent_directory(path));
}

Status QueueFiles::remove_all(const std::string& peer, const ServerName& server) const {
  return files_.remove_tree(layout_.queue(peer, server));
}

Status QueueFiles::claim(const std::string& peer, const ServerName& dead,
                         const ServerName& claimer) const {
  const std::string source = layout_.queue(peer, dead);
  const std::string target = layout_.queue(peer, claimer);
  const Result<std::vector<std::string>> names = files_.list(source);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    const Status moved = move(source + "/" + name, target + "/" + name);
    if (moved.ok()) continue;
    // Another claimer was faster; or this server's own queues were claimed.
    if (moved.code() == StatusCode::kNotFound && files_.exists(target)) continue;
    return moved;
  }
  // An earlier claimer may have died before its renames were durable: this server, or another one.
  const auto servers = PeerFiles(files_, layout_).queues(peer);
  if (!servers.ok()) return servers.status();
  std::vector<std::string> directories;
  for (const ServerName& server : *servers) directories.push_back(layout_.queue(peer, server));
  if (Status bad = files_.sync_directories(directories); !bad.ok()) return bad;
  // A queue that has come meanwhile stays in its directory, and is claimed with that.
  return files_.remove_directory(source);
}

Status QueueFiles::move(const std::string& from, const std::string& to) const {
  const auto is_damaged = [](const auto& read) {
    return read.status().code() == StatusCode::kCorruption;
  };
  const auto present = read(to);
  if (!present.ok() && !is_damaged(present)) return present.status();
  if (present.ok() && !*present) return files_.rename(from, to);
  const auto claimed = read(from);
  if (!claimed.ok() && !is_damaged(claimed)) return claimed.status();
  // Nobody knows how far a damaged one was: it stays, so that the queue stops and says so.
  if (is_damaged(present)) return files_.remove_file(from);
  if (is_damaged(claimed)) return files_.rename(from, to);
  const bool is_earlier = *claimed && **claimed < **present;
  return is_earlier ? files_.rename(from, to) : files_.remove_file(from);
}

Result<std::optional<LogPosition>> QueueFiles::position(const std::string& peer,
                                                        const ServerName& server,
                                                        const ServerName& owner) const {
  return read(layout_.queue_position(peer, server, owner));
}

Result<std::optional<LogPosition>> QueueFiles::read(const std::string& path) const {
  const Result<std::string> bytes = files_.read(path);
  if (bytes.status().code() == StatusCode::kNotFound) return std::optional<LogPosition>();
  if (!bytes.ok()) return bytes.status();
  LogPosition position;
  if (!decode_framed(*bytes, position).ok()) {
    return Status(StatusCode::kCorruption, "the replication queue " + path +
                                               " cannot be read; remove the peer and add it "
                                               "again, and copy its tables");
  }
  return std::optional<LogPosition>(position);
}

Result<std::vector<StoredQueue>> QueueFiles::queues(const std::string& peer,
                                                    const ServerName& server) const {
  const Result<std::vector<std::string>> names = files_.list(layout_.queue(peer, server));
  if (!names.ok()) return names.status();
  std::vector<StoredQueue> found;
  for (const std::string& name : *names) {
    const ServerName owner = parse_server_name(ClusterLayout::decode_name(name));
    if (owner.empty()) continue;
    const auto position = read(layout_.queue_position(peer, server, owner));
    if (!position.ok()) found.push_back({peer, server, owner, {}, position.status()});
    if (position.ok() && *position) found.push_back({peer, server, owner, **position});
  }
  return found;
}

Result<std::vector<std::pair<std::string, ServerName>>> QueueFiles::directories() const {
  return PeerFiles(files_, layout_).all_queues();
}

Result<std::vector<StoredQueue>> QueueFiles::all() const {
  const auto servers = directories();
  if (!servers.ok()) return servers.status();
  std::vector<StoredQueue> found;
  for (const auto& [peer, server] : *servers) {
    auto own = queues(peer, server);
    if (!own.ok()) return own.status();
    found.insert(found.end(), own->begin(), own->end());
  }
  return found;
}

}  // namespace pv2::cluster
