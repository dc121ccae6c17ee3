// SPDX-License-Identifier: Apache-2.0
//
// AddPeer: makes another cluster a replication peer of this one. The steps are those of ModifyPeer.
//
// How it fails: in PRE_PEER_MODIFICATION only. kInvalidArgument: a bad id (letters, digits and '_':
// the names of replication queues use '-'), a path that is not absolute, a bad table name.
// kAlreadyExists: there is such a peer. kFailedPrecondition: the other cluster is this one; or a
// server still keeps a queue of an older peer with that id, whose edits must not go to the new one.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pv2/procedures/modify_peer.h"

namespace pv2 {

/// Threads and lock: as ModifyPeer.
class AddPeer final : public ModifyPeer {
 public:
  static constexpr std::string_view kType = "cluster.AddPeer";

  explicit AddPeer(ClusterPorts& ports) : ModifyPeer(ports, {}) {}
  /// Adds this peer, enabled or not.
  AddPeer(ClusterPorts& ports, PeerRow row)
      : ModifyPeer(ports, row.id), config_(std::move(row.config)), enabled_(row.enabled) {}

  void fields(auto& f) {
    peer_fields(f);
    f.arg(3, "config", config_);
    f.arg(4, "enabled", enabled_);
  }

 private:
  [[nodiscard]] Result<std::optional<PeerRow>> decide(
      const std::optional<PeerRow>& stored) const override;
  std::optional<Flow> look_around(StepContext& ctx) override;

  PeerConfig config_;
  bool enabled_ = true;
};

}  // namespace pv2
