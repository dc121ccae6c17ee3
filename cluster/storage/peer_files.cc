// SPDX-License-Identifier: Apache-2.0
//
// A peer's file is one frame around its fields.

#include "storage/peer_files.h"

#include <algorithm>

#include "storage/framed_fields.h"

namespace pv2::cluster {

std::string PeerFiles::config(const std::string& id) const { return layout_.peer(id) + "/config"; }

Result<std::optional<PeerRow>> PeerFiles::read(const std::string& id) const {
  const std::string path = config(id);
  const Result<std::string> bytes = files_.read(path);
  if (bytes.status().code() == StatusCode::kNotFound) return std::optional<PeerRow>();
  if (!bytes.ok()) return bytes.status();
  PeerRow peer;
  if (!decode_framed(*bytes, peer).ok()) {
    return Status(StatusCode::kCorruption, "the configuration of peer " + id + " in " + path +
                                               " cannot be read; remove the peer and add it again");
  }
  return std::optional<PeerRow>(std::move(peer));
}

Result<std::vector<std::string>> PeerFiles::ids() const {
  const Result<std::vector<std::string>> names = files_.list(layout_.peers());
  if (!names.ok()) return names.status();
  std::vector<std::string> ids;
  for (const std::string& name : *names) {
    std::string id = ClusterLayout::decode_name(name);
    const Result<bool> there = files_.is_there(config(id));
    // One of which nobody can tell is not passed over.
    if (!there.ok() || *there) ids.push_back(std::move(id));
  }
  std::ranges::sort(ids);
  return ids;
}

Result<PeerList> PeerFiles::list() const {
  const Result<std::vector<std::string>> all = ids();
  if (!all.ok()) return all.status();
  PeerList found;
  for (const std::string& id : *all) {
    Result<std::optional<PeerRow>> peer = read(id);
    if (!peer.ok()) {
      found.unreadable.emplace(id, peer.status());
    } else if (*peer) {
      found.peers.push_back(std::move(**peer));
    }
  }
  return found;
}

Status PeerFiles::write(PeerRow peer) const {
  if (Status bad = files_.make_directories(layout_.peer(peer.id)); !bad.ok()) return bad;
  return files_.write(config(peer.id), encode_framed(peer));
}

Status PeerFiles::remove(const std::string& id) const {
  if (Status bad = files_.remove_file(config(id)); !bad.ok()) return bad;
  return files_.remove_tree(layout_.peer(id));
}

Result<bool> PeerFiles::is_own_cluster(const std::string& root) const {
  const Result<std::string> own = files_.read(layout_.cluster_id());
  if (!own.ok()) return own.status();
  // What is no cluster yet may become one: the servers look again before they ship.
  const Result<std::string> other = files_.read(ClusterLayout(root).cluster_id());
  return other.ok() && *other == *own;
}

Result<std::vector<ServerName>> PeerFiles::queues(const std::string& id) const {
  const Result<std::vector<std::string>> names = files_.list(layout_.queues(id));
  if (!names.ok()) return names.status();
  std::vector<ServerName> servers;
  for (const std::string& name : *names) {
    const ServerName server = parse_server_name(ClusterLayout::decode_name(name));
    if (!server.empty()) servers.push_back(server);
  }
  return servers;
}

Result<std::vector<std::pair<std::string, ServerName>>> PeerFiles::all_queues() const {
  const Result<std::vector<std::string>> names = files_.list(layout_.queues());
  if (!names.ok()) return names.status();
  std::vector<std::pair<std::string, ServerName>> found;
  for (const std::string& name : *names) {
    const std::string id = ClusterLayout::decode_name(name);
    const Result<std::vector<ServerName>> servers = queues(id);
    if (!servers.ok()) return servers.status();
    for (const ServerName& server : *servers) found.emplace_back(id, server);
  }
  return found;
}

Status PeerFiles::remove_queues(const std::string& id) const {
  return files_.remove_tree(layout_.queues(id));
}

}  // namespace pv2::cluster
