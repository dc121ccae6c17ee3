// SPDX-License-Identifier: Apache-2.0
//
// RandomStory: a whole cluster, its clients and its operators, on one thread, in an order that a
// seed decides: also when which process dies, stops, comes back, or loses what it had not synced.
// Then everything becomes quiet, and what there is is compared with what clients were told. The
// same seed gives the same story.

#pragma once

#include <pv2/base/random.h>
#include <pv2/rpc/fault_routes.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/master/cluster_world.h"
#include "cluster/simulation/cluster_watch.h"
#include "cluster/simulation/story_clients.h"
#include "cluster/simulation/story_orders.h"
#include "cluster/simulation/write_history.h"

namespace pv2::testing::cluster_simulation {

struct StoryCounts {
  std::uint64_t writes = 0;
  std::uint64_t done_writes = 0;
  std::uint64_t unknown = 0;  ///< Before somebody went on with them.
  std::uint64_t orders = 0;
  std::uint64_t done = 0;  ///< Of the orders.
  std::uint64_t server_deaths = 0;
  std::uint64_t master_deaths = 0;
  std::uint64_t stops = 0;
  std::uint64_t power_cuts = 0;
  std::uint64_t deposed = 0;
  std::uint64_t moves = 0;  ///< Of regions.
  std::uint64_t turns = 0;

  StoryCounts& operator+=(const StoryCounts& other);
};

/// Owned by one thread.
class RandomStory {
 public:
  explicit RandomStory(std::uint64_t seed);

  /// Empty: all was well. Otherwise what was wrong, and the last lines of the story.
  std::string run();

  [[nodiscard]] const StoryCounts& counts() const noexcept { return counts_; }
  /// Of all lines of the trace.
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  /// What has happened, in order.
  [[nodiscard]] const std::vector<std::string>& lines() const noexcept { return lines_; }

 private:
  // The parts of a story, in order.
  void begin();
  void storm();
  void become_quiet();
  void check_end();

  // What happens in the storm.
  void move();
  void disturb_servers(std::uint64_t choice);
  void disturb_master(std::uint64_t choice);
  void haunt(const ServerName& server);
  void kill_some_server();
  void start_some_server();
  void start_master();
  void kill_master(cluster_world::ClusterWorld::Death death);
  void cut_power();
  void run_turns(std::uint64_t turns);
  void pass(Duration time);
  void mourn();

  // What becomes of it.
  bool run_until(const std::function<bool()>& done, Duration most);
  void run_everything(Duration time);
  [[nodiscard]] bool is_quiet();
  void keep_processes();
  void read_all();
  void check_files();
  void check_answers();
  [[nodiscard]] std::string explain();

  void tell(const std::string& line);
  void wrong(const std::string& what);
  [[nodiscard]] bool one_in(std::uint64_t n) { return random_.below(n) == 0; }
  [[nodiscard]] bool is_wrong();

  StoryCounts counts_;
  std::vector<std::string> lines_;
  std::uint64_t hash_ = 1469598103934665603ULL;
  std::string trouble_;

  // What follows tells its story to what is above.
  Random random_;
  cluster_world::ClusterWorld world_;
  FaultRoutes route_;
  FaultRoutes inner_route_;  ///< Between the processes of the cluster.
  WriteHistory history_;
  StoryOrders orders_;
  StoryClients clients_;
  ClusterWatch watch_;
  std::map<ServerName, bool> known_;  ///< Servers that run, and whether they are to come back.
  bool is_calm_ = false;
  bool cuts_power_ = false;
  std::uint64_t mildness_ = 0;  ///< In a hundred: how many of the faults do not come.
};

}  // namespace pv2::testing::cluster_simulation
