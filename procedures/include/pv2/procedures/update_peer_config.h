// SPDX-License-Identifier: Apache-2.0
//
// UpdatePeerConfig: changes which tables are replicated to a peer. The steps are those of
// ModifyPeer.
//
// How it fails: in PRE_PEER_MODIFICATION only. kInvalidArgument: a bad configuration. kNotFound:
// there is no such peer. kFailedPrecondition: the configuration names another cluster; the queues
// of the peer are meant for the one that it has; or the one that it has has turned out to be this
// one.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pv2/procedures/modify_peer.h"

namespace pv2 {

/// Threads and lock: as ModifyPeer.
class UpdatePeerConfig final : public ModifyPeer {
 public:
  static constexpr std::string_view kType = "cluster.UpdatePeerConfig";

  explicit UpdatePeerConfig(ClusterPorts& ports) : ModifyPeer(ports, {}) {}
  UpdatePeerConfig(ClusterPorts& ports, std::string peer, PeerConfig config)
      : ModifyPeer(ports, std::move(peer)), config_(std::move(config)) {}

  void fields(auto& f) {
    peer_fields(f);
    f.arg(3, "config", config_);
  }

 private:
  [[nodiscard]] Result<std::optional<PeerRow>> decide(
      const std::optional<PeerRow>& stored) const override;
  std::optional<Flow> look_around(StepContext& ctx) override;

  PeerConfig config_;
};

}  // namespace pv2
