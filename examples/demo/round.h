// SPDX-License-Identifier: Apache-2.0
//
// Round: plays the story once: a table is created while the engine is killed, then a region server
// dies and the engine is killed again. After each act the cluster is checked from outside. Round
// trusts nothing that the executor says about itself.

#pragma once

#include <pv2/base/random.h>
#include <pv2/procedures/cluster_snapshot.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor_client.h"
#include "kill_point.h"
#include "options.h"
#include "region_servers.h"
#include "report.h"

namespace demo {

/// What goes wrong in a round.
struct RoundPlan {
  KillPoint in_create;
  KillPoint in_replay;  ///< In the life after the one that in_create ends.
  KillPoint in_crash;
  /// The region server dies while the table is created, instead of afterwards.
  bool server_dies_early = false;
};

/// Makes the plan that the command line asks for; random parts come from `random`.
[[nodiscard]] RoundPlan make_plan(const KillPoint& asked, pv2::Random& random);
[[nodiscard]] std::string to_string(const RoundPlan& plan);

/// Owned by one thread.
class Round {
 public:
  /// `directory` must exist and be empty.
  Round(std::string directory, const Options& options, RoundPlan plan, pv2::Random& random,
        Report& report);

  /// Plays the round; the report has the verdict.
  void play();
  /// How many executors were killed. A kill point after the end of its act kills none.
  [[nodiscard]] int kills() const { return kills_; }

 private:
  /// What a client wants; it is asked for in every life of the executor until the outcome is known.
  struct Request {
    std::string what;
    std::string command;
    std::optional<std::uint64_t> id;
    std::optional<ExecutorClient::Ended> ended;
  };

  void create_table();
  void crash_server();
  void drive(const std::vector<Request*>& requests, std::vector<KillPoint> kills);
  bool submit(Request& request);
  void begin_life(const KillPoint& kill_point);
  void tell_death();
  void check_ended(const Request& request);
  void check_replayed(const Request& request);
  void check_world(const std::string& when);
  [[nodiscard]] pv2::ClusterSnapshot look() const;
  void choose_victim();

  std::string directory_;
  const Options& options_;
  RoundPlan plan_;
  pv2::Random& random_;
  Report& report_;
  RegionServers servers_;
  std::unique_ptr<ExecutorClient> executor_;
  Request create_;
  Request crash_;
  pv2::ServerName victim_;
  pv2::ClusterSnapshot before_crash_;
  int kills_ = 0;
  bool broken_ = false;  ///< A life ended in a way that no later one can repair.
};

}  // namespace demo
