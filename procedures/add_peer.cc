// SPDX-License-Identifier: Apache-2.0
//
// What AddPeer checks before anything is stored: the id, the configuration, that the peer is
// another cluster, and that nothing of an older peer is left. It changes nothing itself; ModifyPeer
// does.

#include "pv2/procedures/add_peer.h"

namespace pv2 {

Result<std::optional<PeerRow>> AddPeer::decide(const std::optional<PeerRow>& stored) const {
  if (Status bad = check_peer_config(peer(), config_); !bad.ok()) return bad;
  if (stored) {
    return Status(StatusCode::kAlreadyExists,
                  "peer " + peer() + " exists already; choose another id, or update the peer");
  }
  return std::optional(PeerRow{peer(), config_, enabled_});
}

std::optional<AddPeer::Flow> AddPeer::look_around(StepContext& ctx) {
  if (std::optional<Flow> objection = refuse_own_cluster(ctx, config_)) return objection;
  const auto* left = ctx.await<Result<bool>>(
      [&](auto done) { ports().peers.has_queues(peer(), std::move(done)); });
  if (left == nullptr) return wait();
  if (!left->ok()) return retry(left->status());
  if (!left->value()) return std::nullopt;
  return fail({StatusCode::kFailedPrecondition,
               "a server still keeps a queue of an older peer " + peer() +
                   "; choose another id, or wait until that queue is removed"});
}

}  // namespace pv2
