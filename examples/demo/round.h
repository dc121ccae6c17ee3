// SPDX-License-Identifier: Apache-2.0
//
// Round: plays the story once: a table is created while the master is killed, then a region server
// dies under a client that writes, and the master is killed again. After each act the cluster is
// checked from outside. Round trusts nothing that the master says about itself.

#pragma once

#include <pv2/base/random.h>
#include <pv2/cluster/cluster_client.h>
#include <pv2/cluster/cluster_processes.h>
#include <pv2/procedures/cluster_snapshot.h>
#include <pv2/rpc/transport.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "counting_client.h"
#include "kill_point.h"
#include "master_keeper.h"
#include "options.h"
#include "report.h"

namespace demo {

/// Makes the plan that the command line asks for; random parts come from `random`.
[[nodiscard]] RoundPlan make_plan(const std::optional<KillPoint>& asked, pv2::Random& random);
[[nodiscard]] std::string to_string(const RoundPlan& plan);

/// Owned by one thread.
class Round {
 public:
  /// `directory` must exist and be empty.
  Round(std::string directory, const Options& options, RoundPlan plan, pv2::Random& random,
        Report& report);
  ~Round();

  /// Plays the round; the report has the verdict.
  void play();
  /// How many masters were killed. A kill point after the end of its act kills none.
  [[nodiscard]] int kills() const { return keeper_.deaths(); }

 private:
  bool begin();
  bool create_table();
  bool lose_server();
  void kill_victim();
  [[nodiscard]] pv2::SubmitOutcome submit_create();
  [[nodiscard]] std::optional<pv2::ProcedureResult> result_of(pv2::ProcedureId id);
  /// Waits for an answer, and keeps a master running meanwhile. No value: it took too long.
  template <class T>
  std::optional<T> answer(const std::function<void(std::function<void(T)>)>& ask);
  void tell_started();
  void tell_death(const std::string& last_words);
  void check_world(const std::string& when);
  void check_moves(const pv2::ClusterSnapshot& before);
  [[nodiscard]] pv2::ClusterSnapshot look() const;

  const std::string root_;
  const Options& options_;
  const RoundPlan plan_;
  pv2::Random& random_;
  Report& report_;
  pv2::cluster::ClusterProcesses processes_;
  MasterKeeper keeper_;
  std::shared_ptr<pv2::Transport> transport_;
  std::unique_ptr<pv2::cluster::ClusterClient> client_;
  std::unique_ptr<CountingClient> counter_;
  pv2::TableName table_;
  pv2::ServerName victim_;
};

}  // namespace demo
