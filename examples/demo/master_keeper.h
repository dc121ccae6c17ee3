// SPDX-License-Identifier: Apache-2.0
//
// MasterKeeper: keeps a master running. It starts the first one, kills it from outside when a kill
// point in time has come, and starts the next one when it finds that one has died.

#pragma once

#include <pv2/cluster/cluster_processes.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "kill_point.h"

namespace demo {

/// What goes wrong in a round.
struct RoundPlan {
  KillPoint in_create;
  KillPoint in_replay;  ///< In the life after the one that in_create ends.
  KillPoint in_crash;
  /// The region server dies while the table is created, instead of afterwards.
  bool server_dies_early = false;
};

/// Owned by one thread, the one that owns `processes`, which outlives it.
class MasterKeeper {
 public:
  struct Events {
    /// A master has died; empty: it was killed from outside.
    std::function<void(const std::string& last_words)> died;
    std::function<void()> started;
  };

  MasterKeeper(pv2::cluster::ClusterProcesses& processes, const RoundPlan& plan, Events events)
      : processes_(processes), plan_(plan), events_(std::move(events)) {}

  pv2::Status start();
  /// From now on the kill point of the act counts.
  void begin(Act act);
  /// Cancels a kill whose time has not come.
  void spare() { kill_at_.reset(); }
  /// Does what is due. To be called often.
  pv2::Status watch();
  /// How many masters have died.
  [[nodiscard]] int deaths() const { return deaths_; }

 private:
  [[nodiscard]] const KillPoint& point_of(Act act) const;
  void arm();

  pv2::cluster::ClusterProcesses& processes_;
  const RoundPlan plan_;
  const Events events_;
  std::optional<Act> act_;
  int deaths_ = 0;
  int deaths_in_create_ = 0;
  int deaths_in_crash_ = 0;
  std::optional<std::chrono::steady_clock::time_point> kill_at_;
};

}  // namespace demo
