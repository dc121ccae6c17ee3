// SPDX-License-Identifier: Apache-2.0
//
// ClaimQueues: has a live server go on with the replication to one peer that a dead server has
// left.
//
//     CHOOSE_SERVER -> DISPATCH
//           ^_____________|
//
//     back to CHOOSE_SERVER: the server refused, was not reached, failed, or crashed. A queue that
//     was claimed by a server which crashed then is claimed again by that server's own ServerCrash.
//
// | step          | reads                | writes                                               |
// | CHOOSE_SERVER | servers              | nothing; persists the server                         |
// | DISPATCH      | reports, server      | nothing; asks the server                             |
//
// How it fails: kFailedPrecondition, if the server whose queues it shall claim is not dead. If the
// peer is not there any more, the server removes the queues instead. A claim needs no
// configuration, so one that cannot be read does not stop it.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class ClaimQueuesStep { kChooseServer = 1, kDispatch = 2 };

/// Threads: as Procedure. Lock: the peer, shared, so that it is not removed meanwhile.
class ClaimQueues final : public StateMachineProcedure<ClaimQueuesStep> {
 public:
  using Step = ClaimQueuesStep;
  static constexpr std::string_view kType = "cluster.ClaimQueues";
  static constexpr std::string_view kCountedAs = "queues";
  static constexpr bool kFinalOnSuccess = true;
  static constexpr auto kSteps =
      steps(step(Step::kChooseServer, "CHOOSE_SERVER", kNoUndo).must_run(),
            step(Step::kDispatch, "DISPATCH", kNoUndo));

  explicit ClaimQueues(ClusterPorts& ports) : ports_(&ports) {}
  ClaimQueues(ClusterPorts& ports, ServerName dead, std::string peer);

  void fields(auto& f) {
    f.arg(1, "dead", dead_);
    f.arg(2, "peer", peer_);
    f(3, "target", target_);
    f(4, "avoided", avoided_);
    f(5, "reason", reason_);
  }

  [[nodiscard]] LockSet locks() const override;
  Flow execute_from_state(Step step, StepContext& ctx) override;

 private:
  Flow choose_server(StepContext& ctx);
  Flow dispatch(StepContext& ctx);
  Flow choose_another(std::string reason);

  ClusterPorts* ports_;
  ServerName dead_;
  std::string peer_;
  ServerName target_;                ///< Decided in CHOOSE_SERVER, used in DISPATCH.
  std::vector<ServerName> avoided_;  ///< They could not do it in this round.
  std::string reason_;
};

}  // namespace pv2
