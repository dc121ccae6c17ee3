// SPDX-License-Identifier: Apache-2.0
//
// How a child is told what it is:
//
//     --as-master <root> <lease, ms>
//     --as-region-server <root> <host> <heartbeat, ms>
//
// Each says "ready" and who it is on its standard output when it listens.
//
// A child that misses this would be a run like any other: it would start a cluster, whose processes
// would do the same, without end. So a process looks at its own command line too, which no caller
// can cut off, before it says that it is no child, and before it starts one.

#include "pv2/cluster/cluster_processes.h"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "pv2/cluster/master.h"
#include "pv2/cluster/region_server.h"

namespace pv2::cluster {
namespace {

constexpr std::string_view kAsMaster = "--as-master";
constexpr std::string_view kAsRegionServer = "--as-region-server";
// Longer than anything takes on a busy machine.
constexpr auto kPatience = std::chrono::seconds(60);

std::string milliseconds_of(Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

// What is no number becomes 0, which check_options() refuses.
Duration milliseconds_in(std::string_view text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return std::chrono::milliseconds(is_number ? value : 0);
}

bool is_kind(std::string_view word) { return word == kAsMaster || word == kAsRegionServer; }

/// Whether this process was started as one of a cluster, by what the system knows of its start.
bool was_started_as_cluster_process() {
  std::ifstream line("/proc/self/cmdline", std::ios::binary);
  std::string word;
  std::getline(line, word, '\0');  // the name of the program
  return std::getline(line, word, '\0') && is_kind(word);
}

Status check_may_start() {
  if (!was_started_as_cluster_process()) return {};
  return {StatusCode::kFailedPrecondition,
          std::string(program_invocation_short_name) +
              " was started as a process of a cluster, and starts none: its main() has to begin "
              "with run_as_cluster_process()"};
}

/// What the child says after "ready ".
Result<std::string> hear_ready(ChildProcess& child, const std::string& what) {
  const std::optional<std::string> line = child.hear(kPatience);
  if (line && line->starts_with("ready ")) return line->substr(6);
  if (line) {
    return Status(StatusCode::kUnavailable,
                  what + " did not start: the process is not ready, but says '" + *line + "'");
  }
  return Status(StatusCode::kUnavailable,
                what + (child.ended() ? " did not start; its messages say why"
                                      : " said nothing for a minute"));
}

}  // namespace

std::optional<int> run_as_cluster_process(std::span<char* const> arguments) {
  if (arguments.size() > 1 && !is_kind(arguments[0])) arguments = arguments.subspan(1);
  const std::string_view kind = arguments.empty() ? std::string_view() : arguments[0];
  if (kind == kAsMaster && arguments.size() == 3) {
    return run_master({.root = arguments[1], .lease = milliseconds_in(arguments[2])});
  }
  if (kind == kAsRegionServer && arguments.size() == 4) {
    return run_region_server({.host = arguments[2],
                              .root = arguments[1],
                              .heartbeat_every = milliseconds_in(arguments[3])});
  }
  if (!is_kind(kind) && !was_started_as_cluster_process()) return std::nullopt;
  std::fprintf(stderr,
               "%s: started as a process of a cluster, with other arguments than %s <root> <lease, "
               "ms> or %s <root> <host> <heartbeat, ms>\n",
               program_invocation_short_name, kAsMaster.data(), kAsRegionServer.data());
  return 2;
}

Status ClusterProcesses::start(std::size_t servers) {
  if (Status bad = start_master(); !bad.ok()) return bad;
  for (std::size_t i = 1; i <= servers; ++i) {
    if (auto server = start_server("rs" + std::to_string(i)); !server.ok()) return server.status();
  }
  return {};
}

Status ClusterProcesses::start_master(const std::vector<std::string>& more) {
  if (Status bad = check_may_start(); !bad.ok()) return bad;
  if (master_lives()) return {StatusCode::kFailedPrecondition, "the master runs already"};
  // Writing to a dead child must not end the parent.
  std::signal(SIGPIPE, SIG_IGN);
  master_.reset();
  std::vector<std::string> arguments{std::string(kAsMaster), options_.root,
                                     milliseconds_of(options_.lease)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  auto child = ChildProcess::start(arguments, options_.messages);
  if (!child.ok()) return child.status();
  auto ready = hear_ready(**child, "the master of " + options_.root);
  if (!ready.ok()) return ready.status();
  master_ = *std::move(child);
  return {};
}

Result<ServerName> ClusterProcesses::start_server(const std::string& host) {
  if (Status bad = check_may_start(); !bad.ok()) return bad;
  if (server(host) != nullptr) {
    return Status(StatusCode::kFailedPrecondition,
                  "server " + to_string(servers_.at(host).name) + " runs already");
  }
  std::signal(SIGPIPE, SIG_IGN);
  auto child = ChildProcess::start({std::string(kAsRegionServer), options_.root, host,
                                    milliseconds_of(options_.heartbeat_every)},
                                   options_.messages);
  if (!child.ok()) return child.status();
  auto ready = hear_ready(**child, "the region server of " + host);
  if (!ready.ok()) return ready.status();
  const ServerName name = parse_server_name(ready->substr(0, ready->find(' ')));
  servers_[host] = {name, *std::move(child)};
  return name;
}

ChildProcess* ClusterProcesses::server(const std::string& host) {
  const auto found = servers_.find(host);
  if (found == servers_.end()) return nullptr;
  if (!found->second.process->is_gone()) return found->second.process.get();
  servers_.erase(found);
  return nullptr;
}

Status ClusterProcesses::kill_server(const std::string& host) {
  if (server(host) == nullptr) {
    return {StatusCode::kNotFound, "no region server runs on host '" + host + "'"};
  }
  servers_.erase(host);
  return {};
}

std::vector<ServerName> ClusterProcesses::servers() {
  std::vector<ServerName> names;
  std::erase_if(servers_, [](const auto& entry) { return entry.second.process->is_gone(); });
  for (const auto& [host, server] : servers_) names.push_back(server.name);
  return names;
}

}  // namespace pv2::cluster
