// SPDX-License-Identifier: Apache-2.0
//
// DisablePeer: the servers stop shipping edits to a peer; they keep them in its queues. The steps
// are those of ModifyPeer.
//
// How it fails: in PRE_PEER_MODIFICATION only. kNotFound: there is no such peer.
// kFailedPrecondition: it is disabled already.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pv2/procedures/modify_peer.h"

namespace pv2 {

/// Threads and lock: as ModifyPeer.
class DisablePeer final : public ModifyPeer {
 public:
  static constexpr std::string_view kType = "cluster.DisablePeer";

  explicit DisablePeer(ClusterPorts& ports) : ModifyPeer(ports, {}) {}
  DisablePeer(ClusterPorts& ports, std::string peer) : ModifyPeer(ports, std::move(peer)) {}

  void fields(auto& f) { peer_fields(f); }

 private:
  [[nodiscard]] Result<std::optional<PeerRow>> decide(
      const std::optional<PeerRow>& stored) const override;
};

}  // namespace pv2
