// SPDX-License-Identifier: Apache-2.0
//
// RefreshPeer: has one server read what is stored of a peer again. ModifyPeer runs one for each
// server that may be alive.
//
//     REFRESH -> done: the server has reported that it has read, or it is recorded as crashed
//      ^____|
//       the server refused, or reported a failure: asked again under another effect key
//
// It never fails and is never undone. A crashed server counts as done: whatever takes its place
// reads what is stored when it starts. After a crash of the control plane the server is asked under
// the same effect key, and repeats its report.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <string>
#include <string_view>
#include <utility>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class RefreshPeerStep { kRefresh = 1 };

/// Threads: as Procedure. Lock: none; its parent has the peer's.
class RefreshPeer final : public StateMachineProcedure<RefreshPeerStep> {
 public:
  static constexpr std::string_view kType = "cluster.RefreshPeer";
  static constexpr bool kChildOnly = true;
  static constexpr std::string_view kCountedAs = "servers";
  static constexpr auto kSteps = steps(step(RefreshPeerStep::kRefresh, "REFRESH", kNoUndo));

  explicit RefreshPeer(ClusterPorts& ports) : ports_(&ports) {}
  RefreshPeer(ClusterPorts& ports, std::string peer, ServerName server)
      : ports_(&ports), peer_(std::move(peer)), server_(std::move(server)) {}

  void fields(auto& f) {
    f.arg(1, "peer", peer_);
    f.arg(2, "server", server_);
  }

  Flow execute_from_state(RefreshPeerStep step, StepContext& ctx) override;

 private:
  static Flow ask_anew(StepContext& ctx);

  ClusterPorts* ports_;
  std::string peer_;
  ServerName server_;
};

}  // namespace pv2
