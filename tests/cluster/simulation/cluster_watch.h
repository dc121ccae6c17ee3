// SPDX-License-Identifier: Apache-2.0
//
// ClusterWatch: what must hold at every moment of a cluster, and not only when it is quiet. It sees
// through all processes, also those that are stopped, and through the master's memory. It changes
// nothing.

#pragma once

#include <pv2/procedures/region.h>
#include <pv2/procedures/server.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "cluster/master/cluster_world.h"

namespace pv2::testing::cluster_simulation {

/// Owned by one thread. The first thing that is wrong is kept in words, with the name of the
/// invariant.
class ClusterWatch {
 public:
  explicit ClusterWatch(cluster_world::ClusterWorld& world) : world_(world) {}

  /// Looks at the servers and the catalogue: cheap enough for every turn.
  void look();
  /// Looks at all procedures and their locks.
  void look_at_procedures();
  /// Before the master dies, and after the next one has loaded and not run yet.
  void remember_locks();
  void compare_locks();

  [[nodiscard]] const std::string& disorder() const noexcept { return disorder_; }
  [[nodiscard]] std::uint64_t looks() const noexcept { return looks_; }
  /// How often a region was found on another server than before.
  [[nodiscard]] std::uint64_t moves() const noexcept { return moves_; }

 private:
  struct Seen {
    ServerName server;
    std::uint64_t sequence = 0;
  };

  void wrong(const std::string& invariant, const std::string& what);
  void look_at_servers();
  void look_at_catalogue();
  void serves_now(const ServerName& server, const cluster::RegionStatus& region);

  cluster_world::ClusterWorld& world_;
  std::map<std::string, Seen> served_;                     // by region
  std::map<std::string, std::uint64_t> sequences_;         // of the catalogue's rows
  std::set<std::pair<std::string, std::uint64_t>> locks_;  // key, procedure
  std::uint64_t looks_ = 0;
  std::uint64_t moves_ = 0;
  std::string disorder_;
};

}  // namespace pv2::testing::cluster_simulation
