// SPDX-License-Identifier: Apache-2.0
//
// Leases. An entry that was given up stays until the server is recorded as dead, so that it cannot
// come back in between.

#include "master/server_registry.h"

#include <utility>

namespace pv2::cluster {

void ServerRegistry::expect(const ServerName& server, SteadyTime now) {
  servers_.try_emplace(server, Entry{now, std::nullopt, false});
}

bool ServerRegistry::heard(const Heartbeat& heartbeat, SteadyTime now) {
  Entry& entry = servers_[heartbeat.server];
  if (entry.is_given_up) return false;
  entry.last_heard = now;
  entry.heartbeat = heartbeat;
  return true;
}

void ServerRegistry::give_up(const ServerName& server, const std::string& why) {
  Entry& entry = servers_[server];
  if (entry.is_given_up) return;
  entry.is_given_up = true;
  expired_(server, why);
}

void ServerRegistry::look(SteadyTime now) {
  const bool has_slept = now - std::exchange(looked_, now) > lease_ / 2;
  if (has_slept) {
    for (auto& [name, entry] : servers_) entry.last_heard = now;
    return;
  }
  std::vector<ServerName> silent;
  for (const auto& [name, entry] : servers_) {
    if (!entry.is_given_up && now - entry.last_heard > lease_) silent.push_back(name);
  }
  for (const ServerName& name : silent) give_up(name, "it was silent for longer than its lease");
}

void ServerRegistry::forget(const ServerName& server) { servers_.erase(server); }

std::vector<ServerName> ServerRegistry::live() const {
  std::vector<ServerName> names;
  for (const auto& [name, entry] : servers_) {
    if (entry.heartbeat && !entry.is_given_up) names.push_back(name);
  }
  return names;
}

bool ServerRegistry::lives(const ServerName& server) const {
  const auto found = servers_.find(server);
  return found != servers_.end() && found->second.heartbeat && !found->second.is_given_up;
}

bool ServerRegistry::is_expected(const ServerName& server) const {
  const auto found = servers_.find(server);
  return found != servers_.end() && !found->second.heartbeat;
}

bool ServerRegistry::is_given_up(const ServerName& server) const {
  const auto found = servers_.find(server);
  return found != servers_.end() && found->second.is_given_up;
}

std::vector<ServerName> ServerRegistry::known() const {
  std::vector<ServerName> names;
  for (const auto& [name, entry] : servers_) {
    if (!entry.is_given_up) names.push_back(name);
  }
  return names;
}

std::optional<std::string> ServerRegistry::address(const ServerName& server) const {
  const auto found = servers_.find(server);
  if (found == servers_.end() || !found->second.heartbeat) return std::nullopt;
  return found->second.heartbeat->address;
}

std::vector<ServerEntry> ServerRegistry::entries(SteadyTime now) const {
  std::vector<ServerEntry> entries;
  for (const auto& [name, entry] : servers_) {
    if (!entry.heartbeat || entry.is_given_up) continue;
    const Heartbeat& said = *entry.heartbeat;
    entries.push_back(
        {name, said.address, said.regions, said.requests, said.bytes, now - entry.last_heard});
  }
  return entries;
}

}  // namespace pv2::cluster
