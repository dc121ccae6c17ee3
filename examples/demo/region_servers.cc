// SPDX-License-Identifier: Apache-2.0
//
// Starts region servers, all at once, and waits until each of them serves.

#include "region_servers.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace demo {

RegionServers::RegionServers(const std::string& directory, int count) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto start_code = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  for (int i = 1; i <= count; ++i) {
    const pv2::ServerName name{"rs" + std::to_string(i), static_cast<std::uint64_t>(start_code)};
    servers_[name] = std::make_unique<example::ChildProcess>(
        std::vector<std::string>{"--as-region-server", directory + "/cluster", to_string(name)});
  }
  for (const auto& [name, process] : servers_) {
    if (process->hear(std::chrono::seconds(30)) != "ready") {
      std::fprintf(stderr, "pv2_demo: region server %s did not start\n", to_string(name).c_str());
      std::exit(1);
    }
  }
}

std::vector<pv2::ServerName> RegionServers::names() const {
  std::vector<pv2::ServerName> names;
  for (const auto& [name, process] : servers_) names.push_back(name);
  return names;
}

}  // namespace demo
