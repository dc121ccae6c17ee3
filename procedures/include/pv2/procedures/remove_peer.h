// SPDX-License-Identifier: Apache-2.0
//
// RemovePeer: ends the replication to a peer and removes its queues. The steps are those of
// ModifyPeer. POST_PEER_MODIFICATION removes the queues in two passes: while the first one runs,
// a server that had not heard of the removal may have begun one more. Then it looks whether any is
// left.
//
// How it fails: in PRE_PEER_MODIFICATION only. kNotFound: there is no such peer.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pv2/procedures/modify_peer.h"

namespace pv2 {

/// Threads and lock: as ModifyPeer.
class RemovePeer final : public ModifyPeer {
 public:
  static constexpr std::string_view kType = "cluster.RemovePeer";

  explicit RemovePeer(ClusterPorts& ports) : ModifyPeer(ports, {}) {}
  RemovePeer(ClusterPorts& ports, std::string peer) : ModifyPeer(ports, std::move(peer)) {}

  void fields(auto& f) { peer_fields(f); }

 private:
  [[nodiscard]] Result<std::optional<PeerRow>> decide(
      const std::optional<PeerRow>& stored) const override;
  [[nodiscard]] Result<std::optional<PeerRow>> decide_damaged(
      const Status& /*damage*/) const override {
    return std::optional<PeerRow>();
  }
  std::optional<Flow> clean_up(StepContext& ctx) override;
};

}  // namespace pv2
