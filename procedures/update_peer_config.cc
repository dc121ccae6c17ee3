// SPDX-License-Identifier: Apache-2.0
//
// What UpdatePeerConfig checks, and the row that it decides on. It changes nothing itself;
// ModifyPeer does.

#include "pv2/procedures/update_peer_config.h"

namespace pv2 {

Result<std::optional<PeerRow>> UpdatePeerConfig::decide(
    const std::optional<PeerRow>& stored) const {
  if (Status bad = check_exists(stored); !bad.ok()) return bad;
  if (Status bad = check_peer_config(peer(), config_); !bad.ok()) return bad;
  if (config_.cluster != stored->config.cluster) {
    return Status(StatusCode::kFailedPrecondition,
                  "peer " + peer() + " is cluster " + stored->config.cluster +
                      ", which cannot be changed to " + config_.cluster +
                      "; add another peer for that cluster");
  }
  std::optional<PeerRow> changed = stored;
  changed->config = config_;
  return changed;
}

std::optional<UpdatePeerConfig::Flow> UpdatePeerConfig::look_around(StepContext& ctx) {
  return refuse_own_cluster(ctx, config_);
}

}  // namespace pv2
