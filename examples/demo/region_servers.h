// SPDX-License-Identifier: Apache-2.0
//
// RegionServers: the demo's region servers, each a process of its own that the demo's process
// starts and that ends with it.

#pragma once

#include <pv2/procedures/server.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/child_process.h"

namespace demo {

/// Owned by one thread.
class RegionServers {
 public:
  /// Starts `count` servers of the cluster in `directory` and waits until they serve. Exits the
  /// program if one does not.
  RegionServers(const std::string& directory, int count);

  [[nodiscard]] std::vector<pv2::ServerName> names() const;
  [[nodiscard]] pid_t pid(const pv2::ServerName& name) const { return servers_.at(name)->pid(); }
  /// Sends SIGKILL.
  void kill(const pv2::ServerName& name) { servers_.at(name)->kill(); }

 private:
  std::map<pv2::ServerName, std::unique_ptr<example::ChildProcess>> servers_;
};

}  // namespace demo
