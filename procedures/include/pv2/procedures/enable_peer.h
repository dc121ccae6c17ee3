// SPDX-License-Identifier: Apache-2.0
//
// EnablePeer: the servers ship edits to a peer again, from where they had stopped. The steps are
// those of ModifyPeer.
//
// How it fails: in PRE_PEER_MODIFICATION only. kNotFound: there is no such peer.
// kFailedPrecondition: it is enabled already.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pv2/procedures/modify_peer.h"

namespace pv2 {

/// Threads and lock: as ModifyPeer.
class EnablePeer final : public ModifyPeer {
 public:
  static constexpr std::string_view kType = "cluster.EnablePeer";

  explicit EnablePeer(ClusterPorts& ports) : ModifyPeer(ports, {}) {}
  EnablePeer(ClusterPorts& ports, std::string peer) : ModifyPeer(ports, std::move(peer)) {}

  void fields(auto& f) { peer_fields(f); }

 private:
  [[nodiscard]] Result<std::optional<PeerRow>> decide(
      const std::optional<PeerRow>& stored) const override;
};

}  // namespace pv2
