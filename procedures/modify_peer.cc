// SPDX-License-Identifier: Apache-2.0
//
// The steps that all changes of a peer have in common.

#include "pv2/procedures/modify_peer.h"

#include <vector>

#include "pv2/procedures/refresh_peer.h"

namespace pv2 {

LockSet ModifyPeer::locks() const { return LockSet().peer(peer_, LockMode::kExclusive); }

ModifyPeer::Flow ModifyPeer::execute_from_state(ModifyPeerStep step, StepContext& ctx) {
  switch (step) {
    case ModifyPeerStep::kPrePeerModification:
      return pre_peer_modification(ctx);
    case ModifyPeerStep::kUpdatePeerStorage:
      return update_peer_storage(ctx);
    case ModifyPeerStep::kRefreshPeerOnRs:
      return refresh_peer_on_rs(ctx);
    case ModifyPeerStep::kPostPeerModification:
      return clean_up(ctx).value_or(done(peer_));
  }
  return fail({StatusCode::kInternal, "a change of a peer has no such step"});
}

ModifyPeer::Flow ModifyPeer::pre_peer_modification(StepContext& ctx) {
  // Before it is asked for: a peer is a file.
  if (Status bad = check_name("peer", peer_, false); !bad.ok()) return fail(std::move(bad));
  const auto* stored = ctx.await<Result<std::optional<PeerRow>>>(
      [&](auto done) { ports_->peers.read_peer(peer_, std::move(done)); });
  if (stored == nullptr) return wait();
  const bool damaged = stored->status().code() == StatusCode::kCorruption;
  if (!stored->ok() && !damaged) return retry(stored->status());
  Result<std::optional<PeerRow>> decided =
      damaged ? decide_damaged(stored->status()) : decide(stored->value());
  if (!decided.ok()) return fail(decided.status());
  if (std::optional<Flow> objection = look_around(ctx)) return *std::move(objection);
  decided_ = *std::move(decided);
  return next(ModifyPeerStep::kUpdatePeerStorage);
}

ModifyPeer::Flow ModifyPeer::update_peer_storage(StepContext& ctx) {
  const auto* stored = ctx.await<Status>([&](auto done) {
    const std::string key = ctx.effect_key() + "/peer";
    if (decided_) return ports_->peers.write_peer(*decided_, key, std::move(done));
    ports_->peers.remove_peer(peer_, key, std::move(done));
  });
  if (stored == nullptr) return wait();
  if (!stored->ok()) return retry(*stored);
  return next(ModifyPeerStep::kRefreshPeerOnRs);
}

ModifyPeer::Flow ModifyPeer::refresh_peer_on_rs(StepContext& ctx) {
  const auto* live = ctx.await<Result<std::vector<ServerName>>>(
      [&](auto done) { ports_->servers.known_servers(std::move(done)); });
  if (live == nullptr) return wait();
  if (!live->ok()) return retry(live->status());
  for (const ServerName& server : live->value()) ctx.spawn(RefreshPeer(*ports_, peer_, server));
  return next(ModifyPeerStep::kPostPeerModification);
}

std::optional<ModifyPeer::Flow> ModifyPeer::refuse_own_cluster(StepContext& ctx,
                                                               const PeerConfig& config) {
  const auto* is_own = ctx.await<Result<bool>>(
      [&](auto done) { ports_->peers.is_own_cluster(config.cluster, std::move(done)); });
  if (is_own == nullptr) return wait();
  if (!is_own->ok()) return retry(is_own->status());
  if (!is_own->value()) return std::nullopt;
  return fail({StatusCode::kFailedPrecondition,
               "the cluster of peer " + peer_ + " in " + config.cluster +
                   " is this cluster itself; give the root directory of another one"});
}

Status ModifyPeer::check_exists(const std::optional<PeerRow>& stored) const {
  if (stored) return {};
  return {StatusCode::kNotFound,
          "peer " + peer_ + " does not exist; list the peers to find its id"};
}

Status check_peer_config(const std::string& peer, const PeerConfig& config) {
  if (!config.cluster.starts_with('/')) {
    return {StatusCode::kInvalidArgument, "the cluster of peer " + peer + " is '" + config.cluster +
                                              "', which is not an absolute path; give the path of "
                                              "the other cluster's root directory"};
  }
  for (const TableName& table : config.tables) {
    if (Status bad = check_name("namespace", table.name_space, false); !bad.ok()) return bad;
    if (Status bad = check_name("table", table.table, true); !bad.ok()) return bad;
  }
  return {};
}

}  // namespace pv2
