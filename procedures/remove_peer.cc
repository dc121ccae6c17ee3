// SPDX-License-Identifier: Apache-2.0
//
// What RemovePeer checks and cleans up.

#include "pv2/procedures/remove_peer.h"

namespace pv2 {

Result<std::optional<PeerRow>> RemovePeer::decide(const std::optional<PeerRow>& stored) const {
  if (Status bad = check_exists(stored); !bad.ok()) return bad;
  return std::optional<PeerRow>();
}

std::optional<RemovePeer::Flow> RemovePeer::clean_up(StepContext& ctx) {
  for (const std::string_view pass : {"/queues/1", "/queues/2"}) {
    const auto* removed = ctx.await<Status>([&](auto done) {
      ports().peers.remove_queues(peer(), ctx.effect_key() + std::string(pass), std::move(done));
    });
    if (removed == nullptr) return wait();
    if (!removed->ok()) return retry(*removed);
  }
  const auto* left = ctx.await<Result<bool>>(
      [&](auto done) { ports().peers.has_queues(peer(), std::move(done)); });
  if (left == nullptr) return wait();
  if (!left->ok()) return retry(left->status());
  if (!left->value()) return std::nullopt;
  return retry({StatusCode::kUnavailable,
                "a server has begun another queue of peer " + peer() + "; removing it too"});
}

}  // namespace pv2
